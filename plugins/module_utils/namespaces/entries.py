# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One of many namespaces, as a playbook gives it: Ansible itself knows it only as a dictionary. Pure."""

from __future__ import annotations

import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError

Object = dict[str, t.Any]


def checked(entry: Object, validator: ArgumentSpecValidator) -> Object:
    """The entry with the types that its options have.

    :raises StewardError: an option is none, or of another type
    """
    options = validator.argument_spec
    unknown = sorted(map(str, set(entry) - set(options)))
    if unknown:
        known = ", ".join(name for name in options if name != "name")
        raise StewardError(f"{unknown[0]} is no option of one namespace; {known} are")
    for option, value in entry.items():
        _check_shape(option, value, options[option])
    found = validator.validate(entry)
    if found.error_messages:
        raise StewardError("; ".join(found.error_messages))
    return {key: value for key, value in found.validated_parameters.items() if value is not None}


def _check_shape(where: str, value: t.Any, spec: Object) -> None:
    """Refuse what Ansible's own check breaks off at: no map where there are options, or keys that are no texts."""
    known = spec.get("options")
    if not known or value is None:
        return
    for item in value if isinstance(value, list) else [value]:
        # a text may still be read as a map
        if not isinstance(item, (dict, str)) or not all(isinstance(key, str) for key in item):
            raise StewardError(f"{where}: {item!r} is no map of {', '.join(sorted(known))}")
        for key, below in item.items() if isinstance(item, dict) else ():
            _check_shape(f"{where}.{key}", below, known.get(key) or {})

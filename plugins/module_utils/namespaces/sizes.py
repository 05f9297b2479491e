# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sizes of namespaces: three by default, or the administrator's own. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import forms
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import limits as container_limits


@dataclasses.dataclass(frozen=True)
class Size:
    """What a namespace of one size gets.

    :ivar quota: `hard` of its ResourceQuota, object counts such as `count/pods` among it
    :ivar limit_range: `default`, `default_request`, `max`, `min` of containers; what is absent is half of the quota
    :ivar node_selector: labels of the nodes on which its Pods run
    """

    quota: t.Mapping[str, str]
    limit_range: t.Mapping[str, t.Mapping[str, str]] = dataclasses.field(default_factory=dict)
    node_selector: t.Mapping[str, str] = dataclasses.field(default_factory=dict)


DEFAULTS: t.Mapping[str, Size] = {
    "small": Size({"limits.cpu": "100m", "limits.memory": "100Mi"}),
    "medium": Size({"limits.cpu": "200m", "limits.memory": "200Mi"}),
    "large": Size({"limits.cpu": "300m", "limits.memory": "300Mi"}),
}
LIMITS = container_limits.KEYS
_KEYS = ("quota", "limit_range", "node_selector")


def read(given: t.Mapping[str, t.Any] | None) -> t.Mapping[str, Size]:
    """The administrator's sizes, which replace the three; nothing given means the three.

    :param given: name -> {`quota`: {resource: quantity}, `limit_range`: {`default`: {...}, ...}, `node_selector`}
    :raises StewardError: a size that is none; the message names it
    """
    if not given:
        return DEFAULTS
    return {str(name): _size(str(name), entry) for name, entry in given.items()}


def _size(name: str, entry: t.Any) -> Size:
    where = f"size {name}"
    if not name or not forms.is_value(name):
        # it is the value of the label `size`
        raise StewardError(f"size {name!r} has a name that no label can have: at most 63 of a-z, A-Z, 0-9, -, _ and .")
    if not isinstance(entry, t.Mapping) or not isinstance(entry.get("quota"), t.Mapping) or not entry["quota"]:
        raise StewardError(f"{where} has no quota; give it as a map, for example limits.cpu: 300m")
    unknown = set(entry) - set(_KEYS)
    if unknown:
        raise StewardError(f"{where} has the key {sorted(map(str, unknown))[0]}; {', '.join(_KEYS)} are known")
    found = limits(entry.get("limit_range") or {}, f"{where}: ")
    container_limits.check(found, f"{where}: ")
    return Size(quota(entry["quota"], f"{where}: quota"), found, _node_selector(entry.get("node_selector"), where))


def _node_selector(given: t.Any, where: str) -> dict[str, str]:
    if not given:
        return {}
    if not isinstance(given, t.Mapping):
        raise StewardError(f"{where}: node_selector is not a map of labels, for example pool: teams")
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str) or not forms.is_key(key) or not forms.is_value(value):
            raise StewardError(f"{where}: node_selector: {key}: {value!r} is no label; quote what YAML reads otherwise")
    return dict(given)


def limits(given: t.Any, where: str) -> dict[str, dict[str, str]]:
    """Container limits as they were given, each checked by itself.

    :param where: what stands before the option in a message
    :raises StewardError: a key that is none, or no quantity
    """
    if not isinstance(given, t.Mapping):
        raise StewardError(f"{where}limit_range is not a map of {', '.join(LIMITS)}")
    unknown = set(given) - set(LIMITS)
    if unknown:
        first = sorted(map(str, unknown))[0]
        raise StewardError(f"{where}limit_range has the key {first}; {', '.join(LIMITS)} are known")
    return {
        key: _amounts(given[key], f"{where}limit_range.{key}", forms.check_limit) for key in LIMITS if given.get(key)
    }


def quota(given: t.Any, where: str) -> dict[str, str]:
    """A map of resource -> quantity as texts.

    :raises StewardError: it is no map, a key is no resource of a quota, or a value is no quantity that can be
    """
    return _amounts(given, where, forms.check_quota)


def _amounts(given: t.Any, where: str, check: t.Callable[[str, t.Any, str], None]) -> dict[str, str]:
    if not isinstance(given, t.Mapping):
        raise StewardError(f"{where} is not a map of resources and quantities")
    for resource, amount in given.items():
        # the API server would refuse the whole object, in a namespace that is there already
        check(str(resource), amount, where)
    return {str(resource): str(amount) for resource, amount in given.items()}

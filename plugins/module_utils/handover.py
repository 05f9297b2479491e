# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one task hands to the next as one text. Pure.

Ansible looks at every value of a result several times on its way through templates, callbacks and processes: for
hundreds of workloads that is most of what a pass costs. A text is one value.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError

# without it, the templates of ansible-core 2.18 would try to make a list of the text
_MARK = "json:"


def write(value: t.Any) -> str:
    """The text for plain data."""
    return _MARK + json.dumps(value, separators=(",", ":"))


def is_text(value: t.Any) -> bool:
    """Whether it is a text that `write` gave, whole or not."""
    return isinstance(value, str) and value.startswith(_MARK)


def read(value: t.Any) -> t.Any:
    """What was written; anything else is returned as it is.

    :raises StewardError: the text is broken
    """
    if not is_text(value):
        return value
    try:
        return json.loads(value[len(_MARK) :])
    except ValueError as exc:
        raise StewardError(f"A text that begins with {_MARK} is not as the module returned it: {exc}") from exc


def mapping(value: t.Any, option: str) -> dict[str, t.Any] | None:
    """The dictionary that an option holds, as such or as a text; None where it is not given.

    :raises StewardError: it holds something else
    """
    found = read(value) or None
    if not isinstance(found, (dict, type(None))):
        raise StewardError(f"The option {option} must be a dictionary, or the text that stands for one")
    return found


def dicts(value: t.Any, option: str) -> list[dict[str, t.Any]]:
    """The list of dictionaries that an option holds, as a list or as a text; empty where it is not given.

    :raises StewardError: it holds something else
    """
    found = read(value) or []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise StewardError(f"The option {option} must be a list of dictionaries, or the text that stands for one")
    return found

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A quota that would become less than what is used. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import quantity

Object = t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Shrink:
    """What a new quota would cut off.

    :ivar figures: resource -> {`used`, `hard` (the new one), `now`}
    :ivar is_known: False where the quota controller has not counted yet, so that nobody can say
    """

    figures: t.Mapping[str, t.Mapping[str, str]]
    is_known: bool = True

    @property
    def message(self) -> str:
        """The figures in a sentence."""
        if not self.is_known:
            return "what is used is not counted yet"
        return ", ".join(
            f"{resource}: {entry['used']} used, {entry['hard']} wanted, {entry['now']} now"
            for resource, entry in self.figures.items()
        )


def check(hard: t.Mapping[str, str], live: Object | None) -> Shrink | None:
    """What a quota of `hard` would cut off in place of `live`; None where nothing is.

    What is used is counted some time after it is: figures count only while the status is that of the present spec.
    """
    if live is None:
        return None
    now = (live.get("spec") or {}).get("hard") or {}
    less = [name for name, amount in hard.items() if name not in now or quantity.parse(amount) < _amount(now[name])]
    if not less:
        return None
    status = live.get("status") or {}
    used = status.get("used") or {}
    fresh = [name for name in less if name in used]
    if set(less) & set(now) - set(fresh) or not _is_counted(now, status.get("hard") or {}):
        return Shrink({}, is_known=False)
    figures = {
        name: {"used": used[name], "hard": hard[name], "now": now.get(name, "none")}
        for name in fresh
        if _amount(used[name]) > quantity.parse(hard[name])
    }
    return Shrink(figures) if figures else None


def _is_counted(spec: t.Mapping[str, str], status: t.Mapping[str, str]) -> bool:
    return spec.keys() == status.keys() and all(quantity.equal(spec[name], status[name]) for name in spec)


def _amount(text: str) -> t.Any:
    try:
        return quantity.parse(text)
    except StewardError:
        return quantity.parse(0)


def headroom(live: Object | None, limits: t.Mapping[str, str]) -> str | None:
    """A sentence where not even one more container with default limits fits: replacing a Pod needs room for two.

    :param limits: the LimitRange's `default`
    """
    status = (live or {}).get("status") or {}
    used, hard = status.get("used") or {}, status.get("hard") or {}
    tight = []
    for name, amount in limits.items():
        resource = f"limits.{name}"
        if resource in used and resource in hard:
            free = _amount(hard[resource]) - _amount(used[resource])
            if free < quantity.parse(amount):
                tight.append(f"{resource}: {used[resource]} of {hard[resource]} used")
    return f"no room for another Pod, so a rolling update may not go on ({', '.join(tight)})" if tight else None

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
    :ivar is_known: False where nobody can say what is used
    :ivar why: a sentence on that
    """

    figures: t.Mapping[str, t.Mapping[str, str]]
    is_known: bool = True
    why: str = "what is used is not counted yet"

    @property
    def message(self) -> str:
        """The figures in a sentence."""
        if not self.is_known:
            return self.why
        return ", ".join(
            f"{resource}: {entry['used']} used, {entry['hard']} wanted, {entry['now']} now"
            for resource, entry in self.figures.items()
        )


@dataclasses.dataclass(frozen=True)
class Counted:
    """What is used of resources that no quota of ours counts, by resource; `problem` says why nobody knows."""

    used: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    problem: str = ""


def uncounted(hard: t.Mapping[str, str], live: Object | None) -> list[str]:
    """Resources that the quota `live`, or none, does not count yet."""
    return [name for name in hard if name not in hard_of(live)]


def check(hard: t.Mapping[str, str], live: Object | None, counted: Counted | None = None) -> Shrink | None:
    """What a quota of `hard` would cut off in place of `live`; None where nothing is.

    What is used is counted some time after it is: figures count only while the status is that of the present spec.

    :param counted: what is used of resources that `live` does not count
    """
    counted = counted or Counted()
    if counted.problem:
        return Shrink({}, is_known=False, why=counted.problem)
    now = hard_of(live)
    less = [name for name, amount in hard.items() if name in now and quantity.parse(amount) < _amount(now[name])]
    status = (live or {}).get("status") or {}
    used = status.get("used") or {}
    if less and (set(less) - set(used) or not _is_counted(now, status.get("hard") or {})):
        return Shrink({}, is_known=False)
    of = {**{name: used[name] for name in less}, **{name: counted.used[name] for name in hard if name in counted.used}}
    figures = {
        name: {"used": of[name], "hard": hard[name], "now": now.get(name, "none")}
        for name in of
        if _amount(of[name]) > quantity.parse(hard[name])
    }
    return Shrink(figures) if figures else None


def hard_of(live: Object | None) -> t.Mapping[str, str]:
    """What a quota allows; nothing where there is none."""
    return ((live or {}).get("spec") or {}).get("hard") or {}


def _is_counted(spec: t.Mapping[str, str], status: t.Mapping[str, str]) -> bool:
    return spec.keys() == status.keys() and all(quantity.equal(spec[name], status[name]) for name in spec)


def _amount(text: str) -> t.Any:
    try:
        return quantity.parse(text)
    except StewardError:
        return quantity.parse(0)


def headroom(live: Object | None, hard: t.Mapping[str, str], limits: t.Mapping[str, t.Any]) -> str | None:
    """A sentence where not even one more container with default limits fits: replacing a Pod needs room for two.

    :param live: the quota as it is, whose status says what is used
    :param hard: the quota as it will be
    :param limits: what the LimitRange fills in, {`default`, `default_request`}
    """
    used = ((live or {}).get("status") or {}).get("used") or ({} if live else dict.fromkeys(hard, "0"))
    asked = {f"limits.{name}": amount for name, amount in (limits.get("default") or {}).items()}
    for name, amount in (limits.get("default_request") or {}).items():
        asked |= {f"requests.{name}": amount, name: amount}
    asked |= {"pods": "1", "count/pods": "1"}
    tight = [
        f"{resource}: {used[resource]} of {hard[resource]} used"
        for resource, amount in asked.items()
        if resource in used and resource in hard
        if _amount(hard[resource]) - _amount(used[resource]) < quantity.parse(amount)
    ]
    return f"no room for another Pod, so a rolling update may not go on ({', '.join(tight)})" if tight else None

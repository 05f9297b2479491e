# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Managers that undo what we repair: answered twice within a day, then left alone and named. Pure."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import REPAIRS

#: stands for whoever removed a field, since that leaves no name
NOBODY = "somebody unnamed"
#: OpenShift's own, which sets Pod Security levels where nobody else does
SYNCER = "pod-security-admission-label-synchronization-controller"
#: repairs after which another manager has it
MOST = 2
#: no manager is answered as often: a hand wrote that
MOST_COUNTED = 1000
#: seconds after which a repair is forgotten
MEMORY = 24 * 3600


@dataclasses.dataclass
class Repairs:
    """What was repaired lately, by `Kind/name field`: {`manager`, `times`, `at`}."""

    entries: dict[str, dict[str, t.Any]]
    now: str
    changed: bool = False

    def rival(self, key: str, managers: t.Sequence[str]) -> str | None:
        """The manager who has undone our repairs of a field often enough to be left alone."""
        entry = self.entries.get(key)
        return entry["manager"] if entry and entry["manager"] in managers and entry["times"] >= MOST else None

    def note(self, key: str, manager: str) -> None:
        """One more repair."""
        entry = self.entries.get(key) or {}
        times = entry["times"] + 1 if entry.get("manager") == manager else 1
        self.entries[key] = {"manager": manager, "times": times, "at": self.now}
        self.changed = True

    def render(self) -> str:
        """The annotation's text."""
        return json.dumps(self.entries, sort_keys=True)


def read(namespace: t.Mapping[str, t.Any] | None, now: str) -> Repairs:
    """What a Namespace's annotation remembers; what nobody can read, and what is old, is forgotten."""
    text = ((namespace or {"metadata": {}})["metadata"].get("annotations") or {}).get(REPAIRS)
    found: dict[str, dict[str, t.Any]] = {}
    try:
        for key, entry in json.loads(text or "{}").items():
            seconds = (conditions.moment(now) - conditions.moment(entry["at"])).total_seconds()
            is_count = isinstance(entry["times"], int) and abs(entry["times"]) <= MOST_COUNTED
            if seconds < MEMORY and is_count and isinstance(entry["manager"], str):
                found[key] = {name: entry[name] for name in ("manager", "times", "at")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found = {}
    return Repairs(found, now)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of one namespace. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import shrink
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.plan import Operation


@dataclasses.dataclass
class Result:
    """What became of one namespace.

    :ivar state: one of the documented states
    :ivar reason: one word, where it is not `ready`, `absent` or `released`
    :ivar done: the operations carried out, or predicted in check mode
    :ivar unasked: those of them that check mode could not ask the API server about
    :ivar error: an answer of the API server that was in the way
    :ivar comes_by_itself: what it is pending for is the cluster's to do, in a moment
    :ivar planned: the kinds whose objects are as they are wanted, once all of the plan is carried out
    :ivar failures: kind -> why its object could not be written
    :ivar blocked: kind -> why its object is left to somebody else
    """

    name: str
    state: str = "pending"
    reason: str = ""
    msg: str = ""
    done: list[Operation] = dataclasses.field(default_factory=list)
    unasked: list[Operation] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    foreign_policies: list[str] = dataclasses.field(default_factory=list)
    shrunk: shrink.Shrink | None = None
    held: bool = False
    quota: t.Mapping[str, t.Any] | None = None
    error: str = ""
    comes_by_itself: bool = False
    planned: frozenset[str] = frozenset()
    failures: dict[str, str] = dataclasses.field(default_factory=dict)
    blocked: dict[str, str] = dataclasses.field(default_factory=dict)

    def says(self, state: str, reason: str = "", msg: str = "") -> Result:
        """The same with another state."""
        self.state, self.reason, self.msg = state, reason, msg
        return self

    def of(self, kind: str) -> tuple[str, str, str]:
        """(status, reason, message) of the object of a kind that each namespace has one of."""
        if kind in self.blocked:
            return "False", "Conflict", self.blocked[kind]
        if kind in self.failures:
            return "False", "Refused", self.failures[kind]
        if kind in self.planned or any(item.kind == kind and item.action != "delete" for item in self.done):
            return "True", "Applied", "as it is wanted"
        return "Unknown", "NotApplied", self.msg


def refused(name: str, exc: StewardError) -> Result:
    """The result for a request that is none."""
    return Result(name).says("invalid", "invalid", str(exc))

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a look-up is, and how long it may still take. Pure."""

from __future__ import annotations

import dataclasses
import time

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError


@dataclasses.dataclass
class Progress:
    """What a look-up shares with all of its requests.

    :ivar requests: requests on the wire
    :ivar moved: moment of `time.monotonic` since which it waits for one request, or until which it is meant to wait
    :ivar seconds: what redirects, retries and waits at one place may take together
    :ivar reduced: that is less than usual, since the registry was slow before
    :ivar until: the moment at which they are over
    """

    requests: int = 0
    moved: float = 0.0
    seconds: float = float("inf")
    reduced: bool = False
    until: float = float("inf")

    def begin(self, now: float) -> None:
        """A place is asked from `now` on."""
        self.until = now + self.seconds

    def on_request(self) -> None:
        """A request begins."""
        self.requests += 1
        self.moved = time.monotonic()

    def on_wait(self, seconds: float) -> None:
        """Nothing is asked for at most `seconds`, and that is meant."""
        self.moved = max(self.moved, time.monotonic() + seconds)

    def out_of_time(self, where: str) -> StewardError:
        """The error of a look-up that has no time left."""
        why = "; it was slow a short while ago, so it gets less time than usual" if self.reduced else ""
        return StewardError(
            f"{where}: requests, redirects, retries and waits took longer than the {self.seconds:g} s"
            f" that one look-up gets{why}",
            reason="unreachable",
        )

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long registries are waited for, so that a slow one does not take the time that belongs to others. Pure.

All requests of one look-up share a small multiple of the time-out. Where a registry used it up, and has answered no
other look-up of the call, or used it up for as many as are under way at once, it gets a fraction of it from then on,
and soon is not asked any more. A record of one author's registries makes that hold for the author's next calls, for a
while.
"""

from __future__ import annotations

import dataclasses
import threading
import time
import typing as t

# of the time-out of a request: what one look-up gets, and what it gets where the registry was slow before
USUAL = 2.0
REDUCED = 0.2
# look-ups with reduced time that a slow registry gets before it is not asked any more
TRIES = 3
# of the time-out: what an author may spend in `MEMORY` seconds on look-ups that take long
ALLOWANCE = 6.0
MEMORY = 300.0


@dataclasses.dataclass(frozen=True)
class Record:
    """What is remembered of one author's calls; times are Unix times.

    :ivar slow: since when a registry is slow
    :ivar spent: moment and seconds of calls that waited for registries
    """

    slow: t.Mapping[str, float] = dataclasses.field(default_factory=dict)
    spent: tuple[tuple[float, float], ...] = ()

    def at(self, now: float) -> Record:
        """Without what is older than `MEMORY`, or from the future: the clock was set then."""
        return Record(
            {name: since for name, since in self.slow.items() if 0 <= now - since < MEMORY},
            tuple((when, seconds) for when, seconds in self.spent if 0 <= now - when < MEMORY),
        )

    @property
    def total(self) -> float:
        return sum(seconds for _when, seconds in self.spent)


class Patience:
    """Says how long each look-up of one call may take; safe to use from many threads.

    :param timeout: seconds for one request
    :param concurrency: look-ups under way at one registry at most
    :param record: what is known of the author of the references; None where nobody is
    """

    def __init__(
        self,
        timeout: float,
        concurrency: int,
        record: Record | None = None,
        clock: t.Callable[[], float] = time.monotonic,
        now: t.Callable[[], float] = time.time,
    ) -> None:
        self.timeout, self.concurrency, self._clock, self._now = timeout, concurrency, clock, now
        self.before = None if record is None else record.at(now())
        self._since = dict(self.before.slow) if self.before else {}
        self._slow = dict.fromkeys(self._since, concurrency)
        self._answering: set[str] = set()
        self._seconds = self._slow_seconds = 0.0
        self._began = clock()
        self._lock = threading.Lock()

    @property
    def exhausted(self) -> bool:
        """True where the author's earlier calls have spent all that there is."""
        return self.before is not None and self.before.total >= ALLOWANCE * self.timeout

    def seconds(self, registry: str) -> tuple[float, bool] | None:
        """Seconds for a look-up that begins now and whether they are reduced; None where it must not begin."""
        with self._lock:
            slow = self._slow.get(registry, 0)
            enough = self.concurrency if registry in self._answering else 1
        if slow < enough:
            return USUAL * self.timeout, False
        return (REDUCED * self.timeout, True) if slow < self.concurrency + TRIES else None

    def ended(self, registry: str, elapsed: float, answered: bool) -> None:
        """A look-up took `elapsed` seconds; `answered` where the registry said something in the end."""
        long = elapsed >= REDUCED * self.timeout
        with self._lock:
            self._seconds += elapsed
            self._slow_seconds += elapsed if long else 0.0
            if long and not answered:
                self._slow[registry] = self._slow.get(registry, 0) + 1
                self._since.setdefault(registry, self._now())
            else:
                if answered:
                    self._answering.add(registry)
                self._slow.pop(registry, None)
                self._since.pop(registry, None)

    def is_spent(self) -> bool:
        """True where the author has to wait, since others need the time; a call gets one time-out always."""
        elapsed = self._clock() - self._began
        if self.before is None or elapsed < self.timeout:
            return False
        return self.before.total + self._waited(elapsed) > ALLOWANCE * self.timeout

    def _waited(self, elapsed: float) -> float:
        with self._lock:
            # the call may have been waiting for look-ups of other authors
            return min(elapsed * self._slow_seconds / self._seconds, self._slow_seconds) if self._seconds else 0.0

    def record(self) -> Record:
        """What is to be remembered of this call and those before it."""
        before = self.before or Record()
        waited = self._waited(self._clock() - self._began)
        more = ((self._now(), round(waited, 1)),) if waited >= REDUCED * self.timeout else ()
        with self._lock:
            return Record(dict(self._since), before.spent + more)

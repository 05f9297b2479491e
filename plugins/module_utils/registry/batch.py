# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many look-ups at once: threads by host, so that one slow or dead host holds nobody else up, and a clock over all."""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Query, Trace

MAX_THREADS = 256
# seconds that a request may take over its time-out before its look-up is given up
GRACE = 0.5
# seconds between two looks at what is done and what is late
PATIENCE = 0.05


@dataclasses.dataclass
class Job:
    """One look-up and, when it is done, its answer or error; `elapsed` in seconds."""

    query: Query
    wanted: Wanted
    trace: Trace = dataclasses.field(default_factory=Trace)
    found: Found | None = None
    error: StewardError | None = None
    started: float | None = None
    elapsed: float = 0.0

    @property
    def group(self) -> str:
        return self.query.places[0].endpoint.host


Resolve = t.Callable[[Query, Wanted, Trace], Found]


def run(
    jobs: t.Sequence[Job], resolve: Resolve, concurrency: int, timeout: float, deadline: float | None = None
) -> None:
    """Fill in every job.

    :param concurrency: threads for one host at most
    :param timeout: seconds for one request; a look-up whose request takes longer is given up and its thread left behind
    :param deadline: moment of `time.monotonic` at which whatever is not done is given up
    :raises BaseException: an error of a look-up that is not a StewardError, with its traceback
    """
    groups: dict[str, collections.deque[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group, collections.deque()).append(job)
    _Pool(groups, resolve, concurrency, timeout, deadline).run(len(jobs))


class _Pool:
    def __init__(
        self,
        groups: dict[str, collections.deque[Job]],
        resolve: Resolve,
        concurrency: int,
        timeout: float,
        deadline: float | None,
    ) -> None:
        self.resolve, self.concurrency, self.timeout, self.deadline = resolve, concurrency, timeout, deadline
        self.works = list(groups.values())
        self.unstarted = collections.deque(self.works)
        self.done: collections.deque[tuple[Job, Found | None, BaseException | None, float]] = collections.deque()
        self.thread_ended = threading.Event()
        self.under_way: dict[int, Job] = {}
        self.threads: dict[int, collections.deque[Job]] = {}
        self.numbers = 0

    def run(self, count: int) -> None:
        left = count
        while left:
            self._start_threads()
            left -= self._collect()
            left -= self._give_up()

    def _start_threads(self) -> None:
        while self.unstarted and len(self.threads) < MAX_THREADS:
            work = self.unstarted.popleft()
            for _number in range(max(1, min(self.concurrency, len(work)))):
                self.numbers += 1
                self.threads[self.numbers] = work
                threading.Thread(
                    target=self._work, args=(self.numbers, work), daemon=True, name="registry look-up"
                ).start()

    def _work(self, number: int, work: collections.deque[Job]) -> None:
        while True:
            try:
                job = work.popleft()
            except IndexError:
                break
            job.started = job.trace.moved = time.monotonic()
            self.under_way[number] = job
            found, error = None, None
            try:
                found = self.resolve(job.query, job.wanted, job.trace)
            except BaseException as exc:
                error = exc
            self.under_way.pop(number, None)
            self.done.append((job, found, error, time.monotonic() - job.started))
        self.threads.pop(number, None)
        self.thread_ended.set()

    def _collect(self) -> int:
        """Wait for a moment and take the answers there are; the number of jobs that are done by them."""
        # not woken for each answer: that would take the interpreter away from the threads a thousand times
        self.thread_ended.wait(PATIENCE)
        self.thread_ended.clear()
        taken = 0
        while self.done:
            job, found, error, elapsed = self.done.popleft()
            if job.error is not None:
                continue
            job.found, job.elapsed = found, elapsed
            taken += 1
            if isinstance(error, StewardError):
                job.error = error
            elif error is not None:
                raise error
        return taken

    def _give_up(self) -> int:
        now = time.monotonic()
        over = self.deadline is not None and now >= self.deadline
        given_up = 0
        for number, job in list(self.under_way.items()):
            if not over and now - job.trace.moved < self.timeout + GRACE:
                continue
            why = "the deadline of the call was reached" if over else f"no answer within {self.timeout:g} s"
            given_up += _fail(job, f"{job.query.reference.registry}: {why}")
            self.under_way.pop(number, None)
            work = self.threads.pop(number, None)
            if work and not any(other is work for other in list(self.threads.values())):
                given_up += _drop([work], f"no answer within {self.timeout:g} s to any look-up before this one")
        return given_up + (_drop(self.works, "the deadline of the call was reached before it was asked") if over else 0)


def _drop(works: t.Iterable[collections.deque[Job]], why: str) -> int:
    """Fail what no thread has begun."""
    given_up = 0
    for work in works:
        while True:
            try:
                job = work.popleft()
            except IndexError:
                break
            given_up += _fail(job, f"{job.query.reference.registry}: {why}")
    return given_up


def _fail(job: Job, message: str) -> int:
    if job.error is not None or job.found is not None:
        return 0
    job.error = StewardError(message, reason="unreachable")
    job.elapsed = time.monotonic() - (job.started or time.monotonic())
    return 1

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many look-ups at once: threads by host, so that one slow or dead host holds nobody else up, and a clock over all."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import random
import threading
import time
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError, unexpected
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.patience import Patience
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Query, Trace

MAX_THREADS = 256
# seconds that a request may take over its time-out before its look-up is given up
GRACE = 0.5
_UNANSWERED = ("unreachable", "rate_limited", "tls_error")
# seconds between two looks at what is done and what is late
PATIENCE = 0.05
_LATE = "the deadline of the call was reached"
_SLOW = "registries that answer slowly took all the time that these look-ups get; they go on in a while"


@dataclasses.dataclass(eq=False)
class Job:
    """One look-up and, when it is done, its answer or error; `elapsed` in seconds.

    :ivar authors: whose it is: it is asked as long as one of them has time left for it
    """

    query: Query
    wanted: Wanted
    authors: tuple[str, ...] = ("",)
    trace: Trace = dataclasses.field(default_factory=Trace)
    found: Found | None = None
    error: StewardError | None = None
    started: float | None = None
    asked: bool = False
    elapsed: float = 0.0

    @property
    def group(self) -> str:
        return self.query.places[0].endpoint.host

    @property
    def registry(self) -> str:
        return self.query.reference.registry


Resolve = t.Callable[[Query, Wanted, Trace], Found]
Work = collections.deque[Job]


def run(
    jobs: t.Sequence[Job],
    resolve: Resolve,
    concurrency: int,
    timeout: float,
    deadline: float | None = None,
    patience: t.Mapping[str, Patience] | None = None,
) -> None:
    """Fill in every job; whatever goes wrong in one stays with it.

    :param concurrency: threads for one host at most
    :param timeout: seconds for one request; a look-up whose request takes longer is given up and its thread replaced
    :param deadline: moment of `time.monotonic` at which whatever is not done is given up
    :param patience: how long the registries of each author are waited for
    """
    patience = patience or {author: Patience(timeout, concurrency) for job in jobs for author in job.authors}
    groups: dict[str, Work] = {}
    for job in _in_turn(jobs, patience):
        groups.setdefault(job.group, collections.deque()).append(job)
    _Pool(list(groups.values()), resolve, concurrency, timeout, deadline, patience).run(len(jobs))


def _in_turn(jobs: t.Iterable[Job], patience: t.Mapping[str, Patience]) -> list[Job]:
    """One of each author after the other, so that the many of one come after the few of another."""
    of: dict[str, list[Job]] = {}
    for job in jobs:
        fresh = (author for author in job.authors if not patience[author].exhausted)
        of.setdefault(next(fresh, job.authors[0]), []).append(job)
    for author, own in of.items():
        if patience[author].exhausted:
            # where not all get their turn in one call, another call begins with others
            random.shuffle(own)
    return [job for turn in itertools.zip_longest(*of.values()) for job in turn if job]


class _Pool:
    def __init__(
        self,
        works: list[Work],
        resolve: Resolve,
        concurrency: int,
        timeout: float,
        deadline: float | None,
        patience: t.Mapping[str, Patience],
    ) -> None:
        self.resolve, self.concurrency, self.timeout, self.deadline = resolve, concurrency, timeout, deadline
        self.works, self.patience = works, patience
        self.unstarted = collections.deque(works)
        self.done: collections.deque[tuple[Job, Found | None, BaseException | None, float]] = collections.deque()
        self.thread_ended = threading.Event()
        self.under_way: dict[int, Job] = {}
        self.threads: dict[int, Work] = {}
        self.numbers = 0

    def run(self, count: int) -> None:
        left = count
        while left:
            left -= self._start_threads()
            left -= self._collect()
            left -= self._give_up()

    def _start_threads(self) -> int:
        """Start what there is room for; the number of jobs that nobody can ever begin."""
        while self.unstarted and len(self.threads) < MAX_THREADS:
            work = self.unstarted.popleft()
            started = [self._start_thread(work) for _number in range(max(1, min(self.concurrency, len(work))))]
            if any(started):
                continue
            self.unstarted.append(work)
            # a limit of the machine: they begin as others end, where there are any
            return 0 if self.threads else self._drop("no thread could be started for it")
        return 0

    def _start_thread(self, work: Work) -> bool:
        self.numbers += 1
        number = self.numbers
        self.threads[number] = work
        try:
            threading.Thread(target=self._work, args=(number, work), daemon=True, name="registry look-up").start()
        except RuntimeError:
            self.threads.pop(number, None)
            return False
        return True

    def _work(self, number: int, work: Work) -> None:
        # one that was given up has a successor
        while number in self.threads:
            try:
                job = work.popleft()
            except IndexError:
                break
            job.started = job.trace.moved = time.monotonic()
            self.under_way[number] = job
            found, error = None, None
            try:
                self._allow(job)
                found = self.resolve(job.query, job.wanted, job.trace)
            except BaseException as exc:
                error = exc
            elapsed = time.monotonic() - job.started
            if job.asked and job.error is None:
                # before this thread takes the next one
                self._ended(job, elapsed, self._is_answer(error, elapsed))
            self.under_way.pop(number, None)
            self.done.append((job, found, error, elapsed))
        self.threads.pop(number, None)
        self.thread_ended.set()

    def _is_answer(self, error: BaseException | None, elapsed: float) -> bool:
        """Whether a look-up that ended got an answer; a refusal that took longer than a time-out is as good as none."""
        if error is None:
            return True
        return isinstance(error, StewardError) and error.reason not in _UNANSWERED and elapsed < self.timeout

    def _allow(self, job: Job) -> None:
        allowed = max(
            filter(None, (self.patience[author].seconds(job.registry) for author in job.authors)), default=None
        )
        if allowed is None:
            raise StewardError(
                f"{job.registry} was not asked: look-ups there took too long just now; it is asked again in a while",
                reason="unreachable",
            )
        job.asked = True
        job.trace.seconds, job.trace.reduced = allowed

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
            if error is not None:
                job.error = _told(job, error)
        return taken

    def _give_up(self) -> int:
        now = time.monotonic()
        is_late = self.deadline is not None and now >= self.deadline
        spent = {author for author, patience in self.patience.items() if is_late or patience.is_spent()}
        why = _LATE if is_late else _SLOW
        given_up = 0
        for number, job in list(self.under_way.items()):
            trace, over = job.trace, why if spent.issuperset(job.authors) else ""
            if not over and now < min(trace.moved + self.timeout, trace.until) + GRACE:
                continue
            host = trace.host or job.registry
            if over or now >= trace.until + GRACE:
                late = StewardError(f"{host}: {over}", reason="unreachable") if over else trace.out_of_time(host)
            else:
                late = StewardError(f"{host} did not answer within {self.timeout:g} s", reason="unreachable")
            given_up += _fail(job, late)
            self._ended(job, job.elapsed, answered=False)
            self.under_way.pop(number, None)
            work = self.threads.pop(number, None)
            if work and not self._start_thread(work):
                self.unstarted.append(work)
        return given_up + (self._drop(f"{why} before it was asked", spent) if spent else 0)

    def _ended(self, job: Job, elapsed: float, answered: bool) -> None:
        for author in job.authors:
            self.patience[author].ended(job.registry, elapsed, answered)

    def _drop(self, why: str, authors: set[str] | None = None) -> int:
        """Fail what no thread has begun, of these authors alone or of all."""
        given_up = 0
        for work in self.works:
            for job in list(work):
                if authors is not None and not authors.issuperset(job.authors):
                    continue
                try:
                    work.remove(job)
                except ValueError:
                    # a thread has taken it meanwhile
                    continue
                given_up += _fail(job, StewardError(f"{job.registry}: {why}", reason="unreachable"))
        return given_up


def _fail(job: Job, error: StewardError) -> int:
    if job.error is not None or job.found is not None:
        return 0
    job.error = error
    job.elapsed = time.monotonic() - (job.started or time.monotonic())
    return 1


def _told(job: Job, error: BaseException) -> StewardError:
    """What an error of a look-up is for its own entry; one that nobody foresaw keeps its traceback."""
    if isinstance(error, StewardError):
        return error
    if not isinstance(error, Exception):
        raise error
    secrets = [text for place in job.query.places for item in place.credentials for text in item.secrets]
    return unexpected(error, f"{job.registry}", secrets)

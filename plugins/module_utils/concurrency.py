# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several calls at the same time."""

from __future__ import annotations

import queue
import threading
import typing as t

Item = t.TypeVar("Item")
Result = t.TypeVar("Result")


def run_concurrently(work: t.Callable[[Item], Result], items: t.Sequence[Item], workers: int) -> list[Result]:
    """`work` on every item, results in order; what one raises is raised after all have been worked on.

    Not concurrent.futures: an interrupt of the caller, such as a task's time-out, would wait there for all that is
    under way and queued. Here nothing is begun after it, and daemon threads keep no process alive.
    """
    if len(items) <= 1:
        return [work(item) for item in items]
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    ended: queue.SimpleQueue[tuple[int, Result | None, BaseException | None]] = queue.SimpleQueue()
    interrupted = threading.Event()
    for number in range(len(items)):
        waiting.put(number)

    def loop() -> None:
        while not interrupted.is_set():
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                ended.put((number, work(items[number]), None))
            except BaseException as exc:
                ended.put((number, None, exc))

    try:
        for _worker in range(min(workers, len(items))):
            threading.Thread(target=loop, daemon=True).start()
        found = sorted((ended.get() for _item in items), key=lambda entry: entry[0])
    finally:
        interrupted.set()
    for _number, _result, error in found:
        if error is not None:
            raise error
    return [t.cast(Result, result) for _number, result, _error in found]

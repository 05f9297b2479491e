# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much memory a process and its descendants had, as the kernel counts it."""

from __future__ import annotations

import contextlib
import re
import threading
import typing as t
from pathlib import Path

from bench.errors import BenchError

PROC = Path("/proc")
# seconds between two looks; a look takes less than a thousandth of one
PERIOD = 0.02
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class Peak:
    """The most memory that the processes of a tree had which were alive at the same time.

    The sum of each one's own peak (`VmHWM`), so memory that a process shares with its children counts for each of them
    and peaks count as if they fell together: an upper bound of what a machine needs, not an estimate.

    :ivar kib: KiB, after `watching` has ended
    """

    def __init__(self, proc: Path = PROC) -> None:
        self.kib = 0
        self._proc = proc

    @contextlib.contextmanager
    def watching(self, pid: int) -> t.Iterator[None]:
        """Look again and again while the block runs.

        :raises BenchError: the kernel never told
        """
        self.kib = 0
        ended = threading.Event()
        thread = threading.Thread(target=self._look, args=(pid, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if not self.kib:
            raise BenchError(f"{self._proc} does not tell the memory of a process; the bench needs Linux's")

    def _look(self, pid: int, ended: threading.Event) -> None:
        while not ended.is_set():
            self.kib = max(self.kib, sum(peak_of(member, self._proc) for member in tree(pid, self._proc)))
            ended.wait(PERIOD)


def tree(pid: int, proc: Path = PROC) -> list[int]:
    """A process and its descendants, those that are alive."""
    found, queue = [], [pid]
    while queue:
        member = queue.pop()
        found.append(member)
        # whatever ends meanwhile has no files any more
        with contextlib.suppress(OSError):
            for task in (proc / str(member) / "task").iterdir():
                with contextlib.suppress(OSError):
                    queue += map(int, (task / "children").read_text().split())
    return found


def peak_of(pid: int, proc: Path = PROC) -> int:
    """The most KiB that a process had at once; 0 for one that has ended."""
    try:
        status = (proc / str(pid) / "status").read_text()
    except OSError:
        return 0
    found = _PEAK.search(status)
    return int(found[1]) if found else 0

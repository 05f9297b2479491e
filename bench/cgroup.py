# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kubelet would count of a container: the memory of a control group."""

from __future__ import annotations

import contextlib
import threading
import typing as t
import uuid
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
# seconds between two looks at three small files
PERIOD = 0.02
MB = 1_000_000
_NEEDS = (
    "the bench counts the operator's memory as a kubelet does, which needs root and a writable memory control group"
)


@dataclass
class Group:
    """A control group whose working set is watched.

    The working set is what the kubelet calls so and compares with a limit: all that is charged to the group but file
    pages that nobody used twice. Pages that processes share count once; so does the page cache that they keep in use.

    :ivar folder: of the group, in either version's tree
    :ivar peak: most bytes that were seen in the last `watching`
    """

    folder: Path
    peak: int = 0

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs another one inside of the group, children included."""
        return ["sh", "-c", 'echo $$ >"$0"/cgroup.procs && exec "$@"', str(self.folder), *arguments]

    def working_set(self) -> int:
        """Bytes, now.

        :raises BenchError: the kernel does not tell
        """
        two = self.folder / "memory.current"
        usage, key = (
            (two, "inactive_file") if two.exists() else (self.folder / "memory.usage_in_bytes", "total_inactive_file")
        )
        try:
            used, lines = int(usage.read_text()), (self.folder / "memory.stat").read_text().splitlines()
        except OSError as exc:
            raise BenchError(f"{exc}: {_NEEDS}") from exc
        stat = dict(line.split() for line in lines)
        return max(0, used - int(stat[key]))

    @contextlib.contextmanager
    def watching(self) -> t.Iterator[None]:
        """Look again and again while the block runs."""
        self.peak = self.working_set()
        ended = threading.Event()
        thread = threading.Thread(target=self._look, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _look(self, ended: threading.Event) -> None:
        while not ended.wait(PERIOD):
            self.peak = max(self.peak, self.working_set())


@contextlib.contextmanager
def made(mount: Path = MOUNT, own: Path = OWN) -> t.Iterator[Group]:
    """A new group, removed at the end; what ran in it must have ended by then.

    :raises BenchError: this machine lets us make none
    """
    folder = parent(mount, own.read_text()) / f"kubesteward-bench-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as exc:
        raise BenchError(f"{exc}: {_NEEDS}") from exc
    try:
        yield Group(folder)
    finally:
        folder.rmdir()


def parent(mount: Path, own: str) -> Path:
    """The folder in which a group that counts memory can be made.

    :param own: /proc/self/cgroup
    :raises BenchError: there is none
    """
    if (mount / "cgroup.controllers").exists():
        # below our own group there could be none: it holds processes
        if "memory" in (mount / "cgroup.subtree_control").read_text().split():
            return mount
        raise BenchError(f"{mount}/cgroup.subtree_control lacks `memory`: {_NEEDS}")
    for line in own.splitlines():
        _number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            found = mount / "memory" / path.lstrip("/")
            # in a container the path may be one of the machine outside
            return found if found.exists() else mount / "memory"
    raise BenchError(f"{OWN} names no memory control group: {_NEEDS}")

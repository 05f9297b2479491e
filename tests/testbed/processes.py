# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of the testbed: started with a mark, found again by it, never confused with a reused pid."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import typing as t
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.packages import SEARCH_PATH

MARK = "KUBESTEWARD_TESTBED_PROCESS"
PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A started process; `started` is its start time in clock ticks since boot, which a reused pid does not share."""

    name: str
    pid: int
    started: int
    port: int | None
    health: str | None

    def alive(self) -> bool:
        return start_time(self.pid) == self.started

    def as_dict(self) -> dict[str, t.Any]:
        return asdict(self)


def parse_stat(text: str) -> tuple[str, int, int]:
    """State, parent pid and start time of a /proc/PID/stat line; the name in it may contain blanks and brackets."""
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1]), int(fields[19])


def start_time(pid: int) -> int | None:
    """Ticks since boot, or None where no such process runs (a zombie does not run)."""
    try:
        state, _parent, started = parse_stat((PROC / str(pid) / "stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else started


def children(pid: int) -> list[int]:
    """Pids of the direct children."""
    return [child for child, parent in _parents().items() if parent == pid]


def spawn(
    name: str, argv: t.Sequence[str], home: Path, port: int | None, health: str | None, environment: t.Mapping[str, str]
) -> Process:
    """Start a process that outlives us, its output in logs/NAME.log; it inherits no proxy or credentials of ours."""
    log = home / "logs" / f"{name}.log"
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv,
            cwd=home,
            env={"PATH": SEARCH_PATH, "HOME": str(home), MARK: str(home), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started = start_time(child.pid)
    if started is None:
        raise TestbedError(f"{name} ended at once; its output is in {log}:\n{tail(log)}")
    # the process is meant to outlive this object
    child.returncode = 0
    return Process(name, child.pid, started, port, health)


def tail(log: Path, lines: int = 8) -> str:
    """The last lines of a log."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no output)"


def marked(homes: Path | None) -> dict[int, str]:
    """Pid and state folder of every process that carries our mark; of one folder only where it is given."""
    prefix = f"{MARK}=".encode()
    found = {}
    for pid in _parents():
        try:
            variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        for variable in variables:
            if variable.startswith(prefix):
                found[pid] = variable[len(prefix) :].decode(errors="replace")
    return {pid: home for pid, home in found.items() if homes is None or home == str(homes)}


def kill(pids: t.Iterable[int], seconds: float = 10) -> None:
    """End processes for good and wait until they are gone; their data is thrown away, so nothing needs a goodbye."""
    wanted = {pid: started for pid in pids if pid != os.getpid() and (started := start_time(pid)) is not None}
    for pid, started in wanted.items():
        if start_time(pid) == started:
            _signal(pid)
    deadline = time.monotonic() + seconds
    while running := [pid for pid, started in wanted.items() if start_time(pid) == started]:
        if time.monotonic() > deadline:
            raise TestbedError(f"Processes {running} do not end after SIGKILL: see `ps -o stat,wchan {running[0]}`.")
        time.sleep(0.05)
    _wait_reaped(wanted, deadline)


def _wait_reaped(pids: t.Iterable[int], deadline: float) -> None:
    """Reap the dead that are ours and give the system's first process the time to reap the others."""
    for pid in pids:
        while (PROC / str(pid)).exists() and time.monotonic() < deadline:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                time.sleep(0.05)


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _parents() -> dict[int, int]:
    found = {}
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            try:
                found[int(entry.name)] = parse_stat((entry / "stat").read_text())[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found

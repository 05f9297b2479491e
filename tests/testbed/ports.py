# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are the ports free, and if not, who has them?"""

from __future__ import annotations

import socket
import typing as t
from pathlib import Path

from testbed.errors import TestbedError

LISTEN = "0A"


def check(ports: t.Mapping[str, int]) -> None:
    """TestbedError that names each taken port, what it is for and who has it."""
    taken = {name: port for name, port in ports.items() if not is_free(port)}
    if not taken:
        return
    lines = [f"port {port} ({name}) is taken by {owner(port) or 'another process'}" for name, port in taken.items()]
    raise TestbedError(
        f"{'; '.join(lines)}. Stop that process, or choose other ports, e.g. TESTBED_PORT_BASE={suggestion(ports)}."
    )


def suggestion(ports: t.Mapping[str, int]) -> int:
    """A base 100 or more above (or below) under which all the ports are free now."""
    first: int = min(ports.values())
    count = len(ports)
    candidates = [*range(first + 100, 64000, 100), *range(first - 100, 1100, -100)]
    free: t.Iterator[int] = (base for base in candidates if all(is_free(base + offset) for offset in range(count)))
    return next(free)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port on every address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def listening_inode(table: str, port: int) -> str | None:
    """Inode of the listening socket in a text of the form of /proc/net/tcp."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
            return fields[9]
    return None


def owner(port: int) -> str | None:
    """`name (pid N)` of who listens on the port, where the kernel tells us."""
    tables = [Path("/proc/net", name) for name in ("tcp", "tcp6")]
    inodes = {listening_inode(table.read_text(), port) for table in tables if table.exists()} - {None}
    links = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").iterdir():
        if not links or not process.name.isdecimal():
            continue
        try:
            if any(str(descriptor.readlink()) in links for descriptor in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (pid {process.name})"
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return None

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Post counters to ansible-operator, which serves them with its own metrics.

The operator keeps metrics in a map without a lock, and two first posts at once end it: so passes take turns, by a
lock on a file that all of them have. The file also tells whom every counter was posted to already, with zero: a rate
needs a first value.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import threading
import time
import typing as t
import urllib.parse
from pathlib import Path

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError

if t.TYPE_CHECKING:
    import http.client

#: seconds for a call in all, waiting for other passes included
SECONDS = 1.0
LOCK_NAME = "kubesteward-metrics.lock"
_PATIENCE = 0.005
_LATE = "no answer in time"
_LISTENING = "0A"
_FEW_BYTES = 128
_MOST_OF_AN_ANSWER = 4096


class PostError(StewardError):
    """Why counters could not be posted, and what to do about it; the pass goes on."""


def post(url: str, counts: t.Mapping[str, int], known: t.Mapping[str, str], folder: Path) -> None:
    """Add to counters, and begin those that the operator does not have yet.

    :param url: http, of this machine's loopback
    :param counts: what to add by counter
    :param known: descriptions of all counters
    :param folder: one that all passes have in common, for the lock
    :raises PostError: nothing, or not all of it, was posted
    """
    host, port, path = _address(url)
    deadline = time.monotonic() + SECONDS
    try:
        with _turn(folder, deadline) as file:
            listener = _listener(port)
            before = os.pread(file, 100, 0).decode("ascii", "replace")
            is_new = not listener or before != listener
            wanted = dict.fromkeys(known, 0) if is_new else {}
            wanted.update(counts)
            if wanted:
                _post_all(host, port, path, [_body(name, known[name], wanted[name]) for name in wanted], deadline)
            if is_new:
                os.ftruncate(file, 0)
                os.pwrite(file, listener.encode(), 0)
    except OSError as exc:
        raise PostError(f"{url} does not take counters: {exc.strerror or exc or type(exc).__name__}") from exc


def _address(url: str) -> tuple[str, int, str]:
    """Host, port and path."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError as exc:
        raise PostError(f"KUBESTEWARD_METRICS_URL is no URL: {exc}") from exc
    loopback = host in ("localhost", "::1") or re.fullmatch(r"127(\.[0-9]{1,3}){3}", host)
    if parts.scheme != "http" or not loopback or parts.username is not None:
        # not shown: somebody may have written a password into it
        raise PostError(
            "KUBESTEWARD_METRICS_URL must be of this machine, for example http://localhost:5050/metrics: "
            "plain http, with localhost, 127.0.0.1 or ::1 as its host; nothing is posted elsewhere"
        )
    return host, port, parts.path or "/"


@contextlib.contextmanager
def _turn(folder: Path, deadline: float) -> t.Iterator[int]:
    """The open lock file, while no other pass has it; it is free again when its holder ends, however that ends."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(folder / LOCK_NAME, flags, 0o600)
    try:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"other passes were posting for {SECONDS:g} s") from None
                time.sleep(_PATIENCE)
        yield file
    finally:
        os.close(file)


def _listener(port: int) -> str:
    """What tells the program that listens on a local port from one that did before; empty where nobody can say."""
    for name in ("tcp", "tcp6"):
        # little at a time: the kernel lists what listens first, and takes long for the rest
        with contextlib.suppress(OSError), open(f"/proc/net/{name}", "rb", buffering=_FEW_BYTES) as table:
            table.readline()
            for line in table:
                fields = line.decode("ascii", "replace").split()
                if fields[3] != _LISTENING:
                    break
                if int(fields[1].rpartition(":")[2], 16) == port:
                    # the number of the socket, which no other one gets while the machine runs
                    return fields[9]
    return ""


def _body(name: str, description: str, count: int) -> bytes:
    return json.dumps({"name": name, "description": description, "counter": {"add": count}}).encode()


def _post_all(host: str, port: int, path: str, bodies: t.Sequence[bytes], deadline: float) -> None:
    # here and not at the top: what talks to a cluster has it already, everything else would pay for it
    import http.client

    connection = http.client.HTTPConnection(host, port, timeout=max(deadline - time.monotonic(), 0.05))
    try:
        connection.connect()
        # one that is closed in between would be opened again, and nobody would end that one in time
        connection.auto_open = 0
        with _given_up_at(deadline, connection.sock):
            for body in bodies:
                _post_one(connection, path, body)
                if time.monotonic() >= deadline:
                    raise TimeoutError(_LATE)
    except http.client.HTTPException as exc:
        raise OSError(_LATE if time.monotonic() >= deadline else f"no HTTP ({type(exc).__name__})") from exc
    finally:
        connection.close()


@contextlib.contextmanager
def _given_up_at(deadline: float, connected: socket.socket) -> t.Iterator[None]:
    """A socket's own time-out begins anew with each byte; this one does not."""

    def end() -> None:
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(deadline - time.monotonic(), 0), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _post_one(connection: http.client.HTTPConnection, path: str, body: bytes) -> None:
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read(_MOST_OF_AN_ANSWER).decode(errors="replace").strip()
    if answer.status != 200 or not answer.isclosed():
        raise OSError(f"HTTP {answer.status} {text[:200]}".strip())

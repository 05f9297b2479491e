# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the components answer?"""

from __future__ import annotations

import http.client
import socket
import time
import typing as t

from testbed import settings as s
from testbed.api import Api, fetch
from testbed.errors import TestbedError
from testbed.processes import Process, tail

SOCKET_TIMEOUT = 5


def healthy(process: Process, api: Api) -> bool:
    """Whether the process lives and its health endpoint (a URL or a socket's path) answers."""
    if not process.alive():
        return False
    if process.health is None:
        return True
    try:
        if process.health.startswith("/"):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SOCKET_TIMEOUT)
                client.connect(process.health)
            return True
        return fetch(process.health, api.context)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def wait_healthy(settings: s.Settings, processes: t.Iterable[Process], seconds: float) -> bool:
    """Whether all get healthy within the time."""
    return not _unhealthy(settings, processes, seconds)


def need_healthy(settings: s.Settings, processes: t.Iterable[Process], seconds: float) -> None:
    """TestbedError with the last lines of the log of what does not get healthy in time, or ends."""
    for process in _unhealthy(settings, processes, seconds):
        log = settings.logs / f"{process.name}.log"
        fate = f"does not answer within {seconds:.0f} s" if process.alive() else "has ended"
        raise TestbedError(f"{process.name} {fate}. The end of {log}:\n{tail(log)}")


def _unhealthy(settings: s.Settings, processes: t.Iterable[Process], seconds: float) -> list[Process]:
    try:
        api = Api(settings.kubeconfig)
    except FileNotFoundError:
        return list(processes)
    deadline = time.monotonic() + seconds
    waiting = list(processes)
    while True:
        waiting = [process for process in waiting if not healthy(process, api)]
        if not waiting or time.monotonic() > deadline or not all(process.alive() for process in waiting):
            return waiting
        time.sleep(0.1)

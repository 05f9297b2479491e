# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a Service again and again, as its clients do, and keeps what was not answered.

The testbed has no proxy for cluster IPs, so this is one: it watches the Service's EndpointSlices as kube-proxy does,
and sends each request to the next ready endpoint.
"""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import threading
import time
import typing as t
from dataclasses import dataclass, field
from types import TracebackType

from integration.workloads import PORT

from testbed import Testbed
from testbed.api import Api

PAUSE_SECONDS = 0.1
ANSWER_SECONDS = 2
LONGEST_SECONDS = 600
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


@dataclass
class Prober:
    """Probes from `with` to its end; `failures` are messages with the moment, `asked` counts all requests."""

    testbed: Testbed
    namespace: str
    service: str
    asked: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._slices: dict[str, tuple[str, ...]] = {}
        self._known = threading.Event()
        self._ended = threading.Event()
        self._api = Api(self.testbed.kubeconfig)
        host = self._api.server.removeprefix("https://")
        self._watch = http.client.HTTPSConnection(host, timeout=LONGEST_SECONDS, context=self._api.context)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._follow, self._probe)]

    def __enter__(self) -> Prober:
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        assert self._known.wait(10), f"Service {self.service} has no ready endpoint to begin with"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds = time.monotonic() - self._began
        self._ended.set()
        if self._watch.sock:
            self._watch.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(2 * ANSWER_SECONDS)
        self._watch.close()

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.asked / self.seconds

    def endpoints(self) -> tuple[str, ...]:
        """Addresses of the ready endpoints."""
        return tuple(address for addresses in list(self._slices.values()) for address in addresses)

    def _follow(self) -> None:
        """List and watch, as every client of the API does."""
        query = f"labelSelector=kubernetes.io/service-name={self.service}"
        path = SLICES.format(self.namespace)
        try:
            status, found = self._api.request("GET", f"{path}?{query}")
            assert status == 200, found
            for item in found["items"]:
                self._learn("ADDED", item)
            version = found["metadata"]["resourceVersion"]
            self._watch.request("GET", f"{path}?{query}&watch=1&resourceVersion={version}")
            for line in self._watch.getresponse():
                event = json.loads(line)
                self._learn(event["type"], event["object"])
        except (OSError, ValueError, http.client.HTTPException) as error:
            # the end of `with` cuts the connection
            if not self._ended.is_set():
                self.failures.append(f"the watch ended: {error!r}")

    def _learn(self, kind: str, found: dict[str, t.Any]) -> None:
        assert kind in ("ADDED", "MODIFIED", "DELETED"), found
        ready = tuple(
            address
            for endpoint in found.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
            for address in endpoint["addresses"]
        )
        self._slices[found["metadata"]["name"]] = () if kind == "DELETED" else ready
        if self.endpoints():
            self._known.set()

    def _probe(self) -> None:
        self._known.wait()
        for number in itertools.count():
            if self._ended.wait(PAUSE_SECONDS):
                return
            endpoints = self.endpoints()
            problem = _ask(endpoints[number % len(endpoints)]) if endpoints else "no ready endpoint"
            self.asked += 1
            if problem:
                self.failures.append(f"{time.strftime('%H:%M:%S')} {problem}")


def _ask(address: str) -> str:
    """What is wrong with the answer, or nothing."""
    connection = http.client.HTTPConnection(address, PORT, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{address}: {error!r}"
    finally:
        connection.close()
    return "" if status == 200 else f"{address}: HTTP {status}"

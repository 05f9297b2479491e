# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which writes did the API server see? Reads its audit log between two marks.

log = AuditLog.of(connect())
mark = log.mark()
...
events = log.since(mark, user_agent_prefix="kubesteward", namespace="shop")
"""

from __future__ import annotations

import json
import time
import typing as t
import urllib.parse
import uuid
from dataclasses import dataclass
from pathlib import Path

from testbed.api import Api
from testbed.connection import Testbed
from testbed.errors import TestbedError

MARKER = "testbed-marker/"
MARKER_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MARKER_BODY = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
# an event is written when the answer is already on its way: let those of answered requests get in before the marker
SETTLE_SECONDS = 0.1
FLUSH_SECONDS = 15


@dataclass(frozen=True)
class Event:
    """One mutating request; `subresource`, `namespace`, `name` are "" where there is none, `code` the HTTP status."""

    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    user_agent: str
    dry_run: bool
    code: int
    uri: str


class AuditLog:
    """Reads the log at `path`; writes a marker request to the API server to know that everything before is in it."""

    def __init__(self, path: Path, api: Api) -> None:
        self.path = path
        self.api = api

    @classmethod
    def of(cls, testbed: Testbed) -> AuditLog:
        if testbed.audit_log is None:
            raise TestbedError("A cluster of TESTBED_KUBECONFIG has no audit log to read: unset it to use the testbed.")
        return cls(testbed.audit_log, Api(testbed.kubeconfig))

    def mark(self) -> int:
        """Offset in the log behind every request that has been answered by now."""
        return self._flushed()[1]

    def since(self, mark: int, user_agent_prefix: str | None = None, namespace: str | None = None) -> list[Event]:
        """Writes since the mark in the order of their answers, refused ones and dry runs included."""
        content, _end = self._flushed(mark)
        return [
            event
            for event in parse(content)
            if not event.user_agent.startswith(MARKER)
            and (user_agent_prefix is None or event.user_agent.startswith(user_agent_prefix))
            and (namespace is None or event.namespace == namespace)
        ]

    def _flushed(self, begin: int | None = None) -> tuple[bytes, int]:
        """Bytes from `begin` (the end of the log by default) to the end of a new marker's line, and that offset."""
        start = self.path.stat().st_size if begin is None else begin
        agent = f"{MARKER}{uuid.uuid4().hex}"
        time.sleep(SETTLE_SECONDS)
        status, answer = self.api.request("POST", MARKER_PATH, _marker_body(), agent)
        if status != 201:
            raise TestbedError(f"The API server refused the marker of the audit log: {status} {answer.get('message')}")
        deadline = time.monotonic() + FLUSH_SECONDS
        with self.path.open("rb") as log:
            while time.monotonic() < deadline:
                log.seek(start)
                content = log.read()
                position = content.find(agent.encode())
                end = content.find(b"\n", position)
                if position >= 0 and end >= 0:
                    return content[: end + 1], start + end + 1
                time.sleep(0.05)
        raise TestbedError(f"{self.path} did not get the marker within {FLUSH_SECONDS} s: is it the API server's log?")


def parse(content: bytes) -> list[Event]:
    """Events of complete lines of an audit log; an unfinished last line is left out."""
    return [_event(json.loads(line)) for line in content.split(b"\n")[:-1] if line]


def _event(data: t.Mapping[str, t.Any]) -> Event:
    subject = data.get("objectRef") or {}
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(data["requestURI"]).query)
    return Event(
        verb=data["verb"],
        resource=subject.get("resource", ""),
        subresource=subject.get("subresource", ""),
        namespace=subject.get("namespace", ""),
        name=subject.get("name", ""),
        user=data["user"].get("username", ""),
        user_agent=data.get("userAgent", ""),
        dry_run="dryRun" in query,
        code=(data.get("responseStatus") or {}).get("code", 0),
        uri=data["requestURI"],
    )


def _marker_body() -> dict[str, t.Any]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", **MARKER_BODY}

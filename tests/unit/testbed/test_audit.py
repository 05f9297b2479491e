# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed import audit
from testbed.errors import TestbedError


def line(agent: str, namespace: str = "shop", verb: str = "patch", query: str = "", **extra: object) -> bytes:
    event = {
        "verb": verb,
        "requestURI": f"/apis/apps/v1/namespaces/{namespace}/deployments/web{query}",
        "user": {"username": "admin"},
        "userAgent": agent,
        "objectRef": {"resource": "deployments", "namespace": namespace, "name": "web"},
        "responseStatus": {"code": 200},
        **extra,
    }
    return json.dumps(event).encode() + b"\n"


class Api:
    """Answers a marker request by appending to the log what was held back, then the marker, as the API server does."""

    def __init__(self, path: Path, status: int = 201) -> None:
        self.path, self.status, self.late = path, status, b""

    def request(self, method: str, path: str, body: object, user_agent: str) -> tuple[int, dict]:
        assert (method, path) == ("POST", audit.MARKER_PATH)
        if self.status == 201:
            with self.path.open("ab") as log:
                log.write(self.late + line(user_agent, verb="create"))
            self.late = b""
        return self.status, {"message": "no"}


@pytest.fixture
def log(tmp_path: Path, monkeypatch) -> audit.AuditLog:
    monkeypatch.setattr(audit, "SETTLE_SECONDS", 0)
    monkeypatch.setattr(audit, "FLUSH_SECONDS", 0.2)
    path = tmp_path / "audit.log"
    path.write_bytes(line("before/1"))
    return audit.AuditLog(path, Api(path))


def write(log: audit.AuditLog, *lines: bytes) -> None:
    with log.path.open("ab") as file:
        file.write(b"".join(lines))


def test_only_what_came_after_the_mark_is_returned_without_markers(log) -> None:
    mark = log.mark()
    write(log, line("kubesteward/1"), line("kubectl/1"))
    assert [event.user_agent for event in log.since(mark)] == ["kubesteward/1", "kubectl/1"]


def test_what_the_server_writes_late_is_waited_for(log) -> None:
    mark = log.mark()
    log.api.late = line("kubesteward/late")
    assert [event.user_agent for event in log.since(mark)] == ["kubesteward/late"]


def test_user_agent_and_namespace_select(log) -> None:
    mark = log.mark()
    write(log, line("kubesteward/1"), line("kubesteward/1", "other"), line("kubectl/1"))
    assert [event.namespace for event in log.since(mark, "kubesteward")] == ["shop", "other"]
    assert len(log.since(mark, "kubesteward", "shop")) == 1


def test_a_mark_in_the_middle_splits(log) -> None:
    log.mark()
    write(log, line("a/1"))
    second = log.mark()
    write(log, line("b/1"))
    assert [event.user_agent for event in log.since(second)] == ["b/1"]


def test_a_log_without_the_marker_is_an_error(log) -> None:
    log.api.path = log.path.with_name("other.log")
    with pytest.raises(TestbedError, match="did not get the marker"):
        log.mark()


def test_a_refused_marker_is_an_error(log) -> None:
    log.api.status = 403
    with pytest.raises(TestbedError, match="refused the marker"):
        log.mark()


def test_every_field_of_an_event_is_read() -> None:
    reference = {"resource": "pods", "subresource": "status", "namespace": "n", "name": "p"}
    content = line("x/1", query="?dryRun=All&fieldManager=y", objectRef=reference, responseStatus={"code": 409})
    event = audit.parse(content)[0]
    assert (event.verb, event.resource, event.subresource, event.namespace, event.name) == (
        "patch",
        *reference.values(),
    )
    assert (event.user, event.user_agent, event.dry_run, event.code) == ("admin", "x/1", True, 409)


def test_requests_without_object_or_status_are_read() -> None:
    event = audit.parse(line("x/1", objectRef=None, responseStatus=None))[0]
    assert (event.resource, event.namespace, event.name, event.code, event.dry_run) == ("", "", "", 0, False)


def test_an_unfinished_line_is_left_out() -> None:
    assert len(audit.parse(line("x/1") + line("x/2")[:-9])) == 1

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plain HTTP proxy before the API server, as ansible-operator has: a test can act between two requests of a pass."""

from __future__ import annotations

import base64
import collections
import contextlib
import http.server
import json
import ssl
import tempfile
import threading
import typing as t
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import urllib3

from ansible_collections.kubesteward.core.plugins.module_utils import kube_plain

Object = dict[str, t.Any]
SECONDS = 30
#: of one connection, or computed anew
_NOT_FORWARDED = {"host", "connection", "content-length", "authorization", "accept-encoding", "transfer-encoding"}


class DroppedError(Exception):
    """Raised by what a test does before a request: it is not forwarded, and its connection is closed."""


@dataclass(frozen=True)
class Request:
    """One request of a pass; `agent` is its user agent, `path` has no query."""

    method: str
    path: str
    query: str
    agent: str

    @property
    def kind(self) -> str:
        """`VERB plural`, with a subresource; GET of a collection is LIST."""
        parts = self.path.strip("/").split("/")
        # /api/v1/... or /apis/group/version/..., where most are in a namespace
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        if parts[0] == "namespaces" and len(parts) > 2:
            parts = parts[2:]
        plural, _name, *below = [*parts, ""][:3] if len(parts) < 3 else parts
        is_list = self.method == "GET" and len(parts) == 1
        dry = " dry run" if "dryRun" in self.query else ""
        return f"{'LIST' if is_list else self.method} {'/'.join([plural, *filter(None, below)])}{dry}"

    @property
    def writes(self) -> bool:
        """False for a dry run too."""
        return self.method != "GET" and "dryRun" not in self.query


@dataclass
class _Stop:
    matches: Callable[[Request], bool]
    act: Callable[[], None]
    is_before: bool
    #: requests that match and are let through first
    spared: int


@dataclass
class Gate:
    """Forwards with the credentials of a kubeconfig; what is created gets its owner, as from the operator's proxy."""

    kubeconfig: Path
    seen: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stops: list[_Stop] = []
        self._lock = threading.Lock()
        access = kube_plain.find({"kubeconfig": str(self.kubeconfig)}, {"kubeconfig": "kubeconfig"}, {})
        assert access is not None
        self._host = access.server
        self._pool = urllib3.PoolManager(ssl_context=_tls(access))
        self._credentials = {"Authorization": access.authorization} if access.authorization else {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def asked(self) -> dict[str, int]:
        """Requests by verb and resource, since `seen` was cleared."""
        return dict(collections.Counter(request.kind for request in self.seen))

    def before(self, matches: Callable[[Request], bool], act: Callable[[], None], spared: int = 0) -> None:
        """Act once, before a request that matches is forwarded."""
        self._stops.append(_Stop(matches, act, True, spared))

    def after(self, matches: Callable[[Request], bool], act: Callable[[], None], spared: int = 0) -> None:
        """Act once, when such a request was carried out and is not answered yet."""
        self._stops.append(_Stop(matches, act, False, spared))

    def forget(self) -> None:
        """Take back stops that were not reached."""
        self._stops = []

    def done(self) -> bool:
        """Has every stop been reached?"""
        return not self._stops

    def _acts(self, request: Request, is_before: bool) -> list[Callable[[], None]]:
        with self._lock:
            found = [stop for stop in self._stops if stop.is_before == is_before and stop.matches(request)]
            for stop in found:
                stop.spared -= 1
            due = [stop for stop in found if stop.spared < 0]
            self._stops = [stop for stop in self._stops if stop not in due]
        return [stop.act for stop in due]

    def answer(self, asked: Request, target: str, headers: t.Mapping[str, str], body: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body of what the API server answers."""
        self.seen.append(asked)
        for act in self._acts(asked, is_before=True):
            act()
        kept = {name: value for name, value in headers.items() if name.lower() not in _NOT_FORWARDED}
        if asked.method == "POST":
            body = owned(body, owner_of(headers.get("Authorization", "")), asked.path)
        found = self._pool.request(
            asked.method,
            self._host + target,
            body=body or None,
            headers={**kept, **self._credentials},
            retries=False,
            timeout=SECONDS,
        )
        for act in self._acts(asked, is_before=False):
            act()
        return found.status, found.headers.get("Content-Type", ""), found.data


def _handler(gate: Gate) -> type[http.server.BaseHTTPRequestHandler]:
    def serve(self: http.server.BaseHTTPRequestHandler) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urllib.parse.urlsplit(self.path)
        asked = Request(self.command, parts.path, parts.query, self.headers.get("User-Agent", ""))
        try:
            status, kind, content = gate.answer(asked, self.path, dict(self.headers.items()), body)
        except DroppedError:
            self.close_connection = True
            return
        # whoever asked may be gone by now
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    members = {f"do_{verb}": serve for verb in ("GET", "POST", "PUT", "PATCH", "DELETE")}
    quiet = {"log_message": lambda *_arguments: None, "protocol_version": "HTTP/1.1"}
    return type("Handler", (http.server.BaseHTTPRequestHandler,), {**members, **quiet})


def _tls(access: kube_plain.Access) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=access.authority)
    if access.certificate:
        # ssl reads a client's certificate from a file only
        with tempfile.NamedTemporaryFile() as file:
            file.write(access.certificate + b"\n" + access.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def credentials(resource: Object) -> str:
    """The user name under which the operator's proxy knows for whom a request is made."""
    meta = resource["metadata"]
    owner = {"apiVersion": resource["apiVersion"], "kind": resource["kind"], "name": meta["name"], "uid": meta["uid"]}
    return base64.urlsafe_b64encode(json.dumps({**owner, "Namespace": meta["namespace"]}).encode()).decode()


def owner_of(authorization: str) -> Object:
    """What `credentials` wrote; empty where nobody is named."""
    scheme, _space, text = authorization.partition(" ")
    if scheme != "Basic":
        return {}
    name, _colon, _password = base64.b64decode(text).decode().partition(":")
    return json.loads(base64.urlsafe_b64decode(name))


def owned(body: bytes, owner: Object, path: str) -> bytes:
    """A new object as the operator's proxy hands it on: an owner in its namespace, else annotations that name it."""
    if not owner or not body:
        return body
    new = json.loads(body)
    meta = new.setdefault("metadata", {})
    home = owner["Namespace"]
    if f"/namespaces/{home}/" in path:
        reference = {key: value for key, value in owner.items() if key != "Namespace"}
        meta["ownerReferences"] = [*meta.get("ownerReferences", []), reference]
    else:
        group = owner["apiVersion"].partition("/")[0]
        marks = {
            "operator-sdk/primary-resource": f"{home}/{owner['name']}",
            "operator-sdk/primary-resource-type": f"{owner['kind']}.{group}",
        }
        meta["annotations"] = {**(meta.get("annotations") or {}), **marks}
    return json.dumps(new).encode()

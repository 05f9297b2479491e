# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A registry on loopback that answers whatever a test wants, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import http.server
import json
import threading
import typing as t
import urllib.parse

from ansible_collections.kubesteward.core.plugins.modules import registry_digest

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"


@dataclasses.dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def authorization(self) -> str | None:
        return self.headers.get("authorization")


@dataclasses.dataclass(frozen=True)
class Reply:
    """`broken` closes the connection in the middle of the body; `length` False leaves Content-Length out."""

    status: int = 200
    headers: t.Mapping[str, str | list[str]] = dataclasses.field(default_factory=dict)
    body: bytes = b""
    broken: bool = False
    length: bool = True


Answer = t.Callable[[Asked], Reply]


class FakeRegistry:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def lines(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]


def _handler(registry: FakeRegistry) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: t.Any) -> None:
            return None

        def _serve(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(length)
            asked = Asked(self.command, parts.path, urllib.parse.parse_qs(parts.query), headers, body)
            registry.asked.append(asked)
            reply = registry.answer(asked)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                for one_of in [value] if isinstance(value, str) else value:
                    self.send_header(name, one_of)
            if reply.length and "Content-Length" not in reply.headers:
                self.send_header("Content-Length", str(len(reply.body) + (100 if reply.broken else 0)))
            if not reply.length:
                self.close_connection = True
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)
            if reply.broken:
                self.close_connection = True

    for method in ("GET", "HEAD", "POST"):
        setattr(Handler, f"do_{method}", Handler._serve)
    return Handler


@contextlib.contextmanager
def serving(answer: Answer) -> t.Iterator[FakeRegistry]:
    registry = FakeRegistry(answer)
    try:
        yield registry
    finally:
        registry.close()


def sha256(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def manifest(config: str = "c", media_type: str = OCI_MANIFEST) -> bytes:
    descriptor = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": sha256(config.encode()), "size": 1}
    return json.dumps({"schemaVersion": 2, "mediaType": media_type, "config": descriptor, "layers": []}).encode()


def child(body: bytes, platform: str = "linux/amd64", **more: t.Any) -> dict[str, t.Any]:
    system, arch, *variant = platform.split("/")
    where = {"os": system, "architecture": arch, **({"variant": variant[0]} if variant else {})}
    return {"mediaType": OCI_MANIFEST, "digest": sha256(body), "size": len(body), "platform": where, **more}


def index(*children: dict[str, t.Any], media_type: str = OCI_INDEX, **more: t.Any) -> bytes:
    return json.dumps({"schemaVersion": 2, "mediaType": media_type, "manifests": list(children), **more}).encode()


def attestation(body: bytes) -> dict[str, t.Any]:
    note = {"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": sha256(b"p1")}
    return child(body, "unknown/unknown", annotations=note)


def content(*bodies: bytes, tags: t.Mapping[str, bytes] | None = None, headers: bool = True) -> Answer:
    """A well-behaved registry of one repository per path: `tags` by name, everything by digest."""
    stored = {sha256(body): body for body in (*bodies, *(tags or {}).values())}
    stored.update(tags or {})

    def answer(asked: Asked) -> Reply:
        body = stored.get(asked.path.rpartition("/")[2])
        if body is None or "/manifests/" not in asked.path:
            return Reply(404, {"Content-Type": "application/json"}, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
        media_type = json.loads(body).get("mediaType", OCI_MANIFEST)
        found = {"Content-Type": media_type, "Content-Length": str(len(body))}
        if headers:
            found["Docker-Content-Digest"] = sha256(body)
        return Reply(200, found, body)

    return answer


class NoCluster:
    def get(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, t.Any] | None:
        raise AssertionError("no Secret should be read")


def params(**given: t.Any) -> dict[str, t.Any]:
    """Options of the module with their defaults."""
    defaults = {name: option.get("default") for name, option in registry_digest.argument_spec().items()}
    return {**defaults, "timeout": 3.0, "cache_dir": "", **given}


def look_up(**given: t.Any) -> dict[str, t.Any]:
    """Run the module's own `run` without a cluster."""
    return registry_digest.run(params(**given), NoCluster)


def one(image: t.Any, **given: t.Any) -> dict[str, t.Any]:
    """The entry that a list of one gives."""
    return t.cast("dict[str, t.Any]", look_up(images=[image], **given)["images"][0])

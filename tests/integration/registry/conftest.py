# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real registries as processes, images pushed by skopeo, crane and skopeo as oracles."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import time
import typing as t

import pytest
import trustme
import yaml

from ansible_collections.kubesteward.core.tests.integration.registry import tokens
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import serving
from testbed import binaries, settings
from testbed import layout as images_of
from testbed.packages import need

PASSWORD = "pa:ss wörd"
# what must never be seen again: the password of a second user
MARKER = "m4rk3r-s3cret-0f-a-user"
# as `htpasswd -Bbn` writes them, since not every machine has that program
HTPASSWD = """user:$2y$05$1SevZQoG1DNPxLUe4MTn1OjQoxv2.ujHZTE6CtcpdicNHXimJ93CO
team:$2y$05$.IUJ88tkuLxOjJlBQLn/M.XgQ7SC9iU9ZYkrg5T21cQo19CF61mf2
"""
TAGS = ("single", "index", "attested", "rebuilt")
Images = dict[str, images_of.Layout]


@pytest.fixture(scope="session")
def crane() -> str:
    """crane, built on first use."""
    return str(binaries.crane(settings.from_environment(os.environ)))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def registry(folder: pathlib.Path, http: dict[str, t.Any] | None = None, **config: t.Any) -> t.Iterator[str]:
    """A docker-registry with `config` beside its storage; yields host:port."""
    host = f"127.0.0.1:{free_port()}"
    folder.mkdir(parents=True)
    conf = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": host, **(http or {})},
        "compatibility": {"schema1": {"enabled": True}},
        **config,
    }
    (folder / "conf.yml").write_text(yaml.safe_dump(conf))
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [str(need("docker-registry")), "serve", str(folder / "conf.yml")],
            stdout=log,
            stderr=log,
            env={**os.environ, "OTEL_TRACES_EXPORTER": "none"},
        )
    try:
        _await(host, process, folder / "log")
        yield host
    finally:
        process.terminate()
        process.wait(10)


def _await(host: str, process: subprocess.Popen[bytes], log: pathlib.Path) -> None:
    name, port = host.split(":")
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"docker-registry ended: {log.read_text()}")
        with contextlib.suppress(OSError), socket.create_connection((name, int(port)), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("docker-registry does not listen")


def push(images: Images, host: str, folder: pathlib.Path, *more: str, tags: t.Sequence[str] = TAGS) -> None:
    for tag in tags:
        source = images_of.write(images[tag], folder / f"layout-{tag}")
        copy(source, f"docker://{host}/team/app:{tag}", "--all", "--preserve-digests", *more)


def copy(source: str, target: str, *more: str) -> None:
    command = [
        str(need("skopeo")),
        "--insecure-policy",
        "copy",
        "-q",
        "--dest-tls-verify=false",
        "--src-tls-verify=false",
        *more,
        source,
        target,
    ]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


@pytest.fixture(scope="session")
def images() -> Images:
    """A single image, indexes, one with attestations, one rebuilt with equal children; the same in every run."""
    amd, arm = (
        images_of.image([images_of.layer({"arch": arch.encode()})], {}, f"linux/{arch}") for arch in ("amd64", "arm64")
    )
    note = {"org.opencontainers.image.created": images_of.CREATED}
    old = _with_history(images_of.image([images_of.layer({"arch": b"old"})], {}, "linux/amd64", docker=True))
    return {
        "amd64": amd,
        "arm64": arm,
        "single": amd,
        "index": images_of.index([amd, arm]),
        "attested": images_of.index([amd, images_of.attestation(amd)]),
        "rebuilt": images_of.index([arm, amd], note),
        "docker": old,
    }


def _with_history(image: images_of.Layout) -> images_of.Layout:
    """Schema 1 is made of the history of an image."""
    manifest = json.loads(image.content)
    config = json.loads(image.blobs[manifest["config"]["digest"]])
    body = json.dumps({**config, "history": [{"created": images_of.CREATED, "created_by": "test"}]}).encode()
    digest = images_of.digest_of(body)
    manifest["config"].update(digest=digest, size=len(body))
    blobs = {**image.blobs, digest: body}
    return dataclasses.replace(image, content=json.dumps(manifest).encode(), blobs=blobs)


@pytest.fixture(scope="session")
def anonymous(images: Images, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[str]:
    folder = tmp_path_factory.mktemp("anonymous")
    with registry(folder / "r") as host:
        push(images, host, folder, tags=[*TAGS, "docker"])
        copy(f"docker://{host}/team/app:index", f"docker://{host}/team/app:docker-list", "--all", "--format", "v2s2")
        copy(f"docker://{host}/team/app:docker", f"docker://{host}/team/app:schema1", "--format", "v2s1")
        yield host


@pytest.fixture(scope="session")
def htpasswd(images: Images, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[str]:
    folder = tmp_path_factory.mktemp("htpasswd")
    (folder / "htpasswd").write_text(HTPASSWD)
    auth = {"htpasswd": {"realm": "Registry Realm", "path": str(folder / "htpasswd")}}
    with registry(folder / "r", auth=auth) as host:
        push(images, host, folder, "--dest-creds", f"user:{PASSWORD}", tags=["index"])
        yield host


@pytest.fixture(scope="session")
def token_registry(
    images: Images, tmp_path_factory: pytest.TempPathFactory
) -> t.Iterator[tuple[str, tokens.TokenServer]]:
    folder = tmp_path_factory.mktemp("token")
    authority = tokens.TokenServer("user", PASSWORD)
    authority.write_root(folder / "root.pem")
    with serving(authority) as server:
        auth = {
            "token": {
                "realm": f"http://{server.host}/token",
                "service": authority.service,
                "issuer": authority.issuer,
                "rootcertbundle": str(folder / "root.pem"),
            }
        }
        with registry(folder / "r", auth=auth) as host:
            push(images, host, folder, "--dest-creds", f"user:{PASSWORD}", tags=["index", "single"])
            yield host, authority


@pytest.fixture(scope="session")
def private_ca(images: Images, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[tuple[str, str]]:
    """A registry over TLS, and the path of the CA that signed it."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    leaf.private_key_pem.write_to_path(folder / "key.pem")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    tls = {"certificate": str(folder / "cert.pem"), "key": str(folder / "key.pem")}
    with registry(folder / "r", http={"tls": tls}) as host:
        push(images, host, folder, tags=["index"])
        yield host, str(folder / "ca.pem")


@pytest.fixture(scope="session")
def pull_through(anonymous: str, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[str]:
    with registry(tmp_path_factory.mktemp("proxy") / "r", proxy={"remoteurl": f"http://{anonymous}"}) as host:
        yield host

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real registries as processes, images pushed by skopeo, crane and skopeo as oracles."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import time
import typing as t

import pytest
import trustme
import yaml

from ansible_collections.kubesteward.core.tests.integration.registry import layouts, tokens
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import serving

CRANE = "github.com/google/go-containerregistry/cmd/crane@v0.22.1"
ROOT = pathlib.Path(__file__).resolve().parents[3]
PASSWORD = "pa:ss wörd"


@pytest.fixture(scope="session")
def crane() -> str:
    """crane, built once into the cache folder of the checkout."""
    folder = ROOT / ".cache" / "tools" / hashlib.sha256(CRANE.encode()).hexdigest()[:12]
    if not (folder / "crane").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "install", CRANE], check=True, timeout=600, env={**os.environ, "GOBIN": str(folder)})
    return str(folder / "crane")


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
            ["docker-registry", "serve", str(folder / "conf.yml")],
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


def push(images: layouts.Images, host: str, *more: str, tags: t.Sequence[str] = layouts.TAGS) -> None:
    for tag in tags:
        copy(f"oci:{images.folder}:{tag}", f"docker://{host}/team/app:{tag}", "--all", "--preserve-digests", *more)


def copy(source: str, target: str, *more: str) -> None:
    command = [
        "skopeo",
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
def images(tmp_path_factory: pytest.TempPathFactory) -> layouts.Images:
    return layouts.build(tmp_path_factory.mktemp("layout"))


@pytest.fixture(scope="session")
def anonymous(images: layouts.Images, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[str]:
    with registry(tmp_path_factory.mktemp("anonymous") / "r") as host:
        push(images, host)
        copy(f"docker://{host}/team/app:single", f"docker://{host}/team/app:docker", "--format", "v2s2")
        copy(f"docker://{host}/team/app:index", f"docker://{host}/team/app:docker-list", "--all", "--format", "v2s2")
        copy(f"docker://{host}/team/app:docker", f"docker://{host}/team/app:schema1", "--format", "v2s1")
        yield host


@pytest.fixture(scope="session")
def htpasswd(images: layouts.Images, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[str]:
    folder = tmp_path_factory.mktemp("htpasswd")
    made = subprocess.run(["htpasswd", "-Bbn", "user", PASSWORD], check=True, capture_output=True, timeout=30)
    (folder / "htpasswd").write_bytes(made.stdout)
    auth = {"htpasswd": {"realm": "Registry Realm", "path": str(folder / "htpasswd")}}
    with registry(folder / "r", auth=auth) as host:
        push(images, host, "--dest-creds", f"user:{PASSWORD}", tags=["index"])
        yield host


@pytest.fixture(scope="session")
def token_registry(
    images: layouts.Images, tmp_path_factory: pytest.TempPathFactory
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
            push(images, host, "--dest-creds", f"user:{PASSWORD}", tags=["index", "single"])
            yield host, authority


@pytest.fixture(scope="session")
def private_ca(images: layouts.Images, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[tuple[str, str]]:
    """A registry over TLS, and the path of the CA that signed it."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    leaf.private_key_pem.write_to_path(folder / "key.pem")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    tls = {"certificate": str(folder / "cert.pem"), "key": str(folder / "key.pem")}
    with registry(folder / "r", http={"tls": tls}) as host:
        push(images, host, tags=["index"])
        yield host, str(folder / "ca.pem")


@pytest.fixture(scope="session")
def pull_through(anonymous: str, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[str]:
    with registry(tmp_path_factory.mktemp("proxy") / "r", proxy={"remoteurl": f"http://{anonymous}"}) as host:
        yield host


@pytest.fixture(autouse=True)
def tools_are_there() -> None:
    for name in ("docker-registry", "skopeo", "htpasswd"):
        assert shutil.which(name), f"{name} is not installed; 'make setup' installs it"

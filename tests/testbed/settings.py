# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the testbed lives, which ports and addresses it uses, and the key that tells two builds of it apart."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError

PACKAGE = Path(__file__).resolve().parent
INSTANCES = tuple("0123456789")
# Several testbeds run side by side on one machine, each with addresses, devices, ports and a folder of its own.
_GIVEN = os.environ.get("TESTBED_INSTANCE", "0")
INSTANCE = int(_GIVEN) if _GIVEN in INSTANCES else 0
_MARK = str(INSTANCE or "")
DEFAULT_HOME = f"/var/lib/kubesteward-testbed{_MARK}"
DEFAULT_PORT_BASE = 16400 + 10 * INSTANCE
PORT_NAMES = ("apiserver", "etcd", "etcd-peer", "registry", "controller-manager", "scheduler")

# 198.18.0.0/15 is reserved for tests between devices (RFC 2544): no real network is shadowed.
HOST_ADDRESS = f"198.18.0.{1 + 4 * INSTANCE}"
NODE_ADDRESS = f"198.18.0.{2 + 4 * INSTANCE}"
LINK_PREFIX = 30
POD_NETWORK = f"198.19.{4 * INSTANCE}.0/22"
SERVICE_NETWORK = "198.19.128.0/20"
SERVICE_ADDRESS = "198.19.128.1"
HOST_DEVICE = f"kst{_MARK}-host"
NODE_DEVICE = f"kst{_MARK}-node"
POD_BRIDGE = f"kst{_MARK}-pods"
NODE_NAME = "testbed"
CGROUP = f"kubesteward-testbed{_MARK}"
KUBELET_PORT = 10250
KUBE_ROUTER_HEALTH_PORT = 20244

# A Unix socket's path may have 107 bytes; the longest name below the folder has about 30.
LONGEST_HOME = 70
SOURCES_OF_THE_KEY = ("manifests.py", "components.py", "node.py", "settings.py")


@dataclass(frozen=True)
class Settings:
    """`home`: state folder; `cache`: built programs; `assets`: KUBEBUILDER_ASSETS or None; `key`: of this checkout."""

    home: Path
    cache: Path
    port_base: int
    assets: Path | None
    key: str

    @property
    def ports(self) -> dict[str, int]:
        return {name: self.port_base + offset for offset, name in enumerate(PORT_NAMES)}

    @property
    def registry(self) -> str:
        return f"127.0.0.1:{self.ports['registry']}"

    @property
    def server(self) -> str:
        return f"https://{HOST_ADDRESS}:{self.ports['apiserver']}"

    @property
    def kubeconfig(self) -> Path:
        return self.home / "kubeconfig"

    @property
    def state_file(self) -> Path:
        return self.home / "state.json"

    @property
    def audit_log(self) -> Path:
        return self.home / "audit.log"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def containerd_socket(self) -> Path:
        return self.home / "node" / "containerd.sock"

    @property
    def lock_file(self) -> Path:
        name = hashlib.sha256(str(self.home).encode()).hexdigest()[:8]
        return Path("/run/lock") / f"kubesteward-testbed-{name}.lock"


def from_environment(environ: t.Mapping[str, str]) -> Settings:
    """Settings of the variables that README.md lists; TestbedError for bad ones."""
    instance = environ.get("TESTBED_INSTANCE", "0")
    if instance not in INSTANCES:
        raise TestbedError(f"TESTBED_INSTANCE is {instance!r}: give a digit, 0 for the usual testbed.")
    home = environ.get("TESTBED_HOME") or DEFAULT_HOME
    if (
        not home.startswith("/")
        or len(home) > LONGEST_HOME
        or home.rstrip("/") == ""
        or not re.fullmatch(r"[\w./-]+", home)
    ):
        raise TestbedError(
            f"TESTBED_HOME is {home!r}: give an absolute path of at most {LONGEST_HOME} letters, digits and ._-/"
            " (Unix sockets below it have a short limit)."
        )
    cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "/root") / ".cache") / "kubesteward"
    assets = environ.get("KUBEBUILDER_ASSETS") or None
    return Settings(
        home=Path(home),
        cache=cache,
        port_base=port_base(environ.get("TESTBED_PORT_BASE") or str(DEFAULT_PORT_BASE)),
        assets=Path(assets) if assets else None,
        key=checkout_key(),
    )


def port_base(text: str) -> int:
    """First of the consecutive ports, 1024 to 65500."""
    if not text.isdecimal() or not 1024 <= int(text) <= 65500:
        raise TestbedError(
            f"TESTBED_PORT_BASE is {text!r}: give a port between 1024 and 65500, e.g. {DEFAULT_PORT_BASE}."
        )
    return int(text)


def checkout_key() -> str:
    """12 hex digits over what decides how a running testbed behaves: versions, checksums and configuration."""
    digest = hashlib.sha256(platform.machine().encode())
    for name in SOURCES_OF_THE_KEY:
        digest.update((PACKAGE / name).read_bytes())
    for path in sorted((PACKAGE / "build").glob("*/go.*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]

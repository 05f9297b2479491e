# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running testbed, or a cluster of the user's, seen by tests, demo and bench."""

from __future__ import annotations

import ipaddress
import os
import typing as t
from dataclasses import dataclass
from pathlib import Path

from testbed import settings as s
from testbed.errors import TestbedError
from testbed.state import boot_id, load


@dataclass(frozen=True)
class Testbed:
    """`registry` is host:port; `audit_log` is None and `mirrored` False for an external cluster.

    `mirrored`: every registry's name is served by `registry`, so manifests may keep real names.
    """

    __test__ = False

    kubeconfig: Path
    registry: str
    audit_log: Path | None
    mirrored: bool

    def image_name(self, repository: str, registry_name: str = "quay.io") -> str:
        """What to write in a manifest for `repository[:tag]` that was pushed to `registry`."""
        return f"{registry_name if self.mirrored else self.registry}/{repository}"

    def registries(self, *registry_names: str) -> list[dict[str, t.Any]]:
        """Value of the option `update_registries` under which those names (quay.io by default) are looked up here."""
        if self.mirrored:
            names = registry_names or ("quay.io",)
            return [{"prefix": name, "location": self.registry} for name in names]
        return [] if _is_loopback(self.registry) else [{"prefix": self.registry, "insecure": True}]


def connect(environ: t.Mapping[str, str] = os.environ) -> Testbed:
    """The external cluster of TESTBED_KUBECONFIG, else the running testbed; TestbedError where there is none.

    KUBECONFIG is not looked at: it may be somebody's production.
    """
    found = external(environ)
    if found is not None:
        return found
    settings = s.from_environment(environ)
    state = load(settings.state_file)
    if state is None or not state.ready or state.boot != boot_id():
        raise TestbedError(f"No testbed runs in {settings.home}: start one with `make testbed-up`.")
    registry_port = state.port_base + s.PORT_NAMES.index("registry")
    return Testbed(settings.kubeconfig, f"127.0.0.1:{registry_port}", settings.audit_log, True)


def external(environ: t.Mapping[str, str]) -> Testbed | None:
    """The cluster that TESTBED_KUBECONFIG and TESTBED_REGISTRY name, or None."""
    kubeconfig, registry = environ.get("TESTBED_KUBECONFIG"), environ.get("TESTBED_REGISTRY")
    if not kubeconfig:
        return None
    if not registry or "/" in registry:
        raise TestbedError(
            f"TESTBED_KUBECONFIG is set and TESTBED_REGISTRY is {registry!r}:"
            " give host:port of a registry that the cluster's nodes can pull from, too."
        )
    path = Path(kubeconfig)
    if not path.is_file():
        raise TestbedError(f"TESTBED_KUBECONFIG is {kubeconfig}: there is no such file.")
    return Testbed(path, registry, None, False)


def _is_loopback(registry: str) -> bool:
    host = registry.rpartition(":")[0] if registry.rpartition(":")[2].isdecimal() else registry
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

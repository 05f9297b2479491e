# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs built by Go from pinned modules, kept in the cache and built only when missing."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from testbed.console import step
from testbed.errors import TestbedError
from testbed.settings import PACKAGE, Settings

BUILD_TIMEOUT = 3600
GO_MINIMUM = (1, 25)
KUBERNETES_VERSION = "v1.34.4"
_VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Module:
    """A folder below build/ with go.mod and go.sum, and the packages to build from it by program name."""

    name: str
    packages: dict[str, str]
    ldflags: str = "-s -w"

    @property
    def folder(self) -> Path:
        return PACKAGE / "build" / self.name

    @property
    def key(self) -> str:
        """Name of the cache folder: changes with versions, checksums, flags and the machine's architecture."""
        digest = hashlib.sha256(f"{self.ldflags}\n{platform.machine()}\n".encode())
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        return f"{self.name}-{digest.hexdigest()[:12]}"


KUBERNETES = Module(
    "kubernetes",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    },
    f"-s -w -X {_VERSION}.gitVersion={KUBERNETES_VERSION} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=34",
)
KUBE_ROUTER = Module("kube-router", {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"})
CRANE = Module("crane", {"crane": "github.com/google/go-containerregistry/cmd/crane"})


def kubernetes_programs(settings: Settings) -> dict[str, Path]:
    """Paths of the control plane, the kubelet and kube-router by name; builds what is missing (first time: minutes)."""
    found = dict(assets(settings))
    for module in (KUBERNETES, KUBE_ROUTER):
        for program in module.packages:
            if program not in found:
                found[program] = program_of(module, program, settings.cache)
    return found


def assets(settings: Settings) -> dict[str, Path]:
    """kube-apiserver and etcd of KUBEBUILDER_ASSETS, or nothing where it is not set."""
    if settings.assets is None:
        return {}
    paths = {name: settings.assets / name for name in ("kube-apiserver", "etcd")}
    missing = [str(path) for path in paths.values() if not os.access(path, os.X_OK)]
    if missing:
        raise TestbedError(f"KUBEBUILDER_ASSETS is set, but {', '.join(missing)} cannot be run: fix it or unset it.")
    return paths


def crane(settings: Settings) -> Path:
    """Path of crane, built on first use."""
    return program_of(CRANE, "crane", settings.cache)


def program_of(module: Module, program: str, cache: Path) -> Path:
    """Path of one program in the cache; two builders at once wait for each other."""
    path = cache / module.key / program
    if path.exists():
        return path
    go = _go()
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with step(f"build {program} (once; kept in {path.parent})"):
                _build(go, module, program, path)
    return path


def _build(go: str, module: Module, program: str, path: Path) -> None:
    unfinished = path.with_name(f".{program}.unfinished")
    command = [go, "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", module.ldflags]
    done = subprocess.run(
        [*command, "-o", str(unfinished), module.packages[program]],
        cwd=module.folder,
        env={**os.environ, "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise TestbedError(
            f"Go could not build {program} in {module.folder}:\n{done.stderr[-2000:].strip()}\n"
            "Check that the Go module proxy can be reached (go env GOPROXY) and that the disk has 10 GB free."
        )
    unfinished.replace(path)


def _go() -> str:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    remedy = f"install Go {GO_MINIMUM[0]}.{GO_MINIMUM[1]} or newer, or use a cluster of yours with TESTBED_KUBECONFIG."
    if go is None:
        raise TestbedError(f"There is no Go in PATH to build the control plane with: {remedy}")
    text = subprocess.run([go, "version"], capture_output=True, text=True, timeout=30, check=True).stdout
    version = re.search(r"go(\d+)\.(\d+)", text)
    if version is None or (int(version[1]), int(version[2])) < GO_MINIMUM:
        raise TestbedError(f"{text.strip()} is too old: {remedy}")
    return go

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
import typing as t
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
    """A folder below build/ with go.mod and go.sum, and the packages to build from it by program name.

    `tags`: Go's build tags; `minutes`: about how long two cores build all of it, for people to read.
    """

    name: str
    packages: dict[str, str]
    ldflags: str = "-s -w"
    tags: str = ""
    minutes: int = 2

    @property
    def folder(self) -> Path:
        return PACKAGE / "build" / self.name

    @property
    def key(self) -> str:
        """Name of the cache folder: changes with versions, checksums, flags and the machine's architecture."""
        digest = hashlib.sha256(f"{self.ldflags}\n{platform.machine()}\n".encode())
        for name in ("go.mod", "go.sum"):
            digest.update((self.folder / name).read_bytes())
        return f"{self.name}-{digest.hexdigest()[:12]}{self.tags and '-' + self.tags}"


KUBERNETES = Module(
    "kubernetes",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    },
    f"-s -w -X {_VERSION}.gitVersion={KUBERNETES_VERSION} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=34",
    minutes=8,
)
KUBE_ROUTER = Module("kube-router", {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"})
CRANE = Module("crane", {"crane": "github.com/google/go-containerregistry/cmd/crane"})


def kubernetes_programs(settings: Settings) -> dict[str, Path]:
    """Paths of the control plane and the kubelet by name; builds what is missing (first time: minutes)."""
    given = assets(settings)
    wanted = [program for program in KUBERNETES.packages if program not in given]
    return {**given, **programs_of(KUBERNETES, wanted, settings.cache)}


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
    """Path of one program in the cache, built where it is missing."""
    return programs_of(module, [program], cache)[program]


def programs_of(module: Module, programs: t.Sequence[str], cache: Path) -> dict[str, Path]:
    """Paths in the cache by name; two builders at once wait for each other.

    What is missing is built by one command: what programs share is compiled beside what each has for itself.
    """
    folder = cache / module.key
    paths = {program: folder / program for program in programs}
    if all(path.exists() for path in paths.values()):
        return paths
    go = _go()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [program for program, path in paths.items() if not path.exists()]
        if missing:
            with step(f"build {', '.join(missing)} (once; kept in {folder})", module.minutes):
                _build(go, module, missing, folder)
    return paths


def _build(go: str, module: Module, programs: t.Sequence[str], folder: Path) -> None:
    unfinished = folder / ".unfinished"
    unfinished.mkdir(exist_ok=True)
    # the linker drops what debuggers read, so the compiler need not write it
    flags = ["-mod=readonly", "-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", f"-tags={module.tags}"]
    packages = [module.packages[program] for program in programs]
    done = subprocess.run(
        [go, "build", *flags, "-ldflags", module.ldflags, "-o", f"{unfinished}/", *packages],
        cwd=module.folder,
        env={**os.environ, "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise TestbedError(
            f"Go could not build {', '.join(programs)} in {module.folder}:\n{done.stderr[-2000:].strip()}\n"
            "Check that the Go module proxy can be reached (go env GOPROXY) and that the disk has 10 GB free."
        )
    for program in programs:
        (unfinished / program).replace(folder / program)
    unfinished.rmdir()


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

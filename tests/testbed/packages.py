# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian packages that the node and the registry need."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import typing as t
from pathlib import Path

from testbed.console import step
from testbed.errors import TestbedError

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CNI_PLUGINS = Path("/usr/lib/cni")
APT_TIMEOUT = 900
POLICY = Path("/usr/sbin/policy-rc.d")

# program -> package; an absolute path is looked up as it is
PROGRAMS = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "runc": "runc",
    str(CNI_PLUGINS / "bridge"): "containernetworking-plugins",
    "docker-registry": "docker-registry",
    "skopeo": "skopeo",
    "busybox": "busybox-static",
    "ipset": "ipset",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "modprobe": "kmod",
}
UNITS = {"etcd-server": "etcd", "containerd": "containerd", "docker-registry": "docker-registry"}


def find(program: str) -> Path | None:
    """Path of an installed program, sbin included."""
    if program.startswith("/"):
        return Path(program) if os.access(program, os.X_OK) else None
    path = shutil.which(program, path=SEARCH_PATH)
    return Path(path) if path else None


def need(program: str) -> Path:
    """Path of a program that must be there by now."""
    path = find(program)
    if path is None:
        raise TestbedError(f"{program} is missing: install the package {PROGRAMS.get(program, program)}.")
    return path


def missing(given: t.Collection[str] = (), optional: t.Collection[str] = ("modprobe",)) -> list[str]:
    """Names of packages to install; programs in `given` come from elsewhere."""
    wanted = {program for program in PROGRAMS if program not in given and program not in optional}
    return sorted({PROGRAMS[program] for program in wanted if find(program) is None})


def install(packages: t.Sequence[str]) -> None:
    """Install packages by apt-get without starting their services."""
    apt = shutil.which("apt-get", path=SEARCH_PATH)
    if apt is None:
        raise TestbedError(f"Programs of these Debian packages are missing: {' '.join(packages)}. Install them.")
    with step(f"install {' '.join(packages)}"), _services_stay_stopped():
        _apt(apt, "update", "-qq")
        _apt(apt, "install", "-y", "-qq", "--no-install-recommends", *packages)
    _disable_services([UNITS[package] for package in packages if package in UNITS])


def _apt(apt: str, *arguments: str) -> None:
    done = subprocess.run(
        [apt, *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=APT_TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise TestbedError(f"apt-get {' '.join(arguments)} failed: {done.stderr[-800:].strip()}\nInstall them by hand.")


@contextlib.contextmanager
def _services_stay_stopped() -> t.Iterator[None]:
    """Debian starts a service when its package is installed, unless policy-rc.d answers 101."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


def _disable_services(units: t.Sequence[str]) -> None:
    """Nor should what we installed start at the next boot; a machine without systemd has nothing to disable."""
    systemctl = shutil.which("systemctl", path=SEARCH_PATH)
    if systemctl and units:
        subprocess.run([systemctl, "disable", *units], capture_output=True, timeout=60, check=False)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's namespaces: mounts, network, processes of their own, so that the host keeps no trace of them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import typing as t
from pathlib import Path

from testbed import settings as s
from testbed.errors import TestbedError
from testbed.packages import need
from testbed.processes import Process, children, spawn

COMMAND_TIMEOUT = 30
# kubelet sets these for the whole machine; they are put back at the end
KERNEL_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
CGROUP_MOUNT = Path("/sys/fs/cgroup")
CNI_CACHE = Path("/var/lib/cni")


def hold(home: Path) -> Process:
    """Start the first process of new namespaces; killing it (or it being killed) ends all of them."""
    argv = [str(need("unshare")), "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    reaper = s.PACKAGE / "reaper.py"
    return spawn("node", [*argv, sys.executable, "-I", "-S", str(reaper)], home, None, None, {})


def first_process(holder: Process, seconds: float = 10) -> int:
    """Host's pid of the process that is number 1 in the node."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for pid in children(holder.pid):
            # only after its exec are /proc and the mounts in place
            if b"reaper.py" in _command_line(pid):
                return pid
        time.sleep(0.02)
    raise TestbedError(f"The node's namespaces did not start within {seconds:.0f} s; see logs/node.log.")


def enter(pid: int) -> tuple[str, ...]:
    """Beginning of a command line that runs inside the node."""
    return (str(need("nsenter")), "--target", str(pid), "--mount", "--net", "--pid", "--")


def set_up(pid: int, settings: s.Settings) -> None:
    """Folders of its own, the link to the host, routes, and the way to the API server for Pods."""
    # br_netfilter lets network policies see what passes a bridge; where it is built in there is nothing to load
    if not Path("/proc/sys/net/bridge").exists():
        _run(("modprobe", "br_netfilter"), "Load the kernel module br_netfilter: network policies need it.")
    CNI_CACHE.mkdir(parents=True, exist_ok=True)
    ip = str(need("ip"))
    _run((ip, "link", "add", s.HOST_DEVICE, "type", "veth", "peer", "name", s.NODE_DEVICE, "netns", str(pid)))
    _run((ip, "address", "add", f"{s.HOST_ADDRESS}/{s.LINK_PREFIX}", "dev", s.HOST_DEVICE))
    _run((ip, "link", "set", s.HOST_DEVICE, "up"))
    _run((*enter(pid), "/bin/sh", "-ec", inside_script(settings.ports["apiserver"])))
    _run((ip, "route", "replace", s.POD_NETWORK, "via", s.NODE_ADDRESS, "dev", s.HOST_DEVICE))


def inside_script(apiserver_port: int) -> str:
    """Shell commands that prepare the inside."""
    redirect = f"-d {s.SERVICE_ADDRESS} -p tcp --dport 443 -j DNAT --to-destination {s.HOST_ADDRESS}:{apiserver_port}"
    return f"""
for folder in /run /var/log {CNI_CACHE}; do mount -t tmpfs -o mode=755 tmpfs $folder; done
mkdir -p /run/lock
ip link set lo up
ip address add {s.NODE_ADDRESS}/{s.LINK_PREFIX} dev {s.NODE_DEVICE}
ip link set {s.NODE_DEVICE} up
ip route add default via {s.HOST_ADDRESS}
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables
iptables -w 5 -t nat -A PREROUTING {redirect}
"""


def clear_network() -> None:
    """Remove the host's end of the link; the kernel has usually done so with the node's namespace."""
    if device_exists(s.HOST_DEVICE):
        done = subprocess.run(
            [str(need("ip")), "link", "delete", s.HOST_DEVICE],
            capture_output=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )
        # the kernel may have been faster than we were
        if done.returncode and device_exists(s.HOST_DEVICE):
            raise TestbedError(f"Cannot delete the network device {s.HOST_DEVICE}: {done.stderr.decode().strip()}")
    with contextlib.suppress(OSError):
        CNI_CACHE.rmdir()


def device_exists(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def foreign_device() -> str | None:
    """Name of a device that already has an address of our link, or None."""
    listed = _run((str(need("ip")), "-json", "-4", "address", "show"))
    for device in json.loads(listed):
        for address in device.get("addr_info", ()):
            if address.get("local") in (s.HOST_ADDRESS, s.NODE_ADDRESS):
                return str(device["ifname"])
    return None


def cgroup_folders() -> list[Path]:
    """Our group in each hierarchy of version 1, or in the one of version 2."""
    if (CGROUP_MOUNT / "cgroup.controllers").exists():
        return [CGROUP_MOUNT / s.CGROUP]
    hierarchies = [folder for folder in CGROUP_MOUNT.iterdir() if folder.is_dir() and not folder.is_symlink()]
    return [folder / s.CGROUP for folder in hierarchies if (folder / "cgroup.procs").exists()]


def make_cgroups() -> None:
    for folder in cgroup_folders():
        folder.mkdir(exist_ok=True)


def clear_cgroups(seconds: float = 10) -> None:
    """Remove our groups, the innermost first; the kernel needs a moment after the last process has gone."""
    deadline = time.monotonic() + seconds
    for top in cgroup_folders():
        while top.exists():
            for folder, _folders, _files in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            if top.exists() and time.monotonic() > deadline:
                raise TestbedError(f"{top} still has processes (see its cgroup.procs): it cannot be removed.")
            if top.exists():
                time.sleep(0.05)


def kernel_settings() -> dict[str, str]:
    """Values now, to be put back by `restore_kernel_settings`."""
    paths = {name: Path("/proc/sys", name) for name in KERNEL_SETTINGS}
    return {name: path.read_text().strip() for name, path in paths.items() if path.exists()}


def restore_kernel_settings(values: t.Mapping[str, str]) -> None:
    for name, value in values.items():
        path = Path("/proc/sys", name)
        if name in KERNEL_SETTINGS and path.exists() and path.read_text().strip() != value:
            path.write_text(value)


def _command_line(pid: int) -> bytes:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _run(argv: t.Sequence[str], remedy: str = "") -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_TIMEOUT, check=False)
    if done.returncode:
        raise TestbedError(f"`{' '.join(argv)}` failed: {done.stderr.strip()} {remedy}".rstrip())
    return done.stdout

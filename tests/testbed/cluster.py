# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, reuse, stop: the order of the steps."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import http.client
import os
import shutil
import sys
import time
import typing as t
from dataclasses import replace
from pathlib import Path

from testbed import (
    binaries,
    certificates,
    components,
    extras,
    health,
    images,
    manifests,
    node,
    packages,
    ports,
    processes,
)
from testbed import settings as s
from testbed.api import Api
from testbed.components import Component
from testbed.console import say, step
from testbed.errors import TestbedError
from testbed.state import State, boot_id, by_name, load, save

SMOKE_IMAGE = "testbed/smoke:1"
FOLDERS = ("pki", "logs", "etcd", "registry-data", "node/cni", "node/registries/_default", "node/kubelet")
FOLDERS_OF_A_RUN = ("pki", "etcd", "registry-data", "node")


def up(settings: s.Settings, wanted: t.Sequence[str] = ()) -> None:
    """Start a testbed, or reuse the one that runs; TestbedError (and nothing left behind) where that is impossible.

    Names of extras in `wanted` are added to it.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        raise TestbedError(
            "The testbed needs root on Linux (namespaces, mounts, network): run this with sudo,"
            " or use a cluster of yours with TESTBED_KUBECONFIG and TESTBED_REGISTRY."
        )
    with locked(settings):
        if _reusable(settings):
            say("The testbed is running already.")
        else:
            _start_anew(settings)
    if wanted:
        add(settings, wanted)


def _start_anew(settings: s.Settings) -> None:
    _refuse_neighbours(settings)
    clear(settings)
    ports.check(settings.ports)
    programs = _programs(settings)
    try:
        _start(settings, programs)
    except BaseException:
        clear(settings)
        raise


def add(settings: s.Settings, wanted: t.Sequence[str]) -> None:
    """Start those of the extras that do not run yet, in the testbed that runs."""
    prepared = extras.prepare(settings, wanted)
    with locked(settings):
        state = load(settings.state_file)
        if state is None or not state.ready or state.boot != boot_id():
            raise TestbedError(f"No testbed runs in {settings.home}: start one with `make testbed-up`.")
        run = _Run(settings, state)
        for name, component in prepared.items():
            if name not in by_name(run.state.processes):
                with step(f"add {name}"):
                    run.join(component)


def down(settings: s.Settings) -> None:
    """Stop what was started and remove every trace but logs and built programs; harmless where nothing runs."""
    if os.geteuid() != 0:
        raise TestbedError("Only root can stop the testbed: run this with sudo.")
    with locked(settings):
        if not settings.state_file.exists() and not processes.marked(settings.home):
            say("The testbed is not running.")
            return
        with step("stop the testbed"):
            clear(settings)


@contextlib.contextmanager
def locked(settings: s.Settings) -> t.Iterator[None]:
    """One `up` or `down` at a time on this machine; the kernel frees the lock of a killed one."""
    settings.lock_file.parent.mkdir(parents=True, exist_ok=True)
    with settings.lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another `up` or `down` is at work: waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def clear(settings: s.Settings) -> None:
    """Remove what a run has left, however it ended: processes, namespaces, device, groups, kernel settings, data."""
    state = load(settings.state_file)
    processes.kill(processes.marked(settings.home))
    node.clear_network()
    node.clear_cgroups()
    if state is not None and state.boot == boot_id() and not _neighbours(settings):
        node.restore_kernel_settings(state.kernel)
    for name in FOLDERS_OF_A_RUN:
        if (settings.home / name).exists():
            shutil.rmtree(settings.home / name)
    for path in settings.home.glob("*"):
        if path.is_file():
            path.unlink()


def _reusable(settings: s.Settings) -> bool:
    state = load(settings.state_file)
    if state is None or not state.ready or state.boot != boot_id():
        return False
    if not any(process.alive() for process in state.processes):
        return False
    if (state.key, state.port_base) != (settings.key, settings.port_base):
        raise TestbedError(
            f"A testbed of another version or port base runs in {settings.home} (its key is {state.key}, base"
            f" {state.port_base}; this checkout has {settings.key}, {settings.port_base}). Stop it first"
            " (make testbed-down), unless somebody still needs it."
        )
    return health.wait_healthy(settings, state.processes, 5)


def _refuse_neighbours(settings: s.Settings) -> None:
    others = [home for home, state in _neighbours(settings) if state is None or state.instance == s.INSTANCE]
    if others:
        raise TestbedError(
            f"Another testbed runs in {', '.join(others)}: stop it (TESTBED_HOME={min(others)} ... down),"
            " or start this one beside it with TESTBED_INSTANCE=1."
        )
    device = node.foreign_device() if packages.find("ip") else None
    if device not in (None, s.HOST_DEVICE):
        raise TestbedError(f"The address {s.HOST_ADDRESS} is in use on {device}: the testbed needs it for itself.")


def _neighbours(settings: s.Settings) -> list[tuple[str, State | None]]:
    """State folder and state of every other testbed that runs on this machine."""
    homes = sorted({home for home in processes.marked(None).values() if home != str(settings.home)})
    return [(home, load(Path(home) / settings.state_file.name)) for home in homes]


def _kernel_before(settings: s.Settings) -> dict[str, str]:
    """The kernel's settings as they were before the first kubelet on this machine changed them."""
    known = [state.kernel for _, state in _neighbours(settings) if state is not None and state.boot == boot_id()]
    return known[0] if known else node.kernel_settings()


def _programs(settings: s.Settings) -> dict[str, Path]:
    given = binaries.assets(settings)
    lacking = packages.missing(given)
    if lacking:
        packages.install(lacking)
    installed = {name: packages.need(name) for name in packages.PROGRAMS if packages.find(name) and name not in given}
    return {**installed, **binaries.kubernetes_programs(settings)}


class _Run:
    """A start in progress: spawns components and keeps the state file up to date."""

    def __init__(self, settings: s.Settings, state: State) -> None:
        self.settings, self.state = settings, state
        self.inside: tuple[str, ...] = ()
        save(settings.state_file, self.state)

    def add(self, process: processes.Process) -> None:
        self.state = replace(self.state, processes=(*self.state.processes, process))
        save(self.settings.state_file, self.state)

    def spawn(self, component: Component) -> None:
        argv = (*self.inside, *component.argv) if component.in_node else component.argv
        self.add(
            processes.spawn(
                component.name, argv, self.settings.home, component.port, component.health, component.environment
            )
        )

    def join(self, component: Component) -> None:
        """Start it in a testbed that runs; where it does not get healthy, the testbed is as it was before."""
        before = self.state
        self.inside = node.enter(node.first_process(by_name(before.processes)["node"]))
        self.spawn(component)
        try:
            self.wait(component.name)
        except BaseException:
            started = by_name(self.state.processes)[component.name].pid
            processes.kill([*processes.children(started), started])
            save(self.settings.state_file, before)
            raise

    def wait(self, *names: str, seconds: float = 60) -> None:
        wanted = [process for process in self.state.processes if process.name in names]
        health.need_healthy(self.settings, wanted, seconds)


def _start(settings: s.Settings, programs: t.Mapping[str, Path]) -> None:
    with step("certificates and configuration"):
        _write_files(settings)
    new = State(settings.key, settings.port_base, boot_id(), kernel=_kernel_before(settings), instance=s.INSTANCE)
    run = _Run(settings, new)
    control_plane = components.control_plane(settings, programs)
    registries = components.registries(settings, programs["docker-registry"])
    agents = components.node(settings, programs)
    with step("namespaces and network of the node"):
        holder = node.hold(settings.home)
        run.add(holder)
        inside = node.first_process(holder)
        run.inside = node.enter(inside)
        node.set_up(inside, settings)
        node.make_cgroups()
    with step("etcd, registry and containerd"):
        for component in (control_plane["etcd"], *registries.values(), agents["containerd"]):
            run.spawn(component)
        run.wait("etcd", *registries, "containerd")
    run.spawn(control_plane["apiserver"])
    with step("images"):
        images.push(images.command_image(["sleep", "2147483647"]), manifests.PAUSE_IMAGE, settings.registry)
        images.push(images.web_image("testbed"), SMOKE_IMAGE, settings.registry)
    with step("API server"):
        run.wait("apiserver", seconds=120)
    with step("controller manager, scheduler, kubelet"):
        for component in (control_plane["controller-manager"], control_plane["scheduler"], agents["kubelet"]):
            run.spawn(component)
        run.wait("controller-manager", "scheduler", "kubelet")
        api = Api(settings.kubeconfig)
        _until(lambda: _node_ready(api), "The node does not get Ready; see logs/kubelet.log", 90)
    with step("a Pod runs"):
        _until(
            lambda: _exists(api, "/api/v1/namespaces/default/serviceaccounts/default"), "no default ServiceAccount", 60
        )
        _smoke(api)
    save(settings.state_file, replace(run.state, ready=True))


def _write_files(settings: s.Settings) -> None:
    home = settings.home
    for folder in FOLDERS:
        (home / folder).mkdir(parents=True, exist_ok=True)
    for log in (home / "logs").iterdir():
        log.unlink()
    _write_certificates(settings)
    storage, port = home / "registry-data", settings.ports["registry"]
    own_host = home / "node" / "registries" / settings.registry
    own_host.mkdir(exist_ok=True)
    texts = {
        "audit-policy.yaml": manifests.audit_policy(),
        "registry.yml": manifests.registry(storage, settings.registry, read_only=False),
        "node-registry.yml": manifests.registry(storage, f":{port}", read_only=True),
        "node/containerd.toml": manifests.containerd(home, settings.registry, _snapshotter(home)),
        "node/cni/10-testbed.conflist": manifests.cni(),
        "node/kubelet.yaml": manifests.kubelet(home),
        "node/registries/_default/hosts.toml": manifests.registry_hosts(settings.registry),
        f"node/registries/{settings.registry}/hosts.toml": manifests.registry_hosts(settings.registry),
    }
    for name, text in texts.items():
        (home / name).write_text(text)


def _write_certificates(settings: s.Settings) -> None:
    now = datetime.datetime.now(datetime.UTC)
    authority = certificates.Authority.create(now)
    pki = settings.home / "pki"
    pki.chmod(0o700)
    (pki / "ca.crt").write_bytes(authority.pem())
    certificates.write_secret(pki / "ca.key", certificates.private_pem(authority.key))
    certificates.write_secret(pki / "service-account.key", certificates.service_account_key())
    services = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
    servers = {
        "server": ("kube-apiserver", (), ("localhost", "127.0.0.1", s.HOST_ADDRESS, s.SERVICE_ADDRESS, *services)),
        "kubelet": ("kubelet", (), (s.NODE_NAME, s.NODE_ADDRESS)),
        "apiserver": ("kube-apiserver-kubelet-client", ("system:masters",), ()),
    }
    for name, (common_name, organizations, names) in servers.items():
        certificate, key = authority.issue(now, common_name, organizations, names)
        (pki / f"{name}.crt").write_bytes(certificate)
        certificates.write_secret(pki / f"{name}.key", key)
    clients = {
        settings.kubeconfig: ("kubernetes-admin", ("system:masters",)),
        pki / "kubelet.kubeconfig": (f"system:node:{s.NODE_NAME}", ("system:nodes",)),
        pki / "controller-manager.kubeconfig": ("system:kube-controller-manager", ()),
        pki / "scheduler.kubeconfig": ("system:kube-scheduler", ()),
        pki / "network-policies.kubeconfig": ("kube-router", ("system:masters",)),
    }
    for path, (common_name, organizations) in clients.items():
        issued = authority.issue(now, common_name, organizations)
        text = manifests.kubeconfig(settings.server, authority.pem(), *issued)
        certificates.write_secret(path, text.encode())


def _snapshotter(home: Path) -> str:
    """overlayfs, unless the folder itself lies on an overlay (as in a container), where that cannot be stacked."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    above = [(fields[1], fields[2]) for fields in mounts if home.is_relative_to(fields[1])]
    return "native" if max(above, key=lambda mount: len(mount[0]))[1] == "overlay" else "overlayfs"


def _until(condition: t.Callable[[], bool], complaint: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (OSError, http.client.HTTPException):
            pass
        if time.monotonic() > deadline:
            raise TestbedError(f"{complaint} (waited {seconds:.0f} s).")
        time.sleep(0.2)


def _exists(api: Api, path: str) -> bool:
    return api.request("GET", path)[0] == 200


def _node_ready(api: Api) -> bool:
    status, found = api.request("GET", f"/api/v1/nodes/{s.NODE_NAME}")
    conditions = found["status"].get("conditions", ()) if status == 200 else ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _smoke(api: Api) -> None:
    """A Pod with an image of a public name reaches Running: scheduler, kubelet, runtime and registry agree."""
    path = "/api/v1/namespaces/default/pods"
    container = {"name": "web", "image": f"quay.io/{SMOKE_IMAGE}"}
    pod = {"metadata": {"name": "testbed-smoke"}, "spec": {"containers": [container], "restartPolicy": "Never"}}

    def running() -> bool:
        status, found = api.request("GET", f"{path}/testbed-smoke")
        return status == 200 and found["status"].get("phase") == "Running"

    # the taint "not ready" goes a moment after the node is Ready; the scheduler waits for that
    _until(lambda: api.request("POST", path, pod)[0] in (201, 409), "The first Pod is not accepted", 30)
    _until(running, "The first Pod does not run; see logs/kubelet.log and logs/containerd.log", 90)
    api.request("DELETE", f"{path}/testbed-smoke?gracePeriodSeconds=0")
    _until(lambda: not _exists(api, f"{path}/testbed-smoke"), "The first Pod does not go away", 60)

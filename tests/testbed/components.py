# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of the components; nothing here touches the machine."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from testbed import settings as s


@dataclass(frozen=True)
class Component:
    """A program to start: `in_node` inside the node's namespaces; `health` is a URL or a socket's path."""

    name: str
    argv: tuple[str, ...]
    port: int | None
    health: str
    in_node: bool = False
    environment: dict[str, str] = field(default_factory=dict)


def control_plane(settings: s.Settings, programs: t.Mapping[str, Path]) -> dict[str, Component]:
    """etcd, API server, controller manager and scheduler by name."""
    ports = settings.ports
    return {
        component.name: component
        for component in (
            _etcd(settings, programs["etcd"]),
            Component(
                "apiserver",
                (str(programs["kube-apiserver"]), *_apiserver(settings)),
                ports["apiserver"],
                f"{settings.server}/readyz",
            ),
            Component(
                "controller-manager",
                (str(programs["kube-controller-manager"]), *_controller_manager(settings)),
                ports["controller-manager"],
                f"https://127.0.0.1:{ports['controller-manager']}/healthz",
            ),
            Component(
                "scheduler",
                (str(programs["kube-scheduler"]), *_leaderless(settings, "scheduler")),
                ports["scheduler"],
                f"https://127.0.0.1:{ports['scheduler']}/healthz",
            ),
        )
    }


def registries(settings: s.Settings, program: Path) -> dict[str, Component]:
    """The registry on the host's loopback and its read-only twin on the same port of the node."""
    port = settings.ports["registry"]

    def component(name: str, health: str, in_node: bool) -> Component:
        argv = (str(program), "serve", f"{settings.home}/{name}.yml")
        return Component(name, argv, port, health, in_node, {"OTEL_TRACES_EXPORTER": "none"})

    return {
        "registry": component("registry", f"http://{settings.registry}/v2/", False),
        "node-registry": component("node-registry", f"http://{s.NODE_ADDRESS}:{port}/v2/", True),
    }


def node(settings: s.Settings, programs: t.Mapping[str, Path]) -> dict[str, Component]:
    """containerd and kubelet by name, both inside the node's namespaces."""
    home = settings.home
    return {
        "containerd": Component(
            "containerd",
            (str(programs["containerd"]), "--config", f"{home}/node/containerd.toml"),
            None,
            str(settings.containerd_socket),
            True,
        ),
        "kubelet": Component(
            "kubelet",
            (
                str(programs["kubelet"]),
                f"--config={home}/node/kubelet.yaml",
                f"--kubeconfig={home}/pki/kubelet.kubeconfig",
                f"--root-dir={home}/node/kubelet",
                f"--hostname-override={s.NODE_NAME}",
                f"--node-ip={s.NODE_ADDRESS}",
            ),
            s.KUBELET_PORT,
            f"https://{s.NODE_ADDRESS}:{s.KUBELET_PORT}/healthz",
            True,
        ),
    }


def network_policies(settings: s.Settings, program: Path) -> Component:
    """kube-router, which enforces network policies inside the node and does nothing else."""
    home = settings.home
    return Component(
        "network-policies",
        (
            str(program),
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            "--run-loadbalancer=false",
            f"--kubeconfig={home}/pki/network-policies.kubeconfig",
            f"--hostname-override={s.NODE_NAME}",
            f"--service-cluster-ip-range={s.SERVICE_NETWORK}",
            f"--health-port={s.KUBE_ROUTER_HEALTH_PORT}",
        ),
        s.KUBE_ROUTER_HEALTH_PORT,
        f"http://{s.NODE_ADDRESS}:{s.KUBE_ROUTER_HEALTH_PORT}/healthz",
        True,
    )


def _etcd(settings: s.Settings, program: Path) -> Component:
    client = f"http://127.0.0.1:{settings.ports['etcd']}"
    peer = f"http://127.0.0.1:{settings.ports['etcd-peer']}"
    argv = (
        str(program),
        "--name=testbed",
        f"--data-dir={settings.home}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=testbed={peer}",
        # the data is thrown away with the testbed: no need to wait for the disk
        "--unsafe-no-fsync",
    )
    return Component("etcd", argv, settings.ports["etcd"], f"{client}/health")


def _apiserver(settings: s.Settings) -> tuple[str, ...]:
    pki = f"{settings.home}/pki"
    return (
        f"--etcd-servers=http://127.0.0.1:{settings.ports['etcd']}",
        # the host's end of the link to the node: Pods and kubelet reach it, other machines do not
        f"--bind-address={s.HOST_ADDRESS}",
        f"--advertise-address={s.HOST_ADDRESS}",
        f"--secure-port={settings.ports['apiserver']}",
        "--endpoint-reconciler-type=none",
        "--authorization-mode=Node,RBAC",
        "--anonymous-auth=false",
        "--allow-privileged=true",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={s.SERVICE_NETWORK}",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/server.crt",
        f"--tls-private-key-file={pki}/server.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/apiserver.crt",
        f"--kubelet-client-key={pki}/apiserver.key",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki}/service-account.key",
        f"--service-account-signing-key-file={pki}/service-account.key",
        f"--audit-policy-file={settings.home}/audit-policy.yaml",
        f"--audit-log-path={settings.audit_log}",
        # readers remember offsets, so the file is never rotated in a testbed's life
        "--audit-log-maxsize=10000",
        "--profiling=false",
    )


def _controller_manager(settings: s.Settings) -> tuple[str, ...]:
    pki = f"{settings.home}/pki"
    return (
        *_leaderless(settings, "controller-manager"),
        "--use-service-account-credentials=true",
        f"--root-ca-file={pki}/ca.crt",
        f"--service-account-private-key-file={pki}/service-account.key",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        "--allocate-node-cidrs=false",
        "--kube-api-qps=100",
        "--kube-api-burst=200",
    )


def _leaderless(settings: s.Settings, name: str) -> tuple[str, ...]:
    pki = f"{settings.home}/pki"
    return (
        f"--kubeconfig={pki}/{name}.kubeconfig",
        f"--authentication-kubeconfig={pki}/{name}.kubeconfig",
        f"--authorization-kubeconfig={pki}/{name}.kubeconfig",
        "--bind-address=127.0.0.1",
        f"--secure-port={settings.ports[name]}",
        f"--tls-cert-file={pki}/server.crt",
        f"--tls-private-key-file={pki}/server.key",
        "--leader-elect=false",
    )

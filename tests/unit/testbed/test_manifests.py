# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from testbed import components, manifests, settings

HOME = Path("/var/lib/tb")
SETTINGS = settings.from_environment({"TESTBED_HOME": str(HOME)})
PROGRAMS = dict.fromkeys(
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd"],
    Path("/bin/x"),
)


def test_containerd_looks_hosts_up_in_our_folder() -> None:
    cri = tomllib.loads(manifests.containerd(HOME, "127.0.0.1:5000", "overlayfs"))["plugins"][
        "io.containerd.grpc.v1.cri"
    ]
    assert cri["registry"]["config_path"] == f"{HOME}/node/registries"
    assert cri["sandbox_image"] == f"127.0.0.1:5000/{manifests.PAUSE_IMAGE}"
    assert cri["restrict_oom_score_adj"] is True


def test_a_mirror_never_falls_back_to_the_internet() -> None:
    hosts = tomllib.loads(manifests.registry_hosts("127.0.0.1:5000"))
    assert hosts["server"] == "http://127.0.0.1:5000"
    assert list(hosts["host"]) == ["http://127.0.0.1:5000"]


def test_the_audit_policy_logs_writes_once_and_nothing_else() -> None:
    policy = yaml.safe_load(manifests.audit_policy())
    assert policy["rules"] == [{"level": "Metadata", "verbs": list(manifests.WRITES)}, {"level": "None"}]
    assert policy["omitStages"] == ["RequestReceived", "ResponseStarted"]


def test_the_kubeconfig_contains_what_it_needs() -> None:
    config = yaml.safe_load(manifests.kubeconfig("https://x:1", b"ca", b"certificate", b"key"))
    assert config["clusters"][0]["cluster"] == {"server": "https://x:1", "certificate-authority-data": "Y2E="}
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}


def test_servers_listen_on_loopback_or_on_the_link_to_the_node_only() -> None:
    plane = components.control_plane(SETTINGS, PROGRAMS)
    arguments = [argument for component in plane.values() for argument in component.argv]
    listening = [argument for argument in arguments if argument.startswith(("--bind-address", "--listen-"))]
    assert len(listening) == 5
    assert all("127.0.0.1" in argument or settings.HOST_ADDRESS in argument for argument in listening)
    assert yaml.safe_load(manifests.registry(HOME, SETTINGS.registry, read_only=False))["http"]["addr"].startswith(
        "127."
    )


def test_every_component_has_its_own_port_on_the_host() -> None:
    plane = components.control_plane(SETTINGS, PROGRAMS)
    registry = components.registries(SETTINGS, Path("/bin/x"))["registry"]
    used = [component.port for component in (*plane.values(), registry)]
    assert len(set(used)) == len(used)
    assert set(used) < set(SETTINGS.ports.values())


def test_only_the_node_is_inside_its_namespaces() -> None:
    assert all(component.in_node for component in components.node(SETTINGS, PROGRAMS).values())
    assert components.network_policies(SETTINGS, Path("/bin/x")).in_node
    assert not any(component.in_node for component in components.control_plane(SETTINGS, PROGRAMS).values())

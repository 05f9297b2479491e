# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of the components, as text; nothing here touches the machine."""

from __future__ import annotations

import base64
import json
import typing as t
from pathlib import Path

import yaml

from testbed import settings as s
from testbed.packages import CNI_PLUGINS

PAUSE_IMAGE = "testbed/pause:1"
WRITES = ("create", "update", "patch", "delete", "deletecollection")


def kubeconfig(server: str, authority: bytes, certificate: bytes, key: bytes) -> str:
    """A kubeconfig with everything inside it."""
    encode = [base64.b64encode(part).decode() for part in (authority, certificate, key)]
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": {"server": server, "certificate-authority-data": encode[0]}}],
            "users": [
                {"name": "testbed", "user": {"client-certificate-data": encode[1], "client-key-data": encode[2]}}
            ],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
            "current-context": "testbed",
        }
    )


def audit_policy() -> str:
    """Every write of everybody at Metadata level, one event a request; no reads."""
    return yaml.safe_dump(
        {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [{"level": "Metadata", "verbs": list(WRITES)}, {"level": "None"}],
        }
    )


def registry(storage: Path, address: str, *, read_only: bool) -> str:
    """docker-registry with deletion; the read-only one serves the same folder to the node."""
    storage_options: dict[str, t.Any] = {
        "filesystem": {"rootdirectory": str(storage)},
        "delete": {"enabled": True},
        "maintenance": {"readonly": {"enabled": read_only}, "uploadpurging": {"enabled": False}},
    }
    return yaml.safe_dump(
        {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": storage_options,
            "http": {"addr": address, "secret": "one instance, nothing to protect"},
            "health": {"storagedriver": {"enabled": False}},
        }
    )


def containerd(home: Path, registry_address: str, snapshotter: str) -> str:
    """containerd with the CRI plugin, version 2 of the format."""
    return f"""version = 2
root = "{home}/node/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing"]

[grpc]
address = "{home}/node/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
# runc may not lower oom_score_adj where the capability is missing, as in nested machines
restrict_oom_score_adj = true
sandbox_image = "{registry_address}/{PAUSE_IMAGE}"
stream_server_address = "127.0.0.1"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{home}/node/cni"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{home}/node/registries"
"""


def registry_hosts(registry_address: str) -> str:
    """hosts.toml that sends every registry's name to the local one, and nothing to the outside."""
    return f"""server = "http://{registry_address}"

[host."http://{registry_address}"]
capabilities = ["pull", "resolve"]
"""


def cni() -> str:
    """Pods on a bridge of their own; no address translation, the host routes to them."""
    bridge: dict[str, t.Any] = {
        "type": "bridge",
        "bridge": s.POD_BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni",
            "ranges": [[{"subnet": s.POD_NETWORK}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "testbed", "plugins": [bridge, portmap]}, indent=1)


def kubelet(home: Path) -> str:
    """KubeletConfiguration of the only node."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": s.NODE_ADDRESS,
            "port": s.KUBELET_PORT,
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{home}/pki/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": f"{home}/pki/kubelet.crt",
            "tlsPrivateKeyFile": f"{home}/pki/kubelet.key",
            "containerRuntimeEndpoint": f"unix://{home}/node/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{s.CGROUP}",
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "evictionHard": {},
            "imageGCHighThresholdPercent": 100,
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "maxPods": 500,
            "registryPullQPS": 0,
            "serializeImagePulls": False,
            "eventRecordQPS": 0,
            "kubeAPIQPS": 100,
            "kubeAPIBurst": 200,
            "syncFrequency": "10s",
            "resolvConf": "",
            "podLogsDir": f"{home}/node/pod-logs",
            "volumePluginDir": f"{home}/node/volume-plugins",
        }
    )

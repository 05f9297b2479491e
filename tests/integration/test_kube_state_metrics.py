# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kube-state-metrics, with the rights and the configuration of config/prometheus, makes our statuses series."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from integration.accounts import Accounts, Right, rights
from integration.passes import ROOT
from monitoring import programs

import testbed

CONFIG = ROOT / "config/prometheus/kube_state_metrics.yaml"
ROLE = "../prometheus/kube_state_metrics_role.yaml"
SECONDS = 60
INSTALL, NSPRO = "install.sios.nginx.testing/v1", "nspro.example.com/v1alpha1"
DIGEST = "sha256:" + "4b" * 32

pytestmark = pytest.mark.usefixtures("crds")


def condition(kind: str, status: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": "Word", "lastTransitionTime": "2026-02-01T10:00:00Z"}


def image(container: str, verdict: str, reason: str, **more: str) -> dict[str, str]:
    return {"workload": "Deployment/web", "container": container, "verdict": verdict, "reason": reason, **more}


STALE_STATUS = {
    "counts": {"current": 2, "stale": 1, "unknown": 0},
    "staleSince": "2026-02-01T10:00:00Z",
    "images": [
        image("app", "stale", "quarantined", staleSince="2026-02-01T10:00:00Z"),
        image("sidecar", "current", "digest_equal"),
        image("other", "current", "pinned"),
    ],
    "quarantine": [
        {"workload": "Deployment/web", "container": "app", "digest": DIGEST, "since": "2026-02-01T11:00:00Z"}
    ],
    "lastRoll": {"workload": "Deployment/web", "container": "app", "time": "2026-02-01T09:00:00Z"},
    "conditions": [condition("UpToDate", "False"), condition("RolloutBlocked", "True"), condition("Other", "Unknown")],
}
#: 2026-02-01T09:00:00Z
NINE = 1769936400

PHASES = ("Ready", "Pending", "Terminating", "Conflict", "Invalid", "Reserved", "Held", "Absent", "Released")
EXPECTED = {
    'kubesteward_update_containers{name="web",namespace="NS",verdict="current"}': 2,
    'kubesteward_update_containers{name="web",namespace="NS",verdict="stale"}': 1,
    'kubesteward_update_containers{name="web",namespace="NS",verdict="unknown"}': 0,
    'kubesteward_update_stale_since_timestamp_seconds{name="web",namespace="NS"}': NINE + 3600,
    'kubesteward_update_container_info{container="app",name="web",namespace="NS",reason="quarantined",verdict="stale",'
    'workload="Deployment/web"}': 1,
    'kubesteward_update_container_info{container="sidecar",name="web",namespace="NS",reason="digest_equal",'
    'verdict="current",workload="Deployment/web"}': 1,
    'kubesteward_update_container_info{container="other",name="web",namespace="NS",reason="pinned",verdict="current",'
    'workload="Deployment/web"}': 1,
    'kubesteward_update_container_stale_since_timestamp_seconds{container="app",name="web",namespace="NS",'
    'workload="Deployment/web"}': NINE + 3600,
    f'kubesteward_update_quarantined_since_timestamp_seconds{{container="app",digest="{DIGEST}",name="web",'
    'namespace="NS",workload="Deployment/web"}': NINE + 7200,
    'kubesteward_update_last_roll_timestamp_seconds{name="web",namespace="NS"}': NINE,
    'kubesteward_update_condition{name="web",namespace="NS",type="UpToDate"}': 0,
    'kubesteward_update_condition{name="web",namespace="NS",type="RolloutBlocked"}': 1,
    'kubesteward_update_condition{name="web",namespace="NS",type="Other"}': 0,
    'kubesteward_update_suspended{name="web",namespace="NS"}': 1,
    'kubesteward_update_dry_run{name="web",namespace="NS"}': 0,
    # an Update without a spec, before its first pass
    'kubesteward_update_suspended{name="fresh",namespace="NS"}': 0,
    'kubesteward_update_dry_run{name="fresh",namespace="NS"}': 0,
    'kubesteward_start_replicas{name="web",namespace="NS"}': 3,
    'kubesteward_start_ready_replicas{name="web",namespace="NS"}': 2,
    'kubesteward_start_condition{name="web",namespace="NS",type="Ready"}': 1,
    'kubesteward_nspro_info{managed="true",name="team",namespace="NS",size="small"}': 1,
    'kubesteward_nspro_condition{name="team",namespace="NS",type="ShrinkBlocked"}': 1,
    **{
        f'kubesteward_nspro_phase{{name="team",namespace="NS",phase="{phase}"}}': int(phase == "Held")
        for phase in PHASES
    },
}


class Reader:
    """What a running kube-state-metrics says of one namespace; its name is NS, and times of creation are left out."""

    def __init__(self, port: int, namespace: str, log: Path) -> None:
        self.url, self.namespace, self.log = f"http://127.0.0.1:{port}/metrics", namespace, log

    def lines(self) -> list[str]:
        with contextlib.suppress(OSError), urllib.request.urlopen(self.url, timeout=10) as answer:
            return answer.read().decode().replace(f'"{self.namespace}"', '"NS"').splitlines()
        return []

    def series(self) -> dict[str, float]:
        found = {}
        for line in self.lines():
            name, _space, value = line.rpartition(" ")
            # of kube-state-metrics itself: the version of the resource it was told
            labels = re.sub(r'customresource_(group|kind|version)="[^"]*",?', "", name).replace(",}", "}")
            if line.startswith("kubesteward_") and "created_timestamp" not in name:
                found[_sorted(labels)] = float(value)
        return found

    def wait(self, satisfied: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        """The series once they are as wanted, or as they are in the end."""
        deadline = time.monotonic() + SECONDS
        found = self.series()
        while not satisfied(found) and time.monotonic() < deadline:
            time.sleep(0.2)
            found = self.series()
        return found


def _sorted(series: str) -> str:
    name, _brace, rest = series.partition("{")
    labels = ",".join(sorted(re.findall(r'[a-z_]+="[^"]*"', rest)))
    return f"{name}{{{labels}}}"


@pytest.fixture
def start(kubectl, namespace, tmp_path) -> Iterator[Callable[[str, list[Right]], Reader]]:
    """Starts kube-state-metrics with some rights, under the name of a ServiceAccount."""
    program = programs.path_of(programs.KUBE_STATE_METRICS)
    accounts = Accounts(kubectl, testbed.connect().kubeconfig, namespace, tmp_path)

    def begin(name: str, held: list[Right]) -> Reader:
        accounts.create({name: held})
        kubeconfig = accounts.kubeconfig(name, held[-1])
        port, own_port = _free_ports(2)
        log = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
        process = subprocess.Popen(
            [
                *(str(program), f"--kubeconfig={kubeconfig}", "--custom-resource-state-only"),
                *(f"--custom-resource-state-config-file={CONFIG}", f"--namespaces={namespace}"),
                *("--host=127.0.0.1", f"--port={port}", "--telemetry-host=127.0.0.1", f"--telemetry-port={own_port}"),
            ],
            stdout=log,
            stderr=log,
        )
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        return Reader(port, namespace, tmp_path / f"{name}.log")

    with contextlib.ExitStack() as stack:
        stack.callback(accounts.close)
        yield begin


@pytest.fixture
def reader(start) -> Reader:
    return start("reader", rights(ROLE))


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def write(kubectl, namespace: str, resource: str, name: str, status: dict) -> None:
    patch = json.dumps({"status": status})
    kubectl("patch", resource, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)


def create(kubectl, namespace: str, kind: str, name: str, spec: dict | None = None) -> None:
    body = {"apiVersion": NSPRO if kind == "Nspro" else INSTALL, "kind": kind, "metadata": {"name": name}}
    kubectl("create", "-n", namespace, "-f", "-", stdin=body if spec is None else {**body, "spec": spec})


def test_statuses_become_series_change_with_them_and_go_with_their_resource(kubectl, namespace, reader):
    create(kubectl, namespace, "Update", "web", {"suspend": True})
    create(kubectl, namespace, "Update", "fresh")
    create(kubectl, namespace, "Start", "web", {"name": "web", "replicas": 3})
    create(kubectl, namespace, "Nspro", "team", {"nssize": "small", "managed": True})
    write(kubectl, namespace, "update", "web", STALE_STATUS)
    write(kubectl, namespace, "start", "web", {"readyReplicas": 2, "conditions": [condition("Ready", "True")]})
    held = {"phase": "Held", "conditions": [condition("ShrinkBlocked", "True")]}
    write(kubectl, namespace, "nspro", "team", held)
    assert reader.wait(lambda found: found == EXPECTED) == EXPECTED, reader.log.read_text()[-3000:]
    created = {line.split("{")[0] for line in reader.lines() if "created_timestamp_seconds{" in line}
    assert created == {f"kubesteward_{kind}_created_timestamp_seconds" for kind in ("update", "start", "nspro")}

    write(kubectl, namespace, "nspro", "team", {"phase": "Ready"})
    well = {"counts": {"stale": 0, "current": 3}, "staleSince": None, "quarantine": [], "images": []}
    write(kubectl, namespace, "update", "web", well)
    ready = 'kubesteward_nspro_phase{name="team",namespace="NS",phase="Ready"}'
    found = reader.wait(lambda found: found.get(ready) == 1 and not _about(found, "stale_since"))
    assert (found[ready], _about(found, "stale_since"), _about(found, "quarantined_since")) == (1, [], [])

    kubectl("delete", "update", "--all", "-n", namespace, "--wait=false")
    assert _about(reader.wait(lambda found: not _about(found, "kubesteward_update")), "kubesteward_update") == []


def _about(found: dict[str, float], text: str) -> list[str]:
    return [name for name in found if text in name]


def test_every_metric_of_the_configuration_is_expected_above():
    resources = yaml.safe_load(CONFIG.read_text())["spec"]["resources"]
    names = {f"{entry['metricNamePrefix']}_{metric['name']}" for entry in resources for metric in entry["metrics"]}
    shown = {name.split("{")[0] for name in EXPECTED}
    assert {name for name in names if not name.endswith("created_timestamp_seconds")} == shown


def test_without_the_rights_to_a_kind_it_has_no_series(kubectl, namespace, start):
    create(kubectl, namespace, "Update", "web")
    create(kubectl, namespace, "Start", "web")
    create(kubectl, namespace, "Nspro", "team", {"nssize": "small"})
    everything = {"kubesteward_update", "kubesteward_start", "kubesteward_nspro"}
    lost = {
        "updates": {"kubesteward_update"},
        "starts": {"kubesteward_start"},
        "nspros": {"kubesteward_nspro"},
        "customresourcedefinitions": everything,
    }
    assert {right.resource for right in rights(ROLE)} == set(lost)
    readers = {name: start(name, [right for right in rights(ROLE) if right.resource != name]) for name in lost}
    for name, missing in lost.items():
        found = readers[name].wait(lambda found, left=everything - missing: left <= _kinds(found))
        assert _kinds(found) == everything - missing, name
    # the one that finds no kind did ask
    assert "Resource=customresourcedefinitions" in readers["customresourcedefinitions"].log.read_text()


def _kinds(found: dict[str, float]) -> set[str]:
    return {"_".join(name.split("_")[:2]) for name in found}

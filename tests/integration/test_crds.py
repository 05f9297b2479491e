# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a real API server makes of the CRDs and of the manifests that people already have."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("crds")

FLAGS = "jsonpath={..status.check_id},{..status.update}"


VERSIONS = {
    "Nspro": "nspro.example.com/v1alpha1",
    "Start": "install.sios.nginx.testing/v1",
    "Update": "install.sios.nginx.testing/v1",
}


def resource(kind: str, spec: dict[str, Any] | None = None, name: str = "sample") -> dict[str, Any]:
    result: dict[str, Any] = {
        "apiVersion": VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name},
    }
    return result if spec is None else result | {"spec": spec}


def get(kubectl, namespace: str, kind: str, name: str = "sample") -> dict[str, Any]:
    return json.loads(kubectl("get", kind, name, "-n", namespace, "-o", "json").stdout)


@pytest.mark.parametrize(
    "name", ["starts.install.sios.nginx.testing", "updates.install.sios.nginx.testing", "nspros.nspro.example.com"]
)
def test_the_api_server_finds_no_fault_in_the_crd(kubectl, name):
    crd = json.loads(kubectl("get", "crd", name, "-o", "json").stdout)
    conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


def test_articles_manifests_apply_unchanged(kubectl, namespace):
    for name in ("start", "update"):
        kubectl("apply", "--validate=strict", "-n", namespace, "-f", f"config/samples/install_v1_{name}.yaml")
    start = get(kubectl, namespace, "start", "start-sample")
    assert start["spec"]["name"] == "nginx"
    assert start["spec"]["image"] == "quay.io/k_nakajima/nginx-sample:latest"
    assert get(kubectl, namespace, "update", "update-sample")["spec"]["delete_flag"] is False


def test_articles_nspros_apply_unchanged(kubectl, namespace):
    for name in ("np", "small", "large"):
        kubectl("apply", "--validate=strict", "-n", namespace, "-f", f"config/samples/nspro_v1alpha1_{name}.yaml")
    listed = json.loads(kubectl("get", "nspro", "-n", namespace, "-o", "json").stdout)["items"]
    found = {item["metadata"]["name"]: (item["spec"]["nssize"], item["spec"]["managed"]) for item in listed}
    assert found == {"np": ("large", True), "small-ns": ("small", False), "large-ns": ("large", False)}


@pytest.mark.parametrize("kind", ["start", "update", "nspro"])
def test_sample_of_every_option_applies(kubectl, namespace, kind):
    kubectl("apply", "--validate=strict", "-n", namespace, "-f", f"config/samples/every_option_{kind}.yaml")


def test_update_without_spec_prints_what_the_article_prints_before_the_first_pass(kubectl, namespace):
    kubectl("apply", "--validate=strict", "-n", namespace, "-f", "-", stdin=resource("Update"))
    assert kubectl("get", "update", "-n", namespace, "-o", FLAGS).stdout == "false,false"
    assert "spec" not in get(kubectl, namespace, "update")


def test_flags_read_false_false_where_only_the_operator_has_written_a_status(kubectl, namespace):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=resource("Update"))
    condition = {
        "type": "Running",
        "status": "True",
        "reason": "Running",
        "message": "Running reconciliation",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "ansibleResult": {"ok": 1, "changed": 0, "skipped": 0, "failures": 0, "completion": "2026-01-02T03:04:05.1"},
    }
    patch = json.dumps({"status": {"conditions": [condition]}})
    kubectl("patch", "update", "sample", "-n", namespace, "--subresource=status", "--type=merge", "--patch", patch)
    assert kubectl("get", "update", "-n", namespace, "-o", FLAGS).stdout == "false,false"
    assert get(kubectl, namespace, "update")["status"]["conditions"] == [condition]


def test_our_conditions_and_the_operators_live_side_by_side(kubectl, namespace):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=resource("Update"))
    for manager, condition in (("operator", "Running"), ("kubesteward", "UpToDate")):
        ours = resource("Update") | {"status": {"conditions": [{"type": condition, "status": "True"}]}}
        arguments = ("--server-side", f"--field-manager={manager}", "--subresource=status")
        kubectl("apply", *arguments, "-n", namespace, "-f", "-", stdin=ours)
    conditions = get(kubectl, namespace, "update")["status"]["conditions"]
    assert {condition["type"] for condition in conditions} == {"Running", "UpToDate"}


@pytest.mark.parametrize("spec", [None, {}])
def test_defaults_of_a_start(kubectl, namespace, spec):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=resource("Start", spec))
    assert get(kubectl, namespace, "start")["spec"] == {
        "name": "nginx",
        "image": "quay.io/k_nakajima/nginx-sample:latest",
        "replicas": 1,
        "port": 8080,
        "readiness": "tcp",
    }


def test_defaults_of_a_nspro(kubectl, namespace):
    spec = {"nssize": "small", "pullSecrets": [{"name": "login"}], "networkPolicy": {}, "limitRange": {}}
    kubectl("apply", "-n", namespace, "-f", "-", stdin=resource("Nspro", spec))
    assert get(kubectl, namespace, "nspro")["spec"] == {
        "nssize": "small",
        "managed": False,
        "adoption": "Never",
        "shrink": "Hold",
        "pullSecrets": [{"name": "login", "serviceAccounts": ["default"]}],
        "networkPolicy": {"sameNamespace": False, "restrictEgress": False, "dns": True},
        "limitRange": {"enabled": True},
    }


@pytest.mark.parametrize("kind", ["Start", "Update", "Nspro"])
def test_unknown_key_is_refused_by_strict_validation_and_pruned_without(kubectl, namespace, kind):
    needed = {"nssize": "small"} if kind == "Nspro" else {}
    hostile = resource(kind, {**needed, "ansible_python_interpreter": "/tmp/x"})
    refused = kubectl("apply", "--validate=strict", "-n", namespace, "-f", "-", stdin=hostile, check=False)
    assert refused.returncode != 0
    assert 'unknown field "spec.ansible_python_interpreter"' in refused.stderr
    kubectl("apply", "--validate=false", "-n", namespace, "-f", "-", stdin=hostile)
    assert "ansible_python_interpreter" not in get(kubectl, namespace, kind)["spec"]


REFUSED = [
    # the string is true wherever somebody asks whether it is empty
    ("Update", {"delete_flag": "false"}, "spec.delete_flag"),
    ("Update", {"suspend": "false"}, "spec.suspend"),
    ("Update", {"dryRun": "false"}, "spec.dryRun"),
    ("Update", {"rollback": {"enabled": "false"}}, "spec.rollback.enabled"),
    ("Update", {"targets": [{"kind": "Deployment", "selector": {}}]}, "spec.targets[0].selector"),
    (
        "Update",
        {"targets": [{"kind": "Deployment", "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]},
        "In and NotIn need values",
    ),
    (
        "Update",
        {"targets": [{"kind": "Deployment", "name": "web", "selector": {"matchLabels": {"a": "b"}}}]},
        "a name or a selector, not both",
    ),
    ("Update", {"targets": [{"kind": "Pod", "name": "web"}]}, "spec.targets[0].kind"),
    ("Update", {"stableForSeconds": -1}, "spec.stableForSeconds"),
    ("Update", {"rollback": {"progressDeadlineSeconds": 5}}, "spec.rollback.progressDeadlineSeconds"),
    ("Nspro", {}, "spec.nssize: Required"),
    ("Nspro", {"nssize": "huge"}, "spec.nssize"),
    ("Nspro", {"nssize": "small", "managed": "true"}, "spec.managed"),
    ("Nspro", {"nssize": "small", "quota": {"limits.cpu": "-1"}}, "spec.quota.limits.cpu"),
    ("Nspro", {"nssize": "small", "access": [{"role": "edit"}]}, "names users, groups or serviceAccounts"),
    ("Nspro", {"nssize": "small", "access": [{"role": "edit", "users": []}]}, "names users, groups or serviceAccounts"),
    ("Nspro", {"nssize": "small", "networkPolicy": {"fromNamespaces": [{}]}}, "spec.networkPolicy.fromNamespaces[0]"),
    ("Nspro", {"nssize": "small", "podSecurity": {"enforceVersion": "latest"}}, "needs the level of its mode"),
    ("Nspro", {"nssize": "small", "pullSecrets": [{"name": "../other"}]}, "spec.pullSecrets[0].name"),
    ("Nspro", {"nssize": "small", "labels": {"team": "{{ a }}"}}, "spec.labels.team"),
    ("Start", {"name": "a" * 55}, "spec.name"),
    ("Start", {"image": ""}, "spec.image"),
    ("Start", {"readiness": "http"}, "spec.readiness"),
    ("Start", {"resources": {"limits": {"memory": "lots"}}}, "spec.resources.limits.memory"),
]


@pytest.mark.parametrize(("kind", "spec", "named"), REFUSED)
def test_bad_spec_is_refused_and_the_message_names_the_field(kubectl, namespace, kind, spec, named):
    refused = kubectl("apply", "-n", namespace, "-f", "-", stdin=resource(kind, spec), check=False)
    assert refused.returncode != 0
    assert named in refused.stderr


@pytest.mark.parametrize("name", ["a" * 64, "team.a"])
def test_a_nspro_has_a_name_that_a_namespace_can_have(kubectl, namespace, name):
    manifest = resource("Nspro", {"nssize": "small"}, name)
    refused = kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest, check=False)
    assert "the name of a Nspro is that of its Namespace" in refused.stderr
    kubectl("apply", "-n", namespace, "-f", "-", stdin=resource("Nspro", {"nssize": "small"}, "a" * 63))


@pytest.mark.parametrize("spec", [{"access": [{"role": "edit", "groups": ["team"]}]}, {"quota": {"count/pods": 20}}])
def test_what_a_nspro_may_ask_for_is_taken(kubectl, namespace, spec):
    kubectl(
        "apply", "--validate=strict", "-n", namespace, "-f", "-", stdin=resource("Nspro", {"nssize": "small", **spec})
    )
    assert spec.items() <= get(kubectl, namespace, "nspro")["spec"].items()


def test_columns_of_a_nspro(kubectl, namespace):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=resource("Nspro", {"nssize": "large", "managed": True}))
    status = {
        "cpu": "100m/300m",
        "memory": "0/300Mi",
        "phase": "Ready",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    patch = ("--subresource=status", "--type=merge", "--patch", json.dumps({"status": status}))
    kubectl("patch", "nspro", "sample", "-n", namespace, *patch)
    header, line = kubectl("get", "nspro", "-n", namespace).stdout.splitlines()
    assert header.split() == ["NAME", "SIZE", "MANAGED", "READY", "CPU", "MEMORY", "AGE"]
    assert line.split()[:-1] == ["sample", "large", "true", "True", "100m/300m", "0/300Mi"]


def test_targets_by_name_and_by_selector_are_taken(kubectl, namespace):
    targets = [{"kind": "Start", "name": "web"}, {"kind": "CronJob", "selector": {"matchLabels": {"team": "shop"}}}]
    kubectl("apply", "--validate=strict", "-n", namespace, "-f", "-", stdin=resource("Update", {"targets": targets}))
    assert get(kubectl, namespace, "update")["spec"]["targets"] == targets


def test_short_name_and_columns(kubectl, namespace):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=resource("Update"))
    header = kubectl("get", "update", "-n", namespace).stdout.splitlines()[0].split()
    assert header == ["NAME", "CURRENT", "STALE", "UNKNOWN", "UPTODATE", "HELD", "LASTROLL", "OUTCOME", "AGE"]

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


def resource(kind: str, spec: dict[str, Any] | None = None, name: str = "sample") -> dict[str, Any]:
    result: dict[str, Any] = {
        "apiVersion": "install.sios.nginx.testing/v1",
        "kind": kind,
        "metadata": {"name": name},
    }
    return result if spec is None else result | {"spec": spec}


def get(kubectl, namespace: str, kind: str, name: str = "sample") -> dict[str, Any]:
    return json.loads(kubectl("get", kind, name, "-n", namespace, "-o", "json").stdout)


@pytest.mark.parametrize("name", ["starts", "updates"])
def test_the_api_server_finds_no_fault_in_the_crd(kubectl, name):
    crd = json.loads(kubectl("get", "crd", f"{name}.install.sios.nginx.testing", "-o", "json").stdout)
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


@pytest.mark.parametrize("kind", ["start", "update"])
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


@pytest.mark.parametrize("kind", ["Start", "Update"])
def test_unknown_key_is_refused_by_strict_validation_and_pruned_without(kubectl, namespace, kind):
    hostile = resource(kind, {"ansible_python_interpreter": "/tmp/x"})
    refused = kubectl("apply", "--validate=strict", "-n", namespace, "-f", "-", stdin=hostile, check=False)
    assert refused.returncode != 0
    assert 'unknown field "spec.ansible_python_interpreter"' in refused.stderr
    kubectl("apply", "--validate=false", "-n", namespace, "-f", "-", stdin=hostile)
    assert "ansible_python_interpreter" not in get(kubectl, namespace, kind)["spec"]


REFUSED = [
    # case J13: the string is true wherever somebody asks whether it is empty
    ("Update", {"delete_flag": "false"}, "spec.delete_flag"),
    ("Update", {"suspend": "false"}, "spec.suspend"),
    ("Update", {"dryRun": "false"}, "spec.dryRun"),
    ("Update", {"rollback": {"enabled": "false"}}, "spec.rollback.enabled"),
    ("Update", {"targets": [{"kind": "Deployment"}]}, "either a name or a selector"),
    (
        "Update",
        {"targets": [{"kind": "Deployment", "name": "web", "selector": {"matchLabels": {"a": "b"}}}]},
        "either a name or a selector",
    ),
    ("Update", {"targets": [{"kind": "Pod", "name": "web"}]}, "spec.targets[0].kind"),
    ("Update", {"stableForSeconds": -1}, "spec.stableForSeconds"),
    ("Update", {"rollback": {"progressDeadlineSeconds": 5}}, "spec.rollback.progressDeadlineSeconds"),
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


def test_targets_by_name_and_by_selector_are_taken(kubectl, namespace):
    targets = [{"kind": "Start", "name": "web"}, {"kind": "CronJob", "selector": {"matchLabels": {"team": "shop"}}}]
    kubectl("apply", "--validate=strict", "-n", namespace, "-f", "-", stdin=resource("Update", {"targets": targets}))
    assert get(kubectl, namespace, "update")["spec"]["targets"] == targets


def test_short_name_and_columns(kubectl, namespace):
    kubectl("apply", "-n", namespace, "-f", "-", stdin=resource("Update"))
    header = kubectl("get", "update", "-n", namespace).stdout.splitlines()[0].split()
    assert header == ["NAME", "CURRENT", "STALE", "UNKNOWN", "UPTODATE", "LASTROLL", "AGE"]

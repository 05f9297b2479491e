# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks run as ansible-operator runs them: by ansible-runner, with the whole resource as unsafe extra vars."""

from __future__ import annotations

import json
import typing as t
import uuid
from pathlib import Path

import pytest
from integration.operator_passes import changed
from integration.passes import writes

from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")


def test_a_push_is_rolled_by_two_reconciles_as_the_operator_makes_them(shop, operator):
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    operator.pass_of("Start")
    shop.settled()
    operator.pass_of("Update")
    assert shop.flags() == "false,false"
    second = shop.push("v2")
    operator.pass_of("Update")
    assert shop.flags() == "true,true"
    assert shop.get("start")["spec"]["image"].endswith(second)
    # the changed Start is what starts its pass under the operator
    assert not shop.get("deployment", "sample-sample")["spec"]["template"]["spec"]["containers"][0]["image"].endswith(
        second
    )
    operator.pass_of("Start")
    shop.settled()
    assert shop.running() == {second}
    operator.pass_of("Update")
    assert shop.verdicts() == {"sample-sample": "current/digest_equal"}


def _image_of(deployment: dict[str, t.Any]) -> str:
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"]


def test_an_unchanged_pass_writes_nothing(shop, operator):
    audit = AuditLog.of(shop.testbed)
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    operator.pass_of("Start")
    shop.settled()
    operator.pass_of("Update")
    operator.pass_of("Start")
    mark = audit.mark()
    operator.gate.seen.clear()
    assert changed(operator.pass_of("Update")) == 0
    workload = {"GET deployments": 1, "LIST replicasets": 1, "LIST pods": 1}
    assert operator.gate.asked() == {"GET updates": 1, "LIST starts": 1, **workload}
    operator.gate.seen.clear()
    assert changed(operator.pass_of("Start")) == 0
    assert operator.gate.asked() == {"LIST starts": 1, **workload, "PATCH deployments dry run": 1}
    assert writes(audit.since(mark, namespace=shop.namespace)) == []


def test_conditions_of_the_operator_survive_ours_and_ours_its_rebuild(shop, operator):
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    operator.pass_of("Start")
    shop.settled()
    theirs = {"type": "Running", "status": "True", "reason": "Running", "lastTransitionTime": "2026-01-02T15:04:05Z"}
    status = ["patch", "update", "sample", "-n", shop.namespace, "--subresource=status", "--type=merge"]
    shop.kubectl(*status, "-p", json.dumps({"status": {"conditions": [theirs]}}))
    operator.pass_of("Update")
    kinds = {condition["type"] for condition in shop.get("update")["status"]["conditions"]}
    ours = {
        "UpToDate",
        "Rolling",
        "RolloutBlocked",
        "RegistryReachable",
        "RolloutDidNotTakeEffect",
        "RunningDigestGone",
    }
    assert kinds == {"Running", *ours}
    # the operator writes the whole list back, ours without what it does not know
    rebuilt = [
        {key: value for key, value in condition.items() if key != "observedGeneration"}
        for condition in shop.get("update")["status"]["conditions"]
    ]
    rebuilt[0]["message"] = "Awaiting next reconciliation"
    shop.kubectl(*status, "-p", json.dumps({"status": {"conditions": rebuilt}}))
    audit = AuditLog.of(shop.testbed)
    mark = audit.mark()
    assert changed(operator.pass_of("Update")) == 0
    assert writes(audit.since(mark, namespace=shop.namespace)) == []


@pytest.fixture
def marker() -> t.Iterator[Path]:
    """A file that a template would make; its path is short enough for every string of the schemas."""
    path = Path("/tmp") / uuid.uuid4().hex[:8]
    yield path
    path.unlink(missing_ok=True)


def update_strings(text: str) -> list[dict[str, t.Any]]:
    """Specs of an Update, each with `text` in another of its strings."""
    return [
        {"containers": {"ignore": [text]}},
        {"containers": {"follow": ["sample-sample", "bad-sample", text]}},
        {"platforms": [text]},
        {"targets": [{"kind": "Start", "name": text}]},
        {"targets": [{"kind": "Start", "selector": {"matchLabels": {"app": text}}}]},
        {"targets": [{"kind": text, "name": "sample"}]},
    ]


@pytest.mark.parametrize("way", ["operator", "command line"])
def test_templates_in_a_resource_are_text(shop, operator, marker, way):
    text = "{{ lookup('pipe', 'touch " + str(marker) + "') }}"
    shop.push("v1")
    follow = json.dumps({"bad-sample": {"reference": text, "digest": text, "from": text, "at": text}})
    bad = shop.start("bad", image=text)
    bad["metadata"]["annotations"] = {"kubesteward.io/follow": follow, "example.com/note": text}
    shop.apply(shop.start(), bad)
    names = ["default"]
    shop.apply(shop.update("default"))
    for number, spec in enumerate(update_strings(text)):
        update = shop.update(f"hostile-{number}", spec)
        update["metadata"]["annotations"] = {"example.com/note": text}
        applied = shop.kubectl("apply", "-n", shop.namespace, "-f", "-", stdin=update, check=False)
        # what the schema refuses never reaches a pass; an image and annotations take any text
        if applied.returncode == 0:
            names.append(f"hostile-{number}")
        else:
            assert "is invalid" in applied.stderr
    if way == "operator":
        for name in ("sample", "bad"):
            operator.pass_of("Start", name)
        shop.settled()
        for name in names:
            operator.pass_of("Update", name)
    else:
        shop.run("start")
        shop.settled()
        shop.run("update", "-vvv")
    assert not marker.exists()
    wanted = {"sample-sample": "current/digest_equal", "bad-sample": "unknown/invalid_reference"}
    assert shop.verdicts("default") == wanted
    found = {image["container"]: image for image in shop.get("update", "default")["status"]["images"]}
    assert found["bad-sample"]["image"] == text


def test_a_resource_deleted_while_its_pass_begins_is_no_error(shop, operator, monkeypatch):
    shop.apply(shop.start(), shop.update())
    seen = {kind: shop.get(kind) for kind in ("start", "update")}
    shop.kubectl("delete", "start/sample", "update/sample", "-n", shop.namespace)
    monkeypatch.setattr(shop, "get", lambda kind, name: seen[kind])
    operator.pass_of("Update")
    operator.pass_of("Start")


@pytest.mark.parametrize("kind", ["Update", "Start"])
def test_an_unknown_key_of_a_spec_is_refused_by_kubectl_and_pruned_by_the_api_server(shop, kind):
    resource = {"Update": shop.update(spec={}), "Start": shop.start()}[kind]
    resource["spec"]["ansible_python_interpreter"] = "/bin/false"
    arguments = ["apply", "-n", shop.namespace, "-f", "-"]
    refused = shop.kubectl(*arguments, "--validate=strict", stdin=resource, check=False)
    assert refused.returncode != 0
    assert "ansible_python_interpreter" in refused.stderr
    shop.kubectl(*arguments, "--validate=false", stdin=resource)
    assert "ansible_python_interpreter" not in shop.get(kind.lower())["spec"]

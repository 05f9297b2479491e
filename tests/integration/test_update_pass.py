# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The update path on a real cluster: what an administrator sees, pass after pass."""

from __future__ import annotations

import json
import time

import pytest
from integration.passes import Shop, writes

import testbed
from testbed import images
from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")

#: nothing listens there: a registry that is down
DEAD = "127.0.0.1:9"


@pytest.fixture
def audit() -> AuditLog:
    return AuditLog.of(testbed.connect())


@pytest.fixture
def running(shop) -> Shop:
    """A Start that runs v1, with an Update that has seen it."""
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    shop.run("start")
    shop.settled()
    shop.run("update")
    return shop


def dead_registries(shop: Shop) -> list[dict]:
    return [{"prefix": shop.image.partition("/")[0], "location": DEAD, "insecure": True}]


def test_the_articles_line_reads_false_false_while_equal_and_true_true_after_an_update(running):
    assert running.flags() == "false,false"
    second = running.push("v2")
    running.run("update")
    assert running.flags() == "true,true"
    running.settled()
    assert running.running() == {second}
    running.run("update")
    assert running.flags() == "true,true"
    status = running.get("update")["status"]
    assert status["registory_id"] == second
    assert status["run_id"].endswith(second)


def test_three_rolls_in_a_row_of_the_same_tag_all_happen(running):
    for text in ("v2", "v3", "v4"):
        digest = running.push(text)
        running.run("update")
        running.settled()
        assert running.running() == {digest}
        running.run("update")
        assert running.verdicts() == {"sample-sample": "current/digest_equal"}
    history = [entry for entry in running.get("update")["status"]["history"] if entry["outcome"] == "rolled"]
    assert len(history) == 3
    assert [entry["from"] for entry in history[1:]] == [entry["to"] for entry in history[:-1]]


def test_an_unchanged_pass_makes_no_write_and_reports_no_change(running, audit):
    running.push("v2")
    running.run("update")
    running.settled()
    running.run("update")
    mark = audit.mark()
    done = running.run("update")
    assert done.changed == 0, done.output
    assert writes(audit.since(mark, namespace=running.namespace)) == []
    done = running.run("start")
    assert done.changed == 0, done.output
    assert writes(audit.since(mark, namespace=running.namespace)) == []


def test_an_index_pushed_again_with_the_same_images_rolls_nothing(shop, audit):
    name, text = f"{shop.repository}:latest", f"v1 {shop.repository}"
    one = images.web_image(text)
    first = images.push(images.index_image([one]), name)
    shop.apply(shop.start(), shop.update())
    shop.run("start")
    shop.settled()
    shop.run("update")
    assert shop.verdicts() == {"sample-sample": "current/digest_equal"}
    second = images.push(images.index_image([one], attestations=True, annotations={"example.com/build": "2"}), name)
    assert second != first
    before = shop.get("start")["spec"]
    shop.run("update")
    assert shop.verdicts() == {"sample-sample": "current/index_changed_only"}
    assert shop.get("start")["spec"] == before
    mark = audit.mark()
    assert shop.run("update").changed == 0
    assert writes(audit.since(mark, namespace=shop.namespace)) == []
    third = images.push(images.index_image([images.web_image(f"v2 {shop.repository}")]), name)
    shop.run("update")
    shop.settled()
    assert shop.running() == {third}


def test_check_mode_predicts_the_run_and_writes_nothing(running, audit):
    second = running.push("v2")
    mark = audit.mark()
    predicted = running.run("update", "--check", "--diff")
    assert writes(audit.since(mark, namespace=running.namespace)) == []
    assert f"+image: {running.testbed.image_name(running.repository)}@{second}" in predicted.output
    done = running.run("update", "--diff")
    assert done.changed == predicted.changed
    assert _diff(done.output) == _diff(predicted.output)


def _diff(output: str) -> list[str]:
    """Lines of a diff, without the moment of a roll, which is not known before it."""
    return [line for line in output.splitlines() if line.startswith(("+", "-")) and "lastTransitionTime" not in line]


def test_no_start_yet_is_no_error_and_the_next_pass_recovers(shop):
    shop.apply(shop.update())
    shop.run("update")
    assert shop.flags() == "false,false"
    assert (shop.condition("UpToDate")["status"], shop.condition("UpToDate")["reason"]) == ("Unknown", "NoWorkload")
    assert "NoWorkload" in shop.events()
    shop.push("v1")
    shop.apply(shop.start())
    shop.run("start")
    shop.settled()
    shop.run("update")
    assert shop.verdicts() == {"sample-sample": "current/digest_equal"}
    assert shop.condition("UpToDate")["status"] == "True"


def test_no_pod_yet_is_unknown_and_the_next_pass_recovers(shop):
    shop.push("v1")
    shop.apply(shop.start(replicas=0), shop.update())
    shop.run("start")
    time.sleep(1)
    shop.run("update")
    assert shop.verdicts() == {"sample-sample": "unknown/no_pods"}
    assert shop.condition("UpToDate")["status"] == "Unknown"
    assert "VerdictUnknown" in shop.events()
    shop.apply(shop.start(replicas=1))
    shop.run("start")
    shop.settled()
    shop.run("update")
    assert shop.verdicts() == {"sample-sample": "current/digest_equal"}


def test_an_image_that_cannot_be_pulled_is_unknown_and_the_next_pass_recovers(shop):
    shop.apply(shop.start(), shop.update())
    shop.run("start")
    _wait_for_waiting(shop)
    shop.run("update")
    assert shop.verdicts() == {"sample-sample": "unknown/not_found"}
    assert shop.condition("UpToDate")["status"] == "Unknown"
    assert "VerdictUnknown" in shop.events()
    before = shop.get("start")["spec"]["image"]
    shop.push("v1")
    # published now, and no Pod runs it yet: the kubelet's next try is its own affair
    shop.run("update")
    assert shop.get("start")["spec"]["image"] == before
    shop.settled()
    shop.run("update")
    assert shop.verdicts() == {"sample-sample": "current/digest_equal"}


def _wait_for_waiting(shop: Shop) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        states = [
            status.get("state", {}).get("waiting", {}).get("reason")
            for pod in shop.list("pods")
            for status in pod["status"].get("containerStatuses", [])
        ]
        if {"ErrImagePull", "ImagePullBackOff"} & set(states):
            return
        time.sleep(0.5)
    pytest.fail("the Pod never failed to pull its image")


def test_a_registry_that_is_down_rolls_nothing_and_the_next_pass_recovers(running, audit):
    second = running.push("v2")
    mark = audit.mark()
    running.run("update", update_registries=dead_registries(running), update_timeout=2)
    assert running.verdicts() == {"sample-sample": "unknown/unreachable"}
    assert running.condition("RegistryReachable")["status"] == "False"
    assert running.condition("UpToDate")["status"] == "Unknown"
    assert "VerdictUnknown" in running.events()
    assert not [
        write
        for write in writes(audit.since(mark, namespace=running.namespace))
        if "starts" in write or "deployments" in write
    ]
    running.run("update", update_registries=dead_registries(running), update_timeout=2)
    running.run("update")
    running.settled()
    assert running.running() == {second}
    assert running.condition("RegistryReachable")["status"] == "True"


def test_an_update_that_deletes_itself_does_so_once_its_work_is_done(running):
    running.apply(running.update(spec={"delete_flag": True}))
    second = running.push("v2")
    running.run("update")
    assert running.get("update")["status"]["update"] is True
    running.settled()
    running.run("update")
    gone = running.kubectl("get", "update", "sample", "-n", running.namespace, check=False)
    assert "NotFound" in gone.stderr
    assert running.running() == {second}


def test_a_suspended_update_and_a_dry_run_hold_and_say_so(running):
    running.push("v2")
    before = running.get("start")["spec"]["image"]
    for field, reason in (("suspend", "suspended"), ("dryRun", "dry_run")):
        running.apply(running.update(spec={field: True}))
        running.run("update")
        assert running.verdicts() == {"sample-sample": f"stale/{reason}"}
        assert running.flags() == "true,false"
        assert running.condition("RolloutBlocked")["status"] == "True"
        assert running.get("start")["spec"]["image"] == before
    assert "RollHeld" in running.events()


def test_a_roll_can_be_released_so_that_the_tag_is_back(running, audit):
    running.push("v2")
    running.run("update")
    running.settled()
    # what an empty variable would mean is no wish
    refused = running.run("update", update_state="released", expect=2)
    assert "update_all=true" in refused.output
    assert running.get("start")["spec"]["image"] != running.image
    running.run("update", update_state="released", update_all=True)
    start = running.get("start")
    assert start["spec"]["image"] == running.image
    assert "kubesteward.io/follow" not in start["metadata"].get("annotations", {})
    running.settled()
    mark = audit.mark()
    running.run("update", update_state="released", update_all=True)
    assert writes(audit.since(mark, namespace=running.namespace)) == []


def test_without_an_update_the_defaults_run_and_no_status_is_written(shop):
    shop.push("v1")
    shop.apply(shop.start())
    shop.run("start")
    shop.settled()
    second = shop.push("v2")
    shop.run("update")
    shop.settled()
    assert shop.running() == {second}
    assert shop.run("update").changed == 1  # the Start's own status: its rollout is complete
    assert shop.run("update").changed == 0


def test_every_update_of_the_namespace_runs_and_a_wrong_name_is_refused(running):
    running.apply(running.update("other"))
    running.run("update")
    assert running.verdicts("other") == {"sample-sample": "current/digest_equal"}
    failed = running.run("update", expect=2, update_name="no-such")
    assert "There is no Update no-such in namespace" in failed.output


def test_a_second_start_of_one_name_is_a_conflict_and_changes_nothing(running):
    time.sleep(1)  # creation times have whole seconds
    running.apply(running.start("twin", name="sample", replicas=3))
    done = running.run("start")
    assert "has the name sample already" in done.output
    assert running.get("deployment", "sample-sample")["spec"]["replicas"] == 1
    conditions = running.get("start", "twin")["status"]["conditions"]
    assert [(x["status"], x["reason"]) for x in conditions if x["type"] == "Ready"] == [("False", "NotApplied")]
    assert running.run("start").changed == 0


def test_the_follow_annotation_says_what_was_followed(running):
    second = running.push("v2")
    running.run("update")
    entry = json.loads(running.get("start")["metadata"]["annotations"]["kubesteward.io/follow"])["sample-sample"]
    assert entry["reference"] == running.image
    assert entry["from"] == running.image
    assert entry["digest"] == second


def test_what_cannot_be_written_stops_nothing_else(running, monkeypatch):
    """A user who may patch no StatefulSet: the Start is rolled and applied all the same, and the other Update runs."""
    database = _stateful_set(running)
    running.apply(database)
    running.kubectl("rollout", "status", "-n", running.namespace, "statefulset/db", "--timeout=120s")
    targets = [{"kind": "StatefulSet", "name": "db"}, {"kind": "Start", "name": "sample"}]
    running.apply(running.update("all", {"targets": targets}))
    _grant(running, "jane")
    monkeypatch.setenv("K8S_AUTH_IMPERSONATE_USER", "jane")
    second = running.push("v2")
    failed = running.run("update", expect=2)
    assert "Could not patch StatefulSet db" in failed.output
    running.settled()
    assert running.running() == {second}
    assert running.verdicts("all")["db"] == "stale/digest_differs"
    assert running.condition("RolloutBlocked", "all")["status"] == "True"
    # the other Update ran after it, and the Start is its own, since it is older
    assert running.verdicts("all")["sample-sample"] == "stale/conflict"
    assert running.get("update")["status"]["lastRoll"]["container"] == "sample-sample"


def _stateful_set(shop: Shop) -> dict:
    labels = {"app": "db"}
    pod = {"containers": [{"name": "db", "image": shop.image}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _grant(shop: Shop, user: str) -> None:
    everything = {"verbs": ["get", "list"], "resources": ["*"], "apiGroups": ["", "apps", "install.sios.nginx.testing"]}
    writes_of_ours = [
        {"verbs": ["patch"], "resources": ["deployments"], "apiGroups": ["apps"]},
        {"verbs": ["create"], "resources": ["events"], "apiGroups": [""]},
        {
            "verbs": ["patch"],
            "resources": ["starts", "starts/status", "updates/status"],
            "apiGroups": ["install.sios.nginx.testing"],
        },
    ]
    api = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{api}/v1",
        "kind": "Role",
        "metadata": {"name": user},
        "rules": [everything, *writes_of_ours],
    }
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": api, "kind": "Role", "name": user},
        "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
    }
    shop.apply(role, binding)


def test_an_image_that_need_not_run_at_all_to_be_good_is_an_error(shop):
    found = shop.run("update", expect=2, update_verification_seconds=0)
    assert "verification_seconds is 0; give a number of seconds from 1 to 86400" in found.output


def test_a_deployment_that_nobody_gave_to_a_start_stays_as_it_is_and_outlives_it(shop):
    shop.push("v1")
    theirs = ("deployment", "sample-sample", "-n", shop.namespace)
    shop.kubectl("create", *theirs, "--image=registry.invalid/theirs:1", "--replicas=0")
    before = shop.get("deployment", "sample-sample")["spec"]
    shop.apply(shop.start())
    given = f"kubectl annotate deployment sample-sample -n {shop.namespace} kubesteward.io/adopt=sample"
    done = shop.run("start")
    assert given in " ".join(done.output.split())
    assert shop.get("start")["status"]["conditions"][-1]["message"].endswith(given)
    assert shop.get("deployment", "sample-sample")["spec"] == before
    shop.kubectl("delete", "start", "sample", "-n", shop.namespace)
    assert shop.get("deployment", "sample-sample")["spec"] == before
    # one that has the labels of a Start's can be given
    shop.kubectl("delete", *theirs)
    shop.apply(shop.start())
    shop.run("start")
    shop.kubectl("delete", "start", "sample", "-n", shop.namespace, "--cascade=orphan")
    shop.apply(shop.start(replicas=2))
    shop.run("start")
    assert shop.get("deployment", "sample-sample")["spec"]["replicas"] == 1
    shop.kubectl("annotate", *theirs, "kubesteward.io/adopt=sample")
    shop.run("start")
    taken = shop.get("deployment", "sample-sample")
    assert taken["spec"]["replicas"] == 2
    assert [owner["kind"] for owner in taken["metadata"]["ownerReferences"]] == ["Start"]

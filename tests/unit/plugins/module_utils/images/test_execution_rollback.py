# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rolls that go wrong, and people and managers who disagree: whole lives of a Deployment."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import execution, follow
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.plugins.modules import pod_image_id
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NAMESPACE,
    published,
    sha,
    update,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import one_pass
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    TARGETS,
    at,
    cluster_of,
    flags,
    image,
    run,
    settle,
    status,
)

I3 = sha("index 3")
FIXED = {IMAGE: published(I3, children=())}
ROLLED, EARLY, OVERDUE = "2026-03-01T10:00:00Z", "2026-03-01T10:05:00Z", "2026-03-01T10:10:00Z"
LATER, MUCH_LATER = "2026-03-01T10:20:00Z", "2026-03-01T10:40:00Z"


def crash(cluster, *names):
    """The new Pod of each Deployment dies again and again, and the rollout does not end."""
    settle(cluster, *names)
    waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "ready": False, "restartCount": 4}
    for name in names:
        cluster.edit("Pod", f"pod-{name}", lambda x: x["status"]["containerStatuses"][0].update(waiting))
        cluster.edit("Deployment", name, lambda x: x["status"].update(availableReplicas=0))


def recover(cluster, *names, since=OVERDUE):
    settle(cluster, *names)
    runs = {"state": {"running": {"startedAt": since}}, "ready": True}
    for name in names:
        cluster.edit("Pod", f"pod-{name}", lambda x: x["status"]["containerStatuses"][0].update(runs))
        cluster.edit("Deployment", name, lambda x: x["status"].update(availableReplicas=1))


def failed(*names, **spec):
    """Deployments that were rolled to an image that crashes."""
    cluster = cluster_of(*names, **spec)
    run(cluster, PUSHED, now=ROLLED)
    crash(cluster, *names)
    return cluster


def outcomes(cluster):
    return [entry["outcome"] for entry in status(cluster)["history"]]


def condition(cluster, kind):
    return next((x["status"], x["reason"]) for x in status(cluster)["conditions"] if x["type"] == kind)


def reasons(done):
    return [verdict.reason for _container, verdict in done.judged]


def memory(cluster, name="a"):
    return follow.read(cluster.read("Deployment", name))["app"]


def put(cluster, text, name="a", manager="", operation="Update"):
    """Somebody writes an image."""

    def change(deployment):
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = text
        fields = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}}}
        entry = {"manager": manager, "operation": operation, "time": ROLLED, "fieldsV1": fields}
        deployment["metadata"]["managedFields"] = [entry] if manager else []

    cluster.edit("Deployment", name, change)
    settle(cluster, name)


def runs(cluster, digest, name="a"):
    cluster.edit("Pod", f"pod-{name}", lambda x: x["status"]["containerStatuses"][0].update(imageID=at(digest)))


def test_a_failing_roll_is_taken_back_held_and_followed_by_a_fixed_one():
    cluster = failed("a")
    assert run(cluster, PUSHED, now=EARLY).rolled_back == []
    predicted = run(cluster, PUSHED, now=OVERDUE, check_mode=True)
    done = run(cluster, PUSHED, now=OVERDUE)
    assert predicted.rolled_back == done.rolled_back
    assert predicted.status == done.status
    # the tag itself would bring the failed image again
    assert image(cluster, "a") == at(I1)
    assert reasons(done) == ["quarantined"]
    assert flags(cluster) == (True, False)
    assert condition(cluster, "RolloutBlocked") == ("True", "Held")
    (entry,) = status(cluster)["quarantine"]
    assert (entry["digest"], "CrashLoopBackOff" in entry["reason"]) == (I2, True)
    assert outcomes(cluster) == ["rolled", "rolledBack"]
    assert [event["reason"] for event in cluster.events].count("RolledBack") == 2

    recover(cluster, "a")
    run(cluster, PUSHED, now=LATER)
    cluster.writes.clear()
    for now in (LATER, MUCH_LATER):
        assert reasons(run(cluster, PUSHED, now=now)) == ["quarantined"]
    assert cluster.writes == []

    assert len(run(cluster, FIXED, now=MUCH_LATER).rolled) == 1
    assert image(cluster, "a") == at(I3)
    assert flags(cluster) == (True, True)
    assert status(cluster)["quarantine"] == []
    assert condition(cluster, "RolloutBlocked")[0] == "False"


def test_a_roll_that_fails_without_a_way_back_is_told():
    cluster = failed("a")
    forgetful = json.dumps({"app": {**memory(cluster).as_dict(), "back": "evil.example/shop/web:1"}})
    cluster.edit("Deployment", "a", lambda x: x["metadata"]["annotations"].update({follow.ANNOTATION: forgetful}))
    done = run(cluster, PUSHED, now=OVERDUE)
    assert (done.errors, done.rolled_back, image(cluster, "a")) == ([], [], at(I2))
    assert condition(cluster, "RolloutBlocked") == ("True", "RolloutFailed")


def test_a_roll_that_proves_itself_is_settled_with_one_write():
    cluster = cluster_of("a")
    run(cluster, PUSHED, now=ROLLED)
    recover(cluster, "a", since=ROLLED)
    run(cluster, PUSHED, now="2026-03-01T10:00:30Z")
    # nothing is wrong so far, and only time is missing
    assert (memory(cluster).trial, condition(cluster, "Rolling")[0]) == (True, "False")
    cluster.writes.clear()
    done = run(cluster, PUSHED, now=EARLY)
    assert [entry["container"] for entry in done.settled] == ["app"]
    assert cluster.writes[0] == "patch Deployment/a"
    assert (memory(cluster).trial, condition(cluster, "Rolling")[0]) == (False, "False")
    assert outcomes(cluster) == ["rolled", "done"]
    cluster.writes.clear()
    run(cluster, PUSHED, now=LATER)
    assert cluster.writes == []
    # what breaks from then on is not the roll's fault
    crash(cluster, "a")
    assert run(cluster, PUSHED, now=MUCH_LATER).rolled_back == []


def test_without_rollback_a_failure_is_told_once_and_nothing_is_written():
    cluster = failed("a", rollback={"enabled": True})
    off = {"enabled": False, "progress_deadline_seconds": None}
    for now in (OVERDUE, LATER, MUCH_LATER):
        run(cluster, PUSHED, now=now, rollback=off)
    assert image(cluster, "a") == at(I2)
    assert outcomes(cluster) == ["rolled", "failed"]
    assert condition(cluster, "RolloutBlocked") == ("True", "RolloutFailed")
    assert [event["reason"] for event in cluster.events].count("RolloutFailed") == 1
    cluster.writes.clear()
    run(cluster, PUSHED, now=MUCH_LATER, rollback=off)
    assert cluster.writes == []


def test_a_roll_that_is_not_taken_back_is_watched_all_the_same():
    cluster = failed("a", rollback={"enabled": False}, delete_flag=True)
    assert run(cluster, PUSHED, now=EARLY).deleted is False
    assert (condition(cluster, "UpToDate")[0], condition(cluster, "Rolling")[0]) == ("False", "True")
    assert run(cluster, PUSHED, now=OVERDUE).deleted is False
    assert outcomes(cluster) == ["rolled", "failed"]
    assert condition(cluster, "UpToDate") == ("False", "RolloutInProgress")


@pytest.mark.parametrize("held", [{"suspend": True}, {"dryRun": True}])
def test_nothing_is_taken_back_while_the_update_is_to_look_only(held):
    cluster = failed("a")
    cluster.edit("Update", "update-sample", lambda x: x["spec"].update(held))
    cluster.writes.clear()
    assert run(cluster, PUSHED, now=OVERDUE).rolled_back == []
    assert not any(line.startswith("patch") for line in cluster.writes)


def test_a_newer_digest_mends_what_fails_and_the_way_back_stays():
    cluster = failed("a")
    assert len(run(cluster, FIXED, now=EARLY).rolled) == 1
    assert (memory(cluster).back, memory(cluster).left) == (at(I1), (I1, I2))


def test_a_digest_that_failed_anywhere_goes_no_further():
    cluster = failed("a", maxConcurrent=1)
    cluster.edit("Update", "update-sample", lambda x: x["spec"].update(targets=TARGETS[:2]))
    beside = cluster_of("b")
    for kind in ("Deployment", "ReplicaSet", "Pod"):
        for (its_kind, _namespace, _name), item in beside.objects.items():
            if its_kind == kind:
                cluster.put(item)
    assert reasons(run(cluster, PUSHED, now=EARLY)) == ["on_trial", "rollout_in_progress"]
    assert reasons(run(cluster, PUSHED, now=OVERDUE)) == ["quarantined", "quarantined"]
    assert image(cluster, "b") == IMAGE
    recover(cluster, "a")
    assert reasons(run(cluster, PUSHED, now=LATER)) == ["quarantined", "quarantined"]
    cluster.edit("Update", "update-sample", lambda x: x["spec"].update(maxConcurrent=5))
    assert len(run(cluster, FIXED, now=MUCH_LATER).rolled) == 2


def test_a_persons_word_clears_a_quarantine_of_just_that_digest_once():
    cluster = failed("a")
    run(cluster, PUSHED, now=OVERDUE)
    recover(cluster, "a")
    cluster.edit("Deployment", "a", lambda x: x["metadata"]["annotations"].update({follow.RETRY: I3}))
    assert run(cluster, PUSHED, now=LATER).rolled == []
    cluster.edit("Deployment", "a", lambda x: x["metadata"]["annotations"].update({follow.RETRY: I2}))
    assert len(run(cluster, PUSHED, now=LATER).rolled) == 1
    assert follow.RETRY not in cluster.read("Deployment", "a")["metadata"]["annotations"]


def test_an_older_digest_that_a_person_set_is_kept_until_the_tag_moves():
    cluster = cluster_of("a")
    run(cluster, PUSHED, now=ROLLED)
    recover(cluster, "a", since=ROLLED)
    run(cluster, PUSHED, now=EARLY)
    put(cluster, at(I1), manager="kubectl-set")
    done = run(cluster, PUSHED, now=LATER)
    assert reasons(done) == ["rolled_back_by_hand"]
    assert "kubectl-set" in done.judged[0][1].message
    assert run(cluster, PUSHED, now=MUCH_LATER).rolled == []
    assert len(run(cluster, FIXED, now=MUCH_LATER).rolled) == 1


def test_a_digest_that_nobody_knows_is_a_persons_own():
    cluster = cluster_of("a")
    run(cluster, PUSHED, now=ROLLED)
    put(cluster, at(sha("hotfix")))
    assert reasons(run(cluster, FIXED, now=LATER)) == ["pinned"]


def test_rollout_undo_is_a_persons_will_even_if_it_takes_our_annotation_away():
    cluster = cluster_of("a")
    run(cluster, PUSHED, now=ROLLED)
    annotation = cluster.read("Deployment", "a")["metadata"]["annotations"][follow.ANNOTATION]
    # the deployment controller copies annotations to the revision that has the template
    cluster.edit("ReplicaSet", "a-1", lambda x: x["metadata"]["annotations"].update({follow.ANNOTATION: annotation}))
    put(cluster, IMAGE, manager="kubectl")
    runs(cluster, I1)
    cluster.edit("Deployment", "a", lambda x: x["metadata"].update(annotations={}))
    assert reasons(run(cluster, PUSHED, now=LATER)) == ["rolled_back_by_hand"]
    assert len(run(cluster, FIXED, now=MUCH_LATER).rolled) == 1


def test_a_manager_that_puts_the_tag_back_is_answered_once_and_then_named():
    cluster = cluster_of("a")
    run(cluster, PUSHED, now=ROLLED)
    put(cluster, IMAGE, manager="argocd-controller", operation="Apply")
    runs(cluster, I1)
    assert len(run(cluster, PUSHED, now=EARLY).rolled) == 1
    put(cluster, IMAGE, manager="argocd-controller", operation="Apply")
    runs(cluster, I1)
    done = run(cluster, PUSHED, now=LATER)
    assert (reasons(done), done.rolled) == (["reverted"], [])
    assert "argocd-controller" in done.judged[0][1].message
    assert condition(cluster, "RolloutBlocked")[0] == "True"


def two_updates():
    cluster = cluster_of("a")
    cluster.put(update("another", targets=TARGETS[:1]))
    return cluster


def test_the_younger_of_two_updates_writes_nothing_to_the_workload():
    cluster = two_updates()
    younger = one_pass(cluster, PUSHED, "update-sample", now=ROLLED)
    assert reasons(younger) == ["conflict"]
    assert "older Update another" in younger.judged[0][1].message
    assert cluster.writes == ["status Update/update-sample", "create Event"]
    assert len(one_pass(cluster, PUSHED, "another", now=ROLLED).rolled) == 1
    crash(cluster, "a")
    cluster.writes.clear()
    assert one_pass(cluster, PUSHED, "update-sample", now=OVERDUE).rolled_back == []
    assert (outcomes(cluster), condition(cluster, "RolloutBlocked")) == ([], ("True", "RolloutFailed"))
    assert not any("Deployment" in line for line in cluster.writes)
    assert len(one_pass(cluster, PUSHED, "another", now=OVERDUE).rolled_back) == 1
    # and does not tell as its own what the other one did
    assert "lastRoll" not in cluster.read("Update", "update-sample")["status"]


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"targets": [{"kind": "Deployment", "name": "b"}]}},
        {"spec": {"targets": TARGETS[:1], "containers": {"ignore": ["app"]}}},
        {"spec": {"targets": TARGETS[:1], "containers": {"follow": ["proxy"]}}},
        {"spec": {"targets": [{"kind": "Deployment", "selector": {"matchLabels": {"app": "b"}}}]}},
        {"spec": {}},
        # no label: its own passes fail
        {"spec": {"targets": [TARGETS[0], {"kind": "Deployment", "selector": {"matchLabels": {"a b": "x"}}}]}},
        {"metadata": {"deletionTimestamp": ROLLED}},
    ],
)
def test_an_update_that_does_not_look_at_a_container_has_no_say(change):
    cluster = two_updates()

    def edit(item):
        item["metadata"].update(change.get("metadata", {}))
        item["spec"] = change.get("spec", item["spec"])

    cluster.edit("Update", "another", edit)
    assert len(one_pass(cluster, PUSHED, "update-sample", now=ROLLED).rolled) == 1


def test_an_update_has_what_its_selector_matches():
    cluster = two_updates()
    cluster.edit("Deployment", "a", lambda x: x["metadata"].update(labels={"app": "a"}))
    target = {"kind": "Deployment", "selector": {"matchLabels": {"app": "a"}}}
    cluster.edit("Update", "another", lambda x: x["spec"].update(targets=[target]))
    assert reasons(one_pass(cluster, PUSHED, "update-sample", now=ROLLED)) == ["conflict"]


def final(cluster):
    """What a namespace looks like in the end, but for times and versions."""
    found = {kind: status(cluster)[kind] for kind in ("counts", "check_id", "update")}
    found["images"] = [image(cluster, "a")]
    found["outcomes"] = outcomes(cluster)
    found["failed"] = [entry["digest"] for entry in status(cluster)["quarantine"]]
    found["memory"] = {key: memory(cluster).as_dict().get(key) for key in ("digest", "trial", "left", "answered")}
    return found


def life(cluster, stumble=None):
    """A roll that fails, is taken back and followed by a good one; `stumble` is the number of the write that fails."""
    written = 0
    done = []

    def before_write(verb, target):
        nonlocal written
        if target.kind == "Event":
            return
        written += 1
        if written == stumble:
            raise ApiError(f"Could not {verb} {target}: the API server did not answer", 0)

    cluster.before_write = before_write
    for registry, act, times in (
        (PUSHED, crash, (ROLLED, "2026-03-01T10:00:01Z")),
        (PUSHED, recover, (OVERDUE, "2026-03-01T10:11:00Z")),
        (FIXED, lambda c, name: recover(c, name, since=LATER), (LATER, "2026-03-01T10:20:10Z")),
        (FIXED, lambda c, name: None, (MUCH_LATER, "2026-03-01T10:41:00Z")),
    ):
        for now in times:
            done.append(run(cluster, registry, now=now))
        act(cluster, "a")
    return written, done


def test_whichever_write_fails_the_next_pass_ends_the_same_and_nothing_is_done_twice():
    wanted = cluster_of("a")
    count, _done = life(wanted)
    assert count >= 8
    for stumble in range(1, count + 1):
        cluster = cluster_of("a")
        _written, done = life(cluster, stumble)
        assert final(cluster) == final(wanted), f"write {stumble}"
        assert sum(len(item.rolled) for item in done) == 2
        assert sum(len(item.rolled_back) for item in done) == 1
        assert sum(len(item.errors) for item in done) == 1


def test_release_of_a_workload_that_was_rolled_back_keeps_what_went_back():
    cluster = failed("a")
    run(cluster, PUSHED, now=OVERDUE)
    seen = pod_image_id.run({"namespace": NAMESPACE, "workloads": TARGETS[:1]}, cluster)
    execution.release(cluster, NAMESPACE, seen["containers"], False)
    assert image(cluster, "a") == at(I1)
    assert cluster.read("Deployment", "a")["metadata"]["annotations"] == {}


def test_what_is_remembered_is_small():
    cluster = cluster_of("a")
    for number in range(30):
        digest = sha(f"push {number}")
        run(cluster, {IMAGE: published(digest, children=())}, now=f"2026-03-01T11:{number:02}:00Z")
        recover(cluster, "a", since=f"2026-03-01T11:{number:02}:00Z")
    assert len(memory(cluster).left) == follow.MOST_LEFT
    assert len(json.dumps(memory(cluster).as_dict())) < 2000

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of an Update over many passes, and its end."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NAMESPACE,
    NOW,
    pod_of,
    published,
    sha,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    SAME,
    TARGETS,
    at,
    cluster_of,
    flags,
    run,
    settle,
    status,
)


def test_a_pass_killed_between_patch_and_status_is_made_up_for():
    cluster = cluster_of("a")

    class Killed(BaseException):
        pass

    def kill(verb, target):
        if verb == "status":
            raise Killed

    cluster.before_write = kill
    with pytest.raises(Killed):
        run(cluster, PUSHED)
    assert flags(cluster) == (False, False)
    cluster.before_write = lambda verb, target: None
    run(cluster, PUSHED, now="2026-03-01T10:05:00Z")
    assert flags(cluster) == (True, True)
    assert status(cluster)["lastRoll"] == {
        "workload": "Deployment/a",
        "container": "app",
        "from": IMAGE,
        "to": at(I2),
        "time": NOW,
        "outcome": "rolled",
    }
    assert [entry["outcome"] for entry in status(cluster)["history"]] == ["rolled"]
    settle(cluster, "a")
    run(cluster, PUSHED, now="2026-03-01T10:10:00Z")
    assert [entry["outcome"] for entry in status(cluster)["history"]] == ["rolled", "done"]


def test_the_flags_through_a_whole_life():
    cluster = cluster_of("a")
    seen = []
    third = sha("index 3")
    for registry, suspend, settles in (
        (SAME, False, True),
        (PUSHED, True, True),
        (PUSHED, False, False),
        (PUSHED, False, True),
        (PUSHED, False, True),
        ({IMAGE: published(third, children=())}, True, True),
        ({IMAGE: published(third, children=())}, False, True),
        ({}, False, True),
    ):
        cluster.edit("Update", "update-sample", lambda x, suspend=suspend: x["spec"].update(suspend=suspend))
        run(cluster, registry, now=f"2026-03-01T10:{len(seen):02}:00Z")
        seen.append(flags(cluster))
        if settles:
            settle(cluster, "a")
    assert seen == [
        (False, False),
        (True, False),
        (True, True),
        (True, True),
        (True, True),
        (True, False),
        (True, True),
        (True, True),
    ]


def test_a_difference_that_goes_away_by_itself_is_settled():
    cluster = cluster_of("a", suspend=True)
    run(cluster, PUSHED)
    assert flags(cluster) == (True, False)
    run(cluster, SAME)
    assert flags(cluster) == (True, True)


def test_history_keeps_the_last_ten():
    cluster = cluster_of("a")
    for number in range(12):
        digest = sha(f"push {number}")
        run(cluster, {IMAGE: published(digest, children=())}, now=f"2026-03-{number + 1:02}T00:00:00Z")
        settle(cluster, "a")
    history = status(cluster)["history"]
    assert [entry["to"] for entry in history] == [at(sha(f"push {number}")) for number in range(2, 12)]
    assert history[-1] == {**status(cluster)["lastRoll"], "outcome": "rolled"}


def test_a_pass_with_damaged_memory_and_unknown_ids_writes_a_status_the_schema_takes():
    owner = workload(name="a", annotations={follow.ANNOTATION: "{"})
    one, between = pod_of(owner, "weird!", name="pod-a")
    cluster = FakeCluster(update(targets=TARGETS[:1]), owner, one, *between)
    done = run(cluster, PUSHED)
    assert done.errors == []
    assert status(cluster)["images"][0]["reason"] == "unsupported_image_id"


def test_the_operators_own_writes_cause_none_of_ours():
    cluster = cluster_of("a")
    run(cluster, SAME)
    cluster.writes.clear()

    def rewrite(obj):
        for condition in obj["status"]["conditions"]:
            condition.pop("observedGeneration", None)
        result = {"ok": 5, "changed": 0, "skipped": 0, "failures": 0, "completion": "2026-03-01T10:00:01.5"}
        running_one = {"type": "Running", "status": "True", "reason": "Successful", "message": "Awaiting"}
        obj["status"]["conditions"] = [{**running_one, "ansibleResult": result}, *obj["status"]["conditions"]]
        obj["status"]["lastCheckTime"] = "2026-03-01T10:00:09Z"

    cluster.edit("Update", "update-sample", rewrite)
    run(cluster, SAME, now="2026-04-01T00:00:00Z")
    assert cluster.writes == []
    run(cluster, PUSHED, now="2026-04-02T00:00:00Z")
    told = {x["type"]: x for x in status(cluster)["conditions"]}
    assert told["Running"]["ansibleResult"]["ok"] == 5
    assert told["RegistryReachable"]["lastTransitionTime"] == NOW
    assert told["UpToDate"]["lastTransitionTime"] == "2026-04-02T00:00:00Z"


@pytest.mark.parametrize(
    ("registry", "ends"), [(SAME, True), (PUSHED, False), ({}, False), ({IMAGE: {**SAME[IMAGE], "digest": I1}}, True)]
)
def test_an_update_for_once_ends_when_everything_is_current(registry, ends):
    cluster = cluster_of("a", delete_flag=True)
    assert run(cluster, registry).deleted is ends
    assert (("Update", NAMESPACE, "update-sample") not in cluster.objects) is ends


def test_an_update_does_not_end_while_a_target_is_missing():
    cluster = cluster_of("a", delete_flag=True)
    cluster.edit("Update", "update-sample", lambda x: x["spec"].update(targets=TARGETS[:2]))
    assert run(cluster, SAME).deleted is False
    told = {x["type"]: x for x in status(cluster)["conditions"]}
    assert (told["UpToDate"]["status"], told["UpToDate"]["reason"]) == ("Unknown", "TargetNotFound")
    assert "Deployment/b" in told["UpToDate"]["message"]
    cluster.writes.clear()
    run(cluster, SAME)
    assert cluster.writes == []
    cluster.put(workload(name="b", replicas=0))
    run(cluster, SAME)
    told = {x["type"]: (x["status"], x["reason"]) for x in status(cluster)["conditions"]}
    assert told["UpToDate"] == ("Unknown", "Unknown")


def conditions(cluster):
    return {x["type"]: x["status"] for x in status(cluster)["conditions"]}


@pytest.mark.parametrize("left", [{"updatedReplicas": 1, "replicas": 2}, {"availableReplicas": 0}])
def test_an_update_does_not_end_in_the_middle_of_its_rollout(left):
    cluster = cluster_of("a", delete_flag=True)
    run(cluster, PUSHED)
    settle(cluster, "a")
    cluster.edit("Deployment", "a", lambda x: x["status"].update(left))
    assert run(cluster, PUSHED).deleted is False
    assert conditions(cluster)["Rolling"] == "True"
    failing = {"waiting": {"reason": "CrashLoopBackOff"}}
    cluster.edit("Pod", "pod-a", lambda x: x["status"]["containerStatuses"][0].update(state=failing))
    assert run(cluster, PUSHED).deleted is False
    done = {"updatedReplicas": 1, "replicas": 1, "availableReplicas": 1}
    cluster.edit("Deployment", "a", lambda x: x["status"].update(done))
    steady = {"running": {"startedAt": NOW}}
    cluster.edit("Pod", "pod-a", lambda x: x["status"]["containerStatuses"][0].update(state=steady))
    assert run(cluster, PUSHED, now="2026-03-01T10:00:05Z").deleted is True


def test_an_update_ends_beside_a_workload_that_others_broke():
    cluster = cluster_of("a", delete_flag=True)
    cluster.edit("Deployment", "a", lambda x: x["status"].update(availableReplicas=0))
    failing = {"waiting": {"reason": "CrashLoopBackOff"}}
    cluster.edit("Pod", "pod-a", lambda x: x["status"]["containerStatuses"][0].update(state=failing))
    assert run(cluster, SAME).deleted is True


def test_the_option_delete_flag_outranks_the_update():
    cluster = cluster_of("a", delete_flag=True)
    assert run(cluster, SAME, delete_flag=False).deleted is False
    assert run(cluster, SAME, delete_flag=True).deleted is True


def test_a_new_update_of_the_same_name_is_not_deleted():
    cluster = cluster_of("a", delete_flag=True)

    def replace(verb, target):
        if verb == "delete":
            cluster.edit("Update", "update-sample", lambda x: x["metadata"].update(uid="another"))

    cluster.before_write = replace
    run(cluster, SAME)
    assert ("Update", NAMESPACE, "update-sample") in cluster.objects


def test_a_refused_deletion_is_an_error():
    cluster = cluster_of("a", delete_flag=True)

    def refuse(verb, target):
        if verb == "delete":
            raise ApiError("may not delete", 403)

    cluster.before_write = refuse
    assert run(cluster, SAME).errors == ["may not delete"]


@pytest.mark.parametrize(("seconds", "settled"), [(5, ["app"]), (30, ["app"]), (31, []), (60, [])])
def test_a_roll_is_settled_once_it_ran_well_for_as_long_as_the_administrator_says(seconds, settled):
    cluster = cluster_of("a")
    run(cluster, PUSHED, now="2026-03-01T10:00:00Z")
    settle(cluster, "a")
    runs = {"state": {"running": {"startedAt": "2026-03-01T10:00:10Z"}}, "ready": True}
    cluster.edit("Pod", "pod-a", lambda x: x["status"]["containerStatuses"][0].update(runs))
    done = run(cluster, PUSHED, now="2026-03-01T10:00:40Z", verification_seconds=seconds)
    assert [entry["container"] for entry in done.settled] == settled

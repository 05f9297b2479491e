# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the new Pods of a roll tell, and what follows from it."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import trial
from ansible_collections.kubesteward.core.plugins.module_utils.images.edits import Edits
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    pod_of,
    start,
    state,
    workload,
)

ROLLED = "2026-03-01T10:00:00Z"
EARLY, LATE = "2026-03-01T10:00:50Z", "2026-03-01T10:10:00Z"
READY = {"state": {"running": {"startedAt": ROLLED}}, "ready": True}
RUNS = {"state": {"running": {"startedAt": ROLLED}}, "ready": False}
YOUNG = {"state": {"running": {"startedAt": "2026-03-01T10:09:30Z"}}, "ready": True, "restartCount": 5}
ENDED = {"state": {"terminated": {"exitCode": 1, "finishedAt": ROLLED}}, "ready": False}
ENDED_WELL = {"state": {"terminated": {"exitCode": 0, "finishedAt": ROLLED}}, "ready": False}


def waits(reason):
    return {"state": {"waiting": {"reason": reason}}, "ready": False}


def on_trial(status, kind="Deployment", spec=None, told=None, pod=None, sort="container", digest=I2, **roll):
    """The container of a workload that was rolled to `digest`; `status` is what its one new Pod says of it."""
    image = container(image=f"{REPOSITORY}@{digest}")
    init = [image] if sort == "init" else []
    owner = workload(kind, containers=[container("main")] if init else [image], init=init)
    memory = {"trial": True, "back": f"{REPOSITORY}@{I1}", "left": [I1], "at": ROLLED, **roll}
    owner["metadata"]["annotations"] = annotation(app=followed(digest, **memory))
    owner["spec"].update(spec or {})
    owner["status"].update(told or {})
    objects = [owner]
    if status is not None:
        entry = {**state(f"{REPOSITORY}@{digest}"), **status}
        one, between = pod_of(owner, [] if init else [entry], init=[entry] if init else ())
        one["metadata"]["creationTimestamp"] = ROLLED
        one["status"].update(pod or {})
        objects += [one, *between]
    return next(item for item in inspect(*objects) if item["container"] == "app")


def after(seconds):
    return f"2026-03-01T10:{seconds // 60:02}:{seconds % 60:02}Z"


LEFT = {"updatedReplicas": 0, "availableReplicas": 1}


@pytest.mark.parametrize(
    ("status", "sort", "at", "expected"),
    [
        (READY, "container", EARLY, "under_way"),
        (READY, "container", LATE, "steady"),
        # briefly available between two restarts: neither steady nor failed, the next pass sees more
        (YOUNG, "container", LATE, "under_way"),
        (RUNS, "container", EARLY, "under_way"),
        (RUNS, "container", LATE, "failed"),
        (ENDED, "container", EARLY, "under_way"),
        (ENDED, "container", LATE, "failed"),
        (ENDED_WELL, "container", LATE, "failed"),
        (ENDED_WELL, "init", LATE, "steady"),
        (ENDED, "init", LATE, "failed"),
        (RUNS, "init", LATE, "failed"),
        (waits("CrashLoopBackOff"), "container", EARLY, "under_way"),
        (waits("ImagePullBackOff"), "container", "2026-03-01T10:00:44Z", "under_way"),
        (waits("ImagePullBackOff"), "container", EARLY, "failed"),
        *(
            (waits(reason), "container", LATE, "failed")
            for reason in (
                "ErrImagePull",
                "ImagePullBackOff",
                "InvalidImageName",
                "CrashLoopBackOff",
                "RunContainerError",
                "CreateContainerError",
                "CreateContainerConfigError",
            )
        ),
        (waits("CrashLoopBackOff"), "init", LATE, "failed"),
    ],
)
def test_a_roll_on_trial(status, sort, at, expected):
    assert trial.assess(on_trial(status, sort=sort), at, 600).state == expected


@pytest.mark.parametrize(
    ("seconds", "restarts", "at", "expected"),
    [
        (5, 0, "2026-03-01T10:00:05Z", "under_way"),
        (5, 1, "2026-03-01T10:01:00Z", "steady"),
        (300, 0, "2026-03-01T10:04:59Z", "under_way"),
        (0, 0, "2026-03-01T10:00:59Z", "under_way"),
        (None, 0, "2026-03-01T10:01:00Z", "steady"),
    ],
)
def test_a_workload_may_ask_for_more_time(seconds, restarts, at, expected):
    found = trial.assess(on_trial({**READY, "restartCount": restarts}, spec={"minReadySeconds": seconds}), at, 600)
    assert found.state == expected
    assert found.healthy is (expected == "steady" or not restarts)


@pytest.mark.parametrize(
    ("seconds", "workload_asks", "at", "expected"),
    [
        (5, None, 4, "under_way"),
        (5, None, 5, "steady"),
        (5, 30, 29, "under_way"),
        (5, 30, 30, "steady"),
        (300, None, 299, "under_way"),
        (300, 30, 299, "under_way"),
        (300, 30, 300, "steady"),
    ],
)
def test_an_administrator_says_how_long_an_image_must_run_well_and_a_workload_may_ask_for_more(
    seconds, workload_asks, at, expected
):
    given = on_trial(READY, spec={"minReadySeconds": workload_asks})
    assert trial.assess(given, after(at), 600, verification=seconds).state == expected


@pytest.mark.parametrize(
    ("seconds", "workload_asks", "expected"),
    [(60, None, "under_way"), (120, None, "under_way"), (121, None, "failed"), (60, 121, "failed")],
)
def test_a_run_that_was_too_short_to_count_is_no_time_in_which_the_image_ran_well(seconds, workload_asks, expected):
    status = died("2026-03-01T10:07:50Z", "2026-03-01T10:09:50Z")
    told = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T10:09:50Z"}
    given = on_trial(status, spec={"minReadySeconds": workload_asks}, pod={"conditions": [told]})
    assert trial.assess(given, LATE, 600, verification=seconds).state == expected


@pytest.mark.parametrize(("seconds", "expected"), [(5, "steady"), (60, "blocked")])
def test_another_container_that_was_restarted_stands_in_the_way_for_as_long(seconds, expected):
    image = container(image=f"{REPOSITORY}@{I2}")
    owner = workload(containers=[image, container("proxy")])
    owner["metadata"]["annotations"] = annotation(app=followed(I2, trial=True, at=ROLLED))
    one, between = pod_of(owner, [{**state(f"{REPOSITORY}@{I2}"), **READY}, {**state("x", "proxy"), **YOUNG}])
    assert trial.assess(inspect(owner, one, *between)[0], LATE, 600, verification=seconds).state == expected


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {
                "told": {
                    "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: q"}],
                    **LEFT,
                }
            },
            "QuotaExceeded",
        ),
        (
            {
                "told": {
                    "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "denied by a webhook"}],
                    **LEFT,
                }
            },
            "ReplicaFailure",
        ),
        ({"spec": {"paused": True}, "told": LEFT}, "Paused"),
        ({"kind": "DaemonSet", "spec": {"updateStrategy": {"type": "OnDelete"}}}, "OnDelete"),
        ({"kind": "StatefulSet", "spec": {"updateStrategy": {"type": "OnDelete"}}, "told": LEFT}, "OnDelete"),
        (
            {"kind": "StatefulSet", "spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}, "told": LEFT},
            "Partition",
        ),
        ({"told": LEFT}, "NoProgress"),
    ],
)
def test_what_is_not_the_images_fault_blocks(given, reason):
    found = trial.assess(on_trial(None, **given), LATE, 600)
    assert (found.state, found.reason) == ("blocked", reason)


def test_a_pod_that_a_scale_up_left_without_a_node_blocks_too():
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    told = {"conditions": [{"type": "Progressing", "reason": "NewReplicaSetAvailable"}], "availableReplicas": 0}
    given = on_trial(waits(""), told=told, pod={"conditions": [scheduled], "containerStatuses": []})
    assert given["rollout"]["complete"]
    assert trial.assess(given, EARLY, 600).state == "under_way"
    found = trial.assess(given, LATE, 600)
    assert (found.state, found.reason) == ("blocked", "Unschedulable")


def wrote(manager, time, template=True, image=False):
    """An entry of managedFields."""
    pod = {"f:containers": {'k:{"name":"app"}': {"f:image": {}} if image else {"f:env": {}}}}
    annotations = {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}
    fields = {"f:spec": {"f:template": {"f:spec": pod} if template else annotations}}
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields}


@pytest.mark.parametrize(
    ("reason", "fields", "expected"),
    [
        ("CrashLoopBackOff", [wrote("kubectl-edit", "2026-03-01T10:01:00Z")], ("blocked", "TemplateEdited")),
        ("CreateContainerConfigError", [wrote("argo", "2026-03-01T10:01:00Z")], ("blocked", "TemplateEdited")),
        # no edit mends an image that cannot be pulled
        ("ImagePullBackOff", [wrote("kubectl-edit", "2026-03-01T10:01:00Z")], ("failed", "RolloutFailed")),
        ("CrashLoopBackOff", [wrote("kubectl-edit", "2026-03-01T09:00:00Z")], ("failed", "RolloutFailed")),
        ("CrashLoopBackOff", [wrote("kubectl-rollout", LATE, template=False)], ("failed", "RolloutFailed")),
        ("CrashLoopBackOff", [], ("failed", "RolloutFailed")),
    ],
)
def test_what_somebody_else_edited_after_the_roll_may_be_to_blame(reason, fields, expected):
    image = container(image=f"{REPOSITORY}@{I2}")
    managed = [*fields, wrote("kubesteward", ROLLED, image=True)]
    owner = workload(containers=[image], managedFields=managed)
    owner["metadata"]["annotations"] = annotation(app=followed(I2, trial=True, at=ROLLED))
    one, between = pod_of(owner, [{**state(f"{REPOSITORY}@{I2}"), **waits(reason)}])
    (found,) = inspect(owner, one, *between)
    progress = trial.assess(found, LATE, 600)
    assert (progress.state, progress.reason) == expected
    assert expected[0] == "failed" or fields[0]["manager"] in progress.message


@pytest.mark.parametrize(
    ("key", "time", "expected"),
    [
        ("f:resources", LATE, "kubectl-edit"),
        ("f:resources", EARLY, ""),
        ("f:replicas", LATE, ""),
        ("f:image", LATE, ""),
    ],
)
def test_who_edited_a_start_after_its_roll(key, time, expected):
    rolled = {"manager": "kubesteward", "time": EARLY, "fieldsV1": {"f:spec": {"f:image": {}}}}
    edit = {"manager": "kubectl-edit", "time": time, "fieldsV1": {"f:spec": {key: {}}}}
    assert Edits.of(start(managedFields=[edit, rolled])).since("app") == expected
    assert Edits.of(start(managedFields=[edit])).since("app") == ""


@pytest.mark.parametrize(("at", "expected"), [(EARLY, "under_way"), (LATE, "blocked")])
def test_a_pod_without_a_node_blocks_after_a_moment(at, expected):
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    given = on_trial(None, told=LEFT)
    placed = on_trial(waits("ContainerCreating"), told=LEFT, pod={"conditions": [scheduled], "containerStatuses": []})
    assert trial.assess(given, EARLY, 600).state == "under_way"
    found = trial.assess(placed, at, 600)
    assert found.state == expected
    assert expected != "blocked" or (found.reason, "0/3 nodes" in found.message) == ("Unschedulable", True)


@pytest.mark.parametrize("left", [LEFT, {}])
@pytest.mark.parametrize("other", [waits("CrashLoopBackOff"), ENDED, YOUNG])
def test_another_container_that_fails_blocks(left, other):
    image = container(image=f"{REPOSITORY}@{I2}")
    owner = workload(containers=[image, container("proxy")])
    owner["metadata"]["annotations"] = annotation(app=followed(I2, trial=True, at=ROLLED))
    owner["status"].update(left)
    entries = [{**state(f"{REPOSITORY}@{I2}"), **READY}, {**state("x", "proxy"), **other}]
    one, between = pod_of(owner, entries)
    found = trial.assess(inspect(owner, one, *between)[0], LATE, 600)
    assert (found.state, found.reason) == ("blocked", "OtherContainer")
    assert "proxy" in found.message


@pytest.mark.parametrize(
    ("reason", "answers", "expected"),
    [
        ("ImagePullBackOff", True, "failed"),
        ("ImagePullBackOff", False, "blocked"),
        ("CrashLoopBackOff", False, "failed"),
    ],
)
def test_a_pod_that_cannot_pull_proves_nothing_while_the_registry_is_away(reason, answers, expected):
    assert trial.assess(on_trial(waits(reason)), LATE, 600, answers).state == expected


def test_nothing_is_known_of_a_rollout_that_was_not_seen_or_has_no_pods():
    unseen = on_trial(READY, told={"observedGeneration": 0})
    assert trial.assess(unseen, LATE, 600).state == "under_way"
    none = on_trial(None, spec={"replicas": 0}, told=dict.fromkeys(("replicas", "updatedReplicas"), 0))
    assert trial.assess(none, LATE, 600) == trial.Progress("under_way", healthy=True)


def test_the_deadline_counts_from_the_roll_where_a_pod_is_older():
    late = "2026-03-01T10:05:00Z"
    assert trial.assess(on_trial(ENDED, at=late), LATE, 600).state == "under_way"


def test_a_roll_dated_in_the_future_is_no_reason_to_wait_for_it():
    assert trial.assess(on_trial(ENDED, at="2027-01-01T00:00:00Z"), EARLY, 600).state == "under_way"
    assert trial.assess(on_trial(ENDED, at="2027-01-01T00:00:00Z"), LATE, 600).state == "failed"


def ordered(digest, waiting, left=(I2,), failed=I2, policy="OrderedReady", strategy=None, name="", ordinals=None):
    owner = workload("StatefulSet", containers=[container(image=f"{REPOSITORY}@{I1}")])
    quarantine = {"digest": failed, "reason": "x", "at": ROLLED} if failed else None
    owner["metadata"]["annotations"] = annotation(app=followed(I1, left=list(left), quarantine=quarantine))
    owner["spec"].update(
        podManagementPolicy=policy, updateStrategy=strategy or {"type": "RollingUpdate"}, ordinals=ordinals
    )
    one, _none = pod_of(owner, [{**state(f"{REPOSITORY}@{digest}"), **waiting}], name=name)
    one["metadata"]["labels"]["controller-revision-hash"] = "web-before"
    one["spec"]["containers"][0]["image"] = f"{REPOSITORY}@{digest}"
    at_once = [pod["name"] for pod in inspect(owner, one)[0]["stuck"] if "since" not in pod]
    return at_once == [one["metadata"]["name"]]


def test_a_broken_pod_of_a_failed_digest_is_in_the_way_of_an_ordered_statefulset():
    assert ordered(I2, waits("CrashLoopBackOff"))
    assert ordered(I2, RUNS)
    assert not ordered(I2, READY)
    assert not ordered(I2, waits("CrashLoopBackOff"), policy="Parallel")
    # of a digest that never failed only one that cannot start: one that merely starts is let
    assert ordered(I2, waits("ImagePullBackOff"), failed=None)
    assert not ordered(I2, RUNS, failed=None)
    assert not ordered(I2, waits("ImagePullBackOff"), left=(), failed=None)


@pytest.mark.parametrize(
    ("strategy", "name", "expected"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, "web-1", False),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, "web-2", True),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}, "web-0", True),
        ({"type": "OnDelete"}, "web-2", False),
    ],
)
def test_no_pod_is_deleted_that_would_come_back_the_same_or_that_nobody_waits_for(strategy, name, expected):
    assert ordered(I2, waits("CrashLoopBackOff"), strategy=strategy, name=name) is expected


def test_the_partition_counts_from_the_first_ordinal():
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    assert not ordered(I2, waits("CrashLoopBackOff"), strategy=strategy, name="web-4", ordinals={"start": 3})
    assert ordered(I2, waits("CrashLoopBackOff"), strategy=strategy, name="web-5", ordinals={"start": 3})


def test_a_rollback_deletes_no_pod_where_people_do():
    spec = {"updateStrategy": {"type": "OnDelete"}}
    assert on_trial(waits("CrashLoopBackOff"), "StatefulSet")["trial"]["ordered"]
    assert not on_trial(waits("CrashLoopBackOff"), "StatefulSet", spec=spec)["trial"]["ordered"]


@pytest.mark.parametrize(
    ("status", "at", "expected"),
    [
        (READY, EARLY, ("under_way", "")),
        ({**READY, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}, EARLY, ("under_way", "")),
        (waits("CrashLoopBackOff"), LATE, ("blocked", "NoProgress")),
    ],
)
def test_pods_of_a_deployment_that_does_not_have_its_starts_image_yet_prove_nothing(status, at, expected):
    found = trial.assess({**on_trial(status), "image": f"{REPOSITORY}@{I1}"}, at, 600)
    assert (found.state, found.reason, found.healthy) == (*expected, False)


def died(started, ended, **more):
    """Waiting for the next start after a run."""
    last = {"terminated": {"exitCode": 1, "startedAt": started, "finishedAt": ended}}
    return {**waits("CrashLoopBackOff"), "lastState": last, "restartCount": 1, **more}


@pytest.mark.parametrize("condition", ["ContainersReady", "Ready"])
@pytest.mark.parametrize(
    ("status", "unready_since", "expected"),
    [
        # never ready: since the Pod was made, with or without a liveness probe that starts it again
        (RUNS, ROLLED, "failed"),
        (died(ROLLED, "2026-03-01T10:09:00Z"), ROLLED, "failed"),
        # a moment ago it was ready still
        (RUNS, "2026-03-01T10:09:50Z", "under_way"),
        (died(ROLLED, "2026-03-01T10:09:50Z"), "2026-03-01T10:09:50Z", "under_way"),
        (died(None, None), "2026-03-01T10:09:50Z", "under_way"),
        # ready for some seconds of each run
        (died("2026-03-01T10:09:45Z", "2026-03-01T10:09:50Z"), "2026-03-01T10:09:50Z", "failed"),
        ({**RUNS, "lastState": died("2026-03-01T10:09:45Z", "2026-03-01T10:09:50Z")["lastState"]}, LATE, "failed"),
    ],
)
def test_what_ran_well_before_has_its_time_from_when_it_became_unready(status, unready_since, expected, condition):
    told = {"type": condition, "status": "False", "lastTransitionTime": unready_since}
    assert trial.assess(on_trial(status, pod={"conditions": [told]}), LATE, 600).state == expected

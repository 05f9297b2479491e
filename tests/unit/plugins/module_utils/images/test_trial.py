# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the new Pods of a roll tell, and what follows from it."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import trial
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    pod_of,
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
        *((waits(reason), "container", EARLY, "under_way") for reason in ("ImagePullBackOff", "CrashLoopBackOff")),
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
    assert trial.assess(none, LATE, 600).state == "under_way"


def test_the_deadline_counts_from_the_roll_where_a_pod_is_older():
    late = "2026-03-01T10:05:00Z"
    assert trial.assess(on_trial(ENDED, at=late), LATE, 600).state == "under_way"


def ordered(digest, waiting, left=(I2,), failed=I2, policy="OrderedReady"):
    owner = workload("StatefulSet", containers=[container(image=f"{REPOSITORY}@{I1}")])
    quarantine = {"digest": failed, "reason": "x", "at": ROLLED} if failed else None
    owner["metadata"]["annotations"] = annotation(app=followed(I1, left=list(left), quarantine=quarantine))
    owner["spec"]["podManagementPolicy"] = policy
    one, _none = pod_of(owner, [{**state(f"{REPOSITORY}@{digest}"), **waiting}])
    one["metadata"]["labels"]["controller-revision-hash"] = "web-before"
    one["spec"]["containers"][0]["image"] = f"{REPOSITORY}@{digest}"
    return [pod["name"] for pod in inspect(owner, one)[0]["stuck"]] == [one["metadata"]["name"]]


def test_a_broken_pod_of_a_failed_digest_is_in_the_way_of_an_ordered_statefulset():
    assert ordered(I2, waits("CrashLoopBackOff"))
    assert ordered(I2, RUNS)
    assert not ordered(I2, READY)
    assert not ordered(I2, waits("CrashLoopBackOff"), policy="Parallel")
    # of a digest that never failed only one that cannot start: one that merely starts is let
    assert ordered(I2, waits("ImagePullBackOff"), failed=None)
    assert not ordered(I2, RUNS, failed=None)
    assert not ordered(I2, waits("ImagePullBackOff"), left=(), failed=None)

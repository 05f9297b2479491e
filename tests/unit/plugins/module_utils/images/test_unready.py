# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that are not available: no rollout is under way for that, and a digest that would mend them is taken."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import verdict
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    annotation,
    container,
    followed,
    inspect,
    judged,
    pod_of,
    published,
    sha,
    state,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    one_pass,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import PUSHED, at

I0 = sha("index 0")
UNREADY = {"availableReplicas": 0, "numberAvailable": 0}


def unready(kind, spec=None, count=1, told=None, more=()):
    """A workload whose Pods, all of the current revision, run the first digest and are not ready."""
    owner = workload(kind, replicas=count)
    owner["spec"].update(spec or {})
    owner["status"].update({key: value for key, value in UNREADY.items() if key in owner["status"]} | (told or {}))
    pods = [pod_of(owner, [state(at(I1), ready=False)], name=f"web-{number}") for number in range(count)]
    return inspect(owner, *(pod for pod, _between in pods), *pods[0][1], *more)[0]


def updating(kind):
    return {"updateStrategy": {"type": kind}}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("StatefulSet", updating("RollingUpdate")),
        ("StatefulSet", updating("OnDelete")),
        ("StatefulSet", {"podManagementPolicy": "Parallel"}),
        ("DaemonSet", updating("RollingUpdate")),
        ("DaemonSet", updating("OnDelete")),
        ("Deployment", {}),
        ("Deployment", {"strategy": {"type": "Recreate"}}),
    ],
)
def test_pods_that_run_and_are_not_ready_take_a_digest_that_would_mend_them(kind, spec):
    assert judged(unready(kind, spec), published(I2, children=())) == ("stale", "digest_differs")


def test_a_rollout_that_is_seen_by_nobody_yet_is_waited_for():
    found = unready("StatefulSet", told={"observedGeneration": 0})
    assert judged(found, published(I2, children=())) == ("stale", "rollout_in_progress")


def test_a_paused_deployment_is_left_to_who_paused_it_ready_or_not():
    assert judged(unready("Deployment", {"paused": True}), published(I2, children=())) == ("stale", "suspended")


def test_a_rollout_in_progress_says_how_many_pods_are_available():
    found = unready("Deployment", told={"replicas": 2, "updatedReplicas": 1})
    held = verdict.decide(found, published(I2, children=()))
    assert held.reason == "rollout_in_progress"
    assert "1 of 1 Pods are updated, 0 of 1 available" in held.message


def test_a_deployment_past_its_own_deadline_takes_it_too():
    conditions = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
    found = unready("Deployment", told={"replicas": 2, "updatedReplicas": 1, "conditions": conditions})
    assert judged(found, published(I2, children=())) == ("stale", "digest_differs")


def test_pods_below_the_partition_are_no_rollout():
    owner = workload("StatefulSet", replicas=3)
    owner["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    owner["status"].update(updatedReplicas=1, availableReplicas=2)
    pods = [pod_of(owner, [state(at(I1), ready=False)], name="web-2")[0]]
    for number in range(2):
        old, _none = pod_of(owner, [state(at(I0))], name=f"web-{number}")
        old["metadata"]["labels"]["controller-revision-hash"] = "before"
        pods.append(old)
    assert judged(inspect(owner, *pods)[0], published(I2, children=())) == ("stale", "digest_differs")
    # one that the controller is to replace yet
    owner["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = 1
    assert judged(inspect(owner, *pods)[0], published(I2, children=())) == ("stale", "rollout_in_progress")


def daemon_set(dead, old=0):
    """Ten nodes: on one, which is dead, the Pod is of an old revision, and so are `old` others."""
    owner = workload("DaemonSet", replicas=10)
    owner["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}
    owner["status"].update(updatedNumberScheduled=10 - bool(dead) - old, numberAvailable=9)
    objects = [owner]
    for number in range(10):
        pod, between = pod_of(owner, at(I1), name=f"web-{number}", node=f"node-{number}")
        if number < old + bool(dead):
            pod["metadata"]["labels"]["controller-revision-hash"] = "web-0"
        if number == 0 and dead:
            pod["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
            if dead == "terminating":
                pod["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:00Z"
        objects += [pod, *(between if number == 9 else [])]
    return inspect(*objects)[0]


@pytest.mark.parametrize("dead", ["lost", "terminating"])
def test_one_dead_node_of_ten_holds_up_nothing(dead):
    assert judged(daemon_set(dead), published(I2, children=())) == ("stale", "digest_differs")
    assert judged(daemon_set(dead, old=2), published(I2, children=())) == ("stale", "rollout_in_progress")


def test_a_dead_node_whose_pod_was_updated_before_holds_up_nothing_either():
    found = daemon_set("")
    assert not found["rollout"]["complete"]
    assert judged(found, published(I2, children=())) == ("stale", "digest_differs")


def ordered(since="2026-02-01T00:00:00Z", new=None, failing=""):
    """A StatefulSet that was rolled to a digest which may mend its Pods: they run, and never became ready."""
    owner = workload("StatefulSet", containers=[container(image=at(I2))], replicas=2)
    memory = followed(I2, trial=True, back=at(I1), left=[I1], at="2026-03-01T10:00:00Z")
    owner["metadata"]["annotations"] = annotation(app=memory)
    owner["status"].update(updatedReplicas=1 if new else 0, availableReplicas=0)
    objects = [owner]
    for number in range(2):
        pod, _none = pod_of(owner, [state(at(I1), waiting=failing, ready=False)], name=f"web-{number}")
        pod["metadata"]["labels"]["controller-revision-hash"] = "before"
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False", "lastTransitionTime": since}]
        objects.append(pod)
    if new:
        objects[-1] = pod_of(owner, [new], name="web-1")[0]
    return FakeCluster(update(targets=[{"kind": "StatefulSet", "name": "web"}]), *objects)


def freed(cluster, now="2026-03-01T10:02:00Z"):
    return [item["pod"] for item in one_pass(cluster, PUSHED, "update-sample", now=now).freed]


def test_an_ordered_statefulset_waits_for_no_pod_that_was_not_ready_for_long():
    # its controller replaces none that is not ready, so that the mending image would never come
    assert freed(ordered()) == ["web-1"]
    # the next one once the new Pod is well
    assert freed(ordered(new=state(at(I2)))) == ["web-0"]


def test_a_pod_that_may_become_ready_is_left_alone():
    assert freed(ordered(since="2026-03-01T09:59:00Z")) == []
    assert freed(ordered(), now="2026-03-01T10:00:30Z") == []
    # where the new image is no better, nothing more goes
    assert freed(ordered(new=state(at(I2), ready=False))) == []


def test_pods_from_before_the_first_roll_that_crash_are_in_the_way_at_once():
    # the spec of such a Pod has the tag: what it ran is known by its image ID
    assert sorted(freed(ordered(failing="CrashLoopBackOff"), "2026-03-01T10:00:10Z")) == ["web-0", "web-1"]


def test_the_digest_that_mends_is_rolled_by_a_pass():
    owner = workload("StatefulSet")
    owner["status"]["availableReplicas"] = 0
    pod, _none = pod_of(owner, [state(at(I1), ready=False)], name="web-0")
    cluster = FakeCluster(update(targets=[{"kind": "StatefulSet", "name": "web"}]), owner, pod)
    done = one_pass(cluster, {IMAGE: published(I2, children=())}, "update-sample")
    assert [roll["to"] for roll in done.rolled] == [at(I2)]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long after a roll: good images stay where they are, nobody waits without need, and nothing is told twice."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NAMESPACE,
    pod_of,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    TARGETS,
    at,
    cluster_of,
    flags,
    image,
    run,
    settle,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.test_execution_rollback import (
    MUCH_LATER,
    OVERDUE,
    ROLLED,
    condition,
    crash,
    failed,
    outcomes,
    reasons,
    recover,
)


def test_a_good_image_that_nobody_looked_at_for_a_day_is_not_taken_back_for_a_moment_of_unreadiness():
    cluster = cluster_of("a")
    run(cluster, PUSHED, now=ROLLED)
    recover(cluster, "a", since=ROLLED)
    unready = {"type": "ContainersReady", "status": "False", "lastTransitionTime": "2026-03-02T09:59:55Z"}

    def blink(pod):
        pod["metadata"]["creationTimestamp"] = ROLLED
        pod["status"]["conditions"] = [unready]
        pod["status"]["containerStatuses"][0]["ready"] = False

    cluster.edit("Pod", "pod-a", blink)
    assert run(cluster, PUSHED, now="2026-03-02T10:00:00Z").rolled_back == []
    assert len(run(cluster, PUSHED, now="2026-03-02T10:09:55Z").rolled_back) == 1


def test_a_roll_of_what_was_scaled_to_nothing_keeps_no_other_from_rolling():
    cluster = cluster_of("a", "b", maxConcurrent=1)
    assert reasons(run(cluster, PUSHED, now=ROLLED)) == ["digest_differs", "rollout_in_progress"]

    def scale(deployment):
        deployment["spec"]["replicas"] = 0
        deployment["status"]["observedGeneration"] = 3
        deployment["status"].update(dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 0))

    assert run(cluster, PUSHED, now=MUCH_LATER).rolled == []
    cluster.edit("Deployment", "a", scale)
    del cluster.objects[("Pod", NAMESPACE, "pod-a")]
    done = run(cluster, PUSHED, now=MUCH_LATER)
    assert (reasons(done), done.settled) == (["digest_equal", "digest_differs"], [])
    settle(cluster, "b")
    recover(cluster, "b", since=ROLLED)
    run(cluster, PUSHED, now=MUCH_LATER)
    assert condition(cluster, "Rolling")[0] == "False"


def test_what_fails_again_and_again_and_stays_is_told_once():
    cluster = failed("a", rollback={"enabled": False})
    for minute in (10, 12, 14):
        run(cluster, PUSHED, now=f"2026-03-01T10:{minute}:00Z")
        recover(cluster, "a", since=f"2026-03-01T10:{minute}:30Z")
        run(cluster, PUSHED, now=f"2026-03-01T10:{minute}:40Z")
        crash(cluster, "a")
    assert outcomes(cluster) == ["rolled", "failed"]
    assert [event["reason"] for event in cluster.events].count("RolloutFailed") == 1


def test_a_pod_that_is_missing_from_others_rollouts_for_ever_keeps_no_other_from_rolling():
    cluster = cluster_of("a", maxConcurrent=1)
    owner = workload("DaemonSet", "agent", replicas=3)
    owner["status"]["numberAvailable"] = 2
    one, between = pod_of(owner, at(I1), name="pod-agent")
    for item in (owner, one, *between):
        cluster.put(item)
    agent = {"kind": "DaemonSet", "name": "agent"}
    cluster.edit("Update", "update-sample", lambda x: x["spec"].update(targets=[*TARGETS[:1], agent]))
    assert reasons(run(cluster, PUSHED, now=ROLLED)) == ["digest_differs", "rollout_in_progress"]

    # while Pods are replaced it is a rollout like any other
    other = cluster_of("a", maxConcurrent=1)
    owner["status"]["updatedNumberScheduled"] = 1
    for item in (owner, one, *between):
        other.put(item)
    other.edit("Update", "update-sample", lambda x: x["spec"].update(targets=[*TARGETS[:1], agent]))
    assert reasons(run(other, PUSHED, now=ROLLED)) == ["rollout_in_progress", "rollout_in_progress"]


@pytest.mark.parametrize(
    "act", [lambda cluster: recover(cluster, "a", since=ROLLED), lambda cluster: crash(cluster, "a")]
)
def test_where_nobody_can_tell_what_other_updates_have_only_the_status_is_written(act):
    cluster = cluster_of("a")
    find, refused = cluster.find, ApiError("may not list Updates", 403)

    def refuse(api_version, kind, *more, **options):
        if kind == "Update":
            raise refused
        return find(api_version, kind, *more, **options)

    cluster.find = refuse
    done = run(cluster, PUSHED, now=ROLLED)
    assert (done.errors, done.rolled, image(cluster, "a")) == ([str(refused)], [], IMAGE)
    assert (flags(cluster), condition(cluster, "UpToDate")) == ((True, False), ("False", "Stale"))
    cluster.find = find
    assert len(run(cluster, PUSHED, now=ROLLED).rolled) == 1
    act(cluster)
    cluster.find = refuse
    done = run(cluster, PUSHED, now=OVERDUE)
    assert (done.rolled_back, done.settled, image(cluster, "a")) == ([], [], at(I2))
    assert outcomes(cluster) == ["rolled"]

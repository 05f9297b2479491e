# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads that have no Pod to look at, and carry a digest of ours that the next one would run."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NOW,
    P1,
    P2,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    judged,
    pod_of,
    published,
    running,
    sha,
    start,
    start_deployment,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import at, run

KINDS = ("CronJob", "Deployment", "StatefulSet", "DaemonSet")
OURS = annotation(app=followed(I1))
FIRST = at(I1)
#: what is published now is a single image
PUSHED, SAME = published(I2, children=()), published(I1, children=())


def idle(kind="Deployment", image=FIRST, annotations=OURS):
    """A workload without a Pod: scaled to zero, on no node, or with no Job that is left."""
    return workload(kind, containers=[container(image=image)], replicas=0, annotations=annotations)


def blocked(**annotations):
    """A Deployment whose last roll a quota keeps from its first Pod, while the Pods from before run."""
    found = workload(containers=[container(image=at(I1))], annotations=annotations or OURS)
    found["status"].update(updatedReplicas=0, observedGeneration=1)
    found["status"]["conditions"] = [
        {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: pods"},
        {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
    ]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_next_pod_would_run_is_compared_where_none_runs(kind):
    (found,) = inspect(idle(kind))
    assert judged(found, PUSHED) == ("stale", "digest_differs")
    assert judged(found, SAME) == ("current", "digest_equal")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("more", "reason"), [({"ratelimit_remaining": 2}, "rate_limited"), ({}, "waiting")])
def test_what_was_not_read_is_not_rolled_where_nothing_runs(kind, more, reason):
    (found,) = inspect(idle(kind))
    assert judged(found, published(I2, children=None, unread=True, **more)) == ("unknown", reason)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_rolled_once_and_current_from_then_on(kind):
    made = idle(kind)
    cluster = FakeCluster(made, update(targets=[{"kind": kind, "name": "web"}]))
    done = run(cluster, {IMAGE: PUSHED})
    assert [(roll["from"], roll["to"]) for roll in done.rolled] == [(at(I1), at(I2))]

    def seen(obj):
        if kind != "CronJob":
            obj["status"]["observedGeneration"] = obj["metadata"]["generation"]

    cluster.edit(kind, "web", seen)
    (pair,) = run(cluster, {IMAGE: PUSHED}).judged
    assert (pair[1].verdict, pair[1].reason) == ("current", "digest_equal")
    cluster.writes.clear()
    assert run(cluster, {IMAGE: PUSHED}).rolled == []
    assert not [text for text in cluster.writes if kind in text]


def test_a_start_without_replicas_is_rolled():
    made = start(image=at(I1), annotations=annotation(**{"nginx-sample": followed(I1)}))
    made["spec"]["replicas"] = 0
    deployment = start_deployment(made, at(I1))
    deployment["spec"]["replicas"] = 0
    deployment["status"] = {"observedGeneration": 1}
    cluster = FakeCluster(made, deployment, update())
    assert [roll["owner"]["kind"] for roll in run(cluster, {IMAGE: PUSHED}).rolled] == ["Start"]
    assert cluster.read("Start", "start-sample")["spec"]["image"] == at(I2)


def old_pod():
    before = workload()
    one, between = pod_of(before, f"{REPOSITORY}@{sha('before')}")
    newest = {**between[0], "metadata": {**between[0]["metadata"], "name": "web-2", "uid": "uid-2"}}
    newest["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "2"}
    return one, *between, newest


def test_a_roll_that_a_quota_blocks_gives_way_to_the_next_digest():
    (found,) = inspect(blocked(), *old_pod())
    assert found["excluded"] == {"old_revision": 1}
    assert judged(found, PUSHED) == ("stale", "digest_differs")
    unseen = {**found, "rollout": {**found["rollout"], "observed": 0}}
    assert judged(unseen, PUSHED) == ("stale", "rollout_in_progress")
    begun = {**found, "rollout": {**found["rollout"], "updated": 1}}
    assert judged(begun, PUSHED) == ("stale", "rollout_in_progress")


def test_a_stateful_set_whose_pods_wait_for_a_hand_gets_the_next_digest():
    made = workload("StatefulSet", containers=[container(image=at(I1))], annotations=OURS)
    made["spec"]["updateStrategy"] = {"type": "OnDelete"}
    made["status"].update(updatedReplicas=0)
    (found,) = inspect(made)
    assert judged(found, PUSHED) == ("stale", "digest_differs")


@pytest.mark.parametrize(
    ("image", "annotations"),
    [
        (IMAGE, {}),
        (at(I2), OURS),
        (f"{REPOSITORY}:2", OURS),
        (at(I1), {}),
        # what went back has no digest
        (IMAGE, annotation(app=followed(I1, image=IMAGE))),
    ],
)
def test_where_the_spec_does_not_carry_our_digest_nobody_knows(image, annotations):
    (found,) = inspect(idle(image=image, annotations=annotations))
    assert judged(found, PUSHED) == ("unknown", "no_pods")
    assert inventory.lookups([found]) == []


def test_a_registry_that_does_not_answer_is_no_news_of_what_does_not_run():
    (found,) = inspect(idle())
    silent = {"image": IMAGE, "state": "unknown", "reason": "unauthorized", "msg": "asks for credentials"}
    assert judged(found, silent) == ("unknown", "no_pods")
    assert judged(found, None) == ("unknown", "no_pods")


def test_what_holds_a_roll_holds_it_without_pods_too():
    (found,) = inspect(idle())
    assert judged(found, PUSHED, Policy(suspended=True)) == ("stale", "suspended")
    assert judged(found, PUSHED, Policy(dry_run=True)) == ("stale", "dry_run")
    failed = followed(I1, quarantine={"digest": I2, "reason": "x", "at": NOW})
    (found,) = inspect(idle(annotations=annotation(app=failed)))
    assert judged(found, PUSHED) == ("stale", "quarantined")
    paused = idle()
    paused["spec"]["paused"] = True
    assert judged(inspect(paused)[0], PUSHED) == ("stale", "suspended")


def test_another_index_of_the_same_images_is_no_reason_to_roll():
    (found,) = inspect(idle())
    again = published(I2, children=(P1, P2), compared={I1: [P1, P2]})
    assert judged(found, again) == ("current", "index_changed_only")


def test_the_registry_is_asked_for_what_the_next_pod_would_run():
    (lookup,) = inventory.lookups(inspect(idle()))
    assert (lookup["image"], lookup["expect"], lookup["compare"]) == (IMAGE, [I1], [I1])
    # one that runs decides beside one that does not
    (both,) = inventory.lookups([*inspect(idle()), running(at(I2))])
    assert (both["expect"], both["compare"]) == ([], sorted([I1, I2]))

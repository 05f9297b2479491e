# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying Starts against a cluster in memory."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import apply_starts
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    IMAGE,
    NAMESPACE,
    NOW,
    REPOSITORY,
    pod_of,
    start,
    state,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster

SPEC = {"name": "web", "image": IMAGE, "replicas": 1, "resources": None, "image_pull_secrets": ["regcred"]}


def run(cluster, check_mode=False, **params):
    options = {"namespace": NAMESPACE, "spec": None, "starts": None, "must_exist": True, **params}
    return apply_starts.run(cluster, options, check_mode, NOW)


def states(done):
    return [(entry["start"], entry["deployment"], entry["state"]) for entry in done.starts]


def test_every_start_gets_its_deployment_and_a_status_once():
    cluster = FakeCluster(start(), start("second", workload_name="shop"))
    done = run(cluster)
    assert states(done) == [("start-sample", "nginx-sample", "applied"), ("second", "shop-sample", "applied")]
    assert (done.changed, done.errors) == (True, [])
    assert cluster.writes == [
        "apply Deployment/nginx-sample",
        "status Start/start-sample",
        "apply Deployment/shop-sample",
        "status Start/second",
    ]
    cluster.writes.clear()
    again = run(cluster)
    assert states(again) == [("start-sample", "nginx-sample", "unchanged"), ("second", "shop-sample", "unchanged")]
    assert (again.changed, again.diff, cluster.writes) == (False, [], [])


def test_check_mode_writes_nothing_and_predicts_the_run():
    cluster = FakeCluster(start())
    before = copy.deepcopy(cluster.objects)
    predicted = run(cluster, check_mode=True)
    assert (cluster.writes, cluster.objects) == ([], before)
    done = run(cluster)
    assert (predicted.changed, predicted.starts) == (done.changed, done.starts)
    headers = ["Deployment/nginx-sample", "Start/start-sample status"]
    assert [x["after_header"] for x in predicted.diff] == [x["after_header"] for x in done.diff] == headers
    assert done.diff[0]["before"] == ""
    assert IMAGE in done.diff[0]["after"]


def test_a_start_that_is_being_deleted_gets_no_deployment():
    cluster = FakeCluster(start(deletionTimestamp=NOW), start("second", workload_name="shop"))
    assert states(run(cluster)) == [("second", "shop-sample", "applied")]
    assert run(cluster, starts=[{"name": "start-sample", "image": None}]).errors == []
    assert [write for write in cluster.writes if "nginx" in write or "start-sample" in write] == []


def test_named_starts_alone_are_applied():
    cluster = FakeCluster(start(), start("second", workload_name="shop"))
    assert states(run(cluster, starts=[{"name": "second"}])) == [("second", "shop-sample", "applied")]


def test_what_somebody_wrote_since_the_roll_outranks_its_image():
    cluster = FakeCluster(start())
    run(cluster, starts=[{"name": "start-sample", "image": f"{REPOSITORY}@{I1}"}])
    deployment = cluster.read("Deployment", "nginx-sample")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    resource = cluster.read("Start", "start-sample")
    assert resource["status"]["observedGeneration"] == resource["metadata"]["generation"]


def test_check_mode_predicts_the_status_after_a_roll_that_was_a_dry_run_too():
    image = f"{REPOSITORY}@{I1}"
    wanted = [{"name": "start-sample", "image": image}]
    cluster = FakeCluster(start())
    predicted = run(cluster, check_mode=True, starts=wanted)

    def roll(obj):
        obj["spec"]["image"] = image
        obj["metadata"]["generation"] += 1

    cluster.edit("Start", "start-sample", roll)
    done = run(cluster, starts=wanted)
    assert predicted.diff[1] == done.diff[1]
    assert cluster.read("Start", "start-sample")["status"]["observedGeneration"] == 2


def test_a_start_that_does_not_exist_is_an_error_or_passed_over():
    cluster = FakeCluster(start())
    wanted = [{"name": "nope"}, {"name": "start-sample"}]
    done = run(cluster, starts=wanted)
    (error,) = done.errors
    assert "Start nope" in error and "shop" in error
    assert states(done) == [("start-sample", "nginx-sample", "applied")]
    assert run(cluster, starts=wanted, must_exist=False).errors == []


def test_a_deployment_without_a_start():
    cluster = FakeCluster()
    done = run(cluster, spec=SPEC)
    assert states(done) == [(None, "web-sample", "applied")]
    assert cluster.writes == ["apply Deployment/web-sample"]
    pod = cluster.read("Deployment", "web-sample")["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "regcred"}]
    assert "resources" not in pod["containers"][0]
    assert states(run(cluster, spec=SPEC)) == [(None, "web-sample", "unchanged")]


def test_two_starts_of_one_name_the_second_changes_nothing():
    cluster = FakeCluster(start("young", image=f"{REPOSITORY}:2", created="2026-02-01T00:00:00Z"), start("old"))
    for _again in range(2):
        done = run(cluster)
        assert states(done) == [("young", "nginx-sample", "conflict"), ("old", "nginx-sample", done.starts[1]["state"])]
        deployment = cluster.read("Deployment", "nginx-sample")
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    assert "Start old" in done.warnings[0]
    assert cluster.read("Start", "young")["status"]["conditions"][0]["reason"] == "NotApplied"
    assert cluster.writes.count("status Start/young") == 1


def test_a_deployment_of_another_controller_is_not_touched():
    foreign = workload(
        name="nginx-sample", ownerReferences=[{"kind": "X", "name": "x", "uid": "x", "controller": True}]
    )
    cluster = FakeCluster(start(), foreign)
    done = run(cluster)
    assert states(done) == [("start-sample", "nginx-sample", "conflict")]
    assert cluster.writes == ["status Start/start-sample"]


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_deployment_of_nobody_is_not_even_asked_about(check_mode):
    theirs = workload(name="nginx-sample")
    cluster = FakeCluster(start(), theirs)
    before = cluster.read("Deployment", "nginx-sample")
    done = run(cluster, check_mode=check_mode)
    assert states(done) == [("start-sample", "nginx-sample", "conflict")]
    assert cluster.read("Deployment", "nginx-sample") == before
    assert "apply Deployment/nginx-sample" not in cluster.requests
    assert "kubesteward.io/adopt=start-sample" in done.warnings[0]


def test_a_deployment_that_was_given_is_taken_and_stays_taken_without_the_word():
    cluster = FakeCluster(start(), workload(name="nginx-sample", annotations={"kubesteward.io/adopt": "start-sample"}))
    assert states(run(cluster)) == [("start-sample", "nginx-sample", "applied")]
    cluster.edit("Deployment", "nginx-sample", lambda obj: obj["metadata"].pop("annotations"))
    assert states(run(cluster)) == [("start-sample", "nginx-sample", "unchanged")]


def test_what_somebody_made_since_our_look_is_not_taken_by_force():
    cluster = FakeCluster(start())
    forced = []
    apply = cluster.apply

    def seen(obj, subresource="", dry_run=False, force=True):
        if obj["kind"] == "Deployment" and not dry_run:
            forced.append(force)
        return apply(obj, subresource, dry_run, force)

    cluster.apply = seen
    run(cluster)
    cluster.edit("Start", "start-sample", lambda obj: obj["spec"].update(replicas=2))
    run(cluster)
    assert forced == [False, True]


@pytest.mark.parametrize("verb", ["apply", "status"])
def test_one_that_is_refused_stops_no_other(verb):
    cluster = FakeCluster(start(), start("second", workload_name="shop"))

    def refuse(what, target):
        if what == verb and target.name in ("nginx-sample", "start-sample"):
            raise ApiError("refused", 403)

    cluster.before_write = refuse
    done = run(cluster)
    assert done.errors == ["refused"]
    assert "apply Deployment/shop-sample" in cluster.writes
    assert done.starts[0]["state"] == ("failed" if verb == "apply" else "applied")


def test_a_start_that_was_deleted_meanwhile_is_no_error():
    cluster = FakeCluster(start())

    def vanish(what, _target):
        if what == "apply":
            cluster.objects.pop(("Start", NAMESPACE, "start-sample"), None)

    cluster.before_write = vanish
    assert run(cluster).errors == []


def test_the_digest_that_runs_is_in_the_status():
    resource = start()
    cluster = FakeCluster(resource)
    run(cluster)
    deployment = cluster.read("Deployment", "nginx-sample")
    one, between = pod_of(
        deployment, [state(f"{REPOSITORY}@{I1}", "nginx-sample")], labels={"app": "nginx-app"}, name="p"
    )
    for item in (one, *between):
        item["metadata"]["labels"] = {"app": "nginx-app"}
        cluster.put(item)
    done = run(cluster)
    assert done.starts[0]["digest"] == I1
    assert cluster.read("Start", "start-sample")["status"]["digest"] == I1


def elsewhere(item, namespace="other"):
    item["metadata"]["namespace"] = namespace
    return item


@pytest.mark.parametrize("namespaces", ["all", [NAMESPACE, "other"]])
def test_starts_of_several_namespaces_are_applied(namespaces):
    cluster = FakeCluster(start(), elsewhere(start("second", workload_name="shop")))
    done = run(cluster, namespace=None, namespaces=namespaces)
    found = {(entry["namespace"], entry["start"], entry["state"]) for entry in done.starts}
    assert found == {(NAMESPACE, "start-sample", "applied"), ("other", "second", "applied")}


def test_a_namespace_that_does_not_exist_stops_no_other():
    done = run(FakeCluster(start()), namespace=None, namespaces=["nowhere", NAMESPACE])
    assert [entry["state"] for entry in done.starts] == ["applied"]
    assert done.errors == ["nowhere: There is no namespace nowhere in this cluster"]


def test_each_start_may_name_its_namespace():
    cluster = FakeCluster(start(), elsewhere(start("second", workload_name="shop")), start("third", workload_name="x"))
    wanted = [{"name": "start-sample", "namespace": NAMESPACE}, {"name": "second", "namespace": "other"}]
    assert [entry["start"] for entry in run(cluster, namespace=None, starts=wanted).starts] == [
        "start-sample",
        "second",
    ]

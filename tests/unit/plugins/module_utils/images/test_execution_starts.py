# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes over Starts, the release of what was rolled, and the match of what runs with what was looked up."""

from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.module_utils.images import execution, judge, report
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.plugins.modules import image_rollout, pod_image_id
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NAMESPACE,
    NOW,
    REPOSITORY,
    annotation,
    container,
    followed,
    pod_of,
    published,
    start,
    start_deployment,
    state,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    one_pass,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    SAME,
    TARGETS,
    at,
    cluster_of,
    image,
    run,
    settle,
)


def starts_cluster():
    resource = start()
    owner = start_deployment(resource)
    statuses = [state(at(I1), "nginx-sample")]
    one, between = pod_of(owner, statuses, labels={"app": "nginx-sample"}, name="pod-start")
    return FakeCluster(update(), resource, owner, one, *between)


def test_a_start_is_rolled_and_to_be_applied_until_it_is():
    cluster = starts_cluster()
    wanted = [{"name": "start-sample", "image": at(I2)}]
    assert run(cluster, PUSHED, check_mode=True).starts == wanted
    done = run(cluster, PUSHED)
    assert (done.starts, cluster.read("Start", "start-sample")["spec"]["image"]) == (wanted, at(I2))
    # a run that was cut off here leaves the Deployment behind
    again = run(cluster, PUSHED)
    assert (again.rolled, again.starts) == ([], wanted)

    def apply(obj):
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = at(I2)

    cluster.edit("Deployment", "nginx-sample", apply)
    assert run(cluster, PUSHED).starts == []


def test_a_pass_that_rolls_nothing_lets_nobody_apply_a_start():
    cluster = starts_cluster()
    cluster.edit("Start", "start-sample", lambda x: x["spec"].update(image=f"{REPOSITORY}:2"))
    registry = {f"{REPOSITORY}:2": published(I2, children=())}
    assert run(cluster, registry, dry_run=True).starts == []
    cluster.edit("Update", "update-sample", lambda x: x["spec"].update(suspend=True))
    assert run(cluster, registry).starts == []


def test_a_dry_run_of_a_release_lets_nobody_apply_a_start():
    cluster = starts_cluster()
    run(cluster, PUSHED)
    done = release(cluster, dry_run=True)
    assert (len(done.released), done.starts) == (1, [])


def test_a_start_whose_status_names_the_digest_from_before_is_told_again():
    cluster = starts_cluster()
    cluster.edit("Start", "start-sample", lambda x: x.update(status={"digest": I2}))
    assert run(cluster, SAME).starts == [{"name": "start-sample", "image": IMAGE}]
    cluster.edit("Deployment", "nginx-sample", lambda x: x["status"].update(updatedReplicas=0))
    assert run(cluster, SAME).starts == []
    cluster.edit("Deployment", "nginx-sample", lambda x: x["status"].update(updatedReplicas=1))
    cluster.edit("Start", "start-sample", lambda x: x.update(status={"digest": I1}))
    assert run(cluster, SAME).starts == []


def release(cluster, check_mode=False, dry_run=False):
    seen = pod_image_id.run({"namespace": NAMESPACE, "update": "update-sample", "update_must_exist": True}, cluster)
    params = {"namespace": NAMESPACE, "state": "released", "running": seen["containers"], "published": []}
    more = {"dry_run": dry_run, "release": "tags", "force": False, "update": None, "update_resource": None}
    return image_rollout.run({**params, **more}, cluster, check_mode, NOW)


def test_release_puts_the_references_back():
    cluster = cluster_of("a", "b")
    before = cluster.read("Deployment", "a")["spec"]
    run(cluster, PUSHED)
    settle(cluster, "a", "b")
    cluster.writes.clear()
    predicted = release(cluster, check_mode=True)
    assert cluster.writes == []
    done = release(cluster)
    assert report.result(predicted, True) == report.result(done, True)
    assert cluster.writes == [*(f"patch Deployment/{name}" for name in "ab"), *["create Event"] * 2]
    assert cluster.read("Deployment", "a")["spec"] == before
    assert release(cluster).released == []
    assert len(cluster.writes) == 4


def test_a_dry_run_of_a_release_writes_nothing():
    cluster = cluster_of("a")
    run(cluster, PUSHED)
    cluster.writes.clear()
    assert [item["owner"]["name"] for item in release(cluster, dry_run=True).released] == ["a"]
    assert (cluster.writes, image(cluster, "a")) == ([], at(I2))


def test_release_of_one_that_is_refused_stops_no_other():
    cluster = cluster_of("a", "b")
    run(cluster, PUSHED)

    def refuse(verb, target):
        if target.name == "a":
            raise ApiError("no a", 403)

    cluster.before_write = refuse
    done = release(cluster)
    assert (done.errors, image(cluster, "b")) == (["no a"], IMAGE)


def test_release_of_one_that_cannot_be_read_stops_no_other():
    cluster = cluster_of("a", "b")
    run(cluster, PUSHED)
    seen, get = pod_image_id.run({"namespace": NAMESPACE, "workloads": TARGETS[:2]}, cluster), cluster.get

    def read(api_version, kind, namespace, name):
        if name == "a":
            raise ApiError("a is gone", 0)
        return get(api_version, kind, namespace, name)

    cluster.get = read
    done = execution.release(cluster, NAMESPACE, seen["containers"], False)
    assert (done.errors, image(cluster, "b")) == (["a is gone"], IMAGE)


def test_release_names_just_the_containers_that_it_let_go():
    owner = workload(
        name="a",
        containers=[container(image=at(I2)), container("other", at(I2))],
        annotations=annotation(app=followed(I2), other=followed(I2)),
    )
    cluster = FakeCluster(owner)
    looked = {"namespace": NAMESPACE, "workloads": TARGETS[:1], "containers": {"ignore": ["other"]}}
    seen = pod_image_id.run(looked, cluster)["containers"]
    assert [item["containers"] for item in execution.release(cluster, NAMESPACE, seen, False).released] == [["app"]]


def test_release_of_a_start_says_what_to_apply():
    cluster = starts_cluster()
    run(cluster, PUSHED)
    assert release(cluster).starts == [{"name": "start-sample", "image": IMAGE}]


def test_entries_are_matched_by_reference_and_secrets():
    found = pod_image_id.run({"namespace": NAMESPACE, "workloads": TARGETS[:1]}, cluster_of("a"))["containers"]
    secret = [{"namespace": NAMESPACE, "name": "x"}]
    entries = [published(I2, children=(), pull_secrets=secret), published(I1, children=(), pull_secrets=[])]
    judged = judge.judge(found, entries, Policy())
    assert (judged[0][1].verdict, judged[0][0]["published"]) == ("current", I1)
    judged = judge.judge([{**found[0], "pull_secrets": secret}], entries, Policy())
    assert judged[0][1].verdict == "stale"
    # what was proven with other secrets says nothing about these
    (judged,) = judge.judge(found, entries[:1], Policy())
    assert judged[1].reason == "waiting"
    (judged,) = judge.judge([{**found[0], "pull_secrets": secret}], entries[1:], Policy())
    assert (judged[1].reason, "with the pull secrets x" in judged[1].message) == ("waiting", True)
    # a caller may have looked the reference up without secrets, and without a proof
    unproven = published(I2, children=(), pullable=None)
    assert judge.judge([{**found[0], "pull_secrets": secret}], [unproven], Policy())[0][1].verdict == "stale"
    assert judge.judge(found, [], Policy())[0][1].reason == "waiting"


def test_a_dry_run_holds_every_roll():
    cluster = cluster_of("a")
    done = run(cluster, PUSHED, dry_run=True)
    assert (done.rolled, image(cluster, "a")) == ([], IMAGE)
    assert done.judged[0][1].reason == "dry_run"


def test_a_start_that_nobody_has_applied_yet_is_not_settled_by_its_old_pods():
    cluster = starts_cluster()
    run(cluster, PUSHED, now="2026-03-01T10:00:00Z")
    for now in ("2026-03-01T10:05:00Z", "2026-03-01T10:20:00Z"):
        done = run(cluster, PUSHED, now=now)
        assert (done.settled, done.rolled_back) == ([], [])
    told = cluster.read("Update", "update-sample")["status"]
    assert [entry["outcome"] for entry in told["history"]] == ["rolled"]
    blocked = next(x for x in told["conditions"] if x["type"] == "RolloutBlocked")
    assert (blocked["status"], blocked["reason"]) == ("True", "NoProgress")


def test_what_others_add_beside_a_starts_container_belongs_to_the_older_update_too():
    side = "registry.example/shop/side"
    resource = start()
    owner = start_deployment(resource, extra=[container("side", f"{side}:1")])
    statuses = [state(at(I1), "nginx-sample"), state(f"{side}@{I1}", "side")]
    one, between = pod_of(owner, statuses, name="pod-start")
    cluster = FakeCluster(update("another"), update(), resource, owner, one, *between)
    registry = {**SAME, f"{side}:1": published(I2, image=f"{side}:1", children=())}
    done = run(cluster, registry)
    assert [verdict.reason for _container, verdict in done.judged] == ["digest_equal", "conflict"]
    assert [roll["container"] for roll in one_pass(cluster, registry, "another").rolled] == ["side"]

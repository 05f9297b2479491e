# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Letting go: what goes back into the specs, what is left behind, and what is said of it."""

from __future__ import annotations

import copy

import jsonpatch
import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import execution, follow, release, report
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
    inspect,
    published,
    sha,
    start,
    start_deployment,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import at, image

I3 = sha("index 3")
FAILED = {"digest": I2, "reason": "x", "at": NOW}


def ours(digest=I1, **more):
    """A Deployment whose image is what we wrote."""
    return deployment("a", digest, **more)


def deployment(name, digest=I1, policy="IfNotPresent", **memory):
    containers = [container(image=at(digest), imagePullPolicy=policy)]
    return workload(name=name, containers=containers, annotations=annotation(app=followed(digest, **memory)))


def rolled_back(name="a"):
    """A Deployment whose last roll failed: what ran before went back."""
    return deployment(name, quarantine=FAILED)


def seen_in(cluster, *names):
    targets = [{"kind": "Deployment", "name": name} for name in names or ("a",)]
    return pod_image_id.run({"namespace": NAMESPACE, "workloads": targets}, cluster)


def let_go(cluster, *names, tag=None, check_mode=False, seen=None, **more):
    """A pass of the module with `released`; `tag` is the digest that the registry names."""
    seen = seen or seen_in(cluster, *names)
    entries = [{**published(tag, children=()), "pull_secrets": []}] if tag else []
    params = {"namespace": NAMESPACE, "state": "released", "running": seen["containers"], "published": entries}
    given = {"release": "tags", "force": False, "dry_run": False, "update": None, "update_resource": None, **more}
    return image_rollout.run({**params, **given}, cluster, check_mode, NOW)


def owner_of(*objects):
    (found,) = release.owners(inspect(*objects), ())
    return found


def planned(live, *objects):
    before = copy.deepcopy(live)
    after = jsonpatch.apply_patch(live, release.plan(owner_of(*objects or (live,)), live).operations)
    assert live == before
    return after


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob"])
def test_release_undoes_a_roll(kind):
    live = workload(
        kind, containers=[container(image=at(I2))], annotations={**annotation(app=followed(I2)), "kept": "x"}
    )
    after = planned(live)
    assert after["metadata"]["annotations"] == {"kept": "x"}
    assert IMAGE in str(after["spec"]) and I2 not in str(after["spec"])


def test_release_of_a_start():
    made = start(image=at(I2), annotations={**annotation(**{"nginx-sample": followed(I2)}), "kept": "x"})
    after = planned(made, made, start_deployment(made))
    assert after["spec"]["image"] == IMAGE
    assert after["metadata"]["annotations"] == {"kept": "x"}


def test_release_leaves_alone_what_somebody_took_over():
    live = workload(containers=[container(image=f"{REPOSITORY}:2")], annotations=annotation(app=followed(I2)))
    after = planned(live)
    assert after["spec"] == live["spec"]
    assert follow.ANNOTATION not in after["metadata"]["annotations"]


def test_release_changes_nothing_that_was_never_rolled():
    assert release.plan(owner_of(workload()), workload()) == release.Plan()


def two(*names):
    """The containers `one` and `two`, both followed; `names` are those that are looked at."""
    pair = [container(name, at(I2)) for name in ("one", "two")]
    live = workload(containers=pair, annotations=annotation(one=followed(I2), two=followed(I2)))
    return live, release.owners(inspect(live, follow=names), ())[0]


def test_release_of_some_containers_keeps_what_is_remembered_of_the_others():
    live, owner = two("one")
    after = jsonpatch.apply_patch(live, release.plan(owner, live).operations)
    assert [item["image"] for item in after["spec"]["template"]["spec"]["containers"]] == [IMAGE, at(I2)]
    assert set(follow.read(after)) == {"two"}
    assert release.plan(owner, after).operations == []


def test_what_is_remembered_of_a_container_that_is_gone_goes_too():
    live, owner = two("one")
    del live["spec"]["template"]["spec"]["containers"][1]
    after = jsonpatch.apply_patch(live, release.plan(owner, live).operations)
    assert after["metadata"]["annotations"] == {}


# a tag that names a digest which failed


@pytest.mark.parametrize(("tag", "stays"), [(I2, True), (None, True), (I3, False)])
@pytest.mark.parametrize("force", [True, False])
def test_a_tag_that_names_a_digest_that_failed_does_not_go_back_unless_forced(tag, stays, force):
    cluster = FakeCluster(rolled_back())
    done = let_go(cluster, tag=tag, force=force)
    kept = stays and not force
    assert image(cluster, "a") == (at(I1) if kept else IMAGE)
    assert cluster.read("Deployment", "a")["metadata"]["annotations"] == {}
    told = next(line for line in report.result(done, False)["table"] if line.startswith("Deployment/a app: "))
    assert (I2 in told and "failed on Deployment/a" in told and "update_force" in told) == kept


def test_a_digest_that_failed_elsewhere_does_not_come_by_a_tag_either():
    cluster = FakeCluster(rolled_back("a"), deployment("b"))
    let_go(cluster, "a", "b", tag=I2)
    assert image(cluster, "b") == at(I1)
    unheard = FakeCluster(rolled_back("a"), deployment("b"), deployment("c"))
    other = {"reference": f"{REPOSITORY}:other"}
    unheard.edit("Deployment", "c", lambda x: x["metadata"].update(annotations=annotation(app=followed(I1, **other))))
    let_go(unheard, "a", "b", "c")
    assert [image(unheard, name) for name in ("a", "b", "c")] == [at(I1), at(I1), f"{REPOSITORY}:other"]


def test_a_persons_word_for_a_digest_counts_for_its_tag():
    cluster = FakeCluster(rolled_back())
    cluster.edit("Deployment", "a", lambda x: x["metadata"]["annotations"].update({follow.RETRY: I2}))
    let_go(cluster, tag=I2)
    assert image(cluster, "a") == IMAGE
    assert cluster.read("Deployment", "a")["metadata"]["annotations"] == {}


def test_whether_a_digest_failed_is_known_before_a_registry_is_asked():
    assert seen_in(FakeCluster(rolled_back()))["quarantined"] is True
    assert seen_in(FakeCluster(ours()))["quarantined"] is False


# what is said


def test_a_workload_gets_an_event_of_what_became_of_its_image_and_check_mode_none():
    cluster = FakeCluster(ours())
    let_go(cluster, check_mode=True)
    assert cluster.events == []
    let_go(cluster)
    (event,) = cluster.events
    assert (event["reason"], event["type"], event["involvedObject"]["name"]) == ("Released", "Normal", "a")
    assert event["message"].startswith(f"Deployment/a app: {at(I1)} -> {IMAGE}")
    let_go(cluster)
    assert len(cluster.events) == 1
    kept = FakeCluster(rolled_back())
    let_go(kept)
    assert "digest stays" in kept.events[0]["message"]


def test_the_diff_shows_the_image_that_goes_and_the_one_that_comes():
    predicted = let_go(FakeCluster(ours()), check_mode=True)
    first = report.result(predicted, with_diff=True)["diff"][0]
    assert first["before_header"] == "Deployment/a container app"
    assert (first["before"], first["after"]) == (f"image: {at(I1)}\n", f"image: {IMAGE}\n")
    kept = let_go(FakeCluster(rolled_back()), check_mode=True)
    assert "image:" not in str(report.result(kept, with_diff=True)["diff"])


@pytest.mark.parametrize(
    ("policy", "told"), [("IfNotPresent", True), ("Never", True), ("Always", False), (None, False)]
)
def test_that_a_node_may_have_an_older_image_under_a_tag_is_told_before_it_happens(policy, told):
    predicted = let_go(FakeCluster(ours(policy=policy)), check_mode=True)
    lines = report.result(predicted, with_diff=False)["table"]
    assert any("Deployment/a app: imagePullPolicy" in line and "digests" in line for line in lines) == told


def test_digests_can_be_left_where_they_are():
    cluster = FakeCluster(ours(), deployment("b", quarantine=FAILED))
    done = let_go(cluster, "a", "b", release="digests")
    assert (image(cluster, "a"), image(cluster, "b")) == (at(I1), at(I1))
    assert cluster.read("Deployment", "a")["metadata"]["annotations"] == {}
    assert [x["images"][0]["message"] for x in done.released] == ["", ""]


# others who work on the same object


def first_of_all(obj):
    obj["spec"]["template"]["spec"]["containers"].insert(0, container("proxy", "proxy:1"))


def as_init_container(obj):
    pod = obj["spec"]["template"]["spec"]
    pod["initContainers"] = [container("wait", "wait:1"), *pod["containers"]]
    pod["containers"] = [container("proxy", "proxy:1")]


@pytest.mark.parametrize("change", [first_of_all, as_init_container])
@pytest.mark.parametrize("when", ["before it is read again", "before it is written"])
def test_a_container_that_has_moved_meanwhile_gets_its_tag_back(change, when):
    cluster = FakeCluster(ours())
    seen = seen_in(cluster)
    pending = [change]

    def somebody(_verb="", _target=None):
        if pending:
            cluster.edit("Deployment", "a", pending.pop())

    if when == "before it is read again":
        somebody()
    cluster.before_write = somebody
    done = let_go(cluster, seen=seen)
    assert done.errors == []
    text = str(cluster.read("Deployment", "a"))
    assert (I1 in text, IMAGE in text, "proxy:1" in text) == (False, True, True)


def test_a_patch_of_a_release_tests_the_name_of_its_container():
    live = ours()
    operations = release.plan(owner_of(live), live).operations
    assert {"op": "test", "path": "/spec/template/spec/containers/0/name", "value": "app"} in operations


def test_an_object_that_is_edited_again_and_again_is_told_and_one_that_is_gone_is_done():
    cluster = FakeCluster(ours())

    def edit(_verb, _target):
        raise ApiError("a was edited", 409)

    cluster.before_write = edit
    assert let_go(cluster).errors == ["a was edited"]

    def gone(_verb, _target):
        raise ApiError("a is gone", 404)

    cluster.before_write = gone
    done = let_go(cluster)
    assert (done.errors, done.released) == ([], [])


# who has the fields afterwards

OWNER = {"manager": "owner", "operation": "Apply", "fieldsV1": {}}
PATCHED = {"manager": "kubesteward", "operation": "Update", "fieldsV1": {"f:spec": {}}}
APPLIED = {"manager": "kubesteward", "operation": "Apply", "fieldsV1": {"f:spec": {}}}
STATUS = {**PATCHED, "subresource": "status"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([OWNER, PATCHED], [OWNER]),
        ([PATCHED, OWNER, APPLIED, STATUS, PATCHED], [OWNER, APPLIED, STATUS]),
        ([OWNER], [OWNER]),
        # the API server takes this for none, and an empty list for no change
        ([PATCHED], [{}]),
        ([], []),
    ],
)
def test_the_api_server_forgets_that_the_fields_were_ours(before, after):
    made = ours()
    made["metadata"]["managedFields"] = before
    cluster = FakeCluster(made)
    let_go(cluster, check_mode=True)
    assert cluster.read("Deployment", "a")["metadata"]["managedFields"] == before
    let_go(cluster)
    assert cluster.read("Deployment", "a")["metadata"]["managedFields"] == after


def test_a_run_that_was_cut_off_is_ended_by_the_next_one():
    made = ours()
    made["metadata"]["managedFields"] = [OWNER, PATCHED]
    cluster = FakeCluster(made)

    def cut_off(_verb, _target):
        if cluster.writes:
            raise ApiError("the network is gone", 0)

    cluster.before_write = cut_off
    assert let_go(cluster).errors == ["the network is gone"]
    assert image(cluster, "a") == IMAGE
    cluster.before_write = lambda _verb, _target: None
    let_go(cluster)
    assert cluster.read("Deployment", "a")["metadata"]["managedFields"] == [OWNER]
    cluster.writes.clear()
    let_go(cluster)
    assert cluster.writes == []


def test_fields_stay_ours_while_another_container_is_followed():
    live, _owner = two()
    live["metadata"]["managedFields"] = [OWNER, PATCHED]
    cluster = FakeCluster(live)
    looked = {"namespace": NAMESPACE, "workloads": [{"kind": "Deployment", "name": "web"}]}
    seen = pod_image_id.run({**looked, "containers": {"follow": ["one"]}}, cluster)
    execution.release(cluster, NAMESPACE, seen["containers"], False)
    assert cluster.read("Deployment", "web")["metadata"]["managedFields"] == [OWNER, PATCHED]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole passes against a cluster in memory: what is written, once, and what happens when something is in the way."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import execution, follow, report
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.plugins.modules import pod_image_id
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I2,
    IMAGE,
    NAMESPACE,
    NOW,
    REPOSITORY,
    container,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    one_pass,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    SAME,
    TARGETS,
    at,
    cluster_of,
    flags,
    image,
    run,
    settle,
    status,
)


def test_what_is_current_is_told_once():
    cluster = cluster_of("a", "b")
    run(cluster, SAME)
    assert cluster.writes == ["status Update/update-sample"]
    assert status(cluster)["counts"] == {"current": 2, "stale": 0, "unknown": 0}
    before = status(cluster)
    assert run(cluster, SAME, now="2027-01-01T00:00:00Z").wrote_status is False
    assert cluster.writes == ["status Update/update-sample"]
    assert status(cluster) == before


def test_without_an_update_nothing_but_owners_is_written():
    cluster = cluster_of("a")
    params = {"workloads": TARGETS[:1]}
    done = one_pass(cluster, PUSHED, **params)
    assert (done.update, done.status) == (None, None)
    assert cluster.writes == ["patch Deployment/a", "create Event"]
    cluster.writes.clear()
    one_pass(cluster, PUSHED, **params)
    assert cluster.writes == []


@pytest.mark.parametrize("registry", [PUSHED, SAME, {}])
@pytest.mark.parametrize("spec", [{}, {"suspend": True}, {"dryRun": True}, {"delete_flag": True}])
def test_check_mode_writes_nothing_and_predicts_the_run(registry, spec):
    cluster = cluster_of("a", "b", **spec)
    before = copy.deepcopy(cluster.objects)
    predicted = run(cluster, registry, check_mode=True)
    assert (cluster.writes, cluster.events, cluster.objects) == ([], [], before)
    done = run(cluster, registry)
    assert report.result(predicted, True) == report.result(done, True)
    assert bool(cluster.writes) == report.result(done, False)["changed"]
    if done.status is not None and not done.deleted:
        written = status(cluster)
        assert {key: written[key] for key in done.status} == done.status


@pytest.mark.parametrize("code", [403, 500, 0])
def test_one_refused_patch_stops_no_other(code):
    cluster = cluster_of("a", "b", "c")

    def refuse(verb, target):
        if verb == "patch" and target.name == "b":
            raise ApiError(f"Could not patch {target}: refused", code)

    cluster.before_write = refuse
    done = run(cluster, PUSHED)
    assert [image(cluster, name) for name in "abc"] == [at(I2), IMAGE, at(I2)]
    # the API server's own words
    assert report.aggregated(done.errors).endswith("Deployment b in namespace shop: refused")
    assert cluster.requests.count("get Deployment/b") == 1
    assert flags(cluster) == (True, False)
    told = {x["type"]: x for x in status(cluster)["conditions"]}
    assert told["RolloutBlocked"]["status"] == "True"
    assert "Deployment/b" in told["RolloutBlocked"]["message"]
    assert "Deployment/b" not in told["Rolling"]["message"]
    assert [x["message"] for x in cluster.events if "refused" in x["message"]] != []
    assert [x["container"] for x in report.result(done, False)["held"]] == ["app"]
    # once the right is granted the roll is made up for
    cluster.before_write = lambda verb, target: None
    settle(cluster, "a", "c")
    run(cluster, PUSHED)
    assert image(cluster, "b") == at(I2)
    assert flags(cluster) == (True, True)


def test_two_refused_patches_are_one_error():
    cluster = cluster_of("a", "b", "c")

    def refuse(verb, target):
        if verb == "patch" and target.name != "b":
            raise ApiError(f"no {target.name}", 403)

    cluster.before_write = refuse
    done = run(cluster, PUSHED)
    text = report.aggregated(done.errors)
    assert text.startswith("2 ") and "no a; no c" in text


@pytest.mark.parametrize("code", [409, 422])
def test_a_conflict_is_tried_again_on_fresh_data(code):
    cluster = cluster_of("a")
    times = []

    def interfere(verb, target):
        if verb == "patch" and not times:
            times.append(1)
            cluster.edit("Deployment", "a", lambda x: x["metadata"].update(annotations={"other": "x"}))
            raise ApiError("edited meanwhile", code)

    cluster.before_write = interfere
    done = run(cluster, PUSHED)
    assert (done.errors, len(done.rolled)) == ([], 1)
    assert set(cluster.read("Deployment", "a")["metadata"]["annotations"]) == {"other", follow.ANNOTATION}


def test_a_conflict_that_lasts_is_held_after_some_attempts():
    cluster = cluster_of("a", "b")

    def interfere(verb, target):
        if verb == "patch" and target.name == "a":
            raise ApiError("edited meanwhile", 409)

    cluster.before_write = interfere
    done = run(cluster, PUSHED)
    assert cluster.requests.count("get Deployment/a") == execution.ATTEMPTS
    assert image(cluster, "b") == at(I2)
    assert done.errors == []
    assert [(v.reason, v.message) for _c, v in done.judged] == [
        ("conflict", "edited meanwhile"),
        ("digest_differs", f"{IMAGE} now names {I2}"),
    ]


def test_what_the_api_server_will_not_have_is_an_error_and_no_conflict():
    cluster = cluster_of("a", "b")

    def refuse(verb, target):
        if verb == "patch" and target.name == "a":
            raise ApiError("denied by a policy", 422)

    cluster.before_write = refuse
    done = run(cluster, PUSHED)
    assert done.errors == ["denied by a policy"]
    assert image(cluster, "b") == at(I2)
    assert [v.reason for _c, v in done.judged] == ["digest_differs", "digest_differs"]


def test_what_the_status_cannot_remember_is_not_told_again_and_again():
    cluster = cluster_of("a", suspend=True)

    def refuse(verb, target):
        if verb == "status":
            raise ApiError("no room", 500)

    cluster.before_write = refuse
    for _ in range(2):
        assert run(cluster, PUSHED).errors == ["no room"]
    assert cluster.events == []


def edit_image(obj):
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = f"{REPOSITORY}:2"


def reorder(obj):
    obj["spec"]["template"]["spec"]["containers"].insert(0, container("new", "registry.example/new:1"))


@pytest.mark.parametrize("moment", ["before our read", "after our read"])
@pytest.mark.parametrize("change", [edit_image, reorder])
def test_somebody_elses_edit_wins(moment, change):
    cluster = cluster_of("a")
    done_once = []

    def interfere(verb, target):
        if verb == "patch" and not done_once:
            done_once.append(1)
            cluster.edit("Deployment", "a", change)

    if moment == "after our read":
        cluster.before_write = interfere
        done = run(cluster, PUSHED)
    else:
        seen = pod_image_id.run({"namespace": NAMESPACE, "workloads": TARGETS[:1]}, cluster)
        cluster.edit("Deployment", "a", change)
        params = {"update": "update-sample", "update_resource": None, "running": seen["containers"]}
        params.update(published=[PUSHED[IMAGE]], missing=[], dry_run=False, delete_flag=None)
        done = execution.reconcile(cluster, NAMESPACE, params, False, NOW)
    assert at(I2) not in str(cluster.read("Deployment", "a")["spec"])
    assert (done.rolled, done.errors) == ([], [])
    assert [verdict.reason for _container, verdict in done.judged] == ["conflict"]


def test_a_workload_that_was_deleted_meanwhile_is_held():
    cluster = cluster_of("a")
    seen = pod_image_id.run({"namespace": NAMESPACE, "update": "update-sample", "update_must_exist": True}, cluster)
    del cluster.objects[("Deployment", NAMESPACE, "a")]
    params = {
        "update": None,
        "update_resource": seen["update_resource"],
        "running": seen["containers"],
        "missing": ["StatefulSet/db"],
        "dry_run": False,
    }
    done = execution.reconcile(
        cluster, NAMESPACE, {**params, "published": [PUSHED[IMAGE]], "delete_flag": None}, False, NOW
    )
    assert (done.rolled, done.errors) == ([], [])
    (warning,) = done.warnings
    assert "StatefulSet/db" in warning and NAMESPACE in warning
    assert done.judged[0][1].reason == "conflict"


def test_a_workload_that_was_deleted_between_our_read_and_our_write_is_held():
    cluster = cluster_of("a")

    def vanish(verb, target):
        if verb == "patch":
            cluster.objects.pop(("Deployment", NAMESPACE, "a"), None)

    cluster.before_write = vanish
    done = run(cluster, PUSHED)
    assert (done.rolled, done.errors) == ([], [])
    assert done.judged[0][1].reason == "conflict"


def test_an_update_that_was_deleted_meanwhile_is_no_error():
    cluster = cluster_of("a")

    def vanish(verb, target):
        if verb == "patch":
            cluster.objects.pop(("Update", NAMESPACE, "update-sample"), None)

    cluster.before_write = vanish
    done = run(cluster, PUSHED)
    assert (done.errors, image(cluster, "a")) == ([], at(I2))


def test_a_status_that_is_refused_is_an_error_and_the_roll_stays():
    cluster = cluster_of("a")

    def refuse(verb, target):
        if verb == "status":
            raise ApiError("no status", 403)

    cluster.before_write = refuse
    done = run(cluster, PUSHED)
    assert (done.errors, image(cluster, "a")) == (["no status"], at(I2))


def test_events_that_cannot_be_posted_are_warnings():
    cluster = cluster_of("a")

    def refuse(verb, target):
        if verb == "create":
            raise ApiError("no events", 403)

    cluster.before_write = refuse
    done = run(cluster, PUSHED)
    assert (done.errors, done.warnings) == ([], ["no events", "no events"])

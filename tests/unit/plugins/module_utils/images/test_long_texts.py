# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of others, of any length: statuses, Events and results have its beginning and how long it is."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import conditions, starts, texts
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import report
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    IMAGE,
    NOW,
    REPOSITORY,
    annotation,
    container,
    followed,
    pod_of,
    published,
    start,
    state,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    one_pass,
)

LONG = 600_000
TARGETS = [{"kind": "Deployment", "name": "web"}]


def pass_over(image=IMAGE, statuses=f"{REPOSITORY}@{I1}", registry=None, change=None, **metadata):
    owner = workload(containers=[container(image=image)], **metadata)
    one, between = pod_of(owner, statuses)
    if change:
        change(owner, one)
    cluster = FakeCluster(update(targets=TARGETS), owner, one, *between)
    done = one_pass(cluster, registry or {}, "update-sample")
    return cluster, done


def unscheduled(owner, one):
    owner["metadata"]["annotations"] = annotation(app=followed(I1, trial=True, back=IMAGE))
    owner["spec"]["template"]["spec"]["containers"][0]["image"] = f"{REPOSITORY}@{I1}"
    owner["status"].update(updatedReplicas=0)
    told = {"type": "PodScheduled", "status": "False", "message": "x" * LONG}
    one["status"] = {"conditions": [told]}


def foreign_owner(owner, _one):
    owner["metadata"]["ownerReferences"] = [{"kind": "X" * LONG, "name": "x", "uid": "u", "controller": True}]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"image": "Not Valid " + "x" * LONG}, id="invalid image"),
        pytest.param({"image": f"registry.example/x:{'y' * LONG}"}, id="invalid tag"),
        pytest.param({"image": f"registry.example/x@sha256:{'y' * LONG}"}, id="invalid digest"),
        pytest.param({"image": f"{'a.' * (LONG // 2)}example/x:1"}, id="very long host"),
        pytest.param({"image": f"registry.example:{'9' * LONG}/x:1"}, id="very long port"),
        pytest.param({"statuses": "odd!" * (LONG // 4)}, id="image ID of no known form"),
        pytest.param({"statuses": [state("", waiting="R" * LONG)]}, id="reason of a Pod that waits"),
        pytest.param(
            {"registry": {IMAGE: {"state": "unknown", "reason": "unreachable", "msg": "m" * LONG}}},
            id="what a registry says",
        ),
        pytest.param({"change": foreign_owner, "registry": {IMAGE: published(I1 + "0")}}, id="controller"),
        pytest.param({"change": unscheduled}, id="why a Pod is not scheduled"),
    ],
)
def test_statuses_events_and_results_have_the_beginning_of_a_long_text(given):
    cluster, done = pass_over(**given)
    status = cluster.read("Update", "update-sample")["status"]
    assert len(json.dumps(status)) < 20_000
    assert all(len(event["message"]) <= 1024 for event in cluster.events)
    assert len(json.dumps(report.result(done, with_diff=True))) < 40_000


def test_a_cut_text_says_how_long_it_is():
    _cluster, done = pass_over(image="Not Valid " + "x" * LONG)
    assert "(600010 characters)" in done.status["images"][0]["image"]
    assert "characters)" in done.status["images"][0]["message"]


def test_an_unchanged_pass_over_a_long_text_writes_nothing():
    cluster, _done = pass_over(image="Not Valid " + "x" * LONG)
    cluster.writes.clear()
    one_pass(cluster, {}, "update-sample")
    assert cluster.writes == []


def test_the_status_of_a_start_has_the_beginning_of_a_long_image():
    found = starts.status(start(image="x" * LONG), {}, None, None, NOW)
    assert len(json.dumps(found)) < 5_000


def test_a_condition_has_the_beginning_of_a_long_message():
    (found,) = conditions.stamped((), [("Ready", "False", "Why", "m" * LONG)], NOW)
    assert len(found["message"]) == texts.MESSAGE


@pytest.mark.parametrize(("length", "most"), [(10, 10), (11, 40), (1000, 40), (LONG, 1024)])
def test_a_text_that_fits_stays_and_another_is_as_long_as_it_may_be(length, most):
    found = texts.cut("x" * length, most)
    assert found == "x" * length if length <= most else (len(found) == most and f"({length} characters)" in found)


def test_an_error_about_a_reference_quotes_its_beginning():
    with pytest.raises(StewardError) as caught:
        reference.parse(f"registry.example/x:{'y' * LONG}")
    assert len(str(caught.value)) < 1024

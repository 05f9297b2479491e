# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which running digests count as gone from their registry."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, judge
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import pushes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    C1,
    I1,
    I2,
    REPOSITORY,
    container,
    inspect,
    pod_of,
    published,
    running,
    state,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import one_pass
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import cluster_of
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    look_up,
    serving,
)


def gone(entry, *image_ids):
    (judged,) = judge.judge([running(*image_ids)], [entry], Policy())
    return judged[0]["gone"]


@pytest.mark.parametrize("prefix", ["", "docker-pullable://"])
def test_a_running_digest_that_its_registry_lacks(prefix):
    assert gone(published(I2, gone=[I1]), f"{prefix}{REPOSITORY}@{I1}") == [I1]
    assert gone(published(I2, gone=[]), f"{prefix}{REPOSITORY}@{I1}") == []
    assert gone(published(I2), f"{prefix}{REPOSITORY}@{I1}") == []


def test_what_another_workload_runs_is_not_its_own():
    assert gone(published(I2, gone=[I1]), f"{REPOSITORY}@{I2}") == []


@pytest.mark.parametrize("image_id", [f"quay.io/shop/other@{I1}", f"No Name@{I1}", C1, ""])
def test_what_a_runtime_names_by_another_repository_was_perhaps_never_in_this_one(image_id):
    assert gone(published(I2, gone=[I1]), image_id) == []


def test_a_tag_that_is_not_found_either():
    entry = {"state": "unknown", "reason": "not_found", "msg": "missing", "gone": [I1]}
    assert gone({"image": published()["image"], **entry}, f"{REPOSITORY}@{I1}") == [I1]


PINNED = pushes.image(note="pinned")
NEW = pushes.image(note="new")


def pinned(status="", waiting=""):
    """A Deployment whose image is pinned to a digest alone."""
    image = f"{REPOSITORY}@{PINNED.digest}"
    owner = workload(containers=[container(image=image)])
    one, between = pod_of(owner, [state(status or image, waiting=waiting)])
    return inspect(owner, one, *between)


def pass_over(containers, answer, **given):
    """Verdict, digests that are gone, and requests."""
    with serving(answer) as server:
        rules = [{"prefix": "registry.example", "location": server.host, "insecure": True}]
        entries = look_up(images=inventory.lookups(containers), registries=rules, **given)["images"]
        ((found, verdict),) = judge.judge(containers, entries, Policy())
        return verdict, found["gone"], [line.replace("/v2/shop/web", "") for line in server.lines]


def test_a_pinned_digest_that_is_there_costs_one_request():
    verdict, lacking, asked = pass_over(pinned(), pushes.serving(PINNED))
    assert (verdict.verdict, verdict.reason, lacking) == ("current", "pinned", [])
    assert asked == [f"HEAD /manifests/{PINNED.digest}"]


def test_a_pinned_digest_that_the_registry_has_no_more_is_told():
    verdict, lacking, asked = pass_over(pinned(), pushes.serving(NEW))
    assert (verdict.verdict, verdict.reason, lacking) == ("current", "pinned", [PINNED.digest])
    assert asked == [f"HEAD /manifests/{PINNED.digest}", f"GET /manifests/{PINNED.digest}"]
    # a Pod that moved and cannot pull it any more
    verdict, lacking, _asked = pass_over(pinned(waiting="ImagePullBackOff"), pushes.serving(NEW))
    assert (verdict.reason, lacking) == ("waiting", [PINNED.digest])
    # a runtime that names a child, or another repository
    _verdict, lacking, _asked = pass_over(pinned(f"quay.io/mirror/web@{I1}"), pushes.serving(NEW))
    assert lacking == [PINNED.digest]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_an_answer_that_leaves_it_open_makes_no_pinned_digest_gone(status):
    verdict, lacking, _asked = pass_over(pinned(), lambda _asked: Reply(status), retries=1)
    assert (verdict.verdict, verdict.reason, lacking) == ("current", "pinned", [])


def test_a_registry_that_is_not_allowed_is_not_asked_for_a_pinned_digest():
    verdict, lacking, asked = pass_over(pinned(), pushes.serving(NEW), allowed_registries=["quay.io"])
    assert (verdict.reason, lacking, asked) == ("pinned", [], [])


def test_the_status_says_that_a_pinned_digest_is_gone_and_nothing_else_of_it():
    cluster = cluster_of("a")
    image = f"{REPOSITORY}@{I1}"

    def pin(deployment):
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = image

    cluster.edit("Deployment", "a", pin)
    lost = {"state": "unknown", "reason": "not_found", "msg": "missing", "gone": [I1]}
    for entry, status in ((published(I1, children=()), "False"), (lost, "True")):
        done = one_pass(cluster, {image: entry}, "update-sample")
        (found,) = [x for x in done.status["conditions"] if x["type"] == "RunningDigestGone"]
        assert found["status"] == status
        assert "published" not in done.status["images"][0]
        assert done.judged[0][1].reason == "pinned"

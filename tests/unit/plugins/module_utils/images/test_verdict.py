# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision: every verdict and reason, and the cases that made other tools wrong."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, snapshot, verdict
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    C1,
    I1,
    I2,
    IMAGE,
    P1,
    Q1,
    Q2,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    judged,
    pod,
    pod_of,
    published,
    running,
    sha,
    start,
    start_deployment,
    state,
    workload,
)

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def at(digest: str) -> str:
    return f"{REPOSITORY}@{digest}"


def pushed(**more):
    """The tag names the second index."""
    return published(I2, children=(Q1, Q2), **more)


def test_what_is_gone_from_the_registry_is_no_reason_to_stay():
    assert judged(running(at(I1)), pushed(compared={})) == ("stale", "digest_differs")


def test_a_tag_with_a_digest_is_followed_by_its_tag():
    found = running(at(I1), image=f"{REPOSITORY}:1@{I1}")
    assert found["pinned"] is None
    assert judged(found, published()) == ("current", "digest_equal")


def test_a_digest_alone_is_pinned():
    result = verdict.decide(running(at(I1), image=at(I1)), None)
    assert (result.verdict, result.reason, result.rolls) == ("current", "pinned", False)


def entry_without(reason: str):
    return {"image": IMAGE, "state": "unknown", "reason": reason, "msg": f"because of {reason}"}


@pytest.mark.parametrize(
    "reason",
    [
        *("not_found", "unauthorized", "credential_rejected", "rate_limited", "unreachable", "tls_error"),
        *("forbidden_registry", "digest_mismatch", "not_a_manifest", "too_large", "schema1", "nested_index"),
    ],
)
def test_a_failed_look_up_is_unknown_with_its_reason(reason):
    result = verdict.decide(running(at(I1)), entry_without(reason))
    assert (result.verdict, result.reason, result.message) == ("unknown", reason, f"because of {reason}")


def test_a_reference_that_was_not_looked_up_is_unknown():
    assert judged(running(at(I1)), None) == ("unknown", "waiting")


@pytest.mark.parametrize("image", ["Shop/Web:1", "", "shop/web:", "https://r.example/a"])
def test_a_reference_that_cannot_be_read_is_unknown(image):
    result = verdict.decide(running(at(I1), image=image), pushed())
    assert (result.verdict, result.reason) == ("unknown", "invalid_reference")


def test_no_pods_is_unknown_and_says_what_was_left_out():
    owner = workload()
    ending, between = pod_of(owner, at(I1), deleted=True)
    result = verdict.decide(inspect(owner, ending, *between)[0], pushed())
    assert (result.verdict, result.reason) == ("unknown", "no_pods")
    assert "1 x terminating" in result.message


def test_an_id_of_an_unknown_form_is_unknown():
    result = verdict.decide(running("weird!"), pushed())
    assert (result.verdict, result.reason) == ("unknown", "unsupported_image_id")
    assert "weird!" in result.message


def test_pods_that_wait_with_a_tag_are_unknown_and_say_why():
    owner = workload()
    one, between = pod_of(owner, [state("", waiting="ErrImagePull")])
    for image in (IMAGE, at(I1)):
        owner["spec"]["template"]["spec"]["containers"] = [container(image=image)]
        result = verdict.decide(inspect(owner, one, *between)[0], pushed())
        assert (result.verdict, result.reason) == ("unknown", "waiting")
        assert "1 x ErrImagePull" in result.message


def stuck(digest: str, why: str):
    """A workload that was rolled to a digest that does not start."""
    owner = workload(containers=[container(image=at(digest))], annotations=annotation(app=followed(digest)))
    owner["status"]["availableReplicas"] = 0
    one, between = pod_of(owner, [state("", waiting=why)])
    return inspect(owner, one, *between)[0]


def test_a_written_digest_that_cannot_start_gives_way_to_the_next():
    assert judged(stuck(I1, "ImagePullBackOff"), pushed()) == ("stale", "digest_differs")
    # every Pod is of the current revision: nothing is under way
    assert judged(stuck(I1, "ContainerCreating"), pushed()) == ("stale", "digest_differs")
    assert judged(stuck(I2, "ImagePullBackOff"), pushed()) == ("unknown", "waiting")


@pytest.mark.parametrize(
    ("runs", "entry", "expected"),
    [
        # other than published decides, whatever else runs
        ((at(I1), at(I2)), pushed(), ("stale", "mixed_replicas")),
        ((at(I1), C1), pushed(), ("stale", "mixed_replicas")),
        ((at(I1), at(P1)), pushed(), ("stale", "digest_differs")),
        # an undecided Pod keeps the others from being current
        ((at(I2), C1), pushed(), ("unknown", "config_digest_only")),
        ((at(I2), "weird!"), pushed(), ("unknown", "unsupported_image_id")),
        # the weakest of the proofs is named
        ((at(I1), at(P1)), published(), ("current", "platform_equal")),
        ((at(I1), C1), published(config_digest=C1), ("current", "same_content")),
    ],
)
def test_pods_that_differ_in_one_workload(runs, entry, expected):
    assert judged(running(*runs), entry) == expected


def controlled(**more):
    owner = workload(ownerReferences=[{"kind": "Rollout", "name": "web", "uid": "x", "controller": True}], **more)
    one, between = pod_of(owner, at(I1))
    return inspect(owner, one, *between)[0]


def under_way():
    found = running(at(I1))
    return {**found, "rollout": {**found["rollout"], "complete": False, "updated": 0, "outdated": 1}}


@pytest.mark.parametrize(
    ("found", "entry", "policy", "reason"),
    [
        (running(at(I1)), pushed(), Policy(suspended=True), "suspended"),
        (running(at(I1)), pushed(), Policy(dry_run=True), "dry_run"),
        (running(at(I1)), pushed(), Policy(suspended=True, dry_run=True), "suspended"),
        (controlled(), pushed(), Policy(), "foreign_owner"),
        (under_way(), pushed(), Policy(), "rollout_in_progress"),
        (under_way(), pushed(pullable=False), Policy(), "rollout_in_progress"),
        (running(at(I1)), pushed(pullable=False), Policy(dry_run=True), "not_pullable"),
    ],
)
def test_what_holds_a_roll(found, entry, policy, reason):
    result = verdict.decide(found, entry, policy)
    assert (result.verdict, result.reason, result.rolls) == ("stale", reason, False)
    assert result.candidate == I2


@pytest.mark.parametrize("policy", [Policy(suspended=True), Policy(dry_run=True)])
def test_what_is_current_is_so_under_any_policy(policy):
    assert judged(running(at(I1)), published(), policy) == ("current", "digest_equal")


def test_a_bare_pod_is_not_rolled():
    one = pod(None, at(I1), name="alone")
    seen = snapshot.Snapshot(workloads=(one,), pods=(one,))
    (found,) = inventory.containers(seen, {}, "shop")
    assert judged(found, pushed()) == ("stale", "foreign_owner")


@pytest.mark.parametrize(
    "trouble", [{"failing": [{"pod": "p", "container": "app", "reason": "x"}]}, {"deadline_exceeded": True}]
)
def test_a_rollout_that_fails_is_not_waited_for(trouble):
    found = under_way()
    assert judged({**found, "rollout": {**found["rollout"], **trouble}}, pushed()) == ("stale", "digest_differs")


def test_a_cron_job_whose_template_is_written_is_current():
    image = at(I2)
    owner = workload("CronJob", containers=[container(image=image)], annotations=annotation(app=followed(I2)))
    one, between = pod_of(owner, at(I1), phase="Succeeded")
    assert judged(inspect(owner, one, *between)[0], pushed()) == ("current", "digest_equal")


def test_a_start_whose_deployment_is_not_written_yet_is_not_rolled_again():
    resource = start(image=at(I2), annotations=annotation(**{"nginx-sample": followed(I2)}))
    owner = start_deployment(resource)
    one, between = pod_of(owner, [state(at(I1), "nginx-sample")], labels={"app": "nginx-sample"})
    (found,) = inspect(resource, owner, one, *between)
    assert judged(found, pushed()) == ("stale", "rollout_in_progress")


def test_only_two_reasons_roll():
    for reason in ("digest_differs", "mixed_replicas"):
        assert verdict.Verdict("stale", reason, "", sha("x")).rolls
        assert not verdict.Verdict("current", reason, "").rolls
    assert not verdict.Verdict("stale", "quarantined", "", sha("x")).rolls


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_a_tag_that_moved_back_before_any_pod_ran_what_was_written(kind):
    owner = workload(kind, containers=[container(image=at(I2))], annotations=annotation(app=followed(I2)))
    one, between = pod_of(owner, at(I1))
    found = inspect(owner, one, *between)[0]
    assert judged(found, published(I1)) == ("stale", "digest_differs")


def test_a_paused_deployment_is_held():
    owner = workload()
    owner["spec"]["paused"] = True
    one, between = pod_of(owner, at(I1))
    found = inspect(owner, one, *between)[0]
    assert judged(found, pushed()) == ("stale", "suspended")
    assert judged(found, published(I1)) == ("current", "digest_equal")


def test_a_short_name_whose_pods_run_an_image_of_another_place_is_never_rolled():
    found = running(f"quay.io/other/web@{I1}", image="web:1")
    entry = published(I2, image="web:1", children=(Q1, Q2))
    result = verdict.decide(found, entry)
    assert (result.verdict, result.reason, result.rolls) == ("unknown", "unsupported_image_id", False)
    assert "write the registry's host into the reference" in result.message


@pytest.mark.parametrize("image_id", [f"docker.io/library/web@{I1}", f"web@{I1}"])
def test_a_short_name_whose_pods_run_that_image_is_compared(image_id):
    found = running(image_id, image="web:1")
    assert judged(found, published(I2, image="web:1", children=(Q1, Q2))) == ("stale", "digest_differs")


@pytest.mark.parametrize(("more", "reason"), [({}, "waiting"), ({"ratelimit_remaining": 0}, "rate_limited")])
def test_where_no_pod_could_start_our_digest_one_that_was_not_read_is_not_rolled(more, reason):
    owner = workload(containers=[container(image=at(I1))], annotations=annotation(app=followed(I1)))
    the_pod, others = pod_of(owner, [state("", waiting="ImagePullBackOff")])
    (found,) = inspect(owner, the_pod, *others)
    assert judged(found, published(I2, children=None, **more)) == ("unknown", reason)
    assert judged(found, published(I2, children=(Q1, Q2))) == ("stale", "digest_differs")

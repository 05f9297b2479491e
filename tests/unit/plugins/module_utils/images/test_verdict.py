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
    C2,
    I1,
    I2,
    IMAGE,
    P1,
    P2,
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
    revision,
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


def test_A1_one_digest_with_and_without_prefix():
    for image_id in (f"docker-pullable://{at(I1)}", at(I1)):
        assert judged(running(image_id), published()) == ("current", "digest_equal")


@pytest.mark.parametrize("entry", [published(), published(P1, children=()), pushed(config_digest=C2)])
def test_A2_a_config_is_never_compared_with_a_manifest(entry):
    assert judged(running(f"docker://{C1}"), entry) == ("unknown", "config_digest_only")


def test_A2_even_a_config_id_that_equals_a_manifest_digest_is_no_match():
    assert judged(running(I1), published()) == ("unknown", "config_digest_only")


def test_A3_a_config_is_compared_with_the_config_of_the_platform():
    assert judged(running(C1), published(config_digest=C1)) == ("current", "same_content")
    assert judged(running(C1), pushed(config_digest=C2)) == ("unknown", "config_digest_only")


def test_A4_bare_hex_is_a_config():
    bare = C1.partition(":")[2]
    assert judged(running(bare), published(config_digest=C1)) == ("current", "same_content")
    assert judged(running(bare), pushed(config_digest=C2)) == ("unknown", "config_digest_only")


def test_A5_a_runtime_that_changes_the_form_of_its_ids_causes_no_roll():
    before, after = running(at(I1)), running(C1.partition(":")[2])
    assert judged(before, published()) == ("current", "digest_equal")
    assert judged(after, published(config_digest=C1)) == ("current", "same_content")
    assert judged(after, published())[0] == "unknown"


def test_A8_the_status_may_name_another_tag():
    owner = workload(containers=[container(image=f"{REPOSITORY}:2")])
    one, between = pod_of(owner, [state(at(I1), image=IMAGE)])
    (found,) = inspect(owner, one, *between)
    assert judged(found, published(image=f"{REPOSITORY}:2")) == ("current", "digest_equal")


def test_A9_replicas_of_one_tag_with_different_digests():
    result = verdict.decide(running(at(I1), at(I2)), pushed())
    assert (result.verdict, result.reason, result.candidate) == ("stale", "mixed_replicas", I2)
    assert result.rolls
    assert "1 of 2 Pods" in result.message


def test_A10_the_list_digest_or_a_child_of_it():
    assert judged(running(at(I1)), published()) == ("current", "digest_equal")
    assert judged(running(at(P1)), published(I2, children=(P1, Q2))) == ("current", "platform_equal")
    assert judged(running(at(I1)), pushed()) == ("stale", "digest_differs")


def test_A11_a_schema_1_tag_is_unknown():
    entry = {"image": IMAGE, "state": "unknown", "reason": "schema1", "msg": "the tag names a schema 1 manifest"}
    assert judged(running(C1), entry) == ("unknown", "schema1")


def test_A13_a_crash_looping_pod_rolls_to_the_fix():
    owner = workload()
    owner["status"]["availableReplicas"] = 0
    one, between = pod_of(owner, [state(at(I1), waiting="CrashLoopBackOff")])
    (found,) = inspect(owner, one, *between)
    assert judged(found, pushed()) == ("stale", "digest_differs")


def test_A13_a_left_over_image_id_decides_nothing():
    owner = workload()
    one, between = pod_of(owner, [state(at(I1), waiting="ImagePullBackOff")])
    (found,) = inspect(owner, one, *between)
    assert judged(found, pushed()) == ("unknown", "waiting")


@pytest.mark.parametrize("child", [P1, P2])
def test_A15_the_platform_manifest_of_the_published_index_runs(child):
    assert judged(running(at(child)), published()) == ("current", "platform_equal")


@pytest.mark.parametrize("lost", [True, False])
def test_A17_a_pod_that_does_not_count_rolls_nothing(lost):
    owner = workload()
    before, now = revision(owner, 1), revision(owner, 2)
    old = pod(now, at(I1), ready="Unknown") if lost else pod(before, at(I1))
    (found,) = inspect(owner, before, now, old, pod(now, at(I2)))
    assert judged(found, pushed()) == ("current", "digest_equal")
    (found,) = inspect(owner, before, now, old)
    assert judged(found, pushed()) == ("unknown", "no_pods")


def test_B1_child_and_index_are_compared_each_with_its_own():
    assert judged(running(at(P1)), published()) == ("current", "platform_equal")
    assert judged(running(at(I1)), published()) == ("current", "digest_equal")


def test_B1_children_that_were_not_read_are_no_difference():
    # a registry that grants few more pulls is asked for the top-level digest alone
    entry = published(I1, children=None, ratelimit_remaining=3)
    assert judged(running(at(P1)), entry) == ("unknown", "rate_limited")
    assert judged(running(at(I1)), entry) == ("current", "digest_equal")


@pytest.mark.parametrize("media_type", ["application/vnd.oci.image.index.v1+json", "application/json", "", None])
def test_B1_without_children_only_a_plain_manifest_can_differ(media_type):
    entry = published(I1, children=None, media_type=media_type)
    assert judged(running(at(P1)), entry)[0] == "unknown"
    assert judged(running(at(P1)), {**entry, "media_type": OCI_MANIFEST}) == ("stale", "digest_differs")


def test_B2_the_order_of_an_index_changes_no_verdict():
    container_ = running(at(P1))
    for children in ((P1, P2), (P2, P1)):
        assert judged(container_, published(children=children)) == ("current", "platform_equal")


def test_B3_an_index_and_a_config_never_differ():
    result = verdict.decide(running(C1), pushed())
    assert (result.verdict, result.candidate, result.rolls) == ("unknown", None, False)


def test_B5_the_pod_has_the_index_and_the_registry_a_child_of_it():
    entry = published(I1, platform_digest=P1, platform="linux/amd64")
    assert judged(running(at(I1)), entry) == ("current", "digest_equal")


@pytest.mark.parametrize("images", [(P1, P2), (P2, P1)])
def test_B6_an_index_pushed_again_with_the_same_images_rolls_nothing(images):
    entry = published(I2, children=(P1, P2), compared={I1: list(images)})
    assert judged(running(at(I1)), entry) == ("current", "index_changed_only")


def test_B6_an_index_with_one_other_image_rolls():
    entry = published(I2, children=(P1, Q2), compared={I1: [P1, P2]})
    assert judged(running(at(I1)), entry) == ("stale", "digest_differs")


def test_B12_only_the_attestations_changed():
    # registry_digest leaves attestations out of children and of what it compares
    entry = published(I2, children=(P1,), compared={I1: [P1]})
    assert judged(running(at(I1)), entry) == ("current", "index_changed_only")


def test_B6_an_index_around_the_one_image_that_was_pushed_alone():
    entry = published(P1, children=(), compared={I1: [P1]})
    assert judged(running(at(I1)), entry) == ("current", "index_changed_only")


def test_what_is_gone_from_the_registry_is_no_reason_to_stay():
    assert judged(running(at(I1)), pushed(compared={})) == ("stale", "digest_differs")


def test_C15_a_digest_that_cannot_be_pulled_is_held_though_its_children_were_not_read():
    entry = published(I2, children=None, pullable=False, pullable_msg="404")
    assert judged(running(at(I1)), entry) == ("stale", "not_pullable")


def test_B8_the_candidate_is_the_index_and_not_a_child():
    result = verdict.decide(running(at(P1), at(P2)), pushed(platform_digest=Q1))
    assert (result.reason, result.candidate) == ("digest_differs", I2)


def test_C15_a_digest_that_cannot_be_pulled_is_not_rolled():
    result = verdict.decide(running(at(I1)), pushed(pullable=False, pullable_msg="404 for the digest"))
    assert (result.verdict, result.reason, result.candidate) == ("stale", "not_pullable", I2)
    assert not result.rolls
    assert "404 for the digest" in result.message


def test_D4_a_tag_with_a_digest_is_followed_by_its_tag():
    found = running(at(I1), image=f"{REPOSITORY}:1@{I1}")
    assert found["pinned"] is None
    assert judged(found, published()) == ("current", "digest_equal")


def test_D6_a_digest_alone_is_pinned():
    result = verdict.decide(running(at(I1), image=at(I1)), None)
    assert (result.verdict, result.reason, result.rolls) == ("current", "pinned", False)


def test_J1_a_push_while_nothing_watched_is_rolled_once():
    assert judged(running(at(I1)), pushed()) == ("stale", "digest_differs")
    owner = workload(containers=[container(image=at(I2))], annotations=annotation(app=followed(I2)))
    one, between = pod_of(owner, at(I2))
    (found,) = inspect(owner, one, *between)
    assert found["reference"] == IMAGE
    assert judged(found, pushed()) == ("current", "digest_equal")


@pytest.mark.parametrize(("complete", "reason"), [(True, "no_effect"), (False, "rollout_in_progress")])
def test_J4_pods_that_keep_the_old_digest_are_not_rolled_again(complete, reason):
    owner = workload(containers=[container(image=at(I2))], annotations=annotation(app=followed(I2)))
    owner["status"]["updatedReplicas"] = 1 if complete else 0
    one, between = pod_of(owner, at(I1))
    (found,) = inspect(owner, one, *between)
    result = verdict.decide(found, pushed())
    assert (result.verdict, result.reason) == ("stale", reason)
    assert not result.rolls


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
    assert judged(stuck(I1, "ContainerCreating"), pushed()) == ("stale", "rollout_in_progress")
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
    return {**found, "rollout": {**found["rollout"], "complete": False, "updated": 0}}


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

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Owners, garbage collection, deletion."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

EVERYTHING = {
    "managed": True,
    "access": [{"role": "edit", "groups": ["devs"]}],
    "pullSecrets": [{"name": "regcred"}],
    "labels": {"team": "a"},
    "annotations": {"contact": "a@example.com"},
    "podSecurity": {"enforce": "baseline"},
}
NAMESPACE = ("Namespace", None, "team-a")


def provided(**spec):
    """A cluster with a namespace of which everything is asked."""
    api = builders.cluster(builders.secret(), builders.nspro(**{**EVERYTHING, **spec}))
    builders.settled(api)
    return api


def adopted(**spec):
    """One whose namespace was there before, with something in it."""
    api = builders.cluster(builders.secret(), builders.nspro(**{**EVERYTHING, "adoption": "Always", **spec}))
    labels = {"owner": "finance", "team": "a"}
    api.put(builders.adoptable("team-a", labels=labels), "finance")
    api.put(builders.quota("team-a", {"limits.cpu": "8", "pods": "50"}), "finance")
    api.put(builders.policy("team-a", "theirs", [{}]), "finance")
    builders.settled(api)
    return api


def mark_deleted(api, home=HOME, name="team-a"):
    """The Nspro is being deleted and waits for its finalizer."""
    api.objects[("Nspro", home, name)]["metadata"]["deletionTimestamp"] = builders.NOW


def owners(api):
    return [obj["metadata"]["ownerReferences"] for obj in api.objects.values() if "ownerReferences" in obj["metadata"]]


def test_nothing_is_owned_by_a_resource_in_a_namespace():
    api = provided()
    assert owners(api) == []
    assert builders.claim_of(api, "team-a").by == f"{HOME}/team-a"


def test_what_the_operators_proxy_would_inject_into_is_created_once_and_holds_a_claim():
    """It injects into a POST alone, and into a Namespace only an annotation; everything else is an apply."""
    api = builders.cluster(builders.secret(), builders.nspro(**EVERYTHING))
    builders.one_pass(api)
    assert [line for line in api.writes if line.startswith("create ")] == ["create Namespace/team-a"]
    api.edit(
        *NAMESPACE,
        lambda obj: obj["metadata"]["annotations"].update({"operator-sdk/primary-resource": "ops/team-a"}),
    )
    builders.settled(api)
    mark_deleted(api)
    told = builders.one_pass(api, name="team-a")
    assert (builders.only(told).state, builders.writes(api)) == ("terminating", ["delete Namespace/team-a"])


def test_a_garbage_collector_that_starts_anew_finds_nothing_to_collect():
    api = provided()
    for obj in api.objects.values():
        # an owner that is not in the same namespace is absent for it
        assert not obj["metadata"].get("ownerReferences")
        assert not obj["metadata"].get("finalizers")
    before = api.dump()
    builders.one_pass(api)
    assert api.dump() == before


@pytest.mark.parametrize("deletion", ["Keep", "Delete"])
def test_foreground_deletion_finds_no_owner_to_follow(deletion):
    api = provided(deletion=deletion)
    meta = api.objects[("Nspro", HOME, "team-a")]["metadata"]
    meta.update(deletionTimestamp=builders.NOW, finalizers=["foregroundDeletion", "nspro.example.com/cleanup"])
    told = builders.one_pass(api, name="team-a")
    if deletion == "Delete":
        assert builders.only(told).state == "terminating"
        return
    assert builders.only(told).state == "released"
    assert "deletionTimestamp" not in api.objects[NAMESPACE]["metadata"]
    assert {key[0] for key in api.objects if key[1] == "team-a"} == {"ServiceAccount"}


def test_deleting_the_resource_keeps_a_namespace_that_was_there_before():
    api = adopted()
    assert builders.claim_of(api, "team-a").origin == "adopted"
    mark_deleted(api)
    told = builders.one_pass(api, name="team-a")
    assert builders.only(told).state == "released"
    meta = api.objects[NAMESPACE]["metadata"]
    assert meta["labels"] == {"kubernetes.io/metadata.name": "team-a", "owner": "finance", "team": "a"}
    assert meta["annotations"] == {claims.ADOPTABLE: f"{HOME}/team-a"}
    there = {key[0]: obj for key, obj in api.objects.items() if key[1] == "team-a"}
    assert there.keys() == {"ServiceAccount", "ResourceQuota", "NetworkPolicy"}
    assert there["NetworkPolicy"]["metadata"]["name"] == "theirs"
    # theirs, and without our mark: it may not be taken for ours by whoever is next
    assert there["ResourceQuota"]["metadata"]["labels"] == {}
    assert there["ResourceQuota"]["spec"]["hard"]["pods"] == "50"


def test_what_was_adopted_twice_is_still_not_ours():
    api = adopted()
    builders.one_pass(api, state="released")
    builders.settled(api)
    assert "ResourceQuota/team-a-quota" in builders.claim_of(api, "team-a").kept
    builders.one_pass(api, state="released")
    assert ("ResourceQuota", "team-a", "team-a-quota") in api.objects


def test_what_was_there_before_stays_when_it_is_no_longer_wanted():
    resource = builders.nspro(access=[{"role": "edit", "groups": ["devs"]}], adoption="Always")
    api = builders.cluster(resource, builders.adoptable("team-a"))
    api.put(builders.binding("team-a", "kubesteward-edit", "edit"), "finance")
    builders.settled(api)
    assert "RoleBinding/kubesteward-edit" in builders.claim_of(api, "team-a").kept
    api.objects["Nspro", HOME, "team-a"]["spec"]["access"] = []
    builders.settled(api)
    assert ("RoleBinding", "team-a", "kubesteward-edit") in api.objects


def test_an_object_that_its_owner_removed_since_is_ours_when_we_make_it():
    api = adopted()
    api.remove("ResourceQuota", "team-a", "team-a-quota")
    builders.settled(api)
    assert builders.claim_of(api, "team-a").kept == ("labels/team",)
    builders.one_pass(api, state="released")
    assert ("ResourceQuota", "team-a", "team-a-quota") not in api.objects


def test_a_stale_nspro_never_takes_an_adopted_namespace_along():
    """Its Nspro is gone for good, finalizer or not, and nobody remembers it."""
    api = adopted()
    api.remove("Nspro", HOME, "team-a")
    told = builders.one_pass(api)
    assert builders.only(told).state == "released"
    assert "deletionTimestamp" not in api.objects[NAMESPACE]["metadata"]


def test_what_needs_us_goes_before_the_claim():
    api = provided(deletion="Keep")
    mark_deleted(api)
    builders.one_pass(api, name="team-a")
    lines = builders.writes(api)
    assert lines[0] == "patch ServiceAccount/team-a/default"
    assert lines[-1] == "patch Namespace/team-a"


def test_letting_go_of_what_is_not_there_is_no_failure():
    api = builders.cluster(builders.nspro())
    mark_deleted(api)
    told = builders.one_pass(api, name="team-a")
    assert (builders.only(told).state, builders.only(told).reason, told.errors) == ("absent", "gone", [])
    assert builders.writes(api) == []


def test_letting_go_of_what_is_terminating_is_no_failure():
    api = provided(deletion="Keep")
    api.remove(*NAMESPACE)
    mark_deleted(api)
    told = builders.one_pass(api, name="team-a")
    assert (builders.only(told).state, builders.only(told).error) == ("terminating", "")
    assert builders.writes(api) == []


def test_a_namespace_that_begins_to_go_during_the_release_is_no_failure():
    api = provided(deletion="Keep")

    def hook(verb, target):
        if verb == "delete":
            raise refused(403, "is being terminated", "NamespaceTerminating")

    api.before = hook
    result = builders.only(builders.one_pass(api, state="absent"))
    assert (result.state, result.error) == ("terminating", "")


def test_a_terminating_namespace_is_waited_for_and_comes_back():
    api = provided()
    api.events.clear()
    api.remove(*NAMESPACE)
    for _pass in range(3):
        told = builders.one_pass(api)
        assert (builders.only(told).state, builders.only(told).error, builders.writes(api)) == ("terminating", "", [])
    assert [event["reason"] for event in api.events] == ["Terminating"]
    api.finish("team-a")
    builders.one_pass(api)
    assert builders.writes(api)[0] == "create Namespace/team-a"
    assert builders.only(builders.settled(api)).state == "ready"


def test_access_is_taken_away_last():
    api = provided(deletion="Keep")
    builders.one_pass(api, state="released")
    kinds = [line.split()[1].split("/")[0] for line in builders.writes(api)]
    assert kinds == [
        "ServiceAccount",
        "NetworkPolicy",
        "LimitRange",
        "ResourceQuota",
        "Secret",
        "RoleBinding",
        "Namespace",
    ]


def test_access_stays_where_something_else_could_not_be_removed():
    api = provided(deletion="Keep")

    def hook(verb, target):
        if verb == "delete" and target.kind == "ResourceQuota":
            raise refused(403, "a policy forbids it")

    api.before = hook
    result = builders.only(builders.one_pass(api, state="released"))
    assert (result.state, result.error) == ("pending", "a policy forbids it")
    there = {key[0] for key in api.objects if key[1] == "team-a"}
    assert there == {"ServiceAccount", "ResourceQuota", "RoleBinding"}
    assert builders.claim_of(api, "team-a").by == f"{HOME}/team-a"


@pytest.mark.parametrize("value", ["", "true", "false"])
def test_a_guarded_namespace_is_never_deleted(value):
    api = provided(deletion="Delete")
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["annotations"].update({claims.GUARD: value}))
    mark_deleted(api)
    result = builders.only(builders.one_pass(api))
    assert result.state == "released"
    assert claims.GUARD in result.msg
    assert api.objects[NAMESPACE]["metadata"]["annotations"] == {claims.GUARD: value}


def test_a_guard_that_comes_between_our_read_and_the_deletion_counts():
    api = provided(deletion="Delete")
    mark_deleted(api)

    def guard(verb, target):
        if (verb, target.kind) == ("delete", "Namespace"):
            api.before = lambda verb, target: None
            api.edit(*NAMESPACE, lambda obj: obj["metadata"]["annotations"].update({claims.GUARD: ""}))

    api.before = guard
    assert builders.only(builders.one_pass(api)).state == "released"
    assert NAMESPACE in api.objects


@pytest.mark.parametrize(
    ("origin", "spec", "kept"), [("created", "", False), ("adopted", "", True), ("created", "Keep", True)]
)
def test_what_becomes_of_a_namespace_is_in_its_claim(origin, spec, kept):
    assert claims.policy(origin, spec) == ("Keep" if kept else "Delete")
    api = (provided if origin == "created" else adopted)(**({"deletion": spec} if spec else {}))
    text = api.objects[NAMESPACE]["metadata"]["annotations"][claims.CLAIM]
    assert json.loads(text)["deletion"] == claims.policy(origin, spec)


def test_a_spec_that_says_keep_counts_also_where_no_pass_has_seen_it():
    api = provided()
    api.put(builders.nspro(**EVERYTHING, deletion="Keep"))
    mark_deleted(api)
    assert builders.only(builders.one_pass(api)).state == "released"


def test_no_finalizer_is_put_on_a_namespace():
    api = provided()
    assert "finalizers" not in api.objects[NAMESPACE]["metadata"]
    assert "finalizers" not in api.objects[NAMESPACE].get("spec", {})


def test_nothing_that_is_written_asks_for_the_right_to_block_an_owners_deletion():
    api = builders.cluster(builders.secret(), builders.nspro(**EVERYTHING))
    written = []
    create, apply = api.create, api.apply
    api.create = lambda obj, **others: written.append(obj) or create(obj, **others)
    api.apply = lambda obj, *more, **others: written.append(obj) or apply(obj, *more, **others)
    builders.one_pass(api)
    assert len(written) > 6
    assert not [obj for obj in written if "blockOwnerDeletion" in json.dumps(obj) or "ownerRef" in json.dumps(obj)]


def test_a_binding_of_ours_whose_label_somebody_took_away_goes_all_the_same():
    api = provided(deletion="Keep")
    key = ("RoleBinding", "team-a", "kubesteward-edit")
    api.edit(*key, lambda obj: obj["metadata"].pop("labels"), "tenant")
    builders.one_pass(api, state="released")
    assert key not in api.objects


def test_what_was_given_back_is_not_ours_for_the_traces_that_we_left_on_it():
    api = adopted()
    builders.one_pass(api, state="released")
    api.put(builders.nspro(adoption="Always", limitRange={"enabled": False}))
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "team-a-limits", "namespace": "team-a"}}
    api.put({**limits, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}, "kubesteward")
    builders.settled(api)
    builders.one_pass(api, state="released")
    assert ("LimitRange", "team-a", "team-a-limits") in api.objects

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims through the lives of Nspros and namespaces: two claimants, orphans, backups, whole namespaces that go."""

from __future__ import annotations

import copy
import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import nspros
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

NAMESPACE = ("Namespace", None, "team-a")


def provided(*more, **spec):
    api = builders.cluster(*more, builders.nspro(**spec))
    builders.settled(api)
    return api


def two_claimants():
    """Nspros of the same name in two namespaces; the one in `ops` was first."""
    api = provided(builders.namespace("dev"))
    api.put(builders.nspro("team-a", "large", home="dev"))
    return api


def exists(api):
    return NAMESPACE in api.objects and "deletionTimestamp" not in api.objects[NAMESPACE]["metadata"]


def test_the_second_claimant_is_told_who_holds_it_and_changes_nothing():
    api = two_claimants()
    before = api.dump("dev")
    result = builders.only(builders.one_pass(api, home="dev"))
    assert result.state == "conflict"
    assert "Nspro ops/team-a" in result.msg
    assert (builders.writes(api), api.dump("dev")) == ([], before)
    assert builders.condition(api, "team-a", "Conflict", "dev")["status"] == "True"


def test_the_second_claimant_takes_over_by_itself_when_the_first_goes():
    api = two_claimants()
    api.remove("Nspro", HOME, "team-a")
    builders.one_pass(api)
    assert builders.only(builders.one_pass(api, home="dev")).state == "terminating"
    api.finish("team-a")
    builders.one_pass(api, home="dev")
    assert builders.claim_of(api, "team-a").by == "dev/team-a"
    assert api.objects[NAMESPACE]["metadata"]["labels"]["size"] == "large"
    assert builders.condition(api, "team-a", "Conflict", "dev")["status"] == "False"


def test_the_second_claimant_going_takes_nothing_along():
    api = two_claimants()
    builders.one_pass(api, home="dev")
    api.objects[("Nspro", "dev", "team-a")]["metadata"]["deletionTimestamp"] = builders.NOW
    before = api.dump("dev")
    result = builders.only(builders.one_pass(api, home="dev"))
    assert (result.state, result.reason, builders.writes(api)) == ("absent", "foreign", [])
    assert api.dump("dev") == before


def test_a_playbook_and_a_nspro_do_not_take_each_others_namespaces():
    api = provided()
    told = builders.provision(api, name="team-a", size="large")
    assert (builders.only(told).state, api.writes) == ("conflict", [])
    told = builders.provision(api, name="team-a", state="absent")
    assert (builders.only(told).reason, api.writes) == ("foreign", [])
    builders.provision(api, name="team-b", size="small")
    api.put(builders.nspro("team-b"))
    assert "held by a playbook" in builders.by_name(builders.one_pass(api))["team-b"].msg


@pytest.mark.parametrize(("state", "left"), [("absent", "terminating"), ("released", "released")])
def test_a_playbook_lets_go_of_what_it_made(state, left):
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small", labels={"team": "a"})
    told = builders.provision(api, name="team-a", state=state)
    assert builders.only(told).state == left
    assert exists(api) == (state == "released")
    if state == "released":
        assert {key[0] for key in api.objects if key[1] == "team-a"} == {"ServiceAccount"}
        assert api.objects[NAMESPACE]["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team-a"}
        assert api.objects[NAMESPACE]["metadata"]["annotations"] == {}
    assert builders.only(builders.provision(api, name="team-a", state=state)).done == []


def test_in_the_name_of_a_nspro_a_playbook_does_what_its_pass_would():
    api, other = provided(), builders.cluster()
    builders.provision(other, name="team-a", size="small", claim={"namespace": HOME, "name": "team-a"})
    assert builders.claim_of(other, "team-a") == builders.claim_of(api, "team-a")


# orphans


@pytest.mark.parametrize(("deletion", "state"), [("Delete", "terminating"), ("Keep", "released")])
def test_a_pass_lets_go_of_what_a_nspro_without_finalizer_left(deletion, state):
    api = provided(builders.nspro("team-b"), deletion=deletion)
    others = api.dump("team-a", HOME)
    api.remove("Nspro", HOME, "team-a")
    found = builders.by_name(builders.one_pass(api))
    assert found["team-a"].state == state
    assert found["team-b"].state == "ready"
    assert api.dump("team-a", HOME) == others


def test_a_pass_for_one_nspro_looks_for_no_orphans():
    api = provided(builders.nspro("team-b"))
    api.remove("Nspro", HOME, "team-a")
    builders.one_pass(api, name="team-b")
    assert exists(api)
    assert "list Namespace" not in api.requests


def test_a_pass_of_one_namespace_leaves_the_orphans_of_others():
    api = provided(builders.namespace("dev"))
    api.remove("Nspro", HOME, "team-a")
    assert builders.one_pass(api, home="dev").results == []
    assert exists(api)


def test_a_nspro_that_is_made_between_the_two_lists_keeps_its_namespace():
    api = provided()
    resource = api.objects.pop(("Nspro", HOME, "team-a"))

    def hook(verb, target):
        if verb == "list" and target.kind == "Namespace":
            api.objects[("Nspro", HOME, "team-a")] = resource

    api.before = hook
    assert builders.one_pass(api).results == []
    assert (builders.writes(api), exists(api)) == ([], True)


def test_one_that_is_made_after_the_look_is_deleted_by_no_uid_but_its_own():
    """The Namespace was deleted and made again by somebody else since it was read."""
    api = provided()
    api.remove("Nspro", HOME, "team-a")

    def hook(verb, target):
        if verb == "delete" and target.kind == "Namespace":
            api.finish("team-a")
            api.put(builders.namespace("team-a", labels={"of": "others"}), "helm")

    api.before = hook
    builders.one_pass(api)
    assert exists(api)


def test_check_mode_lets_go_of_nothing():
    api = provided()
    api.remove("Nspro", HOME, "team-a")
    before = api.dump()
    told = builders.one_pass(api, check_mode=True)
    assert [(item.action, item.kind) for item in builders.only(told).done] == [("delete", "Namespace")]
    assert (api.writes, api.dump()) == ([], before)


# when more than the Nspro goes


def goes(api, what):
    """The Nspros' own namespace begins to go, or is gone."""
    api.remove("Namespace", None, HOME)
    if what.endswith("gone"):
        api.finish(HOME)


@pytest.mark.parametrize("what", ["namespace", "namespace gone"])
def test_where_the_nspros_namespace_goes_nothing_is_deleted(what):
    api = provided(deletion="Delete")
    api.remove("Nspro", HOME, "team-a")
    goes(api, what)
    result = builders.only(builders.one_pass(api))
    assert result.state == "released"
    assert "its own namespace ops" in result.msg
    assert exists(api)
    assert builders.claim_of(api, "team-a") is None


def test_so_it_is_where_its_finalizer_waits_for_us():
    api = provided(deletion="Delete")
    goes(api, "namespace")
    api.objects[("Nspro", HOME, "team-a")]["metadata"]["deletionTimestamp"] = builders.NOW
    assert builders.only(builders.one_pass(api, name="team-a", state="absent")).state == "released"
    assert exists(api)


def test_a_namespace_of_nspros_that_goes_during_the_pass_keeps_what_theirs_made():
    """One Nspro goes for itself, and why was asked; then their whole namespace goes, and another Nspro with it."""
    api = provided(builders.nspro("team-b"), deletion="Delete")
    api.objects[("Nspro", HOME, "team-b")]["metadata"]["deletionTimestamp"] = builders.NOW
    api.objects.pop(("Nspro", HOME, "team-a"))

    def hook(verb, target):
        if verb == "delete" and target.name == "team-b":
            api.remove("Namespace", None, HOME)

    api.before = hook
    found = builders.by_name(builders.one_pass(api))
    assert found["team-b"].state == "terminating"
    assert found["team-a"].state == "released"
    assert exists(api)


@pytest.mark.parametrize("kind", ["CustomResourceDefinition", "Namespace"])
def test_where_nobody_can_say_why_it_goes_nothing_is_deleted(kind):
    api = provided(deletion="Delete")
    api.remove("Nspro", HOME, "team-a")

    def hook(verb, target):
        if verb == "get" and target.kind == kind and target.name in (HOME, nspros.CRD):
            raise refused(403, "no")

    api.before = hook
    result = builders.only(builders.one_pass(api))
    assert (result.state, result.error) == ("pending", "no")
    assert exists(api)


# backups, and claims that somebody wrote by hand


def restored(api, with_managers):
    """Everything has new UIDs, and perhaps another manager."""
    for key, obj in list(api.objects.items()):
        if key[1] == "team-a" or key == NAMESPACE:
            saved = copy.deepcopy(obj)
            if not with_managers:
                api.owners.pop(key)
                api.objects.pop(key)
            api.put(saved, "velero", uid=f"new-{key}")


@pytest.mark.parametrize("with_managers", [True, False])
def test_what_is_restored_from_a_backup_is_ours_as_before(with_managers):
    spec = {"access": [{"role": "edit", "groups": ["devs"]}], "pullSecrets": [{"name": "regcred"}]}
    api = provided(builders.secret(), **spec)
    restored(api, with_managers)
    told = builders.one_pass(api)
    assert (builders.only(told).state, api.writes) == ("ready", [])
    api.put(builders.nspro(nssize="large"))
    builders.settled(api)
    assert builders.only(builders.settled(api)).state == "ready"
    api.remove("Nspro", HOME, "team-a")
    assert builders.only(builders.one_pass(api)).state == "terminating"


def test_a_nspro_that_is_restored_with_a_new_uid_holds_its_namespace_again():
    api = provided()
    api.remove("Nspro", HOME, "team-a")
    api.put(builders.nspro(), uid="another")
    told = builders.one_pass(api)
    assert builders.only(told).state == "ready"
    assert builders.writes(api) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"ops/team-a"',
        '{"by": "ops/team-a"}',
        '{"by": 1, "origin": "created", "deletion": "Delete"}',
        '{"by": "ops/team-a", "origin": "found", "deletion": "Delete"}',
        '{"by": "ops/team-a", "origin": "created", "deletion": "Perhaps"}',
        '{"by": "ops/../../x", "origin": "created", "deletion": "Delete"}',
        '{"by": "ops/", "origin": "created", "deletion": "Delete"}',
        '{"by": "ops/team-a", "origin": "created", "deletion": "Delete", "links": {"../x": ["default"]}}',
        '{"by": "ops/team-a", "origin": "created", "deletion": "Delete", "links": {"x": ["../../y"]}}',
        '{"by": "ops/team-a", "origin": "created", "deletion": "Delete", "links": ["x"]}',
        '{"by": "ops/team-a", "origin": "created", "deletion": "Delete", "labels": 5}',
    ],
)
def test_a_claim_that_nobody_can_read_is_somebodys_and_stops_no_other(text):
    api = provided(builders.nspro("team-b"))
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["annotations"].update({claims.CLAIM: text}))
    before = api.dump(HOME)
    found = builders.by_name(builders.one_pass(api))
    assert (found["team-a"].state, found["team-b"].state) == ("conflict", "ready")
    assert "held by Nspro unknown" in found["team-a"].msg
    api.remove("Nspro", HOME, "team-a")
    builders.one_pass(api)
    assert api.dump(HOME) == before


def test_a_claim_is_read_as_it_was_written():
    claim = claims.Claim("a/b", "adopted", "Keep", ("x", "y"), ("z",), ("Secret/s",), {"s": ("builder", "default")})
    text = claim.render()
    assert claims.read(builders.namespace("n", annotations={claims.CLAIM: text})) == claim
    assert json.loads(claims.Claim("playbook", "created", "Delete").render()) == {
        "by": "playbook",
        "origin": "created",
        "deletion": "Delete",
    }


def test_a_nspro_that_must_be_there_and_is_not_is_an_error():
    api = builders.cluster()
    with pytest.raises(StewardError, match="There is no Nspro team-z in namespace ops"):
        builders.provision(api, nspros={"namespace": HOME, "name": "team-z"})


# status and Events


def test_a_status_is_written_on_change_only_and_events_once():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    assert [event["reason"] for event in api.events] == ["NamespaceCreated", "Ready"]
    status = copy.deepcopy(api.objects[("Nspro", HOME, "team-a")]["status"])
    told = builders.one_pass(api, now=builders.LATER)
    assert (told.statuses, api.writes, len(api.events)) == ({}, [], 2)
    assert api.objects[("Nspro", HOME, "team-a")]["status"] == status
    assert (status["phase"], status["cpu"], status["memory"]) == ("Ready", "0/100m", "0/100Mi")


def test_a_repair_is_told_with_what_was_repaired():
    api = provided()
    api.events.clear()
    api.edit("ResourceQuota", "team-a", "team-a-quota", lambda obj: obj["spec"]["hard"].update({"limits.cpu": "9"}))
    builders.one_pass(api)
    assert [(event["reason"], event["message"]) for event in api.events] == [
        ("Changed", "wrote ResourceQuota/team-a-quota")
    ]


def test_conditions_of_the_operator_itself_survive():
    api = builders.cluster(builders.nspro())
    running = {"type": "Running", "status": "True", "reason": "Running", "message": ""}
    api.objects[("Nspro", HOME, "team-a")]["status"] = {"conditions": [running]}
    builders.settled(api)
    kinds = [item["type"] for item in api.objects[("Nspro", HOME, "team-a")]["status"]["conditions"]]
    assert kinds == ["Running", "Ready", "QuotaApplied", "NetworkPolicyApplied", "ShrinkBlocked", "Conflict"]


def test_a_condition_keeps_the_time_since_when_it_is_so():
    api = provided()
    since = builders.condition(api, "team-a", "Conflict")["lastTransitionTime"]
    api.put(builders.nspro(nssize="large"))
    builders.settled(api, now=builders.LATER)
    assert builders.condition(api, "team-a", "Conflict")["lastTransitionTime"] == since == builders.NOW


def test_a_guard_that_comes_between_our_look_and_the_deletion_holds():
    api = provided()
    api.remove("Nspro", HOME, "team-a")

    def hook(verb, target):
        if verb == "delete" and target.kind == "Namespace":
            api.before = lambda verb, target: None
            api.edit(*NAMESPACE, lambda obj: obj["metadata"]["annotations"].update({claims.GUARD: ""}), "admin")

    api.before = hook
    assert builders.only(builders.one_pass(api)).state == "released"
    assert exists(api)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever goes wrong in a pass: the rest is done, the result says what is not, and the next pass ends right."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import provision, report
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

TEAMS = ("team-a", "team-b", "team-c")
SPEC = {
    "managed": True,
    "access": [{"role": "edit", "groups": ["devs"]}],
    "pullSecrets": [{"name": "regcred"}],
    "labels": {"team": "a"},
}


def three():
    """A cluster with three Nspros that ask for everything, and objects of others in one of the namespaces."""
    return builders.cluster(builders.secret(), *(builders.nspro(name, **SPEC) for name in TEAMS))


def finished(api):
    """The namespaces as they are after undisturbed passes."""
    api.before = lambda verb, target: None
    builders.settled(api)
    found = {}
    for key, obj in api.objects.items():
        if key[0] not in ("Nspro", "CustomResourceDefinition"):
            meta = {field: obj["metadata"].get(field) for field in ("labels", "annotations")}
            body = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
            found["/".join(map(str, key))] = [meta, body]
    return json.dumps(found, sort_keys=True)


UNDISTURBED = finished(three())


def failing(error, verbs=("create", "apply", "patch", "delete"), **where):
    """A hook that refuses what fits."""

    def hook(verb, target):
        if verb in verbs and all(getattr(target, key) == value for key, value in where.items()):
            raise error

    return hook


@pytest.mark.parametrize(
    "kind", ["Namespace", "ResourceQuota", "LimitRange", "NetworkPolicy", "Secret", "RoleBinding", "ServiceAccount"]
)
@pytest.mark.parametrize(
    ("status", "reason"), [(403, "forbidden"), (429, "api_error"), (500, "api_error"), (0, "unreachable")]
)
def test_a_write_that_is_refused_stops_no_other_namespace(kind, status, reason):
    api = three()
    others = api.dump(*TEAMS, HOME)
    where = {"name": "team-b"} if kind == "Namespace" else {"namespace": "team-b"}
    api.before = failing(refused(status, f"no {kind} for you"), kind=kind, **where)
    builders.one_pass(api)
    told = builders.one_pass(api)
    found = builders.by_name(told)
    assert (found["team-a"].state, found["team-c"].state) == ("ready", "ready")
    assert (found["team-b"].state, found["team-b"].reason) == ("pending", reason)
    assert f"no {kind} for you" in found["team-b"].error
    assert f"no {kind} for you" in builders.condition(api, "team-b", "Ready")["message"]
    assert api.dump(*TEAMS, HOME) == others
    assert finished(api) == UNDISTURBED


@pytest.mark.parametrize("kind", ["Secret", "RoleBinding", "LimitRange"])
def test_one_object_that_is_refused_stops_only_what_relies_on_it(kind):
    api = three()
    api.before = failing(refused(403, "no"), kind=kind, namespace="team-b")
    builders.one_pass(api)
    there = {key[0] for key in api.objects if key[1] == "team-b"}
    everything = {"ResourceQuota", "LimitRange", "NetworkPolicy", "Secret", "RoleBinding", "ServiceAccount"}
    # nobody is let in before every guard stands
    missing = {"LimitRange", "RoleBinding"} if kind == "LimitRange" else {kind}
    assert there == everything - missing


def test_a_new_access_that_is_refused_leaves_the_old_one():
    api = builders.cluster(builders.nspro(access=[{"role": "edit", "groups": ["devs"]}]))
    builders.settled(api)
    api.put(builders.nspro(access=[{"role": "view", "groups": ["devs"]}]))
    api.before = failing(refused(403, "no bind"), kind="RoleBinding", name="kubesteward-view")
    assert builders.only(builders.one_pass(api)).reason == "forbidden"
    assert ("RoleBinding", "team-a", "kubesteward-edit") in api.objects
    api.before = lambda verb, target: None
    builders.settled(api)
    assert [key[2] for key in api.objects if key[0] == "RoleBinding"] == ["kubesteward-view"]


@pytest.mark.parametrize("kind", ["Namespace", "Secret", "ResourceQuota", "ServiceAccount"])
@pytest.mark.parametrize("status", [403, 0])
def test_a_read_that_is_refused_changes_nothing_there(kind, status):
    api = three()
    builders.settled(api)
    before = api.dump(HOME)
    where = {"name": "team-b"} if kind == "Namespace" else {"namespace": "team-b"}
    api.before = failing(refused(status, "no"), ("get", "list"), kind=kind, **where)
    found = builders.by_name(builders.one_pass(api))
    assert [found[name].state for name in TEAMS] == ["ready", "pending", "ready"]
    assert found["team-b"].error == "no"
    assert api.dump(HOME) == before


@pytest.mark.parametrize("after", range(1, 26))
def test_an_api_that_goes_away_at_any_request_is_made_good_by_the_next_pass(after):
    api = three()
    others = api.dump(*TEAMS, HOME)
    count = 0

    def gone(verb, target):
        nonlocal count
        count += 1
        if count > after:
            raise refused(0, "the API server did not answer")

    api.before = gone
    told = builders.one_pass(api)
    errors = told.errors + [item.error for item in told.results if item.error]
    assert any("did not answer" in text for text in errors)
    assert api.dump(*TEAMS, HOME) == others
    assert finished(api) == UNDISTURBED


@pytest.mark.parametrize("after", range(1, 7))
def test_an_api_that_goes_away_while_things_are_taken_away_is_made_good(after):
    """What is no longer wanted goes in the end, although the claim was written before."""
    api = builders.cluster(builders.secret(), builders.nspro(**SPEC))
    builders.settled(api)
    api.put_account("team-a", "default", ["regcred", "platform"])
    api.put(builders.nspro())
    writes = 0

    def gone(verb, target):
        nonlocal writes
        writes += verb in ("create", "apply", "patch", "delete")
        if writes >= after:
            raise refused(0, "the API server did not answer")

    api.before = gone
    builders.one_pass(api)
    api.before = lambda verb, target: None
    builders.settled(api)
    there = {(key[0], key[2]) for key in api.objects if key[1] == "team-a"}
    assert not {("Secret", "regcred"), ("RoleBinding", "kubesteward-edit")} & there
    assert api.objects[("ServiceAccount", "team-a", "default")]["imagePullSecrets"] == [{"name": "platform"}]
    assert builders.claim_of(api, "team-a").links == {}
    assert "team" not in api.objects[("Namespace", None, "team-a")]["metadata"]["labels"]


@pytest.mark.parametrize("after", range(1, 8))
def test_an_api_that_goes_away_during_a_release_is_made_good(after):
    api = builders.cluster(builders.secret(), builders.nspro(**SPEC, adoption="Always"), builders.adoptable("team-a"))
    builders.settled(api)
    writes = 0

    def gone(verb, target):
        nonlocal writes
        writes += verb in ("create", "apply", "patch", "delete")
        if writes >= after:
            raise refused(0, "the API server did not answer")

    api.before = gone
    builders.one_pass(api, state="released")
    api.before = lambda verb, target: None
    builders.one_pass(api, state="released")
    builders.one_pass(api, state="released")
    assert {key[0] for key in api.objects if key[1] == "team-a"} == {"ServiceAccount"}
    assert builders.claim_of(api, "team-a") is None
    assert not api.objects[("ServiceAccount", "team-a", "default")].get("imagePullSecrets")


@pytest.mark.parametrize("after", range(1, 7))
def test_an_api_that_goes_away_during_an_adoption_is_made_good(after):
    """What was there stays known as theirs, although the pass that found it did not come to mark it."""
    api = builders.cluster(builders.secret(), builders.nspro(**SPEC, adoption="Always"), builders.adoptable("team-a"))
    api.put(builders.quota("team-a", {"limits.cpu": "8"}), "finance")
    api.put(builders.policy("team-a", "team-a-np", [{}]), "finance")
    writes = 0

    def gone(verb, target):
        nonlocal writes
        writes += verb in ("create", "apply", "patch", "delete")
        if writes >= after:
            raise refused(0, "the API server did not answer")

    api.before = gone
    builders.one_pass(api)
    api.before = lambda verb, target: None
    assert builders.only(builders.settled(api)).state == "ready"
    assert {"ResourceQuota/team-a-quota", "NetworkPolicy/team-a-np"} <= set(builders.claim_of(api, "team-a").kept)
    builders.one_pass(api, state="released")
    assert {key[0] for key in api.objects if key[1] == "team-a"} == {"ServiceAccount", "ResourceQuota", "NetworkPolicy"}


def test_a_namespace_that_goes_in_the_middle_is_no_failure():
    api = three()

    def goes(verb, target):
        if verb == "apply" and target.kind == "NetworkPolicy" and target.namespace == "team-b":
            api.remove("Namespace", None, "team-b")

    api.before = goes
    told = builders.one_pass(api)
    result = builders.by_name(told)["team-b"]
    assert (result.state, result.reason, result.error) == ("terminating", "namespace_terminating", "")
    assert told.errors == []
    api.before = lambda verb, target: None
    builders.one_pass(api)
    ready = ("ServiceAccount/team-a/default", "ServiceAccount/team-c/default")
    assert sorted(builders.writes(api)) == [f"patch {key}" for key in ready]
    api.finish("team-b")
    assert finished(api) == UNDISTURBED


def test_somebody_who_is_faster_is_left_alone():
    """The Namespace is made by somebody else between our read and our write."""
    api = builders.cluster(builders.nspro())

    def faster(verb, target):
        if verb == "create" and target.kind == "Namespace":
            api.before = lambda verb, target: None
            api.put(builders.namespace("team-a", labels={"of": "others"}), "helm")

    api.before = faster
    told = builders.one_pass(api)
    assert builders.only(told).state == "conflict"
    assert builders.writes(api) == []
    assert api.objects[("Namespace", None, "team-a")]["metadata"]["labels"]["of"] == "others"


@pytest.mark.parametrize("value", ["600m", "100m"])
def test_an_object_that_somebody_makes_meanwhile_is_a_conflict_or_the_same(value):
    api = builders.cluster(builders.nspro())

    def faster(verb, target):
        if verb == "apply" and target.kind == "ResourceQuota":
            api.before = lambda verb, target: None
            api.put(builders.quota("team-a", {"limits.cpu": value}), "helm")

    api.before = faster
    told = builders.one_pass(api)
    quota = api.objects[("ResourceQuota", "team-a", "team-a-quota")]
    assert quota["spec"]["hard"]["limits.cpu"] == value
    if value == "600m":
        assert "ResourceQuota team-a-quota" in builders.only(told).msg
        assert "limits.memory" not in quota["spec"]["hard"]
    else:
        assert builders.only(told).state == "ready"


def test_conflicts_without_end_are_left_to_the_next_pass():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.put(builders.nspro(nssize="large"))

    def busy(verb, target):
        if verb == "patch" and target.kind == "Namespace":
            api.edit(
                "Namespace",
                None,
                "team-a",
                lambda obj: obj["metadata"].setdefault("annotations", {}).update(n=f"{api._version}"),
            )

    api.before = busy
    told = builders.one_pass(api)
    result = builders.only(told)
    assert (result.state, result.reason, result.error) == ("pending", "conflict", "")
    assert "the next pass looks again" in result.msg
    assert [x for x in api.requests if x == "patch Namespace/team-a"] == ["patch Namespace/team-a"] * provision.ATTEMPTS
    api.before = lambda verb, target: None
    builders.settled(api)
    assert api.objects[("Namespace", None, "team-a")]["metadata"]["labels"]["size"] == "large"


def test_a_missing_default_account_is_waited_for_and_not_made():
    api = builders.cluster(builders.secret(), builders.nspro(**SPEC), accounts=())
    builders.one_pass(api)
    told = builders.one_pass(api)
    assert (builders.only(told).state, builders.only(told).reason) == ("pending", "pull_secrets")
    assert "ServiceAccount default" in builders.only(told).msg
    assert ("ServiceAccount", "team-a", "default") not in api.objects
    api.put_account("team-a", "default", ["platform"])
    builders.settled(api)
    account = api.objects[("ServiceAccount", "team-a", "default")]
    assert account["imagePullSecrets"] == [{"name": "platform"}, {"name": "regcred"}]


def test_a_status_that_cannot_be_written_is_told_once_and_stops_nothing():
    api = three()
    api.before = failing(refused(403, "no status"), ("status",), name="team-b")
    told = builders.one_pass(api)
    assert told.errors == ["no status"]
    # an Event for a change that the status does not remember would come in every pass
    assert not [event for event in api.events if event["involvedObject"]["name"] == "team-b"]
    assert finished(api) == UNDISTURBED


def test_a_nspro_that_goes_during_its_pass_has_nobody_to_tell():
    api = builders.cluster(builders.nspro())

    def goes(verb, target):
        if verb == "status":
            api.objects.pop(("Nspro", HOME, "team-a"), None)

    api.before = goes
    told = builders.one_pass(api)
    assert (told.errors, api.events) == ([], [])


def test_events_that_are_refused_are_a_warning():
    api = builders.cluster(builders.nspro())
    api.before = failing(refused(403, "no events"), kind="Event")
    told = builders.one_pass(api)
    assert set(told.warnings) == {"no events"}
    assert builders.only(told).state == "ready"


def test_one_bad_nspro_stops_no_other():
    api = three()
    api.put(builders.nspro("team-b", nssize="huge"))
    found = builders.by_name(builders.one_pass(api))
    assert (found["team-a"].error, found["team-b"].state) == ("", "invalid")
    assert "size 'huge' is not known" in builders.condition(api, "team-b", "Ready")["message"]
    assert ("Namespace", None, "team-c") in api.objects
    api.put(builders.nspro("team-b", **SPEC))
    assert finished(api) == UNDISTURBED


def test_an_unexpected_error_keeps_its_traceback():
    api = three()
    api.before = failing(ZeroDivisionError("a bug"), kind="LimitRange", namespace="team-b")
    with pytest.raises(ZeroDivisionError, match="a bug"):
        builders.one_pass(api)
    # the others are done all the same
    assert ("LimitRange", "team-c", "team-c-limits") in api.objects


def test_an_unexpected_error_gives_up_none_of_the_hundreds_after_it():
    api = builders.cluster(*(builders.nspro(f"team-{number}") for number in range(40)))
    api.before = failing(ZeroDivisionError("a bug"), ("get",), kind="Namespace", name="team-0")
    with pytest.raises(ZeroDivisionError, match="a bug"):
        builders.one_pass(api)
    assert len([key for key in api.objects if key[0] == "NetworkPolicy" and key[1] != "payments"]) == 39


def test_nobody_knows_anything_where_not_even_the_nspros_can_be_listed():
    api = three()
    api.before = failing(refused(0, "the API server did not answer"), ("list",), kind="Nspro")
    with pytest.raises(ApiError, match="did not answer"):
        builders.one_pass(api)


def test_several_errors_are_one_message():
    assert report.aggregated(["one"]) == "one"
    assert report.aggregated(["one", "two"]).endswith("the others are: one; two")

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims, names, labels."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME

NAMESPACE = ("Namespace", None, "team-a")
MARK = "app.kubernetes.io/managed-by"


@pytest.mark.parametrize(
    "theirs",
    [
        builders.quota("team-a", {"limits.cpu": "8"}),
        builders.policy("team-a", "team-a-np", [{}]),
        builders.binding("team-a", "kubesteward-edit", "view"),
        builders.secret(where="team-a", content="theirs"),
    ],
    ids=lambda item: item["kind"],
)
def test_an_object_of_the_same_name_that_is_not_ours_is_left_alone(theirs):
    spec = {"access": [{"role": "edit", "groups": ["devs"]}], "pullSecrets": [{"name": "regcred"}]}
    api = builders.cluster(builders.secret())
    api.put(
        builders.namespace(
            "team-a", annotations={claims.CLAIM: claims.Claim("ops/team-a", "created", "Delete").render()}
        )
    )
    api.put(theirs, "helm")
    api.put(builders.nspro(**spec))
    before = api.read(theirs["kind"], "team-a", theirs["metadata"]["name"])
    told = builders.one_pass(api)
    told = builders.one_pass(api)
    result = builders.only(told)
    assert result.state == "conflict"
    assert f"{theirs['kind']} {theirs['metadata']['name']} exists and is not ours" in result.msg
    assert api.read(theirs["kind"], "team-a", theirs["metadata"]["name"]) == before
    assert builders.condition(api, "team-a", "Conflict")["status"] == "True"
    # the others are there
    assert len({key[0] for key in api.objects if key[1] == "team-a"}) == 6
    # and none of that goes with us
    api.remove("Nspro", HOME, "team-a")
    builders.one_pass(api, state="released")
    assert api.read(theirs["kind"], "team-a", theirs["metadata"]["name"]) == before


RESERVED = [
    "kube-system",
    "kube-public",
    "kube-x",
    "default",
    "openshift",
    "openshift-x",
    "kubernetes-x",
    "steward",
    HOME,
]


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_are_rejected_before_any_write(name):
    api = builders.cluster(builders.nspro(name, adoption="Always"))
    if ("Namespace", None, name) not in api.objects:
        api.put(builders.adoptable(name))
    before = api.dump(HOME)
    told = builders.one_pass(api, reserved=["steward"])
    assert (builders.only(told).state, builders.writes(api)) == ("reserved", [])
    assert f"the name {name} is reserved" in builders.only(told).msg
    assert api.dump(HOME) == before
    assert builders.condition(api, name, "Conflict")["status"] == "True"


@pytest.mark.parametrize("name", ["kubes", "my-default", "kubesteward", "opens", "x-kube-y", "openshifters"])
def test_a_pattern_meets_only_what_it_names(name):
    assert claims.ask(name, "ops/x", "Never", None).state == "free"


@pytest.mark.parametrize("adoption", ["Never", "IfIdentical", "Always"])
@pytest.mark.parametrize("word", [None, "", "ops/other", "other/team-a", "playbook"])
def test_no_author_of_a_nspro_seizes_a_namespace_by_its_name(adoption, word):
    api = builders.cluster(builders.nspro("payments", adoption=adoption))
    if word is not None:
        api.edit(
            "Namespace", None, "payments", lambda obj: obj["metadata"].update(annotations={claims.ADOPTABLE: word})
        )
    before = api.dump(HOME)
    told = builders.one_pass(api)
    assert (builders.only(told).state, builders.writes(api)) == ("conflict", [])
    assert api.dump(HOME) == before
    assert ("adoption is Never" if adoption == "Never" else "its administrator has not annotated it") in builders.only(
        told
    ).msg


def test_no_label_that_opens_other_namespaces_can_be_asked_for():
    api = builders.cluster(builders.nspro(labels={"app": "infra"}))
    result = builders.only(builders.one_pass(api))
    assert (result.state, builders.writes(api)) == ("invalid", [])
    assert "app is not yours to set" in result.msg


def test_a_namespace_that_somebody_gave_a_label_that_opens_others_is_told():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["labels"].update(app="infra"), "tenant")
    (warning,) = builders.only(builders.one_pass(api)).warnings
    assert "app=infra, which opens every managed namespace" in warning


def test_peers_can_be_named_by_the_label_that_nobody_can_forge():
    peer = {"kubernetes.io/metadata.name": "ingress"}
    api = builders.cluster(builders.nspro(managed=True, networkPolicy={"fromNamespaces": [peer]}))
    builders.settled(api)
    ingress = api.objects[("NetworkPolicy", "team-a", "team-a-np")]["spec"]["ingress"]
    assert {"namespaceSelector": {"matchLabels": peer}} in ingress[0]["from"]


def test_a_key_that_the_spec_drops_goes_and_one_that_somebody_edits_comes_back():
    marks = {"labels": {"team": "a", "stage": "test"}, "annotations": {"contact": "x"}}
    api = builders.cluster(builders.nspro(**marks))
    builders.settled(api)
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["labels"].update(theirs="1", size="huge"))
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["annotations"].update(theirs="1"))
    api.put(builders.nspro(labels={"team": "b"}))
    builders.settled(api)
    meta = api.objects[NAMESPACE]["metadata"]
    assert meta["labels"] == {
        "kubernetes.io/metadata.name": "team-a",
        "managed": "false",
        "size": "small",
        "team": "b",
        "theirs": "1",
    }
    assert meta["annotations"]["theirs"] == "1"
    assert "contact" not in meta["annotations"]


def test_a_key_that_moves_from_the_labels_to_the_annotations_leaves_no_trace():
    api = builders.cluster(builders.nspro(labels={"team": "a"}))
    builders.settled(api)
    api.put(builders.nspro(annotations={"team": "a"}))
    told = builders.one_pass(api, check_mode=True)
    after = builders.only(told).done[0].after["metadata"]
    builders.settled(api)
    meta = api.objects[NAMESPACE]["metadata"]
    assert (meta["labels"], meta["annotations"]) == (after["labels"], after["annotations"])
    assert "team" not in meta["labels"]


def test_a_label_that_somebody_had_set_before_us_is_theirs():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["labels"].update(team="a"), "tenant")
    api.put(builders.nspro(labels={"team": "a"}))
    builders.settled(api)
    api.put(builders.nspro())
    builders.settled(api)
    assert api.objects[NAMESPACE]["metadata"]["labels"]["team"] == "a"


DRIFTS = {
    "Namespace": (NAMESPACE, lambda obj: obj["metadata"]["labels"].update(size="huge")),
    "annotation": (NAMESPACE, lambda obj: obj["metadata"]["annotations"].update(contact="them")),
    "ResourceQuota": (
        ("ResourceQuota", "team-a", "team-a-quota"),
        lambda obj: obj["spec"]["hard"].update({"limits.cpu": "9"}),
    ),
    "NetworkPolicy": (("NetworkPolicy", "team-a", "team-a-np"), lambda obj: obj["spec"].update(ingress=[{"from": []}])),
}


@pytest.mark.parametrize("what", DRIFTS)
def test_another_manager_that_insists_is_named_and_there_is_no_ping_pong(what):
    key, drift = DRIFTS[what]
    api = builders.cluster(builders.nspro(annotations={"contact": "us"}))
    builders.settled(api)
    wanted = api.objects[key]["metadata" if key == NAMESPACE else "spec"]
    repaired = 0
    for _time in range(6):
        api.edit(*key, drift, "argocd-controller")
        result = builders.only(builders.one_pass(api))
        repaired += bool(builders.writes(api))
    assert repaired == 2
    assert result.state == "conflict"
    assert "argocd-controller puts" in result.msg
    assert builders.condition(api, "team-a", "Conflict")["message"] == result.msg
    before = api.dump()
    builders.one_pass(api)
    assert api.dump() == before
    # once it has let go, ours is put back
    builders.one_pass(api, now="2026-01-03T04:00:00Z")
    assert api.objects[key]["metadata" if key == NAMESPACE else "spec"].get("ingress") == wanted.get("ingress")
    assert builders.only(builders.one_pass(api, now="2026-01-03T04:01:00Z")).state == "ready"


def test_a_level_that_an_administrator_set_is_not_lowered_by_a_later_wish():
    level = "pod-security.kubernetes.io/enforce"
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["labels"].update({level: "restricted"}), "kyverno")
    api.put(builders.nspro(podSecurity={"enforce": "privileged"}, annotations={"owner": "us"}))
    result = builders.only(builders.settled(api))
    assert api.objects[NAMESPACE]["metadata"]["labels"][level] == "restricted"
    assert result.state == "conflict"
    assert f"the label {level}=restricted of the Namespace is set by kyverno" in result.msg
    # the rest is done, and theirs is no more ours afterwards
    assert api.objects[NAMESPACE]["metadata"]["annotations"]["owner"] == "us"
    builders.one_pass(api, state="released")
    assert api.objects[NAMESPACE]["metadata"]["labels"] == {
        "kubernetes.io/metadata.name": "team-a",
        level: "restricted",
    }


def test_a_level_that_openshift_set_by_itself_gives_way_to_a_wish():
    level = "pod-security.kubernetes.io/warn"
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    syncer = "pod-security-admission-label-synchronization-controller"
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["labels"].update({level: "restricted"}), syncer)
    api.put(builders.nspro(podSecurity={"enforce": "baseline", "warn": "baseline"}))
    assert builders.only(builders.settled(api)).state == "ready"
    assert api.objects[NAMESPACE]["metadata"]["labels"][level] == "baseline"


def test_what_others_set_is_ours_once_they_let_go_of_it():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["labels"].update(team="theirs"), "bob")
    api.put(builders.nspro(labels={"team": "ours"}))
    assert builders.only(builders.one_pass(api)).state == "conflict"
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["labels"].pop("team"), "bob")
    assert builders.only(builders.one_pass(api)).state == "ready"
    assert api.objects[NAMESPACE]["metadata"]["labels"]["team"] == "ours"


def test_somebody_who_removes_a_label_again_and_again_is_let():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    repaired = 0
    for _time in range(5):
        api.edit(*NAMESPACE, lambda obj: obj["metadata"]["labels"].pop("size", None), "janitor")
        result = builders.only(builders.one_pass(api))
        repaired += bool(builders.writes(api))
    assert repaired == 2
    assert (result.state, builders.writes(api)) == ("conflict", [])
    assert "somebody unnamed puts metadata.labels.size back" in result.msg
    # the size that is wanted now is no removal
    api.put(builders.nspro(nssize="large"))
    builders.one_pass(api, now="2026-01-03T04:00:00Z")
    assert api.objects[NAMESPACE]["metadata"]["labels"]["size"] == "large"


def test_each_field_that_one_person_edits_by_hand_is_repaired():
    api = builders.cluster(builders.nspro(access=[{"role": "edit", "groups": ["devs"]}]))
    builders.settled(api)
    edits = [
        (NAMESPACE, lambda obj: obj["metadata"]["labels"].update(size="huge")),
        (NAMESPACE, lambda obj: obj["metadata"]["labels"].update(managed="maybe")),
        (NAMESPACE, lambda obj: obj["metadata"]["labels"].pop("size")),
        (NAMESPACE, lambda obj: obj["metadata"]["labels"].pop("managed")),
        (("ResourceQuota", "team-a", "team-a-quota"), lambda obj: obj["spec"]["hard"].update({"limits.cpu": "9"})),
        (("ResourceQuota", "team-a", "team-a-quota"), lambda obj: obj["spec"]["hard"].update({"limits.memory": "9"})),
        (("ResourceQuota", "team-a", "team-a-quota"), lambda obj: obj["metadata"]["labels"].update({MARK: "me"})),
        (("NetworkPolicy", "team-a", "team-a-np"), lambda obj: obj["spec"].update(podSelector={"matchLabels": {}})),
        (("NetworkPolicy", "team-a", "team-a-np"), lambda obj: obj["spec"].update(ingress=[])),
        (("NetworkPolicy", "team-a", "team-a-np"), lambda obj: obj["spec"].update(policyTypes=["Egress"])),
    ]
    for key, edit in edits:
        api.edit(*key, edit, "kubectl-edit")
        assert builders.only(builders.one_pass(api)).state == "ready"
        assert builders.only(builders.one_pass(api)).state == "ready"
        assert builders.writes(api) == []
    assert api.objects[NAMESPACE]["metadata"]["labels"]["size"] == "small"
    hard = api.objects[("ResourceQuota", "team-a", "team-a-quota")]["spec"]["hard"]
    assert hard == {"limits.cpu": "100m", "limits.memory": "100Mi"}
    assert api.objects[("NetworkPolicy", "team-a", "team-a-np")]["spec"]["ingress"] == [{}]


@pytest.mark.parametrize("annotation", [claims.CLAIM, claims.REPAIRS])
def test_an_annotation_that_is_nested_without_end_stops_no_pass(annotation):
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["annotations"].update({annotation: "[" * 100_000}))
    state = builders.only(builders.one_pass(api)).state
    assert state == ("conflict" if annotation == claims.CLAIM else "ready")


def test_a_manager_that_changed_nothing_of_ours_is_no_rival():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    for number in range(5):
        api.edit(
            "ResourceQuota",
            "team-a",
            "team-a-quota",
            lambda obj, number=number: obj["metadata"].update(annotations={"n": f"{number}"}),
        )
        api.put(builders.nspro(nssize=["large", "small"][number % 2]))
        assert builders.only(builders.one_pass(api)).state == "ready"
    assert claims.REPAIRS not in api.objects[NAMESPACE]["metadata"]["annotations"]


@pytest.mark.parametrize("kind", ["Secret", "RoleBinding"])
def test_an_adopted_object_that_nobody_can_change_is_a_conflict_and_not_made_anew(kind):
    theirs = {
        "Secret": {
            **builders.secret(where="team-a"),
            "type": "kubernetes.io/dockercfg",
            "data": {".dockercfg": "e30="},
        },
        "RoleBinding": builders.binding("team-a", "kubesteward-edit", "view"),
    }[kind]
    spec = {"access": [{"role": "edit", "groups": ["devs"]}], "pullSecrets": [{"name": "regcred"}]}
    api = builders.cluster(builders.secret(), builders.nspro(**spec, adoption="Always"))
    api.put(builders.adoptable("team-a"), "helm")
    api.put(theirs, "helm")
    before = api.read(kind, "team-a", theirs["metadata"]["name"])
    for _pass in range(3):
        result = builders.only(builders.one_pass(api))
        assert result.state == "conflict"
        assert f"{kind} {theirs['metadata']['name']} exists with another role or type" in result.msg
    builders.one_pass(api, state="released")
    assert api.read(kind, "team-a", theirs["metadata"]["name"]) == before

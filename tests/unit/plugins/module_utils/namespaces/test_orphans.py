# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Nspro that is not there was not always deleted: nothing is done where something else is as likely."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import nspros
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import FakeApi

NAMESPACE = ("Namespace", None, "team-a")
DEFINITION = ("CustomResourceDefinition", None, nspros.CRD)
CLAIM = claims.Claim("ops/team-a", claims.CREATED, "Delete").render()


def orphaned() -> FakeApi:
    """A cluster with a Namespace that was made for a Nspro which is not there."""
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.remove("Nspro", HOME, "team-a")
    for key, made in ((NAMESPACE, "2026-01-01T00:00:05Z"), (DEFINITION, "2026-01-01T00:00:00Z")):
        api.objects[key]["metadata"]["creationTimestamp"] = made
    return api


def kept(api: FakeApi) -> str:
    """Why a pass left the Namespace alone, with all that is in it: its Nspro may come back."""
    before = api.dump()
    told = builders.one_pass(api)
    assert api.dump() == before
    result = builders.only(told)
    assert (result.state, result.reason, result.done) == ("pending", "in_doubt", [])
    assert builders.one_pass(api, state="absent").results[0].reason == "in_doubt"
    # an administrator who knows better says so
    assert builders.only(builders.one_pass(api, state="released")).state == "released"
    assert claims.read(t.cast(dict[str, t.Any], api.read(*NAMESPACE))) is None
    return result.msg


def test_one_whose_nspro_was_deleted_goes():
    api = orphaned()
    assert builders.only(builders.one_pass(api)).state == "terminating"


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"versions": [{"name": "v1alpha1", "served": False}, {"name": "v1", "served": True}]}},
        {"spec": {"versions": [{"name": "v1", "served": True}]}},
        {"status": {"conditions": [{"type": "Established", "status": "False"}]}},
    ],
    ids=["version_not_served", "version_gone", "not_established"],
)
def test_a_definition_that_does_not_serve_says_nothing_about_nspros(body: dict[str, t.Any]):
    api = orphaned()
    api.objects[DEFINITION].update(body)
    assert "does not serve nspro.example.com/v1alpha1" in kept(api)


def test_a_definition_that_serves_is_believed():
    api = orphaned()
    api.objects[DEFINITION]["spec"] = {"versions": [{"name": "v1alpha1", "served": True}]}
    api.objects[DEFINITION]["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    assert builders.only(builders.one_pass(api)).state == "terminating"


@pytest.mark.parametrize(
    ("key", "told"),
    [(("Namespace", None, HOME), "namespace ops is younger"), (DEFINITION, "the CustomResourceDefinition is younger")],
    ids=["home", "definition"],
)
def test_what_was_deleted_and_made_anew_took_the_nspros_along(key: tuple[str, None, str], told: str):
    api = orphaned()
    api.objects[key]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:06Z"
    assert told in kept(api)


def test_a_namespace_that_a_backup_brought_before_its_nspro_stays():
    api = builders.cluster()
    api.put(builders.namespace("team-a", annotations={claims.CLAIM: CLAIM}), "velero")
    assert "it is a copy" in kept(api)


def test_a_claim_that_somebody_edited_is_no_word_of_ours():
    api = orphaned()
    text = claims.Claim("ops/gone", claims.CREATED, "Delete").render()
    api.edit(*NAMESPACE, lambda obj: obj["metadata"]["annotations"].update({claims.CLAIM: text}), "kubectl-annotate")
    assert "edited by hand" in kept(api)


def test_managed_fields_of_a_backup_are_older_than_what_it_made():
    api = orphaned()
    namespace = t.cast(dict[str, t.Any], api.read(*NAMESPACE))
    assert not claims.is_copy(namespace)
    for entry in namespace["metadata"]["managedFields"]:
        entry["time"] = "2025-12-31T00:00:00Z"
    assert claims.is_copy(namespace)


@pytest.mark.parametrize("what", ["definition", "definition gone"])
@pytest.mark.parametrize("way", ["its finalizer", "the command line"])
@pytest.mark.parametrize("deletion", ["Delete", "Keep"])
def test_where_the_definition_goes_claim_and_guards_stay_and_are_known_again_on_return(
    what: str, way: str, deletion: str
):
    api = builders.cluster(builders.nspro(deletion=deletion))
    builders.settled(api)
    definition = copy.deepcopy(api.objects[DEFINITION])
    nspro = api.objects[("Nspro", HOME, "team-a")]

    def goes():
        api.objects[DEFINITION]["metadata"]["deletionTimestamp"] = builders.NOW
        if what.endswith("gone"):
            api.remove(*DEFINITION)

    nspro["metadata"]["deletionTimestamp"] = builders.NOW
    if way == "its finalizer":
        goes()
        result = builders.only(builders.one_pass(api, name="team-a", state="absent"))
    else:
        api.remove("Nspro", HOME, "team-a")
        goes()
        result = builders.only(builders.one_pass(api))
    assert (result.state, result.reason, result.error, builders.writes(api)) == ("pending", "in_doubt", "", [])
    assert f"CustomResourceDefinition {nspros.CRD} is" in result.msg
    assert "nspro_namespace=ops -e nspro_state=released -e nspro_all=true" in result.msg
    api.objects.pop(("Nspro", HOME, "team-a"), None)
    api.put(definition)
    # back, but for the Nspros: they may be still to come
    api.objects[DEFINITION]["metadata"]["creationTimestamp"] = builders.LATER
    api.objects[NAMESPACE]["metadata"]["creationTimestamp"] = builders.NOW
    assert builders.only(builders.one_pass(api)).reason == "in_doubt"
    api.put(builders.nspro(deletion=deletion), uid="another")
    told = builders.one_pass(api)
    assert (builders.only(told).state, builders.writes(api)) == ("ready", [])


@pytest.mark.parametrize("guarded", [True, False])
def test_where_the_definition_and_the_nspros_namespace_go_together_claim_and_guard_stay(guarded: bool):
    api = orphaned()
    if guarded:
        api.edit(*NAMESPACE, lambda obj: obj["metadata"]["annotations"].update({claims.GUARD: ""}), "admin")
    api.remove("Namespace", None, HOME)
    api.objects[DEFINITION]["metadata"]["deletionTimestamp"] = builders.NOW
    before = api.dump()
    result = builders.only(builders.one_pass(api))
    assert (result.reason, api.dump()) == ("in_doubt", before)


def test_without_the_definition_an_administrator_lets_go_with_a_word():
    api = orphaned()
    api.remove(*DEFINITION)
    assert builders.only(builders.one_pass(api, state="released")).state == "released"
    assert builders.claim_of(api, "team-a") is None


def test_a_playbooks_own_namespaces_do_not_depend_on_the_definition():
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small")
    api.remove(*DEFINITION)
    assert builders.only(builders.provision(api, name="team-a", state="absent")).state == "terminating"
    assert not [line for line in api.requests if "CustomResourceDefinition" in line]

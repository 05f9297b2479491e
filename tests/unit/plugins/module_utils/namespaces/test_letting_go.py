# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A finalizer is removed after a pass that succeeds, so one that let nothing go must not."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import provision, sizes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import FakeApi

NAMESPACE = ("Namespace", None, "team-a")
CLAIM = claims.Claim("ops/team-a", claims.CREATED, "Keep", labels=("size",))


class Contested:
    """A cluster in which somebody edits the Namespace whenever we are about to."""

    def __init__(self, **annotations: str) -> None:
        self.patches: list[list[dict]] = []
        self.annotations = {claims.CLAIM: CLAIM.render(), **annotations}

    def get(self, _api_version, kind, _namespace, name):
        meta = {"name": name, "uid": "1", "resourceVersion": "7", "labels": {"size": "small"}}
        return {"kind": kind, "metadata": {**meta, "annotations": self.annotations}}

    def find(self, *_arguments, **_more):
        return []

    def json_patch(self, target, operations, dry_run=False):
        self.patches.append(operations)
        raise ApiError(f"Could not patch {target}: it was modified", 409)


def let_go(cluster: Contested) -> provision.Result:
    return provision.let_go(cluster, "team-a", "ops/team-a", provision.Farewell(), provision.Options(sizes.DEFAULTS))


def test_a_namespace_that_could_not_be_released_keeps_the_finalizer():
    cluster = Contested()
    result = let_go(cluster)
    assert len(cluster.patches) == provision.ATTEMPTS
    assert (result.state, result.reason) == ("pending", "conflict")
    told = "Could not patch Namespace team-a: it was modified; it was tried 3 times, the next pass looks again"
    assert result.error == told


@pytest.mark.parametrize(("kind", "goes"), [("Nspro.nspro.example.com", True), ("Tenant.example.com", False)])
def test_what_the_operator_marked_for_its_watch_goes_and_what_another_operator_did_stays(kind, goes):
    marks = {"operator-sdk/primary-resource": "ops/team-a", "operator-sdk/primary-resource-type": kind}
    cluster = Contested(**marks)
    let_go(cluster)
    removed = {change["path"] for change in cluster.patches[0] if change["op"] == "remove"}
    expected = {f"/metadata/annotations/{key.replace('/', '~1')}" for key in marks} if goes else set()
    assert removed - {"/metadata/labels/size", "/metadata/annotations/kubesteward.io~1claim"} == expected


def going() -> FakeApi:
    """A cluster with a Nspro that is being deleted."""
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.objects[("Nspro", HOME, "team-a")]["metadata"]["deletionTimestamp"] = "2026-01-02T03:05:00Z"
    return api


def test_a_name_that_was_reserved_since_is_kept():
    api = going()
    result = builders.only(builders.one_pass(api, reserved=["team-*"]))
    assert (result.state, api.objects[NAMESPACE]["status"]) == ("released", {"phase": "Active"})
    assert "reserved (team-*)" in result.msg


def test_the_namespace_of_the_nspros_is_not_deleted_whatever_it_is_annotated():
    api = builders.cluster(builders.nspro(HOME))
    text = claims.Claim(f"{HOME}/{HOME}", claims.CREATED, "Delete").render()
    api.edit("Namespace", None, HOME, lambda obj: obj["metadata"].update(annotations={claims.CLAIM: text}))
    assert builders.only(builders.one_pass(api, state="absent")).state == "released"
    assert api.objects[("Namespace", None, HOME)]["status"] == {"phase": "Active"}


def test_a_credential_does_not_stay_in_what_is_kept_because_somebody_took_our_label_off():
    api = builders.cluster(builders.secret(), builders.adoptable("team-a"))
    api.put(builders.secret("theirs", where="team-a"), "helm")
    api.put(builders.nspro(adoption="Always", pullSecrets=[{"name": "regcred"}]))
    builders.settled(api)
    api.edit("Secret", "team-a", "regcred", lambda obj: obj["metadata"].pop("labels"))
    assert builders.only(builders.one_pass(api, state="absent")).state == "released"
    assert {key[2] for key in api.objects if key[:2] == ("Secret", "team-a")} == {"theirs"}


@pytest.mark.parametrize("claim", [("Ops", "x"), ("", "x"), ("a/b", "x"), ("ops", "x ")])
def test_a_claim_that_nobody_could_read_again_is_refused_before_anything_is_written(claim):
    api = builders.cluster()
    with pytest.raises(StewardError, match="is no namespace/name of a Nspro"):
        builders.provision(api, name="team-a", size="small", claim={"namespace": claim[0], "name": claim[1]})
    assert api.writes == []

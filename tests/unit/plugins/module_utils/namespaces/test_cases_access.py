# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access, ServiceAccounts, pull secrets."""

from __future__ import annotations

import base64

import pytest

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME, MARKER
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

PULLS = {"pullSecrets": [{"name": "regcred"}]}
COPY = ("Secret", "team-a", "regcred")
SOURCE = ("Secret", HOME, "regcred")
ACCOUNT = ("ServiceAccount", "team-a", "default")


def provided(*more, **spec):
    api = builders.cluster(builders.secret(), *more, builders.nspro(**spec))
    builders.settled(api)
    return api


def linked(api, key=ACCOUNT):
    return [entry["name"] for entry in api.objects[key].get("imagePullSecrets") or ()]


@pytest.mark.parametrize("role", ["cluster-admin", "system:node", "Admin", ""])
def test_a_role_that_is_not_allowed_is_refused_before_any_write(role):
    api = builders.cluster(builders.nspro(access=[{"role": role, "groups": ["devs"]}]))
    result = builders.only(builders.one_pass(api))
    assert (result.state, builders.writes(api)) == ("invalid", [])
    assert "may not be given; allowed are admin, edit, view" in result.msg


def test_where_the_right_to_bind_is_missing_the_rest_is_done_and_it_is_told():
    api = builders.cluster(builders.nspro(access=[{"role": "edit", "groups": ["devs"]}]))

    def hook(verb, target):
        if verb == "apply" and target.kind == "RoleBinding":
            raise refused(403, 'user is not allowed to "bind" ClusterRole edit')

    api.before = hook
    result = builders.only(builders.one_pass(api))
    assert (result.state, result.reason) == ("pending", "forbidden")
    assert 'not allowed to "bind"' in result.error
    assert len(result.done) == 4


@pytest.mark.parametrize("role", ["admin", "cluster-admin"])
def test_a_binding_of_ours_that_somebody_made_anew_with_another_role_is_ours_again(role):
    """Nobody can change a roleRef: deleted and made anew is how it is done, and how it is undone."""
    api = provided(access=[{"role": "view", "groups": ["devs"]}])
    key = ("RoleBinding", "team-a", "kubesteward-view")
    api.remove(*key)
    api.put(builders.binding("team-a", "kubesteward-view", role, builders.OURS), "tenant")
    builders.one_pass(api)
    assert builders.writes(api) == [
        "delete RoleBinding/team-a/kubesteward-view",
        "apply RoleBinding/team-a/kubesteward-view",
    ]
    assert api.objects[key]["roleRef"]["name"] == "view"
    assert builders.only(builders.settled(api)).state == "ready"


def test_another_role_makes_a_new_binding_before_the_old_one_goes():
    api = provided(access=[{"role": "edit", "groups": ["devs"]}])
    api.put(builders.nspro(access=[{"role": "admin", "groups": ["devs"]}]))
    builders.one_pass(api)
    assert builders.writes(api) == [
        "apply RoleBinding/team-a/kubesteward-admin",
        "delete RoleBinding/team-a/kubesteward-edit",
    ]


@pytest.mark.parametrize(
    "name", ["system:image-pullers", "system:image-builders", "system:deployers", "admin", "rancher-members"]
)
def test_bindings_of_the_platform_are_never_touched(name):
    api = provided(access=[{"role": "admin", "groups": ["devs"]}])
    api.put(builders.binding("team-a", name, "admin"), "openshift")
    before = api.read("RoleBinding", "team-a", name)
    for spec in ({"access": [{"role": "view", "groups": ["somebody"]}]}, {}):
        api.put(builders.nspro(**spec))
        builders.settled(api)
    builders.one_pass(api, state="released")
    assert api.read("RoleBinding", "team-a", name) == before


def test_a_fresh_namespace_waits_for_its_accounts_and_makes_none():
    spec = {"pullSecrets": [{"name": "regcred", "serviceAccounts": ["default", "builder"]}]}
    api = builders.cluster(builders.secret(), builders.nspro(**spec), accounts=("default",))
    builders.one_pass(api)
    told = builders.one_pass(api)
    assert builders.only(told).state == "pending"
    assert "ServiceAccount builder" in builders.only(told).msg
    assert linked(api) == ["regcred"]
    assert ("ServiceAccount", "team-a", "builder") not in api.objects
    builders.one_pass(api)
    assert api.writes == []
    api.put_account("team-a", "builder", ["builder-dockercfg-x"])
    builders.settled(api)
    assert linked(api, ("ServiceAccount", "team-a", "builder")) == ["builder-dockercfg-x", "regcred"]


def test_the_status_lists_the_accounts_and_says_when_pods_get_the_secrets():
    api = provided(**PULLS)
    told = "ServiceAccounts with pull secrets: default; Pods get them when they are made, not later"
    assert builders.condition(api, "team-a", "Ready")["message"] == f"everything is written; {told}"
    assert builders.only(builders.one_pass(api)).msg == told


def test_what_the_platform_linked_stays_and_what_was_linked_before_us_is_not_ours():
    api = provided(builders.secret("second"))
    api.put_account("team-a", "default", ["default-dockercfg-x", "second"])
    api.put(builders.nspro(pullSecrets=[{"name": "regcred"}, {"name": "second"}]))
    builders.settled(api)
    assert linked(api) == ["default-dockercfg-x", "second", "regcred"]
    api.put(builders.nspro())
    builders.settled(api)
    assert linked(api) == ["default-dockercfg-x", "second"]
    assert COPY not in api.objects


def test_an_account_that_somebody_edits_meanwhile_is_looked_at_again():
    api = builders.cluster(builders.secret(), builders.nspro(**PULLS))
    builders.one_pass(api)

    def hook(verb, target):
        if verb == "patch" and target.kind == "ServiceAccount":
            api.before = lambda verb, target: None
            api.put_account("team-a", "default", ["default-dockercfg-x"])

    api.before = hook
    assert builders.only(builders.one_pass(api)).state == "ready"
    assert linked(api) == ["default-dockercfg-x", "regcred"]


def test_a_secret_is_written_where_it_differs_and_only_there():
    api = provided(**PULLS)
    builders.one_pass(api)
    assert api.writes == []
    api.put(builders.secret(content="rotated"))
    builders.one_pass(api)
    assert builders.writes(api) == ["apply Secret/team-a/regcred"]
    assert api.objects[COPY]["data"] == api.objects[SOURCE]["data"]
    api.edit(*COPY, lambda obj: obj.update(data={".dockerconfigjson": "e30="}), "tenant")
    builders.one_pass(api)
    assert api.objects[COPY]["data"] == api.objects[SOURCE]["data"]


def test_a_secret_that_becomes_of_the_other_type_is_made_anew():
    api = provided(**PULLS)
    api.remove(*SOURCE)
    old = builders.secret()
    api.put({**old, "type": "kubernetes.io/dockercfg", "data": {".dockercfg": "e30="}})
    builders.settled(api)
    assert (api.objects[COPY]["type"], api.objects[COPY]["data"]) == ("kubernetes.io/dockercfg", {".dockercfg": "e30="})
    assert linked(api) == ["regcred"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"type": "Opaque"}, "is of type Opaque; only pull secrets are copied"),
        ({"type": "kubernetes.io/service-account-token"}, "only pull secrets are copied"),
        ({"metadata": {"name": "regcred", "namespace": HOME}}, "is not labelled kubesteward.io/shareable=true"),
        (None, "there is no Secret regcred in namespace ops"),
    ],
)
def test_what_may_not_be_shared_is_not_copied_and_the_rest_is_done(change, told):
    api = builders.cluster(builders.nspro(**PULLS, managed=True))
    if change is not None:
        api.put({**builders.secret(), **change})
    result = builders.only(builders.one_pass(api))
    assert (result.state, result.reason) == ("pending", "pull_secrets")
    assert told in result.msg
    assert COPY not in api.objects
    assert ("NetworkPolicy", "team-a", "team-a-np") in api.objects
    assert builders.condition(api, "team-a", "NetworkPolicyApplied")["status"] == "True"


def test_a_secret_that_is_no_longer_shared_is_taken_away():
    api = provided(**PULLS)
    api.edit(*SOURCE, lambda obj: obj["metadata"].update(labels={}))
    builders.one_pass(api)
    builders.one_pass(api)
    assert COPY not in api.objects
    assert linked(api) == []


def test_the_source_is_never_written():
    api = provided(**PULLS)
    before = api.read(*SOURCE)
    api.put(builders.nspro())
    builders.settled(api)
    api.remove("Nspro", HOME, "team-a")
    builders.one_pass(api)
    assert api.read(*SOURCE) == before


SPELLINGS = [MARKER, base64.b64encode(MARKER.encode()).decode()]


def stories():
    """Passes in which a pull secret is read, written, refused, conflicts, goes."""
    fresh = builders.cluster(builders.secret(), builders.nspro(**PULLS))
    yield "created", fresh, {}
    yield "predicted", builders.cluster(builders.secret(), builders.nspro(**PULLS)), {"check_mode": True}
    rotated = provided(**PULLS)
    rotated.edit(*COPY, lambda obj: obj.update(data={".dockerconfigjson": base64.b64encode(b"old").decode()}))
    yield "rotated", rotated, {}
    yield "released", provided(**PULLS), {"state": "released"}
    opaque = builders.cluster(builders.nspro(**PULLS), builders.secret(type="Opaque"))
    yield "of another type", opaque, {}
    refusing = builders.cluster(builders.secret(), builders.nspro(**PULLS))

    def hook(verb, target):
        if verb == "apply" and target.kind == "Secret":
            raise refused(422, "Could not apply Secret regcred: it is invalid")

    refusing.before = hook
    yield "refused", refusing, {}
    taken = builders.cluster(
        builders.secret(), builders.nspro(**PULLS, adoption="Always"), builders.adoptable("team-a")
    )
    theirs = builders.secret(where="team-a", content=f"their {MARKER}")
    # what kubectl apply leaves there
    theirs["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": repr(theirs["data"]) + MARKER
    }
    taken.put(theirs, "kubectl")
    yield "adopted", taken, {}


@pytest.mark.parametrize(("api", "given"), [pytest.param(*rest, id=name) for name, *rest in stories()])
def test_the_content_of_a_secret_is_shown_nowhere(api, given):
    told = builders.one_pass(api, **given)
    assert "Secret" in builders.visible(told, api) + repr(api.requests)
    shown = builders.visible(told, api)
    assert [text for text in SPELLINGS if text in shown] == []
    # and what is claimed is names alone
    namespace = api.read("Namespace", None, "team-a")
    assert [text for text in SPELLINGS if text in repr(namespace)] == []

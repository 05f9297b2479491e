# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode asks the API server: it is refused what a run would be refused, and says what it cannot ask."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import report
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

SPEC = {"access": [{"role": "edit", "groups": ["devs"]}], "pullSecrets": [{"name": "regcred"}], "labels": {"a": "b"}}


def denying(*kinds, verbs=("create", "apply", "patch", "delete")):
    """An admission policy that refuses some kinds."""

    def hook(verb, target):
        if verb in verbs and target.kind in kinds:
            raise refused(422 if verb == "apply" else 403, f"admission denied {target.kind} {target.name}")

    return hook


def there():
    """A namespace that another size is asked for."""
    api = builders.cluster(builders.secret(), builders.nspro(**SPEC))
    builders.settled(api)
    api.put(builders.nspro(nssize="large", managed=True, **SPEC))
    return api


def outcome(told):
    item = builders.only(told)
    return item.state, item.reason, item.msg, item.error, [(x.action, x.kind, x.name) for x in item.done]


@pytest.mark.parametrize("kind", ["Namespace", "ResourceQuota", "LimitRange", "NetworkPolicy"])
def test_what_admission_refuses_the_run_it_refuses_check_mode_with_the_same_words(kind):
    api = there()
    api.before = denying(kind)
    before = api.dump()
    predicted = builders.one_pass(api, check_mode=True)
    assert (api.writes, api.dump()) == ([], before)
    assert f"admission denied {kind}" in builders.only(predicted).error
    assert outcome(predicted) == outcome(builders.one_pass(api))


@pytest.mark.parametrize("kind", ["Namespace", "NetworkPolicy"])
def test_so_it_is_where_a_namespace_is_let_go(kind):
    api = there()
    builders.settled(api)
    api.before = denying(kind)
    state = "absent" if kind == "Namespace" else "released"
    predicted = builders.one_pass(api, check_mode=True, state=state)
    assert f"admission denied {kind}" in builders.only(predicted).error
    assert api.writes == []
    assert outcome(predicted) == outcome(builders.one_pass(api, state=state))


def test_every_write_is_asked_about_and_none_is_made():
    api = there()
    before = api.dump()
    predicted = builders.one_pass(api, check_mode=True)
    assert (api.writes, api.dump()) == ([], before)
    assert sorted(api.asked) == [
        "apply LimitRange/team-a/team-a-limits",
        "apply NetworkPolicy/team-a/team-a-np",
        "apply ResourceQuota/team-a/team-a-quota",
        "patch Namespace/team-a",
    ]
    assert outcome(predicted)[:4] == outcome(builders.one_pass(api))[:4]


def test_a_name_that_admission_refuses_is_refused_in_check_mode():
    api = builders.cluster()
    api.before = denying("Namespace")
    result = builders.only(builders.provision(api, check_mode=True, name="team-a", size="small"))
    assert result.error == "admission denied Namespace team-a"


def test_what_stands_in_a_namespace_that_is_not_there_is_named_as_not_asked_about():
    api = builders.cluster()
    told = builders.provision(api, check_mode=True, name="team-a", size="small")
    assert api.asked == ["create Namespace/team-a"]
    (warning,) = report.problems(told.results)
    what = "ResourceQuota/team-a-quota, NetworkPolicy/team-a-np, LimitRange/team-a-limits"
    assert f"Namespace team-a: the API server was not asked about {what}" in warning
    builders.provision(api, name="team-a", size="small")
    assert report.problems(builders.provision(api, check_mode=True, name="team-a", size="small").results) == []


def test_what_stands_on_a_deletion_before_it_is_not_asked_about_either():
    api = builders.cluster(builders.nspro(access=[{"role": "edit", "groups": ["devs"]}]))
    builders.settled(api)
    key = ("RoleBinding", "team-a", "kubesteward-edit")
    api.objects[key]["roleRef"]["name"] = "admin"
    told = builders.one_pass(api, check_mode=True)
    assert [(x.action, x.kind) for x in builders.only(told).unasked] == [("apply", "RoleBinding")]
    assert builders.only(told).error == ""
    assert "RoleBinding/kubesteward-edit" in report.problems(told.results)[0]


def test_what_goes_with_a_namespace_is_named():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    for number in range(12):
        api.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number:02}", "namespace": "team-a"}})
    meta = {"name": "data", "namespace": "team-a"}
    api.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {}})
    pods, claims = builders.only(builders.one_pass(api, check_mode=True, state="absent")).warnings
    assert pods.startswith("with it go 12 Pods: web-00, ")
    assert pods.endswith("web-09 and 2 more")
    assert claims == "with it go 1 PersistentVolumeClaims with their data, unless the reclaim policy is Retain: data"
    # what is released or kept takes nothing along
    assert builders.only(builders.one_pass(api, check_mode=True, state="released")).warnings == []
    assert builders.only(builders.one_pass(api, state="absent")).warnings == []


def test_where_it_may_not_be_looked_at_what_goes_is_said_to_be_unknown():
    api = builders.cluster(builders.nspro())
    builders.settled(api)

    def hook(verb, target):
        if verb == "list" and target.kind in ("Pod", "PersistentVolumeClaim"):
            raise refused(403, f"{target.kind}s is forbidden")

    api.before = hook
    result = builders.only(builders.one_pass(api, check_mode=True, state="absent"))
    assert (result.state, result.error) == ("terminating", "")
    told = "whether PersistentVolumeClaims go with it is not known (PersistentVolumeClaims is forbidden)"
    assert told in result.warnings


@pytest.mark.parametrize("state", ["absent", "released"])
def test_nobodys_nspros_are_let_go_because_a_name_is_empty(state):
    """See also the role: a variable that is not set is an empty text."""
    api = builders.cluster(builders.nspro(), builders.nspro("team-b"))
    builders.settled(api)
    before = api.dump()
    for name in (None, ""):
        with pytest.raises(StewardError, match="The name is empty, and every Namespace of the Nspros in ops") as told:
            builders.provision(api, state=state, nspros={"namespace": HOME, "name": name})
        assert "nspro_all=true" in str(told.value)
    assert (api.dump(), api.requests) == (before, [])
    builders.provision(api, state=state, nspros={"namespace": HOME, "name": "team-a", "must_exist": True})
    assert builders.claim_of(api, "team-b")
    told = builders.provision(api, state=state, nspros={"namespace": HOME, "all": True})
    assert {item.name for item in told.results} >= {"team-b"}
    # what is asked for every day needs no such word
    assert builders.provision(api, nspros={"namespace": HOME}).errors == []


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("Namespace", "There is no namespace ops in this cluster"),
        ("CustomResourceDefinition", "it has no CustomResourceDefinition nspros.nspro.example.com; make install"),
    ],
)
def test_a_namespace_or_a_definition_that_is_not_there_is_an_error_and_an_empty_one_is_none(missing, told):
    api = builders.cluster()
    assert builders.provision(api, nspros={"namespace": HOME}).errors == []
    key = next(key for key in api.objects if key[0] == missing and key[2] in (HOME, "nspros.nspro.example.com"))
    del api.objects[key]
    (error,) = builders.provision(api, nspros={"namespace": HOME}).errors
    assert told in error
    # the operator's resource may be gone by the time of its pass
    assert builders.one_pass(api).errors == []


def test_namespaces_of_nspros_whose_own_namespace_is_gone_are_looked_after_without_an_error():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.finish(HOME)
    told = builders.provision(api, nspros={"namespace": HOME})
    assert (builders.only(told).state, told.errors) == ("released", [])


@pytest.mark.parametrize("namespace", ["", " "])
@pytest.mark.parametrize("state", ["present", "absent", "released"])
def test_an_empty_namespace_is_not_the_whole_cluster(namespace, state):
    api = builders.cluster(builders.nspro())
    with pytest.raises(StewardError, match="The namespace of the Nspros is empty; set nspro_namespace"):
        builders.provision(api, state=state, nspros={"namespace": namespace, "all": True})
    assert api.requests == []


def test_what_is_planned_anew_is_predicted_once():
    api = there()
    refusals = [refused(409, "somebody was faster")]

    def hook(verb, target):
        if (verb, target.kind) == ("apply", "NetworkPolicy") and refusals:
            raise refusals.pop()

    api.before = hook
    done = [(x.action, x.kind) for x in builders.only(builders.one_pass(api, check_mode=True)).done]
    assert len(done) == len(set(done)) == 4
    assert refusals == []

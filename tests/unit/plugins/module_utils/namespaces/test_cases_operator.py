# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many namespaces, other writers, OpenShift; the operator's own part is tested with its files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils import kube
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import provision
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

QUOTA = ("ResourceQuota", "team-a", "team-a-quota")
UID_RANGE = "openshift.io/sa.scc.uid-range"


@pytest.mark.parametrize("times", range(1, 5))
def test_a_conflict_is_tried_again_a_few_times_and_never_fails_the_pass(times):
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.put(builders.nspro(nssize="large"))
    left = times

    def hook(verb, target):
        nonlocal left
        if verb == "apply" and target.kind == "ResourceQuota" and left:
            left -= 1
            raise refused(409, "the object has been modified", "Conflict")

    api.before = hook
    told = builders.one_pass(api)
    result = builders.only(told)
    assert (told.errors, result.error) == ([], "")
    assert (result.state, result.reason) == (("ready", "") if times < provision.ATTEMPTS else ("pending", "conflict"))
    api.before = lambda verb, target: None
    assert builders.only(builders.settled(api)).state == "ready"
    assert api.objects[QUOTA]["spec"]["hard"]["limits.cpu"] == "300m"


def test_somebody_who_patches_the_quota_during_our_pass_keeps_what_is_theirs():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.put(builders.nspro(nssize="large"))

    def hook(verb, target):
        if verb == "apply" and target.kind == "ResourceQuota":
            api.before = lambda verb, target: None
            api.edit(*QUOTA, lambda obj: obj["spec"]["hard"].update(pods="7"), "kubectl-edit")

    api.before = hook
    assert builders.only(builders.one_pass(api)).state == "ready"
    assert api.objects[QUOTA]["spec"]["hard"] == {"limits.cpu": "300m", "limits.memory": "300Mi", "pods": "7"}


def test_a_thousand_namespaces_of_others_cost_an_unchanged_pass_no_request_more():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    few = list(api.requests)
    for number in range(1000):
        api.put(builders.namespace(f"other-{number}"))
    before = api.dump()
    builders.one_pass(api)
    assert (api.requests, api.writes) == (few, [])
    assert api.dump() == before


def test_namespaces_are_listed_page_by_page_and_without_what_is_not_needed():
    asked = []

    class Answer:
        data = b'{"metadata": {}, "items": null}'

    def request(verb, path, **query):
        asked.append((path, query))
        return Answer

    kube.Cluster(request).find("v1", "Namespace", None, metadata_only=True)
    ((path, query),) = asked
    assert path == "/api/v1/namespaces"
    assert query["limit"] == kube.PAGE
    assert "PartialObjectMetadataList" in query["header_params"]["Accept"]


def test_many_nspros_are_worked_on_at_the_same_time_each_with_its_result():
    api = builders.cluster(*(builders.nspro(f"team-{number:02}") for number in range(30)))
    told = builders.one_pass(api)
    assert [(item.name, item.state) for item in told.results] == [(f"team-{n:02}", "ready") for n in range(30)]
    builders.one_pass(api)
    assert builders.writes(api) == []


def test_on_openshift_a_namespace_is_ready_once_it_has_its_range_of_users():
    api = builders.cluster(builders.nspro())
    api.edit("Namespace", None, "payments", lambda obj: obj["metadata"].update(annotations={UID_RANGE: "1/2"}))
    for _pass in range(2):
        result = builders.only(builders.one_pass(api, openshift=True))
        assert (result.state, result.reason) == ("pending", "openshift")
        assert UID_RANGE in result.msg
    # the controller gives it; we never do
    assert UID_RANGE not in api.objects[("Namespace", None, "team-a")]["metadata"]["annotations"]
    api.edit(
        "Namespace", None, "team-a", lambda obj: obj["metadata"]["annotations"].update({UID_RANGE: "1000/10000"}), "scc"
    )
    assert builders.only(builders.settled(api, openshift=True)).state == "ready"
    assert api.objects[("Namespace", None, "team-a")]["metadata"]["annotations"][UID_RANGE] == "1000/10000"


def test_nobody_can_ask_for_a_range():
    api = builders.cluster(builders.nspro(annotations={UID_RANGE: "0/1"}))
    result = builders.only(builders.one_pass(api))
    assert (result.state, builders.writes(api)) == ("invalid", [])


@pytest.mark.parametrize(("levels", "is_set"), [({"enforce": "baseline"}, True), ({"warn": "restricted"}, False)])
def test_who_sets_the_level_that_is_enforced_switches_openshifts_syncer_off(levels, is_set):
    api = builders.cluster(builders.nspro(podSecurity=levels))
    builders.settled(api)
    labels = api.objects[("Namespace", None, "team-a")]["metadata"]["labels"]
    assert labels.get("security.openshift.io/scc.podSecurityLabelSync") == ("false" if is_set else None)
    for mode, level in levels.items():
        assert labels[f"pod-security.kubernetes.io/{mode}"] == level
    api.put(builders.nspro())
    builders.settled(api)
    labels = api.objects[("Namespace", None, "team-a")]["metadata"]["labels"]
    assert not [key for key in labels if "security" in key]


@pytest.mark.parametrize(
    "bad",
    [
        {"nssize": "huge"},
        {"quota": {"limits.cpu": "much"}},
        {"access": [{"role": "root", "users": ["x"]}]},
        {"labels": {"app": "infra"}},
        {"networkPolicy": {"fromNamespaces": [{}]}},
    ],
    ids=str,
)
def test_a_bad_spec_stops_no_other(bad):
    api = builders.cluster(*(builders.nspro(name) for name in ("a-first", "z-last")))
    api.put(builders.nspro("middle", **bad))
    found = builders.by_name(builders.one_pass(api))
    assert {name: item.state for name, item in found.items()} == {
        "a-first": "ready",
        "middle": "invalid",
        "z-last": "ready",
    }
    assert api.objects[("Nspro", HOME, "middle")]["status"]["phase"] == "Invalid"
    assert ("Namespace", None, "middle") not in api.objects


def test_a_spec_that_becomes_bad_leaves_the_namespace_as_it_is():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    before = api.dump(HOME)
    api.put(builders.nspro(nssize="huge"))
    assert builders.only(builders.one_pass(api)).state == "invalid"
    assert api.dump(HOME) == before


def test_two_passes_at_once_do_each_thing_once():
    """A second pass that runs in the middle of the first, as of a second Pod of the operator."""
    api = builders.cluster(builders.nspro())

    def hook(verb, target):
        if verb == "apply" and target.kind == "NetworkPolicy":
            api.before = lambda verb, target: None
            given = {"nspros": {"namespace": HOME, "name": None, "must_exist": True}}
            builders.ns_provision.run(builders.params(**given), api, False, False, builders.NOW)

    api.before = hook
    result = builders.only(builders.one_pass(api))
    assert (result.state, result.error) == ("ready", "")
    kinds = [key[0] for key in api.objects if key[1] == "team-a"]
    assert sorted(kinds) == ["LimitRange", "NetworkPolicy", "ResourceQuota", "ServiceAccount"]
    assert builders.writes(builders.settled(api) and api) == []


def test_the_watch_names_its_period():
    root = Path(__file__).parents[5]
    watches = {watch["kind"]: watch for watch in yaml.safe_load((root / "watches.yaml").read_text())}
    assert watches["Nspro"]["reconcilePeriod"] == "1m"

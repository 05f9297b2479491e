# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told is true, and holds no secret."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import report
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import MARKER
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused


def test_a_diff_shows_no_copy_of_a_secret_that_a_tool_keeps_in_an_annotation():
    api = builders.cluster(builders.secret(content="new"), builders.adoptable("team-a"))
    theirs = builders.secret(where="team-a", content="old")
    theirs["metadata"]["annotations"] = {"kapp.k14s.io/original": MARKER, "objectset.rio.cattle.io/applied": MARKER}
    api.put(theirs, "kapp")
    api.put(builders.nspro(adoption="Always", pullSecrets=[{"name": "regcred"}]))
    told = builders.one_pass(api, check_mode=True)
    assert "Secret" in {operation.kind for operation in builders.only(told).done}
    assert MARKER not in builders.visible(told, api)


def test_a_shrink_that_was_refused_is_not_told_as_done():
    api = builders.cluster(builders.nspro(nssize="large"))
    builders.settled(api)
    api.count("team-a", limits_cpu="250m", limits_memory="1Mi")
    api.put(builders.nspro(nssize="small", shrink="Apply"))

    def refuse(verb, target):
        if (verb, target.kind) == ("apply", "ResourceQuota"):
            raise refused(403, "forbidden")

    api.before = refuse
    assert builders.only(builders.one_pass(api)).state == "pending"
    assert "ShrinkApplied" not in [event["reason"] for event in api.events]
    api.before = lambda verb, target: None
    builders.one_pass(api)
    assert [event["reason"] for event in api.events].count("ShrinkApplied") == 1


def test_the_diff_of_a_release_shows_what_stays():
    api = builders.cluster(builders.adoptable("team-a"))
    api.put(builders.quota("team-a", {"limits.cpu": "100m", "limits.memory": "100Mi"}, labels={"theirs": "1"}), "helm")
    api.put(builders.nspro(adoption="Always"))
    builders.settled(api)
    told = builders.one_pass(api, check_mode=True, state="released")
    diff = report.result(told.results, told.statuses, with_diff=True)["diff"]
    (quota,) = [item for item in diff if item["before_header"].endswith("ResourceQuota/team-a-quota")]
    assert "managed-by" in quota["before"]
    assert "managed-by" not in quota["after"]
    assert '"limits.cpu": "100m"' in quota["after"]


GUARDS = {"ResourceQuota": "QuotaApplied", "NetworkPolicy": "NetworkPolicyApplied"}


def guards(api):
    return {kind: builders.condition(api, "team-a", GUARDS[kind]) for kind in GUARDS}


@pytest.mark.parametrize("kind", ["LimitRange", "RoleBinding", "ResourceQuota", "NetworkPolicy"])
def test_each_condition_tells_of_its_own_object(kind):
    api = builders.cluster(builders.nspro(access=[{"role": "edit", "groups": ["devs"]}]))

    def refuse(verb, target):
        if (verb, target.kind) == ("apply", kind):
            raise refused(422, f"no {kind}")

    api.before = refuse
    assert builders.only(builders.one_pass(api)).state == "pending"
    for guard, condition in guards(api).items():
        if guard == kind:
            assert (condition["status"], condition["reason"], condition["message"]) == (
                "False",
                "Refused",
                f"no {kind}",
            )
        else:
            assert (condition["status"], condition["reason"]) == ("True", "Applied")
    assert builders.condition(api, "team-a", "Ready")["message"] == f"no {kind}"
    api.before = lambda verb, target: None
    builders.settled(api)
    assert {condition["status"] for condition in guards(api).values()} == {"True"}


@pytest.mark.parametrize("kind", GUARDS)
def test_what_another_has_is_not_told_of_the_other_object(kind):
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    name = {"ResourceQuota": "team-a-quota", "NetworkPolicy": "team-a-np"}[kind]
    api.remove(kind, "team-a", name)
    other = builders.quota("team-a", {"pods": "1"}) if kind == "ResourceQuota" else builders.policy("team-a", name, [])
    api.put(other, "helm")
    builders.one_pass(api)
    found = guards(api)
    assert (found[kind]["status"], found[kind]["reason"]) == ("False", "Conflict")
    assert f"{kind} {name} exists and is not ours" in found[kind]["message"]
    assert [item["status"] for guard, item in found.items() if guard != kind] == ["True"]


def test_a_secret_that_is_missing_says_nothing_of_the_quota():
    api = builders.cluster(builders.nspro(pullSecrets=[{"name": "missing"}]))
    builders.one_pass(api)
    assert {condition["status"] for condition in guards(api).values()} == {"True"}


def test_what_was_not_come_to_is_unknown():
    api = builders.cluster(builders.nspro())

    def silent(verb, target):
        if target.kind == "NetworkPolicy" and verb == "apply":
            raise refused(0, "no answer")

    api.before = silent
    builders.one_pass(api)
    found = guards(api)
    assert (found["ResourceQuota"]["status"], found["NetworkPolicy"]["status"]) == ("True", "Unknown")


@pytest.mark.parametrize("name", ["kube-x", "payments"])
def test_where_nothing_may_be_written_nothing_is_said_to_be_there(name):
    api = builders.cluster(builders.nspro(name))
    builders.one_pass(api)
    kinds = GUARDS.values()
    assert {builders.condition(api, name, kind)["status"] for kind in kinds} == {"Unknown"}

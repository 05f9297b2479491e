# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas and limits."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import quantity
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders

QUOTA = ("ResourceQuota", "team-a", "team-a-quota")
LIMITS = ("LimitRange", "team-a", "team-a-limits")


def provided(**spec):
    api = builders.cluster(builders.nspro(**spec))
    builders.settled(api)
    return api


def hard(api):
    return api.objects[QUOTA]["spec"]["hard"]


@pytest.mark.parametrize(("nssize", "amount"), [("small", 100), ("medium", 200), ("large", 300)])
def test_a_pod_without_limits_gets_half_of_the_quota(nssize, amount):
    api = provided(nssize=nssize)
    assert hard(api) == {"limits.cpu": f"{amount}m", "limits.memory": f"{amount}Mi"}
    (item,) = api.objects[LIMITS]["spec"]["limits"]
    assert item["default"] == item["defaultRequest"] == {"cpu": f"{amount // 2}m", "memory": f"{amount // 2}Mi"}
    assert builders.only(builders.one_pass(api)).warnings == []


def test_without_a_limit_range_a_warning_says_what_is_refused():
    api = provided(limitRange={"enabled": False})
    assert LIMITS not in api.objects
    (warning,) = builders.only(builders.one_pass(api)).warnings
    assert "Pods without limits of their own are refused" in warning
    assert warning in api.objects[("Nspro", "ops", "team-a")]["status"]["warnings"]


def test_a_quota_on_counts_alone_needs_no_limits():
    api = builders.cluster(builders.nspro())
    builders.settled(api, sizes={"small": {"quota": {"count/pods": "5"}}})
    assert LIMITS not in api.objects
    assert builders.only(builders.one_pass(api, sizes={"small": {"quota": {"count/pods": 5}}})).warnings == []


def test_the_module_gives_the_same_as_a_resource():
    spec = {"managed": True, "labels": {"team": "a"}}
    by_resource, by_module = provided(**spec), builders.cluster()
    builders.provision(by_module, name="team-a", size="small", **spec)
    for kind, name in (QUOTA[0::2], LIMITS[0::2], ("NetworkPolicy", "team-a-np")):
        one, other = (api.objects[(kind, "team-a", name)] for api in (by_resource, by_module))
        assert one["spec"] == other["spec"]
    labels = [api.objects[("Namespace", None, "team-a")]["metadata"]["labels"] for api in (by_resource, by_module)]
    assert labels[0] == labels[1]


@pytest.mark.parametrize(
    ("used", "is_tight"), [("50m", False), ("51m", True), ("100m", True), ("0.1", True), ("0", False)]
)
def test_where_no_second_pod_fits_a_warning_says_that_a_rolling_update_may_stop(used, is_tight):
    api = provided()
    api.count("team-a", limits_cpu=used)
    result = builders.only(builders.one_pass(api))
    told = [f"no room for another Pod, so a rolling update may not go on (limits.cpu: {used} of 100m used)"]
    assert result.warnings == (told if is_tight else [])
    assert result.state == "ready"
    assert api.objects[("Nspro", "ops", "team-a")]["status"].get("warnings") == (told if is_tight else None)


def test_a_size_changed_there_and_back_leaves_one_quota_one_policy_and_one_limit_range():
    api = provided()
    first = {key: api.objects[key]["spec"] for key in (QUOTA, LIMITS)}
    for nssize in ("large", "small"):
        api.put(builders.nspro(nssize=nssize))
        builders.one_pass(api)
        # a size change is at most three writes
        assert sorted(builders.writes(api)) == [
            "apply LimitRange/team-a/team-a-limits",
            "apply ResourceQuota/team-a/team-a-quota",
            "patch Namespace/team-a",
        ]
    kinds = [key[0] for key in api.objects if key[1] == "team-a"]
    assert sorted(kinds) == ["LimitRange", "NetworkPolicy", "ResourceQuota", "ServiceAccount"]
    assert {key: api.objects[key]["spec"] for key in (QUOTA, LIMITS)} == first


def test_what_a_size_no_longer_limits_is_no_longer_limited():
    api = builders.cluster(builders.nspro())
    builders.settled(api, sizes={"small": {"quota": {"limits.cpu": "1", "count/pods": "5"}}})
    builders.settled(api, sizes={"small": {"quota": {"limits.cpu": "1"}}})
    assert hard(api) == {"limits.cpu": "1"}


@pytest.mark.parametrize("cpu", ["0.1", "100m", "1e-1"])
@pytest.mark.parametrize("memory", ["104857600", "102400Ki", "100Mi"])
def test_another_spelling_of_another_manager_is_no_conflict(cpu, memory):
    api = builders.cluster(builders.nspro(adoption="IfIdentical"))
    api.put(builders.adoptable("team-a", labels={"size": "small", "managed": "false"}), "helm")
    api.put(builders.quota("team-a", {"limits.cpu": cpu, "limits.memory": memory}), "helm")
    api.put(builders.policy("team-a", "team-a-np", [{}]), "helm")
    limits = {"cpu": "50m", "memory": "50Mi"}
    api.put(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "team-a-limits", "namespace": "team-a"},
            "spec": {"limits": [{"type": "Container", "default": limits}]},
        },
        "helm",
    )
    result = builders.only(builders.settled(api))
    assert (result.state, result.msg) == ("ready", "")
    assert quantity.equal(hard(api)["limits.memory"], "100Mi")


def test_a_really_different_amount_of_another_manager_is_a_conflict():
    api = builders.cluster(builders.nspro(adoption="IfIdentical"))
    api.put(builders.adoptable("team-a", labels={"size": "small", "managed": "false"}), "helm")
    api.put(builders.quota("team-a", {"limits.cpu": "0.2", "limits.memory": "100Mi"}), "helm")
    before = api.dump("ops")
    result = builders.only(builders.one_pass(api))
    assert result.state == "conflict"
    assert "ResourceQuota team-a-quota" in result.msg
    assert (builders.writes(api), api.dump("ops")) == ([], before)


def shrinking(shrink="Hold", **used):
    """A large namespace in which so much is used, and that is to be small."""
    api = provided(nssize="large")
    api.count("team-a", **used)
    api.put(builders.nspro(nssize="small", shrink=shrink))
    return api


def test_a_smaller_quota_than_what_is_used_is_held_with_figures():
    api = shrinking(limits_cpu="250m")
    result = builders.only(builders.one_pass(api))
    assert (result.state, builders.writes(api)) == ("held", [])
    assert "limits.cpu: 250m used, 100m wanted, 300m now" in result.msg
    blocked = builders.condition(api, "team-a", "ShrinkBlocked")
    assert (blocked["status"], blocked["reason"]) == ("True", "InUse")
    assert builders.condition(api, "team-a", "QuotaApplied")["status"] == "False"
    api.count("team-a", limits_cpu="100m")
    builders.settled(api)
    assert hard(api)["limits.cpu"] == "100m"
    assert builders.condition(api, "team-a", "ShrinkBlocked")["status"] == "False"


def test_while_the_size_is_held_everything_else_goes_on():
    api = shrinking(limits_cpu="250m")
    api.put(builders.nspro(nssize="small", managed=True, access=[{"role": "view", "groups": ["devs"]}]))
    assert builders.only(builders.one_pass(api)).state == "held"
    assert sorted(builders.writes(api)) == [
        "apply NetworkPolicy/team-a/team-a-np",
        "apply RoleBinding/team-a/kubesteward-view",
        "patch Namespace/team-a",
    ]
    assert api.objects[("Namespace", None, "team-a")]["metadata"]["labels"]["size"] == "large"


def test_apply_shrinks_with_a_warning():
    api = shrinking("Apply", limits_cpu="250m")
    assert builders.only(builders.one_pass(api)).state == "ready"
    assert hard(api)["limits.cpu"] == "100m"
    (event,) = [event for event in api.events if event["reason"] == "ShrinkApplied"]
    assert event["type"] == "Warning"
    assert "250m used" in event["message"]


@pytest.mark.parametrize("shrink", ["Hold", "Apply"])
@pytest.mark.parametrize("stale", ["no status", "of another spec", "not all counted"])
def test_what_is_not_counted_yet_is_waited_for(shrink, stale):
    api = shrinking(shrink)
    status = api.objects[QUOTA]["status"]
    if stale == "no status":
        api.objects[QUOTA]["status"] = {}
    elif stale == "of another spec":
        status["hard"]["limits.cpu"] = "200m"
    else:
        del status["used"]["limits.cpu"]
    result = builders.only(builders.one_pass(api))
    assert (result.state, builders.writes(api)) == ("held", [])
    assert "not counted yet" in result.msg
    assert builders.condition(api, "team-a", "ShrinkBlocked")["reason"] == "UsageUnknown"
    # the controller comes to it
    api.count("team-a", limits_cpu="10m")
    assert builders.only(builders.settled(api)).state == "ready"
    assert hard(api)["limits.cpu"] == "100m"


def test_a_status_in_another_spelling_is_of_this_spec():
    api = shrinking(limits_cpu="10m")
    api.objects[QUOTA]["status"]["hard"] = {"limits.cpu": "0.3", "limits.memory": "307200Ki"}
    assert builders.only(builders.one_pass(api)).state == "ready"


def test_check_mode_names_the_pods_above_the_new_quota():
    api = shrinking("Apply", limits_cpu="250m")
    for number in range(12):
        meta = {"name": f"web-{number:02}", "namespace": "team-a"}
        api.put({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": "Running"}})
    done = {"name": "job", "namespace": "team-a"}
    api.put({"apiVersion": "v1", "kind": "Pod", "metadata": done, "status": {"phase": "Succeeded"}})
    before = api.dump()
    result = builders.only(builders.one_pass(api, check_mode=True))
    assert api.dump() == before
    assert "limits.cpu: 250m used" in result.warnings[-1]
    assert "web-00" in result.warnings[-1]
    assert result.warnings[-1].endswith("web-09 and 2 more")
    assert "job" not in result.warnings[-1]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is used already counts for a size that is written for the first time, and what is free counts by the new one."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import shrink, usage
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

QUOTA = ("ResourceQuota", "team-a", "team-a-quota")
LIMITS = ("LimitRange", "team-a", "team-a-limits")
NAMESPACE = ("Namespace", None, "team-a")


def pod(name="web", phase="Running", **resources):
    """A Pod with one container of these limits, or requests where they are so named."""
    given = {"limits": resources} if "limits" not in resources and "requests" not in resources else resources
    meta = {"name": name, "namespace": "team-a"}
    spec = {"containers": [{"name": "web", "image": "web", "resources": given}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}


def adopting(*pods, **spec):
    """A Namespace with Pods that is to be adopted."""
    api = builders.cluster(builders.adoptable("team-a", labels={"team": "theirs"}), *pods)
    api.put(builders.nspro(adoption="Always", **spec))
    return api


def test_an_adopted_namespace_that_uses_more_than_the_size_waits_for_it_with_figures():
    api = adopting(pod(cpu="250m", memory="10Mi"), pod("old", "Succeeded", cpu="8"))
    for _again in range(2):
        result = builders.only(builders.one_pass(api))
        assert (result.state, result.reason) == ("held", "shrink_blocked")
        assert "limits.cpu: 250m used, 100m wanted, none now" in result.msg
        assert QUOTA not in api.objects
        # a container that names nothing is not cut down either
        assert LIMITS not in api.objects
        assert "size" not in api.objects[NAMESPACE]["metadata"]["labels"]
    # what is no size is there: the policy, the claim
    assert ("NetworkPolicy", "team-a", "team-a-np") in api.objects
    assert builders.writes(api) == []
    blocked = builders.condition(api, "team-a", "ShrinkBlocked")
    assert (blocked["status"], blocked["reason"]) == ("True", "InUse")
    api.remove("Pod", "team-a", "web")
    assert builders.only(builders.settled(api)).state == "ready"
    assert api.objects[QUOTA]["spec"]["hard"]["limits.cpu"] == "100m"
    assert api.objects[NAMESPACE]["metadata"]["labels"]["size"] == "small"


def test_one_that_fits_gets_its_size_in_the_first_pass():
    api = adopting(pod(cpu="50m", memory="10Mi"))
    assert builders.only(builders.one_pass(api)).state == "ready"
    assert QUOTA in api.objects


def test_apply_writes_it_at_once_and_asks_for_no_pods():
    api = adopting(pod(cpu="250m"), shrink="Apply")
    assert builders.only(builders.one_pass(api)).state == "ready"
    assert "list Pod/team-a" not in api.requests


def test_check_mode_holds_it_too():
    api = adopting(pod(cpu="250m"))
    assert builders.only(builders.one_pass(api, check_mode=True)).state == "held"


def test_where_pods_may_not_be_listed_it_waits_and_says_what_to_allow():
    api = adopting()

    def hook(verb, target):
        if verb == "list" and target.kind == "Pod":
            raise refused(403, "pods is forbidden")

    api.before = hook
    result = builders.only(builders.one_pass(api))
    assert (result.state, result.error) == ("held", "")
    assert "what is used is not known (pods is forbidden); allow it, or ask for shrink: Apply" in result.msg
    assert builders.condition(api, "team-a", "ShrinkBlocked")["reason"] == "UsageUnknown"
    assert QUOTA not in api.objects


@pytest.mark.parametrize("resource", ["pods", "count/pods", "requests.cpu", "cpu"])
def test_a_resource_that_the_quota_did_not_limit_before_counts_too(resource):
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    for number in range(2):
        api.put(pod(f"web-{number}", requests={"cpu": "1"}))
    api.put(builders.nspro(quota={resource: "1"}))
    result = builders.only(builders.one_pass(api))
    assert result.state == "held"
    assert f"{resource}: 2 used, 1 wanted, none now" in result.msg
    assert resource not in api.objects[QUOTA]["spec"]["hard"]
    api.put(builders.nspro(quota={resource: "2"}))
    assert builders.only(builders.one_pass(api)).state == "ready"


def test_a_quota_that_somebody_took_away_from_a_namespace_of_ours_comes_back_at_once():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.put(pod(cpu="250m"))
    api.remove(*QUOTA)
    assert builders.only(builders.one_pass(api)).state == "ready"
    assert QUOTA in api.objects


def test_pods_are_listed_in_no_pass_that_changes_no_size():
    api = adopting(pod(cpu="50m"))
    builders.settled(api)
    builders.one_pass(api)
    assert "list Pod/team-a" not in api.requests


@pytest.mark.parametrize(
    ("spec", "resource", "used"),
    [
        ({"containers": [{"resources": {"limits": {"cpu": "100m"}}}] * 2}, "limits.cpu", "200m"),
        ({"containers": [{"resources": {"requests": {"memory": "1Mi"}}}, {}]}, "memory", "1048576"),
        ({"containers": [{}], "overhead": {"cpu": "10m"}}, "requests.cpu", "10m"),
        (
            {
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
                "initContainers": [{"resources": {"requests": {"cpu": "3"}}}],
            },
            "requests.cpu",
            "3",
        ),
        (
            {
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
                "initContainers": [
                    {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
                    {"resources": {"requests": {"cpu": "1"}}},
                ],
            },
            "cpu",
            "1500m",
        ),
        (
            {"containers": [{"resources": {"limits": {"cpu": "9"}}}], "resources": {"limits": {"cpu": "2"}}},
            "limits.cpu",
            "2",
        ),
        ({"containers": [{"resources": {"limits": {"cpu": "much"}}}]}, "limits.cpu", "0"),
        ({"containers": [{"resources": {"requests": {"nvidia.com/gpu": "2"}}}]}, "requests.nvidia.com/gpu", "2"),
    ],
    ids=["together", "one", "overhead", "init", "sidecar", "whole", "none", "gpu"],
)
def test_what_a_pod_uses_is_counted_as_a_quota_counts_it(spec, resource, used):
    assert usage.count([{"spec": spec}], [resource]) == {resource: used}


def test_only_what_pods_use_is_counted_from_them():
    names = ["limits.cpu", "requests.storage", "services", "count/secrets", "pods", "memory", "persistentvolumeclaims"]
    assert usage.countable(names) == ["limits.cpu", "pods", "memory"]


def test_a_larger_size_of_an_empty_namespace_has_room():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    api.put(builders.nspro(nssize="large"))
    assert builders.only(builders.one_pass(api)).warnings == []
    assert builders.only(builders.one_pass(api)).warnings == []


def test_a_smaller_one_that_is_held_is_measured_by_what_holds():
    api = builders.cluster(builders.nspro(nssize="large"))
    builders.settled(api)
    api.count("team-a", limits_cpu="150m")
    api.put(builders.nspro())
    result = builders.only(builders.one_pass(api))
    assert (result.state, result.warnings) == ("held", [])


@pytest.mark.parametrize(
    ("spec", "used", "told"),
    [
        ({"quota": {"pods": "1"}}, {"pods": "1"}, "pods: 1 of 1 used"),
        ({"quota": {"count/pods": "1"}}, {"count/pods": "1"}, "count/pods: 1 of 1 used"),
        ({"quota": {"requests.cpu": "1"}}, {"requests.cpu": "1"}, "requests.cpu: 1 of 1 used"),
        ({"quota": {"memory": "1Gi"}}, {"memory": "1Gi"}, "memory: 1Gi of 1Gi used"),
    ],
)
def test_room_for_another_pod_is_more_than_its_limits(spec, used, told):
    api = builders.cluster(builders.nspro(**spec))
    builders.settled(api)
    api.count("team-a", **used)
    (warning,) = builders.only(builders.one_pass(api)).warnings
    assert told in warning


def test_a_default_beyond_the_quota_is_told_before_the_first_pod():
    api = builders.cluster(builders.nspro(limitRange={"default": {"cpu": "400m"}}))
    (warning,) = builders.only(builders.one_pass(api)).warnings
    assert "no room for another Pod" in warning
    assert "limits.cpu: 0 of 100m used" in warning


def test_what_nobody_could_count_is_a_shrink_that_nobody_knows():
    found = shrink.check({"pods": "1"}, None, shrink.Counted(problem="because"))
    assert (found.is_known, found.message) == (False, "because")

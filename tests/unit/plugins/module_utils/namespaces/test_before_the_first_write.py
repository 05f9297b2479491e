# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server would refuse in some object is refused before the first write; what we fill in ourselves fits."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import quantity, sizes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders

QUOTA = ("ResourceQuota", "team-a", "team-a-quota")
LIMITS = ("LimitRange", "team-a", "team-a-limits")


def container(api):
    """What containers that name nothing get, as it is stored."""
    (item,) = api.objects[LIMITS]["spec"]["limits"]
    return item


@pytest.mark.parametrize("amount", ["125m", "0.3001", "1m", "0.0001", "333333u", "2.0005", "1n"])
@pytest.mark.parametrize("resource", ["limits.cpu", "requests.cpu", "cpu", "limits.memory"])
def test_an_odd_amount_is_written_once_and_its_half_fits_twice(resource, amount):
    api = builders.cluster(builders.nspro(quota={resource: amount}))
    assert builders.only(builders.one_pass(api)).state == "ready"
    builders.one_pass(api)
    assert builders.writes(api) == []
    kind, name = "default" if resource.startswith("limits.") else "defaultRequest", resource.rpartition(".")[2]
    half, whole = (quantity.parse(text) for text in (container(api)[kind][name], amount))
    if resource != "requests.cpu" and resource != "cpu":
        assert half * 2 <= whole or half == min(whole, 1 if name == "memory" else quantity.MILLI)


@pytest.mark.parametrize(
    ("limit_range", "default", "request_"),
    [
        ({"max": {"cpu": "100m"}}, "100m", "100m"),
        ({"min": {"cpu": "200m"}}, "200m", "200m"),
        ({"default_request": {"cpu": "250m"}}, "250m", "250m"),
        ({"default": {"cpu": "10m"}}, "10m", "10m"),
        ({"max": {"cpu": "100m"}, "min": {"cpu": "100m"}}, "100m", "100m"),
        ({"min": {"cpu": "10m"}, "max": {"cpu": "1"}}, "150m", "150m"),
        ({"max": {"cpu": "0.1"}, "default_request": {"cpu": "50m"}}, "100m", "50m"),
    ],
)
def test_what_is_filled_in_fits_what_was_given(limit_range, default, request_):
    api = builders.cluster()
    told = builders.provision(api, name="team-a", size="large", limit_range=limit_range)
    assert builders.only(told).state == "ready"
    found = container(api)
    assert quantity.equal(found["default"]["cpu"], default)
    assert quantity.equal(found["defaultRequest"]["cpu"], request_)
    builders.provision(api, name="team-a", size="large", limit_range=limit_range)
    assert api.writes == []


@pytest.mark.parametrize("quota", [{"requests.cpu": "2"}, {"cpu": "2"}, {"requests.cpu": "2", "limits.cpu": "100m"}])
def test_half_of_the_requests_is_no_more_than_the_limit(quota):
    api = builders.cluster()
    assert builders.only(builders.provision(api, name="team-a", size="large", quota=quota)).state == "ready"
    found = container(api)
    assert quantity.parse(found["defaultRequest"]["cpu"]) <= quantity.parse(found["default"]["cpu"])


def test_defaults_of_a_size_give_way_to_what_is_asked_for_and_its_bounds_do_not():
    known = {"big": {"quota": {"limits.cpu": "4"}, "limit_range": {"default": {"cpu": "2"}, "max": {"memory": "1Gi"}}}}
    api = builders.cluster()
    told = builders.provision(api, name="team-a", size="big", sizes=known, limit_range={"max": {"cpu": "1"}})
    assert builders.only(told).state == "ready"
    assert container(api)["default"] == {"cpu": "1", "memory": "1Gi"}
    # naming one bound does not take the administrator's other one away
    assert container(api)["max"] == {"cpu": "1", "memory": "1Gi"}
    over = {"default": {"memory": "2Gi"}}
    result = builders.only(builders.provision(api, name="team-b", size="big", sizes=known, limit_range=over))
    assert result.state == "invalid"
    assert (
        "with the limit_range of size big, limit_range.default.memory is 2Gi, more than limit_range.max" in result.msg
    )


@pytest.mark.parametrize(
    ("quota", "default"), [({"limits.cpu": "0"}, None), ({"limits.memory": 0}, None), ({"limits.cpu": "1m"}, "1m")]
)
def test_half_of_nothing_is_no_limit_of_zero_which_would_be_none_at_all(quota, default):
    api = builders.cluster(builders.nspro(quota=quota))
    result = builders.only(builders.one_pass(api))
    (resource,) = quota
    name = resource.partition(".")[2]
    assert container(api).get("default", {}).get(name) == default
    assert any("Pods without limits of their own are refused" in text for text in result.warnings) == (default is None)


REFUSED = [
    ({"quota": {"limit.cpu": "1"}}, "'limit.cpu' is no name of a resource that it can have; did you mean limits.cpu?"),
    ({"quota": {"pod": "1"}}, "did you mean pods?"),
    ({"quota": {"CPU": "1"}}, "'CPU' is no name of a resource"),
    ({"quota": {"storage": "1Gi"}}, "did you mean requests.storage?"),
    ({"quota": {"limits.storage": "1Gi"}}, "no name of a resource"),
    ({"quota": {"count/pods": "0.5"}}, "count/pods is 0.5; what is counted has whole numbers only"),
    ({"quota": {"pods": "500m"}}, "pods is 500m; what is counted has whole numbers only"),
    ({"quota": {"services.nodeports": "1.0001"}}, "whole numbers only"),
    ({"quota": {"nvidia.com/gpu": "0.5"}}, "whole numbers only"),
    ({"quota": {"gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1.5"}}, "whole numbers only"),
    ({"quota": {"a..b/pods": "1"}}, "no name of a resource"),
    ({"quota": {"count/a/b": "1"}}, "no name of a resource"),
    ({"limit_range": {"max": {"limits.cpu": "1"}}}, "limit_range.max: 'limits.cpu' is no name of a resource"),
    ({"limit_range": {"default": {"pods": "1"}}}, "limit_range.default: 'pods' is no name of a resource"),
    ({"limit_range": {"default": {"storage": "1Gi"}}}, "limit_range.default: 'storage' is no name of a resource"),
    ({"limit_range": {"max": {"requests.nvidia.com/gpu": "1"}}}, "no name of a resource"),
    (
        {"limit_range": {"min": {"cpu": "2"}, "max": {"cpu": "1"}}},
        "limit_range.min.cpu is 2, more than limit_range.max.cpu, 1; lower the one or raise the other",
    ),
    (
        {"limit_range": {"default": {"cpu": "150m"}, "max": {"cpu": "100m"}}},
        "limit_range.default.cpu is 150m, more than limit_range.max.cpu, 100m",
    ),
    (
        {"limit_range": {"default_request": {"cpu": "2"}, "default": {"cpu": "1"}}},
        "limit_range.default_request.cpu is 2",
    ),
    ({"limit_range": {"default_request": {"cpu": "2"}, "max": {"cpu": "1"}}}, "limit_range.default_request.cpu is 2"),
    (
        {"limit_range": {"min": {"memory": "2Mi"}, "default_request": {"memory": "1Mi"}}},
        "limit_range.min.memory is 2Mi",
    ),
    ({"limit_range": {"min": {"memory": "2Mi"}, "default": {"memory": "1Mi"}}}, "limit_range.min.memory is 2Mi"),
    (
        {"limit_range": {"enabled": False, "min": {"cpu": "2"}, "max": {"cpu": "1"}}},
        "limit_range.min.cpu is 2",
    ),
    (
        {"limit_range": {"default": {"nvidia.com/gpu": "2"}, "default_request": {"nvidia.com/gpu": "1"}}},
        "of this resource both must be the same",
    ),
    ({"network_policy": {"ports": [{"port": 70000}]}}, "port 70000 is none; ports are the numbers from 1 to 65535"),
    ({"network_policy": {"ports": [{"port": 0}]}}, "port 0 is none"),
    ({"network_policy": {"ports": [{"port": -1}]}}, "port -1 is none"),
    ({"network_policy": {"to_cidrs": [{"cidr": "192.0.2.0/28", "ports": [{"port": 65536}]}]}}, "port 65536 is none"),
    ({"network_policy": {"to_cidrs": [{"cidr": "192.0.2.7"}]}}, "a single address is written 192.0.2.7/32"),
    ({"network_policy": {"to_cidrs": [{"cidr": "2001:db8::1"}]}}, "a single address is written 2001:db8::1/128"),
    ({"network_policy": {"to_cidrs": [{"cidr": "10.0.0.1/8"}]}}, "write 10.0.0.0/8, or 10.0.0.1/32"),
    ({"network_policy": {"to_cidrs": [{"cidr": "10.0.0.0/33"}]}}, "has a length of more than 32"),
    ({"network_policy": {"to_cidrs": [{"cidr": "10.0.0.0/255.0.0.0"}]}}, "no block of addresses"),
    ({"network_policy": {"to_cidrs": [{"cidr": "10.0.0.0/08"}]}}, "no block of addresses"),
    ({"network_policy": {"to_cidrs": [{"cidr": "fe80::%eth0/64"}]}}, "no block of addresses"),
    ({"network_policy": {"to_cidrs": [{"cidr": "db.example.com/32"}]}}, "no block of addresses"),
    ({"network_policy": {"from_namespaces": [{"a..b/team": "x"}]}}, "a form that the API server refuses"),
    ({"access": [{"role": "edit", "service_accounts": ["ci..deployer"]}]}, "neither name nor namespace/name"),
    ({"access": [{"role": "edit", "service_accounts": ["c.i/deployer"]}]}, "neither name nor namespace/name"),
    ({"access": [{"role": "edit", "service_accounts": ["/deployer"]}]}, "neither name nor namespace/name"),
    ({"access": [{"role": "edit", "service_accounts": ["ci/"]}]}, "neither name nor namespace/name"),
    ({"access": [{"role": "edit", "service_accounts": ["x" * 254]}]}, "neither name nor namespace/name"),
    ({"pod_security": {"enforce": "baseline", "enforce_version": "1.34"}}, "it can be latest, or v1.34 for example"),
    ({"pod_security": {"warn": "baseline", "warn_version": "v1.07"}}, "warn_version is 'v1.07'"),
    ({"labels": {"a..b/team": "x"}}, "a form that the API server refuses"),
    ({"labels": {"Team.example/x": "x"}}, "a form that the API server refuses"),
    ({"labels": {"a/b/c": "x"}}, "a form that the API server refuses"),
    ({"labels": {"team": "x" * 64}}, "a form that the API server refuses"),
    ({"labels": {"x" * 64: "x"}}, "a form that the API server refuses"),
    ({"labels": {f"{'x' * 254}/y": "x"}}, "a form that the API server refuses"),
    ({"annotations": {"-a": "x"}}, "a form that the API server refuses"),
    ({"annotations": {f"note-{number}": "\u00fc" * 2048 for number in range(64)}}, "the Namespace has room for 229376"),
    ({"labels": {"metrics": "enabled"}}, "labels: metrics is not yours to set"),
    ({"size": "Small"}, "size 'Small' is not known; did you mean small?"),
    ({"size": "huge"}, "size 'huge' is not known; there are large, medium, small"),
    ({"size": ["small"]}, "is not known; there are large, medium, small"),
    ({"size": ""}, "no size is given; there are large, medium, small"),
    ({"size": None}, "no size is given; there are large, medium, small"),
]


@pytest.mark.parametrize(("entry", "told"), REFUSED, ids=[f"{told[:40]}-{i}" for i, (_x, told) in enumerate(REFUSED)])
def test_what_the_api_server_would_refuse_later_is_invalid_and_nothing_is_written(entry, told):
    api = builders.cluster()
    entries = [{"name": "team-a", "size": "small", **entry}, {"name": "team-b", "size": "small"}]
    found = builders.by_name(builders.provision(api, namespaces=entries))
    assert (found["team-a"].state, found["team-b"].state) == ("invalid", "ready")
    assert told in found["team-a"].msg
    assert [line for line in [*api.writes, *api.requests] if "team-a" in line] == []


ACCEPTED = [
    {"quota": {"hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"}},
    {"quota": {"requests.nvidia.com/gpu": "4", "gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}},
    {"quota": {"count/deployments.apps": "1e1", "count/pods": 5, "requests.ephemeral-storage": "1.5Gi"}},
    {"limit_range": {"default": {"ephemeral-storage": "1Gi", "nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"}}},
    {"access": [{"role": "edit", "service_accounts": ["ci.deployer", "ops/ci.deployer", "x" * 253]}]},
    {"network_policy": {"ports": [{"port": 1}, {"port": 65535, "protocol": "SCTP"}]}},
    {"network_policy": {"restrict_egress": True, "to_cidrs": [{"cidr": "0.0.0.0/0"}, {"cidr": "2001:db8::/32"}]}},
    {"annotations": {"Example.com/Note": "x", "note": "\n" * 100_000}},
    {"labels": {"team": "", "a.b-c/x_y.z": "x" * 63}},
    {
        "pod_security": {
            "enforce": "baseline",
            "enforce_version": "v1.0",
            "warn": "restricted",
            "warn_version": "latest",
        }
    },
]


@pytest.mark.parametrize("entry", ACCEPTED, ids=[str(next(iter(item.values())))[:50] for item in ACCEPTED])
def test_what_the_api_server_takes_is_taken(entry):
    api = builders.cluster()
    assert builders.only(builders.provision(api, name="team-a", size="small", **entry)).error == ""
    assert builders.only(builders.provision(api, name="team-a", size="small", **entry)).state == "ready"
    assert api.writes == []


@pytest.mark.parametrize(
    ("name", "entry", "told"),
    [
        ("very large", {"quota": {"pods": 1}}, "a name that no label can have"),
        ("x" * 64, {"quota": {"pods": 1}}, "a name that no label can have"),
        ("", {"quota": {"pods": 1}}, "a name that no label can have"),
        ("one", {"quota": {"limit.cpu": 1}}, "size one: quota: 'limit.cpu' is no name of a resource"),
        ("one", {"quota": {"pods": 1}, "limit_range": []}, None),
        ("one", {"quota": {"pods": 1}, "limit_range": ["cpu"]}, "size one: limit_range is not a map"),
        (
            "one",
            {"quota": {"pods": 1}, "limit_range": {"default": {"cpu": 2}, "max": {"cpu": 1}}},
            "size one: limit_range.default.cpu is 2, more than limit_range.max.cpu, 1",
        ),
        (
            "one",
            {"quota": {"pods": 1}, "node_selector": "pool=teams"},
            "size one: node_selector is not a map of labels",
        ),
        ("one", {"quota": {"pods": 1}, "node_selector": {"pool": True}}, "node_selector: pool: True is no label"),
        ("one", {"quota": {"pods": 1}, "node_selector": {"pool": "a,b=c"}}, "node_selector: pool: 'a,b=c' is no label"),
        (
            "one",
            {"quota": {"pods": 1}, "nodeSelector": {}},
            "has the key nodeSelector; quota, limit_range, node_selector",
        ),
    ],
)
def test_a_size_that_could_not_be_written_is_refused_at_once(name, entry, told):
    if told is None:
        assert sizes.read({name: entry})[name].limit_range == {}
        return
    with pytest.raises(StewardError, match=told):
        sizes.read({name: entry})


def test_the_labels_that_the_operators_own_policies_trust_are_nobodys_to_set(policies):
    trusted = {
        key
        for policy in policies
        for rule in policy["spec"].get("ingress") or ()
        for peer in rule.get("from") or ()
        for key in ((peer.get("namespaceSelector") or {}).get("matchLabels") or {})
    }
    assert trusted
    for key in trusted:
        result = builders.only(builders.one_pass(builders.cluster(builders.nspro(labels={key: "enabled"}))))
        assert f"labels: {key} is not yours to set" in result.msg


@pytest.fixture
def policies(pytestconfig):
    import yaml

    found = (pytestconfig.rootpath / "config/network-policy").glob("*.yaml")
    documents = [item for path in found for item in yaml.safe_load_all(path.read_text())]
    return [item for item in documents if item.get("kind") == "NetworkPolicy"]


@pytest.mark.parametrize("quota", [{"cpu": "1"}, {"memory": "1Gi"}, {"requests.cpu": "1"}, {"requests.memory": "1Gi"}])
def test_requests_that_a_quota_wants_are_filled_in_or_a_warning_says_that_pods_are_refused(quota):
    known = {"small": {"quota": quota}}
    (resource,) = quota
    api = builders.cluster(builders.nspro())
    assert builders.only(builders.one_pass(api, sizes=known)).warnings == []
    assert list(container(api)["defaultRequest"]) == [resource.rpartition(".")[2]]
    api.put(builders.nspro(limitRange={"enabled": False}))
    (warning,) = builders.only(builders.one_pass(api, sizes=known)).warnings
    told = "there is no LimitRange: Pods without requests of their own are refused by the quota"
    assert warning == f"{told} ({resource})"


def test_of_two_words_for_the_requests_the_smaller_amount_counts():
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small", quota={"cpu": "40m", "requests.cpu": "80m"})
    assert container(api)["defaultRequest"]["cpu"] == "20m"


@pytest.mark.parametrize("role", ["team/admin", "a%b", "", "a b", "\u00fc"])
def test_a_role_that_no_binding_could_be_named_after_is_refused_before_anything_is_written(role):
    api = builders.cluster()
    access = [{"role": role or "edit", "users": ["x"]}]
    with pytest.raises(StewardError, match=r"allowed_roles: .* is no name of a ClusterRole"):
        builders.provision(api, name="team-a", size="small", access=access, allowed_roles=["edit", role])
    assert api.requests == []
    told = builders.provision(
        api, name="team-a", size="small", access=[{"role": "system:x_1", "users": ["y"]}], allowed_roles=["system:x_1"]
    )
    assert builders.only(told).state == "ready"


@pytest.mark.parametrize(
    "amount", [0.5, 1, "+1", ".5", "1.", "1e3", "1E3", "1E-3", "1E", "00.10", "1e-10", 10**18, "9223372036854775807"]
)
def test_every_spelling_of_an_amount_comes_to_rest(amount):
    api = builders.cluster()
    options = {"name": "team-a", "size": "small", "quota": {"limits.cpu": amount, "requests.memory": amount}}
    assert builders.only(builders.provision(api, **options)).state == "ready"
    builders.provision(api, **options)
    assert api.writes == []


@pytest.mark.parametrize("name", ["x" * 63, "0", "a-b", "1-2-3"])
def test_the_longest_name_has_objects_of_its_name(name):
    api = builders.cluster()
    assert builders.only(builders.provision(api, name=name, size="small")).state == "ready"


@pytest.mark.parametrize("name", ["team-a\n", "team-a ", " ", "", None, "a.b", "x" * 64, "-a", "\u00e9quipe", "../a"])
@pytest.mark.parametrize("state", ["present", "absent", "released"])
def test_a_name_that_is_none_is_never_asked_about(name, state):
    api = builders.cluster()
    told = builders.provision(api, namespaces=[{"name": name}], size="small", state=state)
    assert (builders.only(told).state, api.requests) == ("invalid", [])

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network policies."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

POLICY = ("NetworkPolicy", "team-a", "team-a-np")
INFRA = {"namespaceSelector": {"matchLabels": {"app": "infra"}}}


def policy(**spec):
    """The policy's spec where a Nspro says so."""
    api = builders.cluster(builders.nspro(**spec))
    builders.settled(api)
    return api.objects[POLICY]["spec"]


@pytest.mark.parametrize("managed", [True, False])
def test_restricted_egress_leaves_dns_open_by_both_protocols(managed):
    spec = policy(managed=managed, networkPolicy={"restrictEgress": True, "toNamespaces": [{"team": "b"}]})
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    peers, dns = spec["egress"]
    assert peers == {"to": [{"podSelector": {}}, {"namespaceSelector": {"matchLabels": {"team": "b"}}}]}
    assert dns.keys() == {"ports"}
    assert {(item["port"], item["protocol"]) for item in dns["ports"]} == {
        (53, "UDP"),
        (53, "TCP"),
        (5353, "UDP"),
        (5353, "TCP"),
    }


def test_dns_is_closed_only_where_somebody_says_so():
    assert len(policy(networkPolicy={"restrictEgress": True, "dns": False})["egress"]) == 1
    assert "egress" not in policy(networkPolicy={"dns": False})


def test_egress_that_is_no_longer_restricted_is_open_again():
    api = builders.cluster(builders.nspro(networkPolicy={"restrictEgress": True}))
    builders.settled(api)
    api.put(builders.nspro())
    builders.settled(api)
    assert api.objects[POLICY]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}


def test_managed_has_exactly_one_peer():
    spec = policy(managed=True)
    assert spec == {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [INFRA]}]}


def test_not_managed_is_open_to_everybody_and_not_to_namespaces_alone():
    assert policy()["ingress"] == [{}]


def test_own_pods_are_a_peer_without_a_namespace():
    assert policy(managed=True, networkPolicy={"sameNamespace": True})["ingress"] == [
        {"from": [INFRA, {"podSelector": {}}]}
    ]


@pytest.mark.parametrize("option", ["fromNamespaces", "toNamespaces"])
def test_a_peer_without_labels_would_be_everybody_and_is_refused(option):
    api = builders.cluster(builders.nspro(managed=True, networkPolicy={option: [{"team": "b"}, {}]}))
    result = builders.only(builders.one_pass(api))
    assert (result.state, builders.writes(api)) == ("invalid", [])
    assert "entry without labels" in result.msg


@pytest.mark.parametrize(
    "drift",
    [
        {"podSelector": {"matchLabels": {"app": "only-this"}}},
        {"policyTypes": ["Ingress", "Egress"]},
        {"ingress": [{}]},
        {"ingress": []},
        {"ingress": [{"from": [{"namespaceSelector": {}}]}]},
        {"ingress": [{"from": [{**INFRA, "podSelector": {}}]}]},
    ],
    ids=str,
)
def test_whatever_somebody_changes_in_the_rule_is_put_back(drift):
    api = builders.cluster(builders.nspro(managed=True))
    builders.settled(api)
    api.edit(*POLICY, lambda obj: obj["spec"].update(drift), "tenant")
    builders.one_pass(api)
    assert api.objects[POLICY]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [INFRA]}],
    }


ROUTERS = {"policy-group.network.openshift.io/ingress": ""}


@pytest.mark.parametrize(
    ("spec", "is_told"),
    [
        ({"managed": True}, True),
        ({"managed": True, "networkPolicy": {"fromNamespaces": [{"team": "b"}]}}, True),
        ({"managed": True, "networkPolicy": {"fromNamespaces": [{"team": "b"}, ROUTERS]}}, False),
        ({"managed": False}, False),
    ],
)
@pytest.mark.parametrize("openshift", [True, False])
def test_on_openshift_a_closed_namespace_that_does_not_let_routers_in_is_told(spec, is_told, openshift):
    api = builders.cluster(builders.nspro(**spec))
    builders.one_pass(api, openshift=openshift)
    warnings = builders.only(builders.one_pass(api, openshift=openshift)).warnings
    label = 'policy-group.network.openshift.io/ingress: ""'
    assert [label in text for text in warnings] == [True] * (is_told and openshift)


def webhook(kind, namespace):
    service = {"namespace": namespace, "name": "hook", "path": "/"}
    hooks = [{"name": "a.example.com", "clientConfig": {"url": "https://elsewhere.example.com"}}]
    hooks.append({"name": "b.example.com", "clientConfig": {"service": service}})
    meta = {"name": f"of-{namespace}"}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": meta, "webhooks": hooks}


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
@pytest.mark.parametrize(
    ("spec", "is_told"),
    [
        ({"managed": True}, True),
        ({"managed": False}, False),
        ({"managed": True, "networkPolicy": {"ports": [{"port": 9443}]}}, False),
    ],
)
def test_a_webhook_that_the_api_server_no_longer_reaches_is_told(kind, spec, is_told):
    api = builders.cluster(
        builders.nspro(**spec),
        builders.nspro("team-b", managed=True),
        webhook(kind, "team-a"),
        {**webhook(kind, "nobody"), "webhooks": None},
    )
    builders.one_pass(api)
    found = builders.by_name(builders.one_pass(api))
    told = found["team-a"].warnings
    assert ["webhook" in text and "port" in text for text in told] == [True] * is_told
    assert found["team-b"].warnings == []
    assert api.objects[("Nspro", "ops", "team-a")]["status"].get("warnings", []) == told
    # it is looked up once for all of them
    assert api.requests.count(f"list {kind}") == 1


def test_ports_are_open_for_callers_that_no_selector_meets():
    assert policy(managed=True, networkPolicy={"ports": [{"port": 9443}, {"port": 53, "protocol": "UDP"}]})[
        "ingress"
    ] == [
        {"from": [INFRA]},
        {"ports": [{"port": 9443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]},
    ]


@pytest.mark.parametrize(("status", "state"), [(403, "ready"), (500, "pending")])
def test_of_webhooks_that_nobody_lets_us_read_nothing_is_told(status, state):
    api = builders.cluster(builders.nspro(managed=True), webhook("MutatingWebhookConfiguration", "team-a"))

    def hook(verb, target):
        if "Webhook" in target.kind:
            raise refused(status, "no")

    api.before = hook
    result = builders.only(builders.one_pass(api))
    assert (result.state, result.warnings) == (state, [])


def test_the_guards_stand_before_anybody_is_let_in():
    api = builders.cluster(builders.nspro(access=[{"role": "edit", "groups": ["devs"]}]))
    builders.one_pass(api)
    kinds = [line.split()[1].split("/")[0] for line in builders.writes(api)]
    assert kinds == ["Namespace", "ResourceQuota", "NetworkPolicy", "LimitRange", "RoleBinding"]


def test_the_status_says_that_the_policy_is_written_and_not_that_it_works():
    api = builders.cluster(builders.nspro(managed=True))
    builders.settled(api)
    applied = builders.condition(api, "team-a", "NetworkPolicyApplied")
    assert (applied["status"], applied["reason"]) == ("True", "Applied")
    assert "isolat" not in repr(api.objects[("Nspro", "ops", "team-a")]["status"]).lower()


OPENING = {
    "all": [{}],
    "ports": [{"ports": [{"port": 80}]}],
    "peers": [{"from": [{"namespaceSelector": {}}]}],
}


@pytest.mark.parametrize("managed", [True, False])
@pytest.mark.parametrize("what", OPENING)
def test_a_policy_of_others_that_opens_what_ours_closes_is_told_and_left(managed, what):
    api = builders.cluster(builders.nspro(managed=managed))
    builders.settled(api)
    api.put(builders.policy("team-a", "theirs", OPENING[what]), "tenant")
    api.put(builders.policy("team-a", "closes", []), "tenant")
    before = api.read("NetworkPolicy", "team-a", "theirs")
    told = builders.one_pass(api)
    found = ["theirs"] if managed else []
    assert builders.only(told).foreign_policies == found
    assert api.objects[("Nspro", "ops", "team-a")]["status"].get("foreignPolicies", []) == found
    assert api.read("NetworkPolicy", "team-a", "theirs") == before


@pytest.mark.parametrize("restricted", [True, False])
def test_a_policy_of_others_that_lets_out_what_ours_keeps_in_is_told(restricted):
    api = builders.cluster(builders.nspro(networkPolicy={"restrictEgress": restricted}))
    builders.settled(api)
    theirs = builders.policy("team-a", "theirs", [])
    theirs["spec"] = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}
    api.put(theirs, "tenant")
    assert builders.only(builders.one_pass(api)).foreign_policies == (["theirs"] if restricted else [])


def test_no_policy_hides_by_naming_us_as_its_manager():
    api = builders.cluster(builders.nspro(managed=True, adoption="Always"))
    api.put(builders.adoptable("team-a"))
    builders.settled(api)
    api.put(builders.policy("team-a", "sneaky", [{}]), "kubesteward")
    assert builders.only(builders.one_pass(api)).foreign_policies == ["sneaky"]
    # but ours is none, also where somebody took our label off it
    api.edit("NetworkPolicy", "team-a", "team-a-np", lambda obj: obj["metadata"].pop("labels"))
    assert builders.only(builders.one_pass(api)).foreign_policies == ["sneaky"]


def test_check_mode_names_the_services_that_a_closed_policy_cuts_off():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "team-a"}}
    api.put({**service, "spec": {}})
    api.put(builders.nspro(managed=True))
    (warning,) = builders.only(builders.one_pass(api, check_mode=True)).warnings
    assert "Services web" in warning
    assert api.writes == []


def test_addresses_outside_of_the_pod_network_are_reached_on_their_ports():
    blocks = [
        {"cidr": "192.0.2.0/28", "ports": [{"port": 5432}, {"port": 53, "protocol": "UDP"}]},
        {"cidr": "10.9.0.1/32"},
    ]
    api = builders.cluster(builders.nspro(networkPolicy={"restrictEgress": True, "toCIDRs": blocks}))
    assert builders.only(builders.settled(api)).warnings == []
    spec = api.objects[("NetworkPolicy", "team-a", "team-a-np")]["spec"]
    assert spec["egress"][1:3] == [
        {
            "to": [{"ipBlock": {"cidr": "192.0.2.0/28"}}],
            "ports": [{"port": 5432, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
        },
        {"to": [{"ipBlock": {"cidr": "10.9.0.1/32"}}]},
    ]
    by_module = builders.cluster()
    given = {"restrict_egress": True, "to_cidrs": blocks}
    builders.provision(by_module, name="team-a", size="small", network_policy=given)
    assert by_module.objects[("NetworkPolicy", "team-a", "team-a-np")]["spec"] == spec


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"fromNamespaces": [{"team": "b"}]}, "from_namespaces: no effect without managed: true; everybody comes in"),
        ({"ports": [{"port": 80}]}, "ports: no effect without managed: true"),
        ({"sameNamespace": True}, "same_namespace: no effect without managed: true"),
        (
            {"ports": [{"port": 80}], "fromNamespaces": [{"a": "b"}]},
            "from_namespaces, ports: no effect without managed",
        ),
        ({"toNamespaces": [{"team": "b"}]}, "to_namespaces: no effect without restrict_egress: true; all is reached"),
        ({"toCIDRs": [{"cidr": "10.0.0.0/8"}]}, "to_cidrs: no effect without restrict_egress: true"),
        ({"dns": False}, "dns: false: no effect without restrict_egress: true"),
    ],
)
def test_what_has_no_effect_is_a_warning_and_the_namespace_is_ready(policy, told):
    api = builders.cluster(builders.nspro(networkPolicy=policy))
    result = builders.only(builders.one_pass(api))
    assert result.state == "ready"
    (warning,) = result.warnings
    assert told in warning
    assert api.objects[("Nspro", "ops", "team-a")]["status"]["warnings"] == [warning]
    api.put(builders.nspro(managed=True, networkPolicy={**policy, "restrictEgress": True}))
    assert builders.only(builders.one_pass(api)).warnings == []


NODES = "scheduler.alpha.kubernetes.io/node-selector"


@pytest.mark.parametrize(("openshift", "key"), [(False, NODES), (True, "openshift.io/node-selector")])
def test_a_size_puts_pods_on_its_nodes_and_no_author_does(openshift, key):
    def known(**nodes):
        return {"small": {"quota": {"limits.cpu": "1"}, "node_selector": nodes}}

    def annotations(**nodes):
        builders.settled(api, sizes=known(**nodes), openshift=openshift)
        return api.objects[("Namespace", None, "team-a")]["metadata"]["annotations"]

    api = builders.cluster(builders.nspro())
    assert annotations(pool="teams", zone="a")[key] == "pool=teams,zone=a"
    assert annotations(pool="others")[key] == "pool=others"
    assert key not in annotations()
    api.put(builders.nspro(annotations={key: "pool=gpu"}))
    result = builders.only(builders.one_pass(api, sizes=known(pool="teams")))
    assert (result.state, builders.writes(api)) == ("invalid", [])


def test_nodes_that_an_administrator_has_chosen_by_hand_are_left_alone():
    known = {"small": {"quota": {"limits.cpu": "1"}}}
    api = builders.cluster(builders.nspro())
    builders.settled(api, sizes=known)
    api.edit("Namespace", None, "team-a", lambda obj: obj["metadata"]["annotations"].update({NODES: "pool=x"}), "admin")
    known["small"]["node_selector"] = {"pool": "teams"}
    result = builders.only(builders.one_pass(api, sizes=known))
    assert result.state == "conflict"
    assert f"{NODES}=pool=x of the Namespace is set by admin" in result.msg


def test_the_nodes_of_a_size_that_is_held_stay_as_they_are():
    known = {
        name: {"quota": {"limits.cpu": cpu}, "node_selector": {"pool": name}}
        for name, cpu in (("small", "1"), ("large", "2"))
    }
    api = builders.cluster(builders.nspro(nssize="large"))
    builders.settled(api, sizes=known)
    api.count("team-a", limits_cpu="2")
    api.put(builders.nspro())
    assert builders.only(builders.one_pass(api, sizes=known)).state == "held"
    assert api.objects[("Namespace", None, "team-a")]["metadata"]["annotations"][NODES] == "pool=large"
    assert builders.writes(api) == []


@pytest.mark.parametrize(
    ("block", "warns"),
    [
        ({"cidr": "0.0.0.0/0"}, True),
        ({"cidr": "::/0"}, True),
        ({"cidr": "0.0.0.0/0", "ports": [{"port": 443}]}, False),
        ({"cidr": "0.0.0.0/1"}, False),
    ],
)
def test_a_block_of_everything_undoes_the_restriction_and_a_warning_says_so(block, warns):
    api = builders.cluster(builders.nspro(networkPolicy={"restrictEgress": True, "toCIDRs": [block]}))
    found = builders.only(builders.one_pass(api)).warnings
    told = f"network_policy: to_cidrs: {block['cidr']}: all is reached, whatever restrict_egress says"
    assert found == ([told] if warns else [])

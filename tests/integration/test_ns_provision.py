# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces by size on a real cluster: what is written, what check mode foretells, how a quota shrinks, who pulls."""

from __future__ import annotations

import base64
import json

import pytest
from integration.provisioning import Ledger, Team, pod, pull_secret, service

import testbed
from testbed.audit import AuditLog

ACCESS = [{"role": "edit", "groups": ["shop"]}]


@pytest.fixture
def team(kubectl, tmp_path, namespace):
    """A team, and the namespace of the resource that asks for it; what was made for the team goes at the end."""
    found = Team(testbed.connect(), kubectl, tmp_path, namespace)
    yield found
    kubectl("delete", "namespace", found.name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def ledger(team):
    return Ledger(AuditLog.of(testbed.connect()), team)


def test_creation_takes_seven_writes_an_unchanged_pass_none_and_a_new_size_three(team, ledger):
    team.apply(pull_secret("pull", "one"), where=team.home)
    options = {
        "managed": True,
        "access": ACCESS,
        "pull_secrets": [{"name": "pull"}],
        "labels": {"example.com/team": "shop"},
        "pod_security": {"enforce": "baseline"},
    }
    ledger.open()
    made = team.provide(claim=team.claim, **options)
    team.wait_account()
    linked = team.provide(claim=team.claim, **options)
    # the cluster makes the ServiceAccount when it likes: in the first pass or after it
    assert (made.state, linked.state) in (("ready", "ready"), ("pending", "ready"))
    assert sorted(ledger.writes()) == sorted(
        [
            f"create namespaces/ {team.name}",
            f"patch resourcequotas/ {team.name}-quota",
            f"patch limitranges/ {team.name}-limits",
            f"patch networkpolicies/ {team.name}-np",
            "patch secrets/ pull",
            "patch rolebindings/ kubesteward-edit",
            "patch serviceaccounts/ default",
        ]
    )
    assert made.result["writes"] + linked.result["writes"] == 7
    ledger.open()
    unchanged = team.provide(claim=team.claim, **options)
    assert (unchanged.result["changed"], unchanged.operations, unchanged.state) == (False, [], "ready")
    assert ledger.writes() == []
    larger = team.provide("large", claim=team.claim, **options)
    assert larger.state == "ready"
    assert ledger.writes() == [
        f"patch namespaces/ {team.name}",
        f"patch resourcequotas/ {team.name}-quota",
        f"patch limitranges/ {team.name}-limits",
    ]
    assert team.labels()["size"] == "large"
    assert team.hard() == {"limits.cpu": "300m", "limits.memory": "300Mi"}


def test_check_mode_shows_each_object_writes_nothing_and_foretells_the_run(team, ledger):
    ledger.open()
    foretold = team.provide(access=ACCESS, check=True)
    assert ledger.writes() == []
    assert not team.get("namespace")
    assert set(foretold.diff) == {
        f"Namespace/{team.name}",
        f"{team.name} ResourceQuota/{team.name}-quota",
        f"{team.name} NetworkPolicy/{team.name}-np",
        f"{team.name} LimitRange/{team.name}-limits",
        f"{team.name} RoleBinding/kubesteward-edit",
    }
    before, after = foretold.diff[f"{team.name} ResourceQuota/{team.name}-quota"]
    assert before == ""
    assert json.loads(after)["spec"] == {"hard": {"limits.cpu": "100m", "limits.memory": "100Mi"}}
    assert foretold.result["changed"] is True
    done = team.provide(access=ACCESS)
    assert done.operations == foretold.operations
    assert done.diff == foretold.diff


def test_check_mode_names_pods_above_the_quota_and_services_that_are_cut_off(team, ledger):
    team.provide("large")
    team.wait_account()
    team.apply(pod("heavy", "200m", "64Mi"))
    team.apply(service("front"))
    ledger.open()
    foretold = team.provide("small", managed=True, shrink="Apply", access=ACCESS, check=True)
    assert ledger.writes() == []
    quota, policy = foretold.entry["warnings"][-2:]
    assert "limits.cpu: 200m used, 100m wanted, 300m now" in quota and "Pods heavy" in quota
    assert "Services front" in policy
    before, after = map(json.loads, foretold.diff[f"{team.name} ResourceQuota/{team.name}-quota"])
    assert (before["spec"]["hard"]["limits.cpu"], after["spec"]["hard"]["limits.cpu"]) == ("300m", "100m")
    before, after = map(json.loads, foretold.diff[f"{team.name} NetworkPolicy/{team.name}-np"])
    assert before["spec"]["ingress"] == [{}]
    assert after["spec"]["ingress"] == [{"from": [{"namespaceSelector": {"matchLabels": {"app": "infra"}}}]}]
    done = team.provide("small", managed=True, shrink="Apply", access=ACCESS)
    assert done.operations == foretold.operations
    assert [line.split()[0] for line in ledger.writes()] == ["patch"] * len(done.operations)


def test_a_quota_below_what_is_used_is_held_with_figures_until_it_is_to_be_applied(team, ledger):
    team.provide("large")
    team.wait_account()
    team.apply(pod("heavy", "200m", "64Mi"))
    ledger.open()
    held = team.provide("small")
    assert (held.state, held.entry["reason"], held.operations) == ("held", "shrink_blocked", [])
    assert "limits.cpu: 200m used, 100m wanted, 300m now" in held.entry["msg"]
    assert "limits.memory" not in held.entry["msg"]
    assert ledger.writes() == []
    assert (team.labels()["size"], team.hard()["limits.cpu"]) == ("large", "300m")
    applied = team.provide("small", shrink="Apply")
    assert applied.state == "ready"
    assert (team.labels()["size"], team.hard()["limits.cpu"]) == ("small", "100m")
    # what runs stays; what is new is refused
    assert team.get("pod", "heavy")["spec"]
    refused = team.kubectl("apply", "-n", team.name, "-f", "-", stdin=pod("light", "10m", "8Mi"), check=False)
    assert refused.returncode != 0 and "exceeded quota" in refused.stderr


def test_a_quota_that_was_held_shrinks_by_itself_once_nothing_uses_it(team):
    team.provide("large")
    team.wait_account()
    team.apply(pod("heavy", "200m", "64Mi"))
    assert team.provide("small").state == "held"
    team.kubectl("delete", "pod", "heavy", "-n", team.name, "--grace-period=0", "--force")
    quota = f"{team.name}-quota"
    team.wait("nothing is used", lambda: team.get("resourcequota", quota)["status"]["used"]["limits.cpu"] == "0")
    assert team.provide("small").state == "ready"
    assert team.hard()["limits.cpu"] == "100m"


def entries(team: Team) -> list[str]:
    found = team.get("serviceaccount", "default").get("imagePullSecrets") or []
    return [entry["name"] for entry in found]


def content(team: Team, name: str = "pull") -> str:
    return base64.b64decode(team.get("secret", name)["data"][".dockerconfigjson"]).decode()


def test_a_pull_secret_is_copied_rotated_and_unlinked_and_the_platforms_stay(team, ledger):
    team.apply(pull_secret("pull", "first-5b1f"), where=team.home)
    wanted = {"claim": team.claim, "pull_secrets": [{"name": "pull"}]}
    team.provide(claim=team.claim)
    team.wait_account()
    team.edit("serviceaccount", "default", {"imagePullSecrets": [{"name": "default-dockercfg-x7"}]}, "platform")
    done = team.provide(**wanted)
    assert done.state == "ready"
    assert entries(team) == ["default-dockercfg-x7", "pull"]
    assert "first-5b1f" in content(team)
    team.apply(pull_secret("pull", "second-77aa"), where=team.home)
    ledger.open()
    rotated = team.provide(**wanted)
    assert rotated.operations == ["apply Secret/pull"]
    assert ledger.writes() == ["patch secrets/ pull"]
    assert "second-77aa" in content(team)
    for secret in ("first-5b1f", "second-77aa"):
        for answer in (done, rotated):
            assert secret not in answer.output
            assert base64.b64encode(secret.encode()).decode().rstrip("=")[:-1] not in answer.output
    team.edit("serviceaccount", "default", {"imagePullSecrets": [{"name": "late"}, *map(named, entries(team))]})
    removed = team.provide(claim=team.claim)
    assert removed.state == "ready"
    assert entries(team) == ["late", "default-dockercfg-x7"]
    assert not team.get("secret", "pull")


def named(name: str) -> dict[str, str]:
    return {"name": name}


def test_a_secret_that_may_not_be_shared_is_not_copied_and_the_rest_is_done(team):
    team.apply(pull_secret("pull", "first-5b1f", shareable=False), where=team.home)
    done = team.provide(claim=team.claim, pull_secrets=[{"name": "pull"}, {"name": "missing"}])
    assert (done.state, done.entry["reason"]) == ("pending", "pull_secrets")
    assert "not labelled kubesteward.io/shareable=true" in done.entry["msg"]
    assert f"there is no Secret missing in namespace {team.home}" in done.entry["msg"]
    assert not team.get("secret", "pull")
    assert team.hard()["limits.cpu"] == "100m"


def steady(answer) -> dict:
    """A result without what differs between any two runs."""
    return {key: value for key, value in answer.result.items() if key not in ("invocation", "exception")}


def test_the_module_and_direct_execution_give_the_same_results(team):
    for options in ({"check": True}, {"managed": True, "check": True}):
        assert steady(team.provide(**options)) == steady(team.provide(started=True, **options))
    assert team.provide(started=True).state == "ready"
    same = team.provide(), team.provide(started=True)
    assert [answer.result["changed"] for answer in same] == [False, False]
    assert steady(same[0]) == steady(same[1])
    one = {"name": team.name, "size": "small", "claim": {"namespace": "elsewhere", "name": "other"}, "fails": True}
    refused = team.run(**one), team.run(started=True, **one)
    assert "held by a playbook" in refused[0].result["msg"]
    assert steady(refused[0]) == steady(refused[1])


@pytest.mark.parametrize(
    ("name", "words"),
    [("kube-system", "reserved"), ("Not_Valid", "no name of a namespace")],
    ids=["reserved", "invalid"],
)
def test_a_single_name_that_nobody_can_have_fails_and_one_of_many_does_not(team, ledger, name, words):
    ledger.open()
    assert words in team.run(name=name, size="small", fails=True).result["msg"]
    among = team.run(namespaces=[{"name": name}, {"name": team.name}], size="small")
    states = {entry["name"]: entry["state"] for entry in among.result["namespaces"]}
    assert states == {name: "reserved" if name == "kube-system" else "invalid", team.name: "ready"}
    assert len(ledger.writes()) == among.result["writes"] == 4


@pytest.mark.parametrize(
    "quota",
    [
        {"limits.cpu": "125m", "limits.memory": "0.3001"},
        {"limits.cpu": "0.3001", "requests.cpu": "333333u", "requests.memory": "1Ki"},
        {"cpu": "1m", "memory": "101", "count/pods": "1e1", "pods": 3},
        {"requests.nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"},
    ],
    ids=["odd", "fractions", "least", "others"],
)
def test_amounts_that_are_stored_otherwise_are_written_once(team, ledger, quota):
    limits = {"max": {"cpu": "100m"}, "default_request": {"memory": "1.5"}}
    options = {"quota": quota, "limit_range": limits}
    assert team.provide(**options).state in ("ready", "held")
    team.wait_counted()
    ledger.open()
    again = team.provide(**options)
    assert (again.state, again.operations) == ("ready", []), again.output
    assert ledger.writes() == []


def test_check_mode_is_refused_what_an_admission_policy_refuses_the_run(team):
    assert team.provide().state == "ready"
    team.wait_counted()
    only = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["resourcequotas"]}
    group = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": team.name}}
    matched = {"resourceRules": [rule]}
    spec = {"matchConstraints": matched, "validations": [{"expression": "false", "message": "nobody changes quotas"}]}
    policy = {**group, "kind": "ValidatingAdmissionPolicy", "spec": spec}
    bound = {"policyName": team.name, "validationActions": ["Deny"], "matchResources": only}
    binding = {**group, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound}
    team.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": [policy, binding]})
    try:
        dry = ("--dry-run=server", "--overwrite", f"try={team.name}")
        label = ("label", "resourcequota", f"{team.name}-quota", "-n", team.name, *dry)
        team.wait("the policy is known", lambda: team.kubectl(*label, check=False).returncode)
        predicted = team.provide("large", check=True, fails=True)
        done = team.provide("large", fails=True)
        for answer in (predicted, done):
            assert "nobody changes quotas" in answer.entry["msg"]
            assert answer.state == "pending"
        assert predicted.operations == done.operations
    finally:
        team.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", team.name)


def test_check_mode_names_what_it_could_not_ask_about_and_what_goes(team):
    first = team.provide(check=True)
    assert "the API server was not asked about ResourceQuota" in first.output
    team.provide()
    team.wait_account()
    team.apply(pod("web", "10m", "1Mi"))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    team.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim})
    gone = team.let_go(check=True)
    told = " ".join(gone.entry["warnings"])
    assert "with it go 1 Pods: web" in told
    assert "reclaim policy is Retain: data" in told
    assert team.get("namespace")["status"]["phase"] == "Active"


def test_waiting_for_the_end_and_for_the_new_one(team):
    assert team.provide().state == "ready"
    gone = team.let_go(wait=True)
    assert (gone.state, gone.operations) == ("absent", [f"delete Namespace/{team.name}"])
    assert not team.get("namespace")
    assert team.provide().state == "ready"
    assert team.let_go().state == "terminating"
    again = team.provide(wait=True)
    assert again.state == "ready", again.output
    team.kubectl("patch", "namespace", team.name, "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/x"]}}')
    try:
        stuck = team.let_go(wait=True, wait_timeout=6, fails=True)
        assert "the Namespace itself has finalizers: example.com/x" in stuck.result["msg"]
        assert "terminating" in team.provide().output
    finally:
        team.kubectl("patch", "namespace", team.name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_addresses_and_nodes_are_taken_by_the_api_server(team):
    sizes = {"small": {"quota": {"limits.cpu": "1"}, "node_selector": {"pool": "teams"}}}
    policy = {"restrict_egress": True, "to_cidrs": [{"cidr": "192.0.2.0/28", "ports": [{"port": 5432}]}]}
    options = {"size": "small", "sizes": sizes, "network_policy": policy}
    made = team.run(namespaces=[{"name": team.name}], **options)
    assert made.state == "ready", made.output
    egress = team.get("networkpolicy", f"{team.name}-np")["spec"]["egress"]
    assert {"ipBlock": {"cidr": "192.0.2.0/28"}} in egress[1]["to"]
    annotations = team.get("namespace")["metadata"]["annotations"]
    assert annotations["scheduler.alpha.kubernetes.io/node-selector"] == "pool=teams"
    assert team.run(namespaces=[{"name": team.name}], **options).operations == []


def test_what_an_adopted_namespace_uses_counts_before_its_first_quota(team):
    team.kubectl("create", "namespace", team.name)
    team.wait_account()
    team.apply(pod("web", "250m", "10Mi"))
    team.kubectl("annotate", "namespace", team.name, "kubesteward.io/adoptable-by=playbook")
    held = team.provide(adoption="Always")
    assert held.state == "held", held.output
    assert "limits.cpu: 250m used, 100m wanted, none now" in held.entry["msg"]
    assert not team.get("resourcequota", f"{team.name}-quota")
    team.kubectl("delete", "pod", "web", "-n", team.name, "--now")
    assert team.provide(adoption="Always").state == "ready"
    assert team.hard()["limits.cpu"] == "100m"

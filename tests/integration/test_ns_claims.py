# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose namespace it is, on a real cluster: adoption, farewell, the next in line, and what somebody else changes."""

from __future__ import annotations

import json

import pytest
from integration.accounts import connect
from integration.nspro_story import Story
from integration.provisioning import Ledger, Team
from integration.workloads import until

import testbed
from ansible_collections.kubesteward.core.plugins.module_utils.kube import NSPRO_GROUP
from testbed.audit import AuditLog

ACCESS = [{"role": "edit", "groups": ["shop"]}]


@pytest.fixture
def team(kubectl, tmp_path):
    """A team; what was made for it goes at the end. The claims here name a namespace that need not exist."""
    found = Team(testbed.connect(), kubectl, tmp_path, "ops")
    yield found
    kubectl("delete", "namespace", found.name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def ledger(team):
    return Ledger(AuditLog.of(testbed.connect()), team)


def make(team: Team, **labels: str) -> None:
    """A namespace of somebody else."""
    meta = {"name": team.name, "labels": labels}
    team.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


def permit(team: Team) -> None:
    by = f"{team.home}/{team.name}"
    team.kubectl("annotate", "namespace", team.name, f"kubesteward.io/adoptable-by={by}")


def test_a_namespace_of_somebody_else_is_adopted_only_where_its_administrator_says_so(team, ledger):
    make(team, tier="gold", size="huge")
    ledger.open()
    assert team.provide(claim=team.claim).state == "conflict"
    unasked = team.provide(claim=team.claim, adoption="Always")
    assert (unasked.state, unasked.operations) == ("conflict", [])
    assert f"kubesteward.io/adoptable-by={team.home}/{team.name}" in unasked.entry["msg"]
    permit(team)
    unlike = team.provide(claim=team.claim, adoption="IfIdentical")
    assert (unlike.state, unlike.operations) == ("conflict", [])
    assert "label size" in unlike.entry["msg"]
    assert ledger.writes() == []
    adopted = team.provide(claim=team.claim, adoption="Always")
    assert adopted.state == "ready"
    assert (team.marks()["origin"], team.marks()["deletion"]) == ("adopted", "Keep")
    assert team.labels()["size"] == "small" and team.labels()["tier"] == "gold"
    assert team.provide(claim=team.claim, adoption="Always").operations == []


def test_a_namespace_that_is_as_it_is_wanted_is_adopted_where_it_has_to_be_identical(team):
    foretold = team.provide(claim=team.claim, check=True)
    make(team, size="small", managed="false")
    permit(team)
    for header, (_before, after) in foretold.diff.items():
        if header.startswith("Namespace/"):
            continue
        kind, name = header.split()[1].split("/")
        group = "networking.k8s.io/v1" if kind == "NetworkPolicy" else "v1"
        team.apply({"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": json.loads(after)["spec"]})
    adopted = team.provide(claim=team.claim, adoption="IfIdentical")
    assert adopted.state == "ready", adopted.output
    before = [f"LimitRange/{team.name}-limits", f"NetworkPolicy/{team.name}-np", f"ResourceQuota/{team.name}-quota"]
    assert team.marks()["kept"] == [*before, "labels/managed", "labels/size"]
    assert team.provide(claim=team.claim, adoption="IfIdentical").operations == []
    # what was there before us stays, also where it is what we want
    assert team.let_go(claim=team.claim).state == "released"
    assert (team.labels()["size"], team.hard()["limits.cpu"], team.marks()) == ("small", "100m", {})


def test_an_adopted_namespace_is_kept_and_only_what_is_ours_goes(team):
    make(team, tier="gold")
    permit(team)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": f"{team.name}-quota"}}
    team.apply({**quota, "spec": {"hard": {"limits.cpu": "0.3", "limits.memory": "300Mi"}}})
    team.kubectl("create", "configmap", "data", "-n", team.name, "--from-literal=a=b")
    assert team.provide("large", claim=team.claim, adoption="Always", access=ACCESS).state == "ready"
    gone = team.let_go(claim=team.claim)
    assert gone.state == "released"
    assert team.marks() == {}
    assert {"size", "managed"}.isdisjoint(team.labels()) and team.labels()["tier"] == "gold"
    assert team.get("configmap", "data")
    # the quota was there before us
    assert team.hard()["limits.memory"] == "300Mi"
    left = team.get("resourcequota", f"{team.name}-quota")["metadata"].get("labels", {})
    assert "app.kubernetes.io/managed-by" not in left
    for kind, name in (("networkpolicy", f"{team.name}-np"), ("rolebinding", "kubesteward-edit")):
        assert not team.get(kind, name)
    assert team.let_go(claim=team.claim).operations == []


@pytest.mark.parametrize("how", ["deleted", "policy", "guard", "released"])
def test_a_created_namespace_goes_with_its_claim_unless_somebody_keeps_it(team, how):
    made = team.provide(claim=team.claim, **({"deletion": "Keep"} if how == "policy" else {}))
    assert made.state == "ready"
    if how == "guard":
        team.kubectl("annotate", "namespace", team.name, "kubesteward.io/guard=mine")
    gone = team.let_go("released" if how == "released" else "absent", claim=team.claim)
    if how == "deleted":
        assert (gone.state, gone.operations) == ("terminating", [f"delete Namespace/{team.name}"])
        team.wait_gone()
        assert team.let_go(claim=team.claim).state == "absent"
        return
    assert gone.state == "released"
    assert team.get("namespace")["status"]["phase"] == "Active"
    assert team.marks() == {}
    assert not team.get("resourcequota", f"{team.name}-quota")


def test_the_second_claimant_takes_over_once_the_first_is_gone(team, ledger):
    second = {"namespace": "dev", "name": team.name}
    assert team.provide(claim=team.claim).state == "ready"
    ledger.open()
    waiting = team.provide("large", claim=second)
    assert (waiting.state, waiting.operations) == ("conflict", [])
    assert f"held by Nspro {team.home}/{team.name}" in waiting.entry["msg"]
    assert team.let_go(claim=second).operations == []
    assert ledger.writes() == []
    assert team.let_go(claim=team.claim).state == "terminating"
    team.wait_gone()
    assert team.provide("large", claim=second).state == "ready"
    assert (team.marks()["by"], team.labels()["size"]) == (f"dev/{team.name}", "large")


def test_a_namespace_that_was_deleted_by_hand_comes_back(team):
    assert team.provide(claim=team.claim).state == "ready"
    team.kubectl("delete", "namespace", team.name, "--timeout=90s")
    again = team.provide(claim=team.claim)
    assert (again.state, again.operations[0]) == ("ready", f"create Namespace/{team.name}")
    assert team.hard()["limits.cpu"] == "100m"


def test_a_terminating_namespace_is_waited_for_without_failure(team, ledger):
    assert team.provide().state == "ready"
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    team.apply(held)
    team.kubectl("delete", "namespace", team.name, "--wait=false")
    ledger.open()
    waiting = team.provide()
    assert (waiting.state, waiting.operations, waiting.result["changed"]) == ("terminating", [], False)
    assert team.let_go().state == "terminating"
    assert ledger.writes() == []
    team.edit("configmap", "held", {"metadata": {"finalizers": None}})
    team.wait_gone()
    assert team.provide().state == "ready"


def edits(team: Team) -> dict[str, tuple[str, str, dict]]:
    """What somebody may do to each field of ours: kind, name and merge patch."""
    infra = {"namespaceSelector": {"matchLabels": {"app": "infra"}}}
    mark = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
    return {
        "size": ("namespace", team.name, {"metadata": {"labels": {"size": "huge"}}}),
        "managed": ("namespace", team.name, {"metadata": {"labels": {"managed": None}}}),
        "own label": ("namespace", team.name, {"metadata": {"labels": {"example.com/team": "other"}}}),
        "annotation": ("namespace", team.name, {"metadata": {"annotations": {"example.com/owner": "other"}}}),
        "cpu": ("resourcequota", f"{team.name}-quota", {"spec": {"hard": {"limits.cpu": "64"}}}),
        "memory": ("resourcequota", f"{team.name}-quota", {"spec": {"hard": {"limits.memory": None}}}),
        "default": (
            "limitrange",
            f"{team.name}-limits",
            {"spec": {"limits": [{"type": "Container", "default": {"cpu": "9"}}]}},
        ),
        "ingress": ("networkpolicy", f"{team.name}-np", {"spec": {"ingress": [{"from": [infra]}, {}]}}),
        "selector": ("networkpolicy", f"{team.name}-np", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}),
        "subjects": ("rolebinding", "kubesteward-edit", {"subjects": []}),
        "our mark": ("networkpolicy", f"{team.name}-np", mark),
    }


OPTIONS = {
    "managed": True,
    "access": ACCESS,
    "labels": {"example.com/team": "shop"},
    "annotations": {"example.com/owner": "shop"},
}


def fields(team: Team) -> dict[str, object]:
    """All that is ours."""
    inside = [
        team.get(kind, name)
        for kind, name in (
            ("resourcequota", f"{team.name}-quota"),
            ("limitrange", f"{team.name}-limits"),
            ("networkpolicy", f"{team.name}-np"),
            ("rolebinding", "kubesteward-edit"),
        )
    ]
    shown = ("spec", "subjects", "roleRef")
    found: dict[str, object] = {item["kind"]: {key: item[key] for key in shown if key in item} for item in inside}
    found["marks"] = [item["metadata"].get("labels") for item in inside]
    found["labels"] = team.labels()
    found["owner"] = team.get("namespace")["metadata"]["annotations"]["example.com/owner"]
    return found


def test_drift_of_each_field_is_repaired_and_what_others_added_stays(team):
    team.provide(**OPTIONS)
    right = fields(team)
    for number, (kind, name, patch) in enumerate(edits(team).values()):
        team.edit(kind, name, patch, manager=f"somebody-{number}")
    team.edit("namespace", team.name, {"metadata": {"labels": {"theirs": "stays"}}})
    team.edit("resourcequota", f"{team.name}-quota", {"spec": {"hard": {"pods": "7"}}})
    team.wait_counted()
    wrong = fields(team)
    assert [key for key in right if wrong[key] == right[key]] == []
    repaired = team.provide(**OPTIONS)
    assert repaired.state == "ready", repaired.output
    found = fields(team)
    assert found["labels"].pop("theirs") == "stays"
    assert found["ResourceQuota"]["spec"]["hard"].pop("pods") == "7"
    assert found == right
    assert team.provide(**OPTIONS).operations == []


def test_what_was_deleted_is_made_anew_and_a_binding_of_another_role_is_replaced(team):
    team.provide(**OPTIONS)
    right = fields(team)
    for kind, name in (("resourcequota", "quota"), ("limitrange", "limits"), ("networkpolicy", "np")):
        team.kubectl("delete", kind, f"{team.name}-{name}", "-n", team.name)
    binding = team.get("rolebinding", "kubesteward-edit")
    binding["roleRef"]["name"] = "admin"
    binding["metadata"] = {key: binding["metadata"][key] for key in ("name", "labels")}
    team.kubectl("delete", "rolebinding", "kubesteward-edit", "-n", team.name)
    team.kubectl("create", "-n", team.name, "-f", "-", stdin=binding)
    repaired = team.provide(**OPTIONS)
    assert repaired.state == "ready", repaired.output
    assert "delete RoleBinding/kubesteward-edit" in repaired.operations
    assert fields(team) == right
    assert team.provide(**OPTIONS).operations == []


@pytest.mark.parametrize("what", ["cpu", "size"])
def test_a_manager_who_puts_it_back_a_third_time_is_named_and_left_alone(team, ledger, what):
    team.provide(**OPTIONS)
    kind, name, patch = edits(team)[what]
    for _time in range(2):
        team.edit(kind, name, patch, manager="other-operator")
        team.wait_counted()
        repaired = team.provide(**OPTIONS)
        assert (repaired.state, repaired.result["changed"]) == ("ready", True), repaired.output
    team.edit(kind, name, patch, manager="other-operator")
    team.wait_counted()
    ledger.open()
    third = team.provide(**OPTIONS)
    assert (third.state, third.operations) == ("conflict", []), third.output
    assert "other-operator" in third.entry["msg"]
    assert ledger.writes() == []
    assert (team.hard()["limits.cpu"] if what == "cpu" else team.labels()["size"]) in ("64", "huge")


@pytest.fixture
def story(kubectl, crds, namespaces):
    """Makes stories of Nspros that an administrator tells; their namespaces are removed again."""
    made: list[Story] = []

    def tell(name: str = "") -> Story:
        admin = connect(testbed.connect().kubeconfig)
        made.append(Story(admin, admin, namespaces(), **({"name": name} if name else {})))
        return made[-1]

    yield tell
    for item in made:
        kubectl("delete", "namespace", item.name, "--ignore-not-found", "--wait=false")


def one(found: Story, **options):
    """One pass over one Nspro, and its result."""
    assert found.run(nspros={"namespace": found.home, "name": found.name}, **options) == []
    (result,) = found.told.results
    return result


def gone(found: Story) -> bool:
    return found.admin.get("v1", "Namespace", None, found.name) is None


def test_the_older_of_two_has_the_name_again_after_its_namespace_was_deleted_by_hand(story, kubectl):
    old = story()
    old.write()
    assert one(old).state == "ready"
    young = story(old.name)

    def is_younger() -> bool:
        kubectl("delete", "nspro", young.name, "-n", young.home, "--ignore-not-found")
        young.write(access=[{"role": "admin", "users": ["mallory"]}])
        items = [old.admin.get(NSPRO_GROUP, "Nspro", item.home, item.name) for item in (old, young)]
        return items[0]["metadata"]["creationTimestamp"] < items[1]["metadata"]["creationTimestamp"]

    assert until(is_younger, 30)
    assert one(young).state == "conflict"
    kubectl("delete", "namespace", old.name, "--timeout=90s")
    # the younger one looks first, and more often
    for _again in range(2):
        waiting = one(young)
        assert (waiting.state, waiting.done) == ("conflict", [])
        assert f"Nspro {old.home}/{old.name} is older and has the name" in waiting.msg
    assert gone(old)
    assert (one(old).state, one(young).state) == ("ready", "conflict")
    # without the older one it takes over
    kubectl("delete", "nspro", old.name, "-n", old.home)
    kubectl("delete", "namespace", old.name, "--timeout=90s")
    assert one(young).state == "ready"

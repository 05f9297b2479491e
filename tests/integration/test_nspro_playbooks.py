# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nspro playbook, from the command line and as the operator runs it, with just the rights of config/rbac."""

from __future__ import annotations

import dataclasses
import json
import time
import typing as t
import uuid
from pathlib import Path

import pytest
from integration.accounts import Accounts, connect, rights
from integration.nspro_story import Story, nspro, pull_secret
from integration.operator_passes import Operator, changed
from integration.passes import Shop, writes

import testbed
from ansible_collections.kubesteward.core.plugins.module_utils.kube import NSPRO_GROUP
from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")

JOB = rights("nspro_role.yaml")
CHECK = rights("nspro_check_role.yaml")
OPERATOR = rights("nspro_operator_role.yaml")
WAIT_SECONDS = 60


class Team(Shop):
    """The namespace `home` with Nspros, seen by an administrator; passes are run by a ServiceAccount of few rights."""

    def __init__(self, kubectl: t.Callable[..., t.Any], home: str, kubeconfig: Path) -> None:
        super().__init__(dataclasses.replace(testbed.connect(), kubeconfig=kubeconfig), kubectl, home)
        self.name = f"team-{uuid.uuid4().hex[:8]}"

    def ask(self, **spec: t.Any) -> None:
        self.apply(nspro(self.namespace, self.name, **spec))

    def of(self, kind: str) -> dict[str, dict[str, t.Any]]:
        """Objects in the team's namespace by name; a Namespace that is not there has none."""
        items = json.loads(self.kubectl("get", kind, "-n", self.name, "-o", "json").stdout)["items"]
        return {item["metadata"]["name"]: item for item in items}

    def itself(self) -> dict[str, t.Any]:
        return json.loads(self.kubectl("get", "namespace", self.name, "-o", "json").stdout)

    def status(self) -> dict[str, t.Any]:
        return self.get("nspro", self.name)["status"]

    def hard(self) -> dict[str, str]:
        return self.of("resourcequota")[f"{self.name}-quota"]["spec"]["hard"]

    def ingress(self) -> list[dict[str, t.Any]]:
        return self.of("networkpolicy")[f"{self.name}-np"]["spec"]["ingress"]

    def linked(self) -> list[dict[str, str]]:
        return self.of("serviceaccount")["default"].get("imagePullSecrets", [])

    def until(self, seen: t.Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not seen():
            assert time.monotonic() < deadline, "it was not seen in time"
            time.sleep(0.5)

    def gone(self) -> bool:
        return not self.kubectl("get", "namespace", self.name, "--ignore-not-found").stdout


@pytest.fixture(scope="module")
def accounts(kubectl, namespaces, crds, tmp_path_factory):
    made = Accounts(kubectl, testbed.connect().kubeconfig, namespaces(), tmp_path_factory.mktemp("accounts"))
    try:
        made.create({"job": JOB, "checking": [*JOB, *CHECK], "operator": [*JOB, *OPERATOR]})
        yield made
    finally:
        made.close()


@pytest.fixture
def teams(kubectl, accounts, namespaces):
    """Makes teams whose passes are run with the rights of an account; their namespaces are removed again."""
    made: list[Team] = []

    def team(account: str) -> Team:
        made.append(Team(kubectl, namespaces(), accounts.kubeconfig(account, JOB[0])))
        return made[-1]

    yield team
    for item in made:
        for resource in item.list("nspro"):
            # no operator runs that would do it
            finalizers = ("patch", "nspro", resource["metadata"]["name"], "-n", item.namespace, "--type=merge", "-p")
            kubectl(*finalizers, '{"metadata":{"finalizers":null}}')
        kubectl("delete", "namespace", item.name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def team(teams) -> Team:
    return teams("job")


MANAGED = [{"from": [{"namespaceSelector": {"matchLabels": {"app": "infra"}}}]}]


def test_the_life_of_a_namespace_with_just_the_rights_of_the_job(team, accounts):
    audit = AuditLog.of(testbed.connect())
    mark = audit.mark()
    team.apply(pull_secret(team.namespace))
    wanted = {"access": [{"role": "edit", "groups": ["team"]}], "pullSecrets": [{"name": "login"}]}
    team.ask(managed=True, **wanted)
    team.run("nspro")
    team.until(lambda: "default" in team.of("serviceaccount"))
    team.run("nspro")
    assert {"size": "small", "managed": "true"}.items() <= team.itself()["metadata"]["labels"].items()
    assert team.hard() == {"limits.cpu": "100m", "limits.memory": "100Mi"}
    assert team.ingress() == MANAGED
    assert team.of("rolebinding")["kubesteward-edit"]["subjects"][0]["name"] == "team"
    assert team.linked() == [{"name": "login"}]
    assert (team.status()["phase"], team.status()["cpu"]) == ("Ready", "0/100m")
    # resized, opened, other rights, a new password
    team.apply(pull_secret(team.namespace, password="other"))
    team.ask(nssize="large", **{**wanted, "access": [{"role": "view", "users": ["bob"]}]})
    team.run("nspro")
    assert team.hard() == {"limits.cpu": "300m", "limits.memory": "300Mi"}
    assert team.ingress() == [{}]
    assert list(team.of("rolebinding")) == ["kubesteward-view"]
    assert team.of("secret")["login"]["data"] == pull_secret("", password="other")["data"]
    # what somebody did by hand
    for arguments in (
        ("label", "namespace", team.name, "size-"),
        ("delete", "networkpolicy", f"{team.name}-np"),
        ("patch", "resourcequota", f"{team.name}-quota", "-p", '{"spec":{"hard":{"limits.cpu":"9"}}}'),
    ):
        team.kubectl("-n", team.name, *arguments)
    team.ask(nssize="large")
    team.run("nspro")
    assert team.itself()["metadata"]["labels"]["size"] == "large"
    assert team.ingress() == [{}]
    assert team.hard()["limits.cpu"] == "300m"
    assert (team.of("rolebinding"), team.of("secret"), team.linked()) == ({}, {}, [])
    # the quota is counted anew a moment after it was written
    team.until(lambda: team.of("resourcequota")[f"{team.name}-quota"]["status"]["hard"] == team.hard())
    team.run("nspro")
    quiet = audit.mark()
    assert team.run("nspro").changed == 0
    assert writes(audit.since(quiet, namespace=team.name)) == []
    team.kubectl("delete", "nspro", team.name, "-n", team.namespace)
    # there is no finalizer without an operator: the claim tells
    team.run("nspro")
    team.until(team.gone)
    ours = [event for event in audit.since(mark, user_agent_prefix="kubesteward") if _is_about(event, team)]
    assert len(ours) > 10
    assert {event.user for event in ours} == {f"system:serviceaccount:{accounts.namespace}:job"}
    assert [event for event in ours if event.code == 403] == []


def _is_about(event: t.Any, team: Team) -> bool:
    return team.name in (event.namespace, event.name) or event.namespace == team.namespace


def test_released_namespaces_stay_without_anything_of_ours(team):
    team.ask(managed=True, access=[{"role": "view", "users": ["bob"]}])
    team.run("nspro")
    team.run("nspro", nspro_state="released", nspro_all=True)
    meta = team.itself()["metadata"]
    assert set(meta["labels"]) == {"kubernetes.io/metadata.name"}
    assert not [key for key in meta.get("annotations", {}) if "kubesteward" in key]
    kinds = ("resourcequota", "limitrange", "networkpolicy", "rolebinding")
    assert [team.of(kind) for kind in kinds] == [{}, {}, {}, {}]
    assert team.status()["phase"] == "Released"


def test_a_finalizer_without_an_operator_is_taken_off_by_hand_and_a_playbook_finishes(team):
    team.ask()
    team.run("nspro")
    finalizers = ("patch", "nspro", team.name, "-n", team.namespace, "--type=merge", "-p")
    team.kubectl(*finalizers, '{"metadata":{"finalizers":["nspro.example.com/cleanup"]}}')
    team.kubectl("delete", "nspro", team.name, "-n", team.namespace, "--wait=false")
    assert team.get("nspro", team.name)["metadata"]["deletionTimestamp"]
    team.kubectl(*finalizers, '{"metadata":{"finalizers":null}}')
    team.run("nspro")
    team.until(team.gone)


def test_a_namespace_from_a_backup_stays_although_its_nspro_is_not_there(team):
    team.ask()
    team.run("nspro")
    claim = team.itself()["metadata"]["annotations"]["kubesteward.io/claim"]
    team.kubectl("delete", "nspro", team.name, "-n", team.namespace)
    team.kubectl("delete", "namespace", team.name, "--timeout=90s")
    meta = {"name": team.name, "annotations": {"kubesteward.io/claim": claim}}
    team.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    assert "it is a copy" in team.run("nspro").output
    left = team.itself()
    assert (left["status"]["phase"], left["metadata"]["annotations"]["kubesteward.io/claim"]) == ("Active", claim)
    team.run("nspro", nspro_state="released", nspro_all=True)
    assert "annotations" not in team.itself()["metadata"]


def test_one_without_a_resource_and_many(team):
    names = [team.name, f"{team.name}-b"]
    try:
        team.run("nspro", nspro_namespace="", nspro_name=team.name, nspro_size="medium", nspro_managed=True)
        assert (team.hard()["limits.cpu"], team.ingress()) == ("200m", MANAGED)
        entries = [{"name": names[0], "managed": True}, {"name": names[1], "size": "small"}]
        done = team.run("nspro", nspro_namespace="", nspro_namespaces=entries, nspro_size="medium")
        assert "ready" in done.output
        assert team.hard()["limits.cpu"] == "200m"
        given = {"nspro_namespace": "", "nspro_namespaces": [{"name": name} for name in names]}
        team.run("nspro", nspro_state="absent", **given)
        team.until(team.gone)
    finally:
        team.kubectl("delete", "namespace", *names, "--ignore-not-found", "--wait=false")


def test_nothing_asked_for_is_an_error_that_says_what_to_give(team):
    done = team.run("nspro", nspro_namespace="", expect=2)
    assert all(name in done.output for name in ("nspro_namespace", "nspro_name", "nspro_size"))


@pytest.mark.parametrize("state", ["absent", "released"])
def test_a_name_that_is_empty_by_mistake_lets_go_of_nobodys_namespace(team, state):
    team.ask()
    team.run("nspro")
    for word in ({}, {"nspro_all": "false"}, {"nspro_name": ""}):
        refused = team.run("nspro", nspro_state=state, **word, expect=2)
        assert "nspro_all=true" in refused.output
    assert team.itself()["status"]["phase"] == "Active"
    assert team.hard()["limits.cpu"] == "100m"
    missing = team.run("nspro", nspro_namespace="no-such-namespace", expect=2)
    assert "There is no namespace no-such-namespace in this cluster" in missing.output


def test_another_cluster_role_is_refused_by_us_and_by_the_api_server(team):
    team.ask(access=[{"role": "cluster-admin", "users": ["mallory"]}])
    team.run("nspro")
    assert team.status()["phase"] == "Invalid"
    assert team.gone()
    # an administrator allows it, but has not given the right to bind it
    refused = team.run("nspro", nspro_allowed_roles=["cluster-admin"], expect=2)
    assert "attempting to grant RBAC permissions not currently held" in refused.output
    assert team.of("rolebinding") == {}
    assert team.status()["phase"] == "Pending"


def test_check_mode_names_whom_a_change_hits(teams, accounts, tmp_path):
    team = teams("checking")
    team.ask()
    team.run("nspro")
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    team.kubectl("-n", team.name, "create", "-f", "-", stdin=service)
    team.ask(managed=True)
    done = team.run("nspro", "--check", "--diff")
    assert "Services web" in done.output
    assert team.ingress() == [{}]


@pytest.fixture
def operator(teams, tmp_path) -> t.Iterator[Operator]:
    with Operator(teams("operator"), tmp_path) as made:
        yield made


def test_the_operator_provides_repairs_and_cleans_up_with_just_its_rights(operator):
    team = operator.shop
    team.ask(nssize="large", managed=True)
    operator.reconcile("Nspro", team.name)
    assert team.ingress() == MANAGED
    kinds = {condition["type"] for condition in team.status()["conditions"]}
    assert kinds == {"Running", "Ready", "QuotaApplied", "NetworkPolicyApplied", "ShrinkBlocked", "Conflict"}
    # the second pass sees what is used; the third has nothing to do
    operator.reconcile("Nspro", team.name)
    operator.gate.seen.clear()
    assert changed(operator.reconcile("Nspro", team.name)) == 0
    lists = ["resourcequotas", "limitranges", "networkpolicies", "rolebindings"]
    lists += ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    assert operator.gate.asked() == {
        "GET nspros": 1,
        "GET namespaces": 1,
        **{f"LIST {name}": 1 for name in lists},
    }
    team.kubectl("label", "namespace", team.name, "size-")
    operator.reconcile("Nspro", team.name)
    assert team.itself()["metadata"]["labels"]["size"] == "large"
    team.kubectl("delete", "nspro", team.name, "-n", team.namespace, "--wait=false")
    operator.reconcile("Nspro", team.name)
    assert not team.kubectl("get", "nspro", team.name, "-n", team.namespace, "--ignore-not-found").stdout
    team.until(team.gone)


def test_what_the_operator_watches_it_may(operator):
    """The remaining rights of its role; the others are used in its passes."""
    watched = {("", "namespaces"): "/api/v1/namespaces"}
    watched[("nspro.example.com", "nspros")] = "/apis/nspro.example.com/v1alpha1/nspros"
    assert {(right.group, right.resource) for right in OPERATOR if right.verb == "watch"} == watched.keys()
    for path in watched.values():
        operator.as_the_operator("get", "--raw", f"{path}?limit=1")
        operator.as_the_operator("get", "--raw", f"{path}?watch=true&timeoutSeconds=1")


def test_what_only_the_operator_does_is_refused_without_its_role(team):
    team.ask()
    resource = team.get("nspro", team.name)
    steward = ("--kubeconfig", str(team.testbed.kubeconfig))
    for arguments, right in (
        (("replace", "-f", "-"), 'cannot update resource "nspros"'),
        (("replace", "--subresource=status", "-f", "-"), 'cannot update resource "nspros/status"'),
        (("get", "--raw", "/apis/nspro.example.com/v1alpha1/nspros?watch=true"), 'cannot watch resource "nspros"'),
        (("get", "--raw", "/api/v1/namespaces?watch=true"), 'cannot watch resource "namespaces"'),
    ):
        stdin = resource if "-f" in arguments else ""
        assert right in team.kubectl(*steward, *arguments, stdin=stdin, check=False).stderr


@pytest.fixture
def marker() -> t.Iterator[Path]:
    """A file that a template would make."""
    path = Path("/tmp") / uuid.uuid4().hex[:8]
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.parametrize("way", ["operator", "command line"])
def test_templates_in_a_nspro_are_text(operator, marker, way):
    team = operator.shop
    text = "{{ lookup('pipe', 'touch " + str(marker) + "') }}"
    team.ask(annotations={"example.com/note": text}, access=[{"role": "view", "users": [text], "groups": [text]}])
    if way == "operator":
        operator.reconcile("Nspro", team.name)
    else:
        team.run("nspro", "-vvv")
    assert not marker.exists()
    assert team.itself()["metadata"]["annotations"]["example.com/note"] == text
    assert [item["name"] for item in team.of("rolebinding")["kubesteward-view"]["subjects"]] == [text, text]


def test_a_nspro_deleted_while_its_pass_begins_is_no_error(operator, monkeypatch):
    team = operator.shop
    team.ask()
    seen = team.get("nspro", team.name)
    team.kubectl("delete", "nspro", team.name, "-n", team.namespace)
    monkeypatch.setattr(team, "get", lambda kind, name: seen)
    operator.pass_of("Nspro", team.name)
    assert team.gone()


def test_the_status_is_stored_as_it_was_written(kubectl, namespace):
    """In every state that a resource can bring about, nothing of it is pruned or refused."""
    admin = connect(testbed.connect().kubeconfig)
    story = Story(admin, admin, namespace)
    seen = []
    try:
        for spec, states in _stories():
            story.write(**spec)
            for _pass in range(states):
                assert story.run(nspros={"namespace": namespace}) == []
                stored = admin.get(NSPRO_GROUP, "Nspro", namespace, story.name)["status"]
                written = story.told.statuses.get(f"{namespace}/{story.name}", stored)
                assert written == stored
                seen.append(stored["phase"])
                if admin.get("v1", "Namespace", None, story.name):
                    story.until_default_account()
        assert set(seen) == {"Invalid", "Pending", "Ready"}
        assert story.run(nspros={"namespace": namespace}) == []
        assert story.told.statuses == {}
    finally:
        story.remove()


def _stories() -> list[tuple[dict[str, t.Any], int]]:
    return [
        ({"labels": {"app": "infra"}}, 1),
        ({"pullSecrets": [{"name": "missing"}], "managed": True}, 3),
        ({"managed": True, "quota": {"count/pods": 20}}, 3),
    ]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights in config/rbac are enough for the update and the start job in one namespace, and none is too much."""

from __future__ import annotations

import json

import pytest
from integration.accounts import Accounts, Right, connect, refusal_of, rights
from integration.passes import AGENT, Shop
from integration.recorded import Recorder, audited, written
from integration.update_story import FOLLOWED, Rehearsal, Steward, first_refusal, prepare
from integration.workloads import pods_of

import testbed
from testbed import images
from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")

NODES = rights("nodes_role.yaml")
JOBS = {
    "update": [*rights("update_role.yaml"), *rights("update_secrets_role.yaml")],
    "start": rights("start_role.yaml"),
}
STEWARD = "install.sios.nginx.testing"
#: single rights that are taken away, to see that a pass without one is refused: reads, writes, writes of a status, and
#: the one that the API server asks for while it carries an apply out
MISSING = [
    ("update", Right("", "pods", "list")),
    ("update", Right("apps", "deployments", "patch")),
    ("update", Right(STEWARD, "updates/status", "patch")),
    ("start", Right("", "pods", "list")),
    ("start", Right("apps", "deployments", "create")),
    ("start", Right(STEWARD, "starts/status", "patch")),
]
NAMES = [f"{job}-{right}".replace(" ", "-") for job, right in MISSING]


@pytest.fixture(scope="module")
def shop(kubectl, namespaces, crds) -> Shop:
    made = Shop(testbed.connect(), kubectl, namespaces())
    prepare(made, connect(made.testbed.kubeconfig))
    return made


@pytest.fixture(scope="module")
def accounts(kubectl, shop, tmp_path_factory):
    """ServiceAccounts with RoleBindings in the one namespace: jobs, those without one right, and `nobody`."""
    made = Accounts(kubectl, shop.testbed.kubeconfig, shop.namespace, tmp_path_factory.mktemp("accounts"), "namespace")
    given = {"update": [*JOBS["update"], *NODES], "start": JOBS["start"], "without-nodes": JOBS["update"]}
    for number, (job, missing) in enumerate(MISSING):
        given[f"without-{number}"] = [*(right for right in JOBS[job] if right != missing), *NODES]
    try:
        made.create({**given, "nobody": []})
        yield made
    finally:
        made.close()


@pytest.fixture
def steward(accounts, shop):
    """Rehearsed passes of an account."""

    def made(name: str, known: Right) -> Steward:
        return Steward(shop, connect(accounts.kubeconfig(name, known), Rehearsal))

    return made


@pytest.fixture
def recorded(accounts):
    """Records what an account asks for; gives what it used, and what it wrote as the audit log has it."""
    log = AuditLog.of(testbed.connect())
    mark = log.mark()

    class Recorded(Recorder):
        def __init__(self, name: str) -> None:
            self.user = accounts.user(name)
            super().__init__(accounts.kubeconfig(name, JOBS[name][0]))

        def rights(self) -> set[Right]:
            return self.used(accounts.kubeconfig("nobody", None), [])

        def audited(self) -> set[str]:
            return audited(log.since(mark, AGENT), self.user)

    return Recorded


@pytest.mark.parametrize(("job", "missing"), MISSING, ids=NAMES)
def test_a_pass_without_one_of_the_rights_is_refused(steward, job, missing):
    known = next(right for right in JOBS[job] if right != missing)
    found = steward(f"without-{MISSING.index((job, missing))}", known)
    refused = first_refusal(found.updates() if job == "update" else found.starts())
    assert refusal_of(missing) in " ".join(refused)


def test_without_nodes_what_runs_tells_and_where_nothing_runs_it_is_held_and_said_why(steward, shop):
    found = steward("without-nodes", JOBS["update"][0])
    assert found.update("all") == []
    verdicts = found.verdicts()
    assert {verdicts[name][0] for name in ("app", "db", "agent", "report", "web-sample")} == {"digest_differs"}
    assert verdicts["stuck"][0] == "not_pullable"
    assert "ClusterRole kubesteward-nodes" in verdicts["stuck"][1]
    assert "stuck" not in {roll["workload"]["name"] for roll in found.done.rolled}


# the last ones, since these passes really write
def test_the_rights_are_enough_for_starts_and_none_is_too_much(recorded, shop):
    record = recorded("start")
    assert first_refusal(Steward(shop, record.cluster()).starts()) == []
    assert record.rights() == set(JOBS["start"])
    assert written(record.rights()) == record.audited()
    assert {"web-sample", "fresh-sample", "alone-sample"} <= {item["metadata"]["name"] for item in shop.list("deploy")}
    assert shop.get("start", "fresh")["status"]["observedGeneration"] == 1


def test_the_rights_are_enough_for_updates_and_none_is_too_much(recorded, shop):
    record = recorded("update")
    found = Steward(shop, record.cluster())
    before = {pod["metadata"]["uid"] for pod in pods_of(shop, "stuck")}
    assert first_refusal(found.updates()) == []
    index = images.inspect(f"{shop.repository}:one")
    for kind, name in FOLLOWED.items():
        assert index in json.dumps(shop.get(kind.lower(), name)["spec"]), kind
    assert {"ImageRolled", "StuckPodDeleted"} <= shop.events()
    assert shop.get("update", "all")["status"]["counts"]["stale"] == 6
    assert not before & {pod["metadata"]["uid"] for pod in pods_of(shop, "stuck")}
    assert [item["metadata"]["name"] for item in shop.list("updates")] == ["all"]
    # the way of the command line: the first of them, by a list; and everything put back
    assert found.update("", updates=True) == []
    assert found.update("all", state="released") == []
    for kind, name in FOLLOWED.items():
        assert index not in json.dumps(shop.get(kind.lower(), name)["spec"]), kind
    assert record.rights() == {*JOBS["update"], *NODES}
    assert written(record.rights()) == record.audited()

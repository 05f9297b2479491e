# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights in config/rbac are enough for the update and the start job in one namespace, and none is too much."""

from __future__ import annotations

import json

import pytest
from integration.accounts import Accounts, Right, connect, refusal_of, rights
from integration.passes import Shop
from integration.update_story import FOLLOWED, Rehearsal, Steward, first_refusal, prepare
from integration.workloads import pods_of

import testbed
from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster
from testbed import images

pytestmark = pytest.mark.usefixtures("crds")

NODES = rights("nodes_role.yaml")
JOBS = {
    "update": [*rights("update_role.yaml"), *rights("update_secrets_role.yaml")],
    "start": rights("start_role.yaml"),
}
SINGLE = [(job, number) for job, held in JOBS.items() for number in range(len(held))]
NAMES = [f"{job}-{JOBS[job][number]}".replace(" ", "-") for job, number in SINGLE]


@pytest.fixture(scope="module")
def shop(kubectl, namespaces, crds) -> Shop:
    made = Shop(testbed.connect(), kubectl, namespaces())
    prepare(made, connect(made.testbed.kubeconfig))
    return made


@pytest.fixture(scope="module")
def accounts(kubectl, shop, tmp_path_factory):
    """ServiceAccounts with RoleBindings in the one namespace: a job, and `<job>-without-<number>` of its rights."""
    made = Accounts(kubectl, shop.testbed.kubeconfig, shop.namespace, tmp_path_factory.mktemp("accounts"), "namespace")
    given = {"update": [*JOBS["update"], *NODES], "start": JOBS["start"], "without-nodes": JOBS["update"]}
    for job, number in SINGLE:
        missing = JOBS[job][number]
        given[f"{job}-without-{number}"] = [*(right for right in JOBS[job] if right != missing), *NODES]
    try:
        made.create(given)
        yield made
    finally:
        made.close()


@pytest.fixture
def steward(accounts, shop):
    """Passes of an account, rehearsed or for real."""

    def made(name: str, known: Right, kind: type[Cluster] = Rehearsal) -> Steward:
        return Steward(shop, connect(accounts.kubeconfig(name, known), kind))

    return made


@pytest.mark.parametrize(("job", "number"), SINGLE, ids=NAMES)
def test_no_right_is_too_much(steward, job, number):
    missing = JOBS[job][number]
    known = next(right for right in JOBS[job] if right != missing)
    found = steward(f"{job}-without-{number}", known)
    refused = first_refusal(found.updates() if job == "update" else found.starts())
    assert refused, f"nothing needs the right to {missing}"
    assert refusal_of(missing) in " ".join(refused)


def test_without_nodes_an_index_that_may_not_be_for_them_is_held_and_it_is_said_why(steward, shop):
    found = steward("without-nodes", JOBS["update"][0])
    assert found.update("all") == []
    verdicts = found.verdicts()
    assert {verdicts[name][0] for name in ("app", "db", "agent", "report", "web-sample")} == {"not_pullable"}
    assert "ClusterRole kubesteward-nodes" in verdicts["app"][1]
    assert found.done.rolled == []


# the last ones, since these passes really write
def test_the_rights_are_enough_for_starts(steward, shop):
    assert first_refusal(steward("start", JOBS["start"][0], Cluster).starts()) == []
    assert {"web-sample", "fresh-sample", "alone-sample"} <= {item["metadata"]["name"] for item in shop.list("deploy")}
    assert shop.get("start", "fresh")["status"]["observedGeneration"] == 1


def test_the_rights_are_enough_for_updates(steward, shop):
    found = steward("update", JOBS["update"][0], Cluster)
    before = {pod["metadata"]["uid"] for pod in pods_of(shop, "stuck")}
    assert first_refusal(found.updates()) == []
    index = images.inspect(f"{shop.repository}:one")
    for kind, name in FOLLOWED.items():
        assert index in json.dumps(shop.get(kind.lower(), name)["spec"]), kind
    assert {"ImageRolled", "StuckPodDeleted"} <= shop.events()
    assert shop.get("update", "all")["status"]["counts"]["stale"] == 5
    assert not before & {pod["metadata"]["uid"] for pod in pods_of(shop, "stuck")}
    assert [item["metadata"]["name"] for item in shop.list("updates")] == ["all"]
    # the way of the command line: the first of them, by a list; and everything put back
    assert found.update("", updates=True) == []
    assert found.update("all", state="released") == []
    for kind, name in FOLLOWED.items():
        assert index not in json.dumps(shop.get(kind.lower(), name)["spec"]), kind

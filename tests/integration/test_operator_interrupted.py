# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes whose resource goes while they run, and passes that are killed: the next one ends where one would have."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from integration.gate import DroppedError, Request
from integration.nspro_story import nspro, pull_secret
from integration.operator_passes import Operator, Run, changed
from integration.passes import Shop, writes
from integration.workloads import until

from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")

GONE_SECONDS = 60
#: more than any pass here writes
MANY = 20


def our_write(request: Request) -> bool:
    return request.writes and request.agent.startswith("kubesteward")


def write_of(plural: str) -> Callable[[Request], bool]:
    """Is it a write to objects of that kind, not to their status?"""
    return lambda request: our_write(request) and f"/{plural}/" in f"{request.path}/" and "/status" not in request.path


def is_status(request: Request) -> bool:
    return our_write(request) and request.path.endswith("/status")


def deleting(shop: Shop, what: str) -> Callable[[], None]:
    return lambda: shop.kubectl("delete", "-n", shop.namespace, what, "--wait=false")


def gone(shop: Shop, what: str, namespace: str = "") -> bool:
    where = ("-n", namespace or shop.namespace)
    return until(lambda: not shop.kubectl("get", what, *where, "--ignore-not-found").stdout, GONE_SECONDS)


@pytest.mark.parametrize("moment", [write_of("starts"), is_status], ids=["before its roll", "before its status"])
def test_an_update_deleted_between_the_steps_of_its_pass_is_no_error(shop, operator, moment):
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    operator.pass_of("Start")
    shop.settled()
    digest = shop.push("v2")
    operator.gate.before(moment, deleting(shop, "update/sample"))
    operator.pass_of("Update")
    assert operator.gate.done()
    assert gone(shop, "update/sample")
    # what was decided while it was there is carried out, and the memory of the tag is complete
    start = shop.get("start")
    assert start["spec"]["image"].endswith(digest)
    assert json.loads(start["metadata"]["annotations"]["kubesteward.io/follow"])


@pytest.mark.parametrize(
    "moment", [write_of("deployments"), is_status], ids=["before its Deployment", "before its status"]
)
def test_a_start_deleted_between_the_steps_of_its_pass_leaves_no_deployment(shop, operator, moment):
    shop.push("v1")
    shop.apply(shop.start())
    operator.gate.before(moment, deleting(shop, "start/sample"))
    operator.pass_of("Start")
    assert operator.gate.done()
    # its owner is gone, so the garbage collector takes it
    assert gone(shop, "deployment/sample-sample")


@pytest.mark.parametrize(
    "moment",
    [write_of("namespaces"), write_of("networkpolicies"), is_status],
    ids=["first", "in between", "at the end"],
)
def test_a_nspro_deleted_between_the_steps_of_its_pass_leaves_no_namespace(shop, operator, team, moment):
    shop.apply(nspro(shop.namespace, team, managed=True))
    operator.gate.before(moment, deleting(shop, f"nspro/{team}"))
    # the operator adds its finalizer before, so the resource stays until the pass that lets the namespace go
    operator.reconcile("Nspro", team)
    assert operator.gate.done()
    assert shop.get("nspro", team)["metadata"]["deletionTimestamp"]
    operator.reconcile("Nspro", team)
    assert gone(shop, f"nspro/{team}")
    assert gone(shop, f"namespace/{team}")


class Killer:
    """Kills the pass that runs; a request that is not forwarded yet does not leave its process."""

    def __init__(self, is_before: bool) -> None:
        self.run: Run | None = None
        self.is_before = is_before

    def __call__(self) -> None:
        assert self.run is not None
        self.run.kill()
        if self.is_before:
            raise DroppedError


def killed(operator: Operator, kind: str, name: str, is_before: bool) -> bool:
    """A pass that is killed at its first write, before or after it is carried out; False where it wrote nothing."""
    killer = Killer(is_before)
    stop = operator.gate.before if is_before else operator.gate.after
    stop(our_write, killer)
    killer.run = operator.begin(kind, name)
    output = killer.run.wait()
    if operator.gate.done():
        return True
    operator.gate.forget()
    assert killer.run.process.returncode == 0, output
    return False


def end_in_spite_of_it(operator: Operator, kind: str, name: str = "sample") -> int:
    """Kill it before its first write, then pass after pass after the first write of each; how many were killed."""
    assert killed(operator, kind, name, is_before=True)
    for number in range(MANY):
        if not killed(operator, kind, name, is_before=False):
            return number
    raise AssertionError(f"a pass that wrote {MANY} times has not come to an end")


def assert_at_rest(operator: Operator, kind: str, name: str, *namespaces: str) -> None:
    audit = AuditLog.of(operator.shop.testbed)
    mark = audit.mark()
    assert changed(operator.pass_of(kind, name)) == 0
    assert writes(event for event in audit.since(mark) if event.namespace in namespaces) == []


def test_a_start_is_applied_although_its_passes_are_killed_after_each_write(shop, operator):
    digest = shop.push("v1")
    shop.apply(shop.start())
    # Deployment, status
    assert end_in_spite_of_it(operator, "Start") >= 2
    shop.settled()
    assert shop.running() == {digest}
    operator.pass_of("Start")
    assert shop.get("start")["status"]["readyReplicas"] == 1
    assert_at_rest(operator, "Start", "sample", shop.namespace)


def test_an_update_rolls_once_although_its_passes_are_killed_after_each_write(shop, operator):
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    operator.pass_of("Start")
    shop.settled()
    operator.pass_of("Update")
    digest = shop.push("v2")
    audit = AuditLog.of(shop.testbed)
    mark = audit.mark()
    # the roll, what is told of it, the status
    assert end_in_spite_of_it(operator, "Update") >= 2
    rolls = [event for event in audit.since(mark, "kubesteward", shop.namespace) if event.resource == "starts"]
    assert len([event for event in rolls if not event.subresource and event.code == 200]) == 1
    operator.pass_of("Start")
    shop.settled()
    operator.pass_of("Update")
    assert shop.flags() == "true,true"
    assert shop.running() == {digest}
    history = shop.get("update")["status"]["history"]
    assert [entry["outcome"] for entry in history].count("rolled") == 1


def test_a_namespace_is_given_and_taken_although_its_passes_are_killed_after_each_write(shop, operator, team):
    shop.apply(pull_secret(shop.namespace))
    access = [{"role": "view", "users": ["bob"]}]
    wanted = nspro(shop.namespace, team, managed=True, access=access, pullSecrets=[{"name": "login"}])
    shop.apply(wanted)
    # Namespace, quota, defaults, policy, access, Secret, Events, status
    assert end_in_spite_of_it(operator, "Nspro", team) >= 6
    assert until(lambda: "default" in shop.kubectl("get", "serviceaccounts", "-n", team, "-o", "name").stdout, 30)
    operator.pass_of("Nspro", team)
    assert until(lambda: _is_counted(shop, team), 30)
    operator.pass_of("Nspro", team)
    assert shop.get("nspro", team)["status"]["phase"] == "Ready"
    kinds = "resourcequota,limitrange,networkpolicy,rolebinding"
    found = shop.kubectl("get", kinds, "-n", team, "-o", "name").stdout.split()
    assert len(found) == 4
    assert_at_rest(operator, "Nspro", team, shop.namespace, team)
    # and let go, with the operator's finalizer on the resource
    operator.set_finalizers("Nspro", team, ["nspro.example.com/cleanup"])
    shop.kubectl("delete", "-n", shop.namespace, f"nspro/{team}", "--wait=false")
    assert killed(operator, "Nspro", team, is_before=True)
    killed(operator, "Nspro", team, is_before=False)
    operator.reconcile("Nspro", team)
    assert gone(shop, f"nspro/{team}")
    assert gone(shop, f"namespace/{team}")


def _is_counted(shop: Shop, team: str) -> bool:
    quota = json.loads(shop.kubectl("get", "resourcequota", f"{team}-quota", "-n", team, "-o", "json").stdout)
    return quota["spec"]["hard"] == quota.get("status", {}).get("hard")

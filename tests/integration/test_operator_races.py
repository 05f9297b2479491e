# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two passes at once, and a status that the operator writes between a pass's read and its write.

A pass is stopped before a write of its choice, another one runs from its beginning to its end, and the first goes on.
"""

from __future__ import annotations

import json
import time
import typing as t

import pytest
from integration.gate import Request
from integration.nspro_story import nspro, pull_secret
from integration.operator_passes import Operator, changed
from integration.passes import Shop, writes

from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")

FOREIGN = {
    "type": "Audited",
    "status": "True",
    "reason": "Seen",
    "message": "by somebody",
    "lastTransitionTime": "2026-01-02T15:04:05Z",
}


def our_write(request: Request) -> bool:
    return request.writes and request.agent.startswith("kubesteward")


def is_status(request: Request) -> bool:
    return our_write(request) and request.path.endswith("/status")


def rolls_of(audit: AuditLog, mark: int, shop: Shop) -> list[str]:
    """Images that Starts got from us, refused ones aside."""
    found = audit.since(mark, "kubesteward", shop.namespace)
    return [event.name for event in found if event.resource == "starts" and not event.subresource and event.code == 200]


def running_shop(shop: Shop, operator: Operator, *updates: str) -> None:
    shop.push("v1")
    shop.apply(shop.start(), *(shop.update(name) for name in updates))
    operator.pass_of("Start")
    shop.settled()


def test_two_passes_of_one_update_at_once_roll_once(shop, operator):
    running_shop(shop, operator, "sample")
    digest = shop.push("v2")
    audit = AuditLog.of(shop.testbed)
    mark = audit.mark()
    operator.gate.before(our_write, lambda: operator.pass_of("Update"))
    operator.pass_of("Update")
    assert operator.gate.done()
    assert rolls_of(audit, mark, shop) == ["sample"]
    operator.pass_of("Start")
    shop.settled()
    operator.pass_of("Update")
    assert shop.flags() == "true,true"
    assert shop.running() == {digest}
    assert [entry["outcome"] for entry in shop.get("update")["status"]["history"]].count("rolled") == 1


def test_passes_of_two_updates_of_one_workload_at_once_roll_once(shop, operator):
    running_shop(shop, operator, "older", "younger")
    shop.push("v2")
    audit = AuditLog.of(shop.testbed)
    mark = audit.mark()
    operator.gate.before(our_write, lambda: operator.pass_of("Update", "younger"))
    operator.pass_of("Update", "older")
    assert operator.gate.done()
    assert rolls_of(audit, mark, shop) == ["sample"]
    assert shop.verdicts("younger") == {"sample-sample": "stale/conflict"}
    assert (
        json.loads(shop.get("start")["metadata"]["annotations"]["kubesteward.io/follow"])["sample-sample"]["by"]
        == "older"
    )


def test_passes_of_two_starts_of_one_name_at_once_make_one_deployment(shop, operator):
    shop.push("v1")
    shop.apply(shop.start("older"), shop.start("younger", name="older"))
    operator.gate.before(our_write, lambda: operator.pass_of("Start", "younger"))
    operator.pass_of("Start", "older")
    operator.pass_of("Start", "younger")
    owners = [owner["name"] for owner in shop.get("deployment", "older-sample")["metadata"]["ownerReferences"]]
    assert owners == ["older"]
    (ready,) = [x for x in shop.get("start", "younger")["status"]["conditions"] if x["type"] == "Ready"]
    assert (ready["status"], "older" in ready["message"]) == ("False", True)


def test_two_passes_of_one_start_at_once_make_one_deployment(shop, operator):
    digest = shop.push("v1")
    shop.apply(shop.start())
    operator.gate.before(our_write, lambda: operator.pass_of("Start"))
    operator.pass_of("Start")
    shop.settled()
    assert shop.running() == {digest}
    assert len(shop.list("replicasets")) == 1


def test_two_passes_of_one_nspro_at_once_make_one_namespace(shop, operator, team):
    shop.apply(pull_secret(shop.namespace))
    shop.apply(nspro(shop.namespace, team, managed=True, pullSecrets=[{"name": "login"}]))
    # before the Namespace is made, and in the middle
    operator.gate.before(our_write, lambda: operator.pass_of("Nspro", team))
    operator.pass_of("Nspro", team)
    assert operator.gate.done()
    shop.apply(nspro(shop.namespace, team, nssize="large"))
    operator.gate.before(our_write, lambda: operator.pass_of("Nspro", team), spared=1)
    operator.pass_of("Nspro", team)
    assert operator.gate.done()
    quota = json.loads(shop.kubectl("get", "resourcequota", "-n", team, "-o", "json").stdout)["items"]
    assert [item["spec"]["hard"]["limits.cpu"] for item in quota] == ["300m"]
    claim = json.loads(shop.kubectl("get", "namespace", team, "-o", "json").stdout)["metadata"]["annotations"]
    assert json.loads(claim["kubesteward.io/claim"])["by"] == f"{shop.namespace}/{team}"
    operator.pass_of("Nspro", team)
    assert shop.get("nspro", team)["status"]["phase"] == "Ready"


def test_two_nspros_of_one_name_at_once_share_nothing(shop, operator, team, kubectl, namespaces, tmp_path):
    other = Shop(shop.testbed, kubectl, namespaces())
    for place in (shop, other):
        place.apply(nspro(place.namespace, team, nssize="small" if place is shop else "large"))
        # the second is younger by a second at least
        time.sleep(1.1)
    with Operator(other, tmp_path / "other") as second:
        (tmp_path / "other").mkdir()
        operator.gate.before(our_write, lambda: second.pass_of("Nspro", team))
        operator.pass_of("Nspro", team)
        second.pass_of("Nspro", team)
    phases = {place.namespace: place.get("nspro", team)["status"]["phase"] for place in (shop, other)}
    # the older one has it, whichever pass came first
    assert phases == {shop.namespace: "Ready", other.namespace: "Conflict"}
    hard = shop.kubectl("get", "resourcequota", "-n", team, "-o", "jsonpath={.items[*].spec.hard.limits\\.cpu}").stdout
    assert hard == "100m"


def conditions_of(shop: Shop, kind: str, name: str) -> dict[str, dict[str, t.Any]]:
    return {condition["type"]: condition for condition in shop.get(kind.lower(), name)["status"]["conditions"]}


OURS = {
    "Start": {"Ready"},
    "Update": {
        "UpToDate",
        "Rolling",
        "RolloutBlocked",
        "RegistryReachable",
        "RolloutDidNotTakeEffect",
        "RunningDigestGone",
    },
    "Nspro": {"Ready", "QuotaApplied", "NetworkPolicyApplied", "ShrinkBlocked", "Conflict"},
}


@pytest.mark.parametrize("kind", sorted(OURS))
def test_a_status_written_between_our_read_and_our_write_loses_nobodys_conditions(shop, operator, team, kind):
    name = team if kind == "Nspro" else "sample"
    shop.push("v1")
    shop.apply(shop.start(), shop.update(), nspro(shop.namespace, team))
    if kind == "Update":
        operator.pass_of("Start")
        shop.settled()

    def race() -> None:
        """The operator's `Running`, and the condition of somebody who keeps no list of managed fields either."""
        resource = operator.mark(kind, name, "Running reconciliation")
        found = [*resource["status"]["conditions"], FOREIGN]
        status = {**resource["status"], "conditions": found}
        operator.as_the_operator("replace", "--subresource=status", "-f", "-", stdin={**resource, "status": status})

    operator.gate.before(is_status, race)
    operator.reconcile(kind, name)
    assert operator.gate.done()
    after = conditions_of(shop, kind, name)
    assert after.keys() == OURS[kind] | {"Running", "Audited"}
    assert after["Running"]["message"] == "Awaiting next reconciliation"
    assert after["Audited"] == FOREIGN
    _comes_to_rest(shop, operator, kind, name)
    assert conditions_of(shop, kind, name).keys() == after.keys()


def _comes_to_rest(shop: Shop, operator: Operator, kind: str, name: str) -> None:
    """What is used, or ready, may be news once; then a status that the operator has rebuilt is none."""
    if kind == "Start":
        shop.settled()
    operator.reconcile(kind, name)
    operator.reconcile(kind, name)
    audit = AuditLog.of(shop.testbed)
    mark = audit.mark()
    assert changed(operator.reconcile(kind, name)) == 0
    places = {shop.namespace, name if kind == "Nspro" else shop.namespace}
    events = [event for event in audit.since(mark) if places & {event.namespace, event.name}]
    assert writes(events) == []

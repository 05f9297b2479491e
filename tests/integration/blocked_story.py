# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rolls that do not get on for a reason that is not their image's: told, waited for, never taken back.

Each has an Update of its own, so that its conditions are of nothing else; all wait for one deadline.
"""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass, field

from integration.passes import Shop
from integration.workloads import (
    PROBED,
    Object,
    container,
    deployment,
    image_of,
    images_in,
    rolled_out,
    stateful_set,
    until,
)

from testbed import images

DEADLINE = 30
#: by then every Pod of the roll is older than the deadline
OLD_ENOUGH = DEADLINE + 5
#: a Pod that waits for a node is given a minute
BLOCKED_SECONDS = 90
SECONDS = 90
PASS_PAUSE = 5

KINDS = {
    "crowded": "deployment",
    "paused": "deployment",
    "helped": "deployment",
    "ondelete": "statefulset",
    "full": "deployment",
}
REASONS = {
    "crowded": "Unschedulable",
    "paused": "Paused",
    "helped": "OtherContainer",
    "ondelete": "OnDelete",
    "full": "QuotaExceeded",
}


@dataclass
class Blocked:
    """One roll each, and what its Update said after the deadline, by workload."""

    shop: Shop
    digests: dict[str, str] = field(default_factory=dict)
    updates: dict[str, Object] = field(default_factory=dict)
    workloads: dict[str, Object] = field(default_factory=dict)
    freed: dict[str, Object] = field(default_factory=dict)

    @staticmethod
    def blocked(update: Object) -> Object:
        found = update["status"]["conditions"]
        return next(condition for condition in found if condition["type"] == "RolloutBlocked")

    def condition(self, name: str) -> Object:
        return self.blocked(self.updates[name])

    def image(self, name: str) -> str:
        return images_in(self.workloads[name])[name]

    def tell(self) -> None:
        self.begin()
        self.roll()
        until(self.are_told, BLOCKED_SECONDS, PASS_PAUSE)
        # what was found now must not be undone by the pass after it
        self.shop.run("update")
        self.updates = {name: self.shop.get("update", name) for name in KINDS}
        self.workloads = {name: self.shop.get(kind, name) for name, kind in KINDS.items()}
        self.events = self.shop.list("events")
        self.free()

    def are_told(self) -> bool:
        """After the deadline, so that there was time to take one back."""
        self.shop.run("update")
        self.updates = {name: self.shop.get("update", name) for name in KINDS}
        is_over = time.monotonic() - self.rolled_at > OLD_ENOUGH
        return is_over and all(self.condition(name)["reason"] == reason for name, reason in REASONS.items())

    def begin(self) -> None:
        for name in KINDS:
            self.shop.push(f"first {name}", name)
        self.push_helper(images.command_image(["sleep", "2147483647"]))
        self.shop.apply(*_workloads(self.shop))
        for name, kind in KINDS.items():
            target = {"kind": "StatefulSet" if kind == "statefulset" else "Deployment", "name": name}
            rollback = {"progressDeadlineSeconds": DEADLINE}
            spec: Object = {"targets": [target], "containers": {"ignore": ["helper"]}, "rollback": rollback}
            self.shop.apply(self.shop.update(name, spec))
        rolled_out(self.shop, *(f"{kind}/{name}" for name, kind in KINDS.items() if name != "ondelete"))
        self.on("wait", "--for=jsonpath={.status.readyReplicas}=1", "statefulset/ondelete", f"--timeout={SECONDS}s")
        self.shop.run("update")

    def roll(self) -> None:
        self.shop.apply(_quota(1))
        self.push_helper(images.exiting_image(f"helper {self.shop.repository}"))
        for name in KINDS:
            self.digests[name] = self.shop.push(f"second {name}", name)
        # by itself, to be in the middle of it still when it is paused
        self.shop.run("update", update_name="paused")
        self.on("rollout", "pause", "deployment/paused")
        self.shop.run("update")
        self.rolled_at = time.monotonic()

    def free(self) -> None:
        """Take away what was in the way, as a person would."""
        self.shop.apply(_quota(2))
        self.push_helper(images.command_image(["sleep", "2147483646"]))
        self.on("rollout", "resume", "deployment/paused")
        self.on("delete", "pods", "-l", "app in (helped, ondelete)", "--wait=false")
        # the controller's next try may be minutes away
        self.on("annotate", "replicasets", "-l", "app=full", "example.com/again=now")
        self.on("scale", "deployment/crowded", "--replicas=0")
        self.on("wait", "pods", "-l", "app=crowded", "--for=delete", f"--timeout={SECONDS}s")
        self.on("scale", "deployment/crowded", "--replicas=1")

        def are_current() -> bool:
            self.shop.run("update")
            self.freed = {name: self.shop.get("update", name) for name in KINDS}
            are_free = all(self.blocked(update)["status"] == "False" for update in self.freed.values())
            return are_free and all(verdict_of(update).startswith("current/") for update in self.freed.values())

        until(are_current, SECONDS, PASS_PAUSE)

    def push_helper(self, layout: t.Any) -> None:
        images.push(layout, f"{self.shop.repository}:helper")

    def on(self, *command: str) -> None:
        self.shop.kubectl(*command, "-n", self.shop.namespace)


def _workloads(shop: Shop) -> list[Object]:
    def one(name: str, **fields: t.Any) -> Object:
        return container(name, image_of(shop, name), **PROBED, **fields)

    alone: Object = {"labelSelector": {"matchLabels": {"app": "crowded"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity: Object = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
    # nobody follows it: every new Pod gets what its tag names by then
    helper = container("helper", image_of(shop, "helper"), imagePullPolicy="Always")
    return [
        # one Pod a node, and there is one node
        deployment("crowded", one("crowded"), pod={"affinity": affinity}),
        # slow enough to be paused in the middle, by a busy machine too
        deployment("paused", one("paused"), replicas=3, minReadySeconds=6),
        deployment("helped", one("helped"), helper),
        stateful_set("ondelete", one("ondelete"), updateStrategy={"type": "OnDelete"}),
        # the only one with a request, and so the only one that the quota counts
        deployment("full", one("full", resources={"requests": {"cpu": "1m"}})),
    ]


def _quota(pods: int) -> Object:
    spec = {"hard": {"pods": str(pods)}, "scopes": ["NotBestEffort"]}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": spec}


def verdict_of(update: Object) -> str:
    (image,) = update["status"]["images"]
    return f"{image['verdict']}/{image['reason']}"

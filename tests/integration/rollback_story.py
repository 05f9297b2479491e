# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rolls to images that turn out bad: all workloads at the same time, every push and pass, and what was seen then."""

from __future__ import annotations

import contextlib
import json
import time
import typing as t
from dataclasses import dataclass, field

from integration.passes import Shop
from integration.prober import Prober
from integration.workloads import (
    DRAINED,
    PROBED,
    Object,
    container,
    deployment,
    image_of,
    images_in,
    pods_of,
    rolled_out,
    service,
    stateful_set,
    until,
)

from testbed import images
from testbed.audit import AuditLog, Event

DEADLINE = 30
#: after a roll, until the last of its Pods is created
CREATION_SECONDS = 10
#: what the machine may be late
LATE = 60
#: time for passes that could roll what was taken back again
AGAIN_SECONDS = 10
#: long enough for the image that dies after a moment, and for a pass in between
TRIAL_SECONDS = 5
#: until a container that is started once more has crashed again, and that is known
RESTART_SECONDS = 20
PASS_PAUSE = 5

KINDS = {
    "web": "start",
    "app": "deployment",
    "brief": "deployment",
    "torn": "deployment",
    "db": "statefulset",
    "good": "deployment",
    "stays": "deployment",
}
#: whose roll fails and is taken back
ROLLED_BACK = ("web", "app", "brief", "torn", "db")
CONTAINERS = {**{name: name for name in KINDS}, "web": "web-sample", "late": "late"}
#: the Update that looks at a workload; that of `stays` takes nothing back
UPDATES = {"stays": "off"}


@dataclass(frozen=True)
class Snapshot:
    """What was there at one moment."""

    update: Object
    off: Object
    workloads: dict[str, Object]

    def image(self, name: str) -> str:
        return next(iter(images_in(self.workloads[name]).values()))

    def digest(self, name: str) -> str:
        return self.image(name).rpartition("@")[2]

    def verdict(self, name: str) -> str:
        """`verdict/reason` of a workload's container."""
        found = (self.off if UPDATES.get(name) else self.update)["status"].get("images", [])
        verdicts = [f"{x['verdict']}/{x['reason']}" for x in found if x["container"] == CONTAINERS[name]]
        assert len(verdicts) == 1, found
        return verdicts[0]

    def outcomes(self, name: str) -> list[str]:
        """Outcomes of the history that are about a workload, oldest first."""
        history = (self.off if UPDATES.get(name) else self.update)["status"].get("history", [])
        return [entry["outcome"] for entry in history if entry["container"] == CONTAINERS[name]]

    def condition(self, kind: str, update: str = "update") -> Object:
        found = getattr(self, update)["status"]["conditions"]
        return next(condition for condition in found if condition["type"] == kind)


@dataclass(frozen=True)
class Watch:
    """A pass: seconds from the roll to its begin and end, and which workloads had the bad image after it.

    :ivar good: outcomes of the image that is none
    """

    began: float
    ended: float
    bad: set[str]
    good: list[str]


@dataclass
class Story:
    """All of it in one namespace; `seen` are the snapshots by chapter."""

    shop: Shop
    audit: AuditLog
    digests: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: dict[str, Snapshot] = field(default_factory=dict)
    passes: list[Watch] = field(default_factory=list)
    probers: dict[str, Prober] = field(default_factory=dict)
    pods: dict[str, set[str]] = field(default_factory=dict)
    written: list[Event] = field(default_factory=list)
    retried: Snapshot | None = None

    def push(self, chapter: str, name: str, layout: t.Any) -> None:
        tag = "latest" if name == "web" else name
        digest = images.push(layout, f"{self.shop.repository}:{tag}")
        self.digests.setdefault(chapter, {})[name] = digest

    def web_image(self, chapter: str, name: str) -> t.Any:
        # nobody takes a Start's Pods out of the Service before their end, so they serve a while longer
        options = {"stop_signal": "SIGTERM"} if name == "web" else {}
        return images.web_image(f"{chapter} {name} {self.shop.repository}", **options)

    def look(self) -> Snapshot:
        found = {item["metadata"]["name"]: item for item in self.shop.list("starts,deployments,statefulsets,updates")}
        return Snapshot(found.pop("all"), found.pop("off"), found)

    def pass_and_look(self) -> Snapshot:
        self.shop.run("update", update_verification_seconds=TRIAL_SECONDS)
        return self.look()

    def tell(self) -> None:
        self.begin()
        with contextlib.ExitStack() as stack:
            for name in ("web", "app"):
                self.probers[name] = stack.enter_context(Prober(self.shop.testbed, self.shop.namespace, name))
            self.roll_bad_images()
            self.wait_until_they_are_back()
            self.wait_until_the_good_one_settled()
            self.roll_fixed_images()

    def begin(self) -> None:
        """Everything runs its first image."""
        shop = self.shop
        for name in KINDS:
            self.push("first", name, self.web_image("first", name))

        def one(name: str, **fields: t.Any) -> Object:
            return container(name, image_of(shop, name), **fields)

        shop.apply(
            shop.start("web"),
            service("web", "web-app"),
            deployment("app", one("app", **PROBED, **DRAINED), replicas=2),
            service("app", "app"),
            deployment("brief", one("brief")),
            deployment("torn", one("torn")),
            stateful_set("db", one("db", **PROBED), replicas=2),
            deployment("good", one("good", **PROBED)),
            deployment("stays", one("stays", **PROBED)),
        )
        targets = [{"kind": "Start", "name": "web"}, {"kind": "StatefulSet", "name": "db"}]
        targets += [{"kind": "Deployment", "name": name} for name in ("app", "brief", "torn", "good")]
        # not there yet: it comes when its image is known to be bad
        targets += [{"kind": "Deployment", "selector": {"matchLabels": {"app": "late"}}}]
        rollback = {"rollback": {"progressDeadlineSeconds": DEADLINE}}
        shop.apply(
            shop.update("all", {"targets": targets, **rollback}),
            shop.update("off", {"targets": [{"kind": "Deployment", "name": "stays"}], **rollback}),
        )
        shop.run("start")
        started = {**{name: f"{kind}/{name}" for name, kind in KINDS.items()}, "web": "deployment/web-sample"}
        rolled_out(shop, *started.values())
        self.seen["first"] = self.pass_and_look()

    def roll_bad_images(self) -> None:
        for name in ("web", "app", "db", "stays"):
            self.push("second", name, images.exiting_image(f"{name} {self.shop.repository}"))
        self.push("second", "brief", images.dying_image(f"brief {self.shop.repository}"))
        torn = self.web_image("second", "torn")
        self.push("second", "torn", torn)
        images.delete_layer(torn, f"{self.shop.repository}:torn")
        self.push("second", "good", self.web_image("second", "good"))
        self.mark = self.audit.mark()
        self.rolled_at = time.monotonic()
        self.seen["rolled"] = self.pass_and_look()
        # a person wants to look at what is broken
        enabled = {"spec": {"rollback": {"enabled": False}}}
        self.shop.kubectl(
            *("patch", "update", "off", "-n", self.shop.namespace, "--type=merge", "-p", json.dumps(enabled))
        )
        self.pods["rolled"] = until(lambda: self.stuck_pods("db"), 30)

    def stuck_pods(self, app: str) -> set[str]:
        """Uids of the Pods of the bad image."""
        bad = self.digests["second"][app]
        found = pods_of(self.shop, app)
        return {pod["metadata"]["uid"] for pod in found if pod["spec"]["containers"][0]["image"].endswith(bad)}

    def wait_until_they_are_back(self) -> None:
        def are_back() -> bool:
            began = time.monotonic() - self.rolled_at
            self.seen["back"] = found = self.pass_and_look()
            bad = {name for name in ROLLED_BACK if found.digest(name) == self.digests["second"][name]}
            self.passes.append(Watch(began, time.monotonic() - self.rolled_at, bad, found.outcomes("good")))
            return not bad

        until(are_back, DEADLINE + LATE, PASS_PAUSE)
        self.back_at = time.monotonic()
        # the node's copy of this tag is the first image, while the registry's is the bad one
        self.shop.apply(deployment("late", container("late", image_of(self.shop, "app"), **PROBED)))
        rolled_out(self.shop, "deployment/late")

    def wait_until_the_good_one_settled(self) -> None:
        def has_settled() -> bool:
            self.seen["settled"] = found = self.pass_and_look()
            has_waited = time.monotonic() - self.back_at > AGAIN_SECONDS
            return has_waited and "done" in found.outcomes("good")

        until(has_settled, TRIAL_SECONDS + LATE, PASS_PAUSE)
        self.written = self.audit.since(self.mark, "kubesteward", self.shop.namespace)
        self.pods["settled"] = {pod["metadata"]["uid"] for pod in pods_of(self.shop, "db")}
        self.events = self.shop.list("events")

    def roll_fixed_images(self) -> None:
        retry = f"kubesteward.io/retry={self.digests['second']['torn']}"
        self.shop.kubectl("annotate", "-n", self.shop.namespace, "deployment/torn", retry)
        self.retried = self.pass_and_look()
        for name in (*ROLLED_BACK, "stays"):
            self.push("third", name, self.web_image("third", name))

        def are_rolled() -> bool:
            self.seen["fixed"] = found = self.pass_and_look()
            fixed = self.digests["third"]
            return all(found.digest(name) == fixed[name] for name in fixed)

        # a roll that crashes is waited for while its container is being started once more
        until(are_rolled, RESTART_SECONDS, PASS_PAUSE)

        def is_current() -> bool:
            self.seen["end"] = found = self.pass_and_look()
            return all(found.verdict(name).startswith("current/") for name in (*KINDS, "late"))

        until(is_current, 60, PASS_PAUSE)

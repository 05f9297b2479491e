# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways back on a real cluster: images that exit at once, and what the registry lost meanwhile; Pods never ready."""

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
    pods_of,
    rolled_out,
    stateful_set,
    until,
)

from testbed import images

#: after which an image that exits at once is taken back, whatever the deadline
CRASH_SECONDS = 45
#: Pods that are merely not ready
DEADLINE = 30
#: what the machine may be late
LATE = 60
PASS_PAUSE = 5
WORDS = "no database at db:5432"

#: name -> kind; the registry loses the first image of `kept`, which its node keeps, and of `lost`, which is pulled anew
KINDS = {"exits": "deployment", "kept": "deployment", "lost": "deployment", "unready": "statefulset"}
CRASHING = ("exits", "kept", "lost")
UPDATES = {"unready": "short"}


@dataclass
class Outage:
    """What was there after the roll, while the images crashed, when they were taken back, and in the end.

    :ivar during: the Update of each, as it was last seen before that
    """

    shop: Shop
    digests: dict[str, dict[str, str]] = field(default_factory=dict)
    during: dict[str, Object] = field(default_factory=dict)
    taken_back: dict[str, float] = field(default_factory=dict)
    told: dict[str, Object] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)
    ready: dict[str, bool] = field(default_factory=dict)
    events: list[Object] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)

    def image(self, name: str) -> str:
        return images_in(self.shop.get(KINDS[name], name))[name]

    def entry(self, update: Object, name: str) -> Object:
        return next(x for x in update["status"]["images"] if x["container"] == name)

    def update_of(self, name: str) -> Object:
        return self.shop.get("update", UPDATES.get(name, "all"))

    def push(self, chapter: str, name: str, layout: t.Any) -> None:
        self.digests.setdefault(chapter, {})[name] = images.push(layout, f"{self.shop.repository}:{name}")

    def web(self, chapter: str, name: str) -> t.Any:
        return images.web_image(f"{chapter} {name} {self.shop.repository}")

    def crashing(self, name: str) -> t.Any:
        said = f"{WORDS} {name} {self.shop.repository}"
        return images.command_image(["sh", "-c", 'echo "$0" > /dev/termination-log; exit 3', said])

    def tell(self) -> None:
        self.begin()
        self.roll()
        self.watch()
        self.push("again", "lost-again", self.web("first", "lost"))
        self.wait_for_the_end()

    def begin(self) -> None:
        for name in CRASHING:
            self.push("first", name, self.web("first", name))
        # it runs and serves nothing, so that no probe ever passes
        self.push("first", "unready", images.command_image(["sh", "-c", "sleep 3600", self.shop.repository]))
        shop = self.shop

        def one(name: str, **fields: t.Any) -> Object:
            return container(name, image_of(shop, name), **PROBED, **fields)

        recreate = {"strategy": {"type": "Recreate"}}
        shop.apply(
            deployment("exits", one("exits")),
            deployment("kept", one("kept"), **recreate),
            deployment("lost", one("lost", imagePullPolicy="Always"), **recreate),
            stateful_set("unready", one("unready")),
            shop.update("all", {"targets": [{"kind": "Deployment", "name": name} for name in CRASHING]}),
            shop.update(
                "short",
                {
                    "targets": [{"kind": "StatefulSet", "name": "unready"}],
                    "rollback": {"progressDeadlineSeconds": DEADLINE},
                },
            ),
        )
        rolled_out(shop, *(f"deployment/{name}" for name in CRASHING))
        until(lambda: pods_of(shop, "unready"), 30)
        shop.run("update")

    def roll(self) -> None:
        for name in CRASHING:
            self.push("second", name, self.crashing(name))
        self.push("second", "unready", self.web("second", "unready"))
        self.rolled_at = time.monotonic()
        self.shop.run("update")
        for name in ("kept", "lost"):
            images.delete(f"{self.shop.repository}@{self.digests['first'][name]}")

    def watch(self) -> None:
        def is_decided() -> bool:
            self.shop.run("update")
            passed = time.monotonic() - self.rolled_at
            for name in CRASHING:
                update = self.update_of(name)
                if self.image(name).endswith(self.digests["second"][name]):
                    if self.entry(update, name)["reason"] == "on_trial":
                        self.during[name] = update
                else:
                    self.taken_back.setdefault(name, passed)
            self.told["lost"] = self.update_of("lost")
            history = self.told["lost"]["status"]["history"]
            failed = [x for x in history if (x["container"], x["outcome"]) == ("lost", "failed")]
            return {"exits", "kept"} <= set(self.taken_back) and bool(failed)

        until(is_decided, CRASH_SECONDS + LATE, PASS_PAUSE)
        self.told["exits"] = self.update_of("exits")
        self.images = {name: self.image(name) for name in CRASHING}
        self.events = self.shop.list("events")
        header, line = self.shop.kubectl("get", "update", "all", "-n", self.shop.namespace).stdout.splitlines()
        self.columns = dict(zip(header.split(), line.split(), strict=True))

    def wait_for_the_end(self) -> None:
        def all_run() -> bool:
            self.shop.run("update")
            self.ready = {name: self.is_ready(name) for name in KINDS}
            return all(self.ready.values())

        until(all_run, 2 * LATE, PASS_PAUSE)
        self.again = {name: self.image(name) for name in KINDS}

    def is_ready(self, name: str) -> bool:
        return self.shop.get(KINDS[name], name)["status"].get("readyReplicas", 0) == 1

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A shop where anything goes wrong: images that crash or cannot be pulled, registries that lose digests, killed passes.

Whatever happens, the workload ends on something that runs wherever anything that ran before can still be had.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import typing as t

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images import report
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    IMAGE,
    REPOSITORY,
    pod_of,
    published,
    sha,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    one_pass,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import TARGETS, image

BEGIN = datetime.datetime(2026, 3, 1, 10)
DIGESTS = [sha(f"outage {number}") for number in range(5)]
#: seconds for which a container of an image lives, None: for ever
LIVES = {"good": None, "exits": 1, "dies": 20}
#: seconds from one end of a container to its next start
BACKOFF = (1, 10, 20, 40, 80, 160, 300)


class Killed(BaseException):
    """The process is gone; nothing catches that."""


def clock(seconds: int) -> str:
    return (BEGIN + datetime.timedelta(seconds=seconds)).strftime(conditions.TIME)


@dataclasses.dataclass
class Shop:
    """A Deployment of one Pod, its node and its registry.

    :ivar kinds: what an image does when it is started: a key of LIVES, or `torn`: its layers cannot be pulled
    :ivar has: digests that the registry has
    :ivar on_node: what the node has, by the name it was pulled as
    :ivar ran: good ones that were seen ready
    """

    policy: str
    by_hand: bool
    kinds: dict[str, str] = dataclasses.field(default_factory=dict)
    names: str = DIGESTS[0]
    has: set[str] = dataclasses.field(default_factory=set)
    on_node: dict[str, str] = dataclasses.field(default_factory=dict)
    ran: set[str] = dataclasses.field(default_factory=set)
    now: int = 0

    def __post_init__(self) -> None:
        owner = workload(name="a")
        owner["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = self.policy
        one, between = pod_of(owner, f"{REPOSITORY}@{DIGESTS[0]}", name="pod-a")
        self.cluster = FakeCluster(update(targets=TARGETS[:1]), owner, one, *between)
        self.kinds[DIGESTS[0]] = "good"
        self.on_node[IMAGE] = DIGESTS[0]
        if not self.by_hand:
            self.has.add(DIGESTS[0])
            self.on_node[f"{REPOSITORY}@{DIGESTS[0]}"] = DIGESTS[0]
        self.spec, self.made = IMAGE, -3600
        self.start()
        self.tick()

    def registry(self) -> dict[str, t.Any]:
        if self.names in self.has:
            return {IMAGE: published(self.names, children=(), has=sorted(self.has))}
        return {IMAGE: {"state": "unknown", "reason": "not_found", "msg": "gone", "has": sorted(self.has)}}

    def pull(self, name: str) -> str | None:
        """The digest that a Pod of this image gets, or None where it cannot be had."""
        if self.policy != "Always" and name in self.on_node:
            return self.on_node[name]
        digest = name.partition("@")[2] or self.names
        if digest not in self.has or self.kinds[digest] == "torn":
            return None
        self.on_node.update({name: digest, f"{REPOSITORY}@{digest}": digest})
        return digest

    def start(self) -> None:
        self.runs = self.pull(self.spec)

    def tick(self) -> None:
        """What the controllers and the kubelet do until now."""
        if image(self.cluster, "a") != self.spec:
            self.spec, self.made = image(self.cluster, "a"), self.now
            self.start()
        if self.runs is None:
            # the kubelet tries again
            self.start()
            self.made = self.now if self.runs else self.made
        told = self.container()
        if told["ready"] and self.is_well:
            self.ran.add(t.cast(str, self.runs))
        self.cluster.edit("Pod", "pod-a", lambda x: x["metadata"].update(creationTimestamp=clock(self.made)))
        self.cluster.edit("Pod", "pod-a", lambda x: x["status"]["containerStatuses"][0].update(told))
        self.cluster.edit("Deployment", "a", lambda x: x["status"].update(availableReplicas=int(told["ready"])))
        seen = self.cluster.read("Deployment", "a")["metadata"]["generation"]
        self.cluster.edit("Deployment", "a", lambda x: x["status"].update(observedGeneration=seen))

    def container(self) -> dict[str, t.Any]:
        """The status of the container, as the kubelet writes it."""
        found: dict[str, t.Any] = {"imageID": "", "ready": False, "restartCount": 0, "lastState": {}}
        if self.runs is None:
            return {**found, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
        by_hand = self.by_hand and self.runs == DIGESTS[0]
        found["imageID"] = f"{'import-2026-01-01' if by_hand else REPOSITORY}@{self.runs}"
        lives, began, restarts = LIVES[self.kinds[self.runs]], self.made, 0
        if lives is None:
            return {**found, "ready": True, "state": {"running": {"startedAt": clock(began)}}}
        while True:
            ended = began + lives
            if self.now < ended:
                return {**found, "ready": lives > 1, "state": {"running": {"startedAt": clock(began)}}}
            end = {"exitCode": 1, "reason": "Error", "message": "no database"}
            end.update(startedAt=clock(began), finishedAt=clock(ended))
            found["lastState"] = {"terminated": end}
            began = ended + BACKOFF[min(restarts, len(BACKOFF) - 1)]
            if self.now < began:
                return {**found, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            restarts += 1
            found["restartCount"] = restarts

    @property
    def is_well(self) -> bool:
        return self.runs is not None and self.kinds[self.runs] == "good"

    def can_be_had(self, digest: str) -> bool:
        if digest in self.has:
            return True
        kept = [name for name, what in self.on_node.items() if what == digest]
        return self.policy != "Always" and bool(kept)

    def one_pass(self, dies_at: int = 0) -> t.Any:
        """A pass, which is killed at the write of this number."""
        count = 0

        def before_write(_verb: str, _target: t.Any) -> None:
            nonlocal count
            count += 1
            if count == dies_at:
                raise Killed

        self.cluster.before_write = before_write
        done = None
        with contextlib.suppress(Killed):
            done = one_pass(self.cluster, self.registry(), "update-sample", now=clock(self.now))
        self.cluster.before_write = lambda verb, target: None
        self.tick()
        return done

    def go_on(self, seconds: int, pause: int) -> t.Any:
        done = None
        for _number in range(0, seconds, pause):
            self.now += pause
            self.tick()
            done = self.one_pass()
        return done


HAPPENS = st.one_of(
    st.tuples(st.just("push"), st.sampled_from(range(1, 5)), st.sampled_from(("good", "exits", "dies", "torn"))),
    st.tuples(st.just("lose"), st.sampled_from(range(5)), st.none()),
    st.tuples(st.just("wait"), st.sampled_from((10, 70, 150, 700)), st.none()),
    st.tuples(st.just("kill"), st.sampled_from(range(1, 5)), st.none()),
)


def happen(shop: Shop, what: str, number: int, kind: str | None) -> None:
    if what == "push":
        digest = DIGESTS[number]
        # an image is what it is
        shop.kinds.setdefault(digest, t.cast(str, kind))
        shop.has.add(digest)
        shop.names = digest
    elif what == "lose":
        shop.has.discard(DIGESTS[number])
    elif what == "kill":
        shop.now += 10
        shop.tick()
        shop.one_pass(dies_at=number)
    else:
        shop.go_on(number, 35)


def condition(status: t.Mapping[str, t.Any], kind: str) -> tuple[str, str]:
    return next((x["status"], x["reason"]) for x in status["conditions"] if x["type"] == kind)


@settings(max_examples=60)
@given(st.sampled_from(("Always", "IfNotPresent")), st.booleans(), st.lists(HAPPENS, max_size=7))
def test_the_workload_ends_on_something_that_runs_and_what_is_told_is_the_case(policy, by_hand, happens):
    shop = Shop(policy, by_hand and policy != "Always")
    for what in happens:
        happen(shop, *what)
    done = shop.go_on(2400, 100)
    # what runs may have moved out of reach of what is remembered, never what was left last
    reach = [digest for digest in shop.ran if shop.can_be_had(digest)]
    assert shop.is_well or not reach, (shop.spec, shop.kinds, shop.has)

    status = shop.cluster.read("Update", "update-sample")["status"]
    (entry,) = status["images"]
    table = "\n".join(report.result(done, with_diff=False)["table"])
    assert f"{entry['verdict']}  " in table
    assert entry["reason"] in table
    if shop.is_well and entry["verdict"] == "current":
        assert (entry["reason"], condition(status, "UpToDate")[0]) == ("digest_equal", "True")
    if not shop.is_well:
        assert condition(status, "UpToDate")[0] != "True"
        assert condition(status, "RolloutBlocked")[0] == "True"
        assert "no rollout" not in table
        assert entry["reason"] != "digest_equal"
    # nothing goes on any more, and a pass writes nothing
    shop.cluster.writes.clear()
    shop.one_pass()
    assert [line for line in shop.cluster.writes if "Event" in line or "Deployment" in line] == []

    taken_back = [x for x in status["history"] if x["outcome"] == "rolledBack"]
    assert all("Pod pod-a: " in x["message"] for x in taken_back)
    if shop.spec != IMAGE and entry["reason"] == "quarantined":
        assert status["quarantine"][0]["digest"] == shop.names

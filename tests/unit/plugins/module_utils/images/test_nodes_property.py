# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is pushed, whatever the nodes are: nothing rolls that cannot run on all of them, nor what they have.

What nodes get is said here once more, in the plainest words and for few platforms.
"""

from __future__ import annotations

import dataclasses
import typing as t

from hypothesis import event, example, given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy, decide
from ansible_collections.kubesteward.core.plugins.module_utils.registry import (
    batch,
    comparison,
    facts,
    lookup,
    protocol,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Query
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import pushes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import IMAGE
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.pushes import Pushed
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import sha256

#: node -> what it takes, best first
TAKES = {
    "linux/amd64": ("linux/amd64", "linux/386"),
    "linux/arm64": ("linux/arm64", "linux/arm/v7", "linux/arm/v6"),
    "linux/arm": ("linux/arm/v7", "linux/arm/v6"),
}
PLATFORMS = sorted({name for names in TAKES.values() for name in names})
HELM = "application/vnd.cncf.helm.config.v1+json"


@dataclasses.dataclass(frozen=True)
class Thing:
    """What was pushed, beside what it is: `kind` is `image`, `odd` (no image) or `index`."""

    kind: str
    pushed: Pushed
    platform: str = ""
    children: tuple[Child, ...] = ()


@dataclasses.dataclass(frozen=True)
class Child:
    """A part of an index: `named` where it says its platform, `artifact` where it says that it is none."""

    thing: Thing
    named: bool
    artifact: bool


def image(platform: str, note: str) -> Thing:
    return Thing("image", pushes.image(platform, note), platform)


def chart(note: str) -> Thing:
    return Thing("odd", pushes.pushed(pushes.encoded({"name": note}), HELM, ["application/vnd.cncf.helm.chart"]))


def index(children: t.Sequence[Child]) -> Thing:
    listed = []
    for child in children:
        more: dict[str, t.Any] = {"platform": pushes.platform_of(child.thing.platform)} if child.named else {}
        more = {"platform": None, **more, **({"artifactType": HELM} if child.artifact else {})}
        listed.append((child.thing.pushed, more))
    return Thing("index", pushes.index(*listed), children=tuple(children))


NOTES = st.sampled_from(["1", "2"])
IMAGES = st.builds(image, st.sampled_from(PLATFORMS), NOTES)
CHARTS = st.builds(chart, NOTES)
CHILDREN = st.builds(
    lambda thing, named, artifact: Child(thing, named and thing.kind == "image", artifact),
    st.one_of(IMAGES, IMAGES, IMAGES, CHARTS),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([False, False, False, True]),
)
THINGS = st.one_of(IMAGES, CHARTS, *[st.builds(index, st.lists(CHILDREN, max_size=4))] * 3)


def taken(thing: Thing, node: str) -> tuple[str | None, bool]:
    """The digest that a node gets, and whether that runs there."""
    if thing.kind != "index":
        return thing.pushed.digest, thing.kind == "image" and thing.platform in TAKES[node]
    if any(child.named for child in thing.children):
        offered = [x.thing for x in thing.children if x.named and not x.artifact]
    else:
        offered = [x.thing for x in thing.children[:1] if x.thing.kind == "image" and not x.artifact]
    for name in TAKES[node]:
        for one in offered:
            if one.platform == name:
                return one.pushed.digest, True
    return None, False


def published(now: Thing, before: Thing) -> dict[str, t.Any]:
    """What registry_digest returns, without a network."""
    bodies = {}
    for item in (now.pushed, before.pushed):
        bodies.update({sha256(x): x for x in (item.body, *item.manifests, *item.blobs)})

    def run(steps: t.Any) -> t.Any:
        try:
            request = next(steps)
            while True:
                request = steps.send(protocol.Response(200, {}, bodies[request.path.rpartition("/")[2]]))
        except StopIteration as stop:
            return stop.value

    digest, store = now.pushed.digest, facts.NoStore()
    read = run(facts.gather("shop/web", protocol.Head(digest, ""), False, (), store))
    read = facts.with_platforms(read, digest, "shop/web", run, store)
    compared = comparison.compare([before.pushed.digest], (), "shop/web", run, lambda _digest: False, store)
    entry = lookup.read_entry({"image": IMAGE, "compare": [before.pushed.digest]}, None, None)
    job = batch.Job(Query(t.cast("t.Any", entry.reference), ()), Wanted(children=True))
    job.found = Found(digest, read.media_type, read, True, None, compared)
    return lookup.describe(entry, job, lookup.Settings(children=True))


P, Q, Q2 = image("linux/amd64", "1"), image("linux/arm64", "1"), image("linux/arm64", "2")


@given(
    now=THINGS,
    before=THINGS,
    nodes=st.lists(st.sampled_from(sorted(TAKES)), min_size=1, max_size=2, unique=True),
    pull_policy=st.sampled_from(["IfNotPresent", "IfNotPresent", "Always", "Never"]),
    ready=st.booleans(),
)
@example(Q, P, ["linux/amd64"], "Always", True)
@example(
    index([Child(P, True, False), Child(Q2, True, False)]),
    index([Child(P, True, False), Child(Q, True, False)]),
    ["linux/amd64"],
    "Always",
    True,
)
@example(P, index([Child(P, True, True)]), ["linux/amd64"], "Always", False)
@example(index([Child(P, True, True), Child(P, True, False)]), Q, ["linux/amd64"], "Always", False)
def test_only_what_all_nodes_can_run_and_not_all_have_is_rolled(now, before, nodes, pull_policy, ready):
    (container,) = pushes.deployed(before.pushed.digest, 1, ready, pull_policy)
    verdict = decide({**container, "platforms": nodes}, published(now, before), Policy())
    gets = [(taken(now, node), taken(before, node)) for node in nodes]
    is_same = now.pushed.digest == before.pushed.digest or all(
        new[0] is not None and new[0] == old[0] for new, old in gets
    )
    is_child = any(before.pushed.digest == child.thing.pushed.digest for child in now.children)
    runs = all(new[1] for new, _old in gets)
    # what is ready on a node shows that it can run more of its kind
    emulated = ready and now.kind == before.kind != "index" and now.platform == before.platform
    rolls = pull_policy != "Never" and (runs or emulated) and not is_same and not is_child
    event(f"rolls: {rolls}, same: {is_same}")
    assert verdict.rolls == rolls, verdict
    assert (verdict.verdict == "stale") == (not is_same and not is_child) or not runs, verdict
    if verdict.verdict == "stale" and not rolls:
        assert verdict.reason == "not_pullable"

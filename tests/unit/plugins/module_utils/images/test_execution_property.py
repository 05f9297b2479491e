# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For any workloads and digests: what was planned is written once, and a second pass plans nothing."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.images import running
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    annotation,
    container,
    followed,
    pod_of,
    published,
    sha,
    state,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    one_pass,
)

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")
NAMES = [f"registry.example/shop/{name}" for name in ("web", "api")]
DIGESTS = [sha(f"digest {number}") for number in range(4)]
digests = st.sampled_from(DIGESTS)
tags = st.builds("{}:{}".format, st.sampled_from(NAMES), st.sampled_from(("1", "2")))
images = st.one_of(
    tags,
    st.builds("{}@{}".format, tags, digests),
    st.builds("{}@{}".format, st.sampled_from(NAMES), digests),
    st.just("Not Valid"),
)
image_ids = st.one_of(
    st.builds("{}@{}".format, st.sampled_from(NAMES), digests),
    st.builds("docker-pullable://{}@{}".format, st.sampled_from(NAMES), digests),
    digests,
    st.sampled_from(("", "odd!")),
)
waits = st.sampled_from(("", "", "", "ImagePullBackOff", "CrashLoopBackOff", "ContainerCreating"))


@st.composite
def workloads(draw):
    """Workloads of any kind with their Pods."""
    objects = []
    for number in range(draw(st.integers(1, 4))):
        names = ["app", "b"][: draw(st.integers(1, 2))]
        containers = [container(name, draw(images)) for name in names]
        owner = workload(draw(st.sampled_from(KINDS)), f"w{number}", containers)
        if draw(st.booleans()):
            digest = draw(digests)
            containers[0]["image"] = f"{NAMES[0]}@{digest}"
            owner["metadata"]["annotations"] = annotation(app=followed(digest, draw(tags)))
        objects.append(owner)
        for _pod in range(draw(st.integers(0, 3))):
            statuses = [state(draw(image_ids), name, draw(waits), ready=draw(st.booleans())) for name in names]
            one, between = pod_of(owner, statuses, deleted=draw(st.booleans()))
            objects += [one, *between]
    return objects


@st.composite
def registries(draw):
    """What each tag names: an index, a manifest, or nothing."""
    found = {}
    for reference in draw(st.sets(st.sampled_from([f"{name}:{tag}" for name in NAMES for tag in "12"]))):
        children = draw(st.one_of(st.none(), st.lists(digests, max_size=2)))
        found[reference] = published(draw(digests), children=children, pullable=draw(st.booleans()))
    return found


def specs(cluster):
    """Specs of the workloads without their images, and their images."""
    found, written = {}, {}
    for (kind, _namespace, name), item in cluster.objects.items():
        if kind in KINDS:
            item = copy.deepcopy(item)
            for entry in running.pod_template(item)["spec"]["containers"]:
                written[kind, name, entry["name"]] = entry.pop("image")
            found[kind, name] = item["spec"]
    return found, written


@given(workloads(), registries(), st.booleans())
def test_a_second_pass_plans_and_writes_nothing(objects, registry, suspend):
    targets = [{"kind": item["kind"], "name": item["metadata"]["name"]} for item in objects if item["kind"] in KINDS]
    cluster = FakeCluster(update(targets=targets, suspend=suspend), *objects)
    specs_before, images_before = specs(cluster)
    predicted = one_pass(cluster, registry, "update-sample", check_mode=True)
    assert cluster.writes == []
    done = one_pass(cluster, registry, "update-sample")
    assert (predicted.rolled, predicted.status) == (done.rolled, done.status)
    assert done.errors == []
    assert not (suspend and done.rolled)

    specs_after, images_after = specs(cluster)
    assert specs_after == specs_before
    changed = {key for key in images_after if images_after[key] != images_before[key]}
    assert changed == {(x["workload"]["kind"], x["workload"]["name"], x["container"]) for x in done.rolled}
    patches = [line for line in cluster.writes if line.startswith("patch")]
    assert len(patches) == len(set(patches)) == len({(x["owner"]["kind"], x["owner"]["name"]) for x in done.rolled})
    for roll in done.rolled:
        # always the top-level digest of what the followed tag names, in that tag's repository
        name, _at, digest = roll["to"].partition("@")
        assert any(key.startswith(name) and entry["digest"] == digest for key, entry in registry.items())

    for found, decision in done.judged:
        if decision.rolls and found["running"]:
            # never on the word of a local image ID alone, but on that of a digest in the spec that is not run yet
            written = found["follow"]["digest"] if found["follow"] else decision.candidate
            assert written != decision.candidate or any(
                item["id_kind"] == "manifest" and item["digest"] != decision.candidate for item in found["running"]
            )

    second = one_pass(cluster, registry, "update-sample", now="2026-03-01T10:05:00Z")
    assert second.rolled == []
    cluster.writes.clear()
    third = one_pass(cluster, registry, "update-sample", now="2026-03-01T10:10:00Z")
    assert (third.rolled, cluster.writes) == ([], [])

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any namespace at all, for property tests: workloads with their Pods, what is remembered of them, and registries."""

from __future__ import annotations

import copy

from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.images import running
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    NOW,
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
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")
NAMES = [f"registry.example/shop/{name}" for name in ("web", "api")]
DIGESTS = [sha(f"digest {number}") for number in range(4)]
#: long before the pass, and the moment of it: nothing becomes overdue in the minutes after it
TIMES = ("2026-01-01T00:00:00Z", NOW)
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
managers = st.sampled_from(("", "kubectl", "kubectl-edit", "argocd-controller"))


@st.composite
def memories(draw, name):
    """What an earlier pass, of this Update or another one, wrote down of a container of the repository `name`."""
    digest, at = draw(digests), "2025-12-31T00:00:00Z"
    memory = followed(digest, draw(tags.filter(lambda tag: tag.startswith(name))), at=at)
    memory["by"] = draw(st.sampled_from(("update-sample", "another", "")))
    memory["left"] = [item for item in draw(st.lists(digests, max_size=3, unique=True)) if item != digest]
    if draw(st.booleans()):
        backs = [f"{name}@{item}" for item in DIGESTS if item != digest] + [
            memory["reference"],
            "elsewhere.example/x:1",
            "",
        ]
        memory.update(trial=True, back=draw(st.sampled_from(backs)))
    elif draw(st.booleans()):
        bad = draw(digests.filter(lambda item: item != digest))
        memory["quarantine"] = {"digest": bad, "reason": "Pod w-1: CrashLoopBackOff for 600 s", "at": at}
    if draw(st.booleans()):
        memory["answered"] = draw(st.integers(0, 2))
    return memory


@st.composite
def remembered(draw, owner, entry):
    """A workload that was rolled before, and what somebody did with it since."""
    name = draw(st.sampled_from(NAMES))
    memory = draw(memories(name))
    ours, put_back = f"{name}@{memory['digest']}", [memory["reference"], *(f"{name}@{item}" for item in memory["left"])]
    entry["image"] = draw(st.sampled_from([ours, ours, *put_back]))
    owner["metadata"]["annotations"] = annotation(app=memory)
    if draw(st.booleans()):
        owner["metadata"]["annotations"]["kubesteward.io/retry"] = draw(digests)
    manager = draw(managers)
    if manager:
        image = {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}}
        fields = {"manager": manager, "operation": "Update", "time": TIMES[0], "fieldsV1": {"f:spec": image}}
        owner["metadata"]["managedFields"] = [fields]


@st.composite
def pods_of(draw, owner, names):
    """Pods of a workload and their revisions; of an ordered StatefulSet also broken ones that are in its way."""
    statuses = []
    for name in names:
        entry = state(draw(image_ids), name, draw(waits), ready=draw(st.booleans()))
        if "running" in entry["state"]:
            entry["state"]["running"]["startedAt"] = draw(st.sampled_from(TIMES))
        statuses.append({**entry, "restartCount": draw(st.integers(0, 2))})
    one, between = pod_of(owner, statuses, deleted=draw(st.booleans()))
    one["metadata"]["creationTimestamp"] = draw(st.sampled_from(TIMES))
    one["spec"]["containers"] = copy.deepcopy(running.pod_template(owner)["spec"]["containers"])
    if owner["kind"] == "StatefulSet" and draw(st.booleans()):
        one["metadata"]["labels"]["controller-revision-hash"] = "before"
        # what it runs is of an earlier roll than the one that is on trial
        earlier = digests.filter(lambda item: item not in str(running.pod_template(owner)))
        one["spec"]["containers"] = [container(name, f"{NAMES[0]}@{draw(earlier)}") for name in names]
    return [one, *between]


@st.composite
def workloads(draw):
    """Workloads of any kind with their Pods."""
    objects = []
    for number in range(draw(st.integers(1, 4))):
        names = ["app", "b"][: draw(st.integers(1, 2))]
        containers = [container(name, draw(images)) for name in names]
        owner = workload(draw(st.sampled_from(KINDS)), f"w{number}", containers)
        if draw(st.booleans()):
            draw(remembered(owner, containers[0]))
        if draw(st.booleans()):
            owner["status"].update(dict.fromkeys(("availableReplicas", "numberAvailable") & owner["status"].keys(), 0))
        objects.append(owner)
        for _pod in range(draw(st.integers(0, 3))):
            objects += draw(pods_of(owner, names))
    return objects


@st.composite
def registries(draw):
    """What each tag names: an index, a manifest, or nothing."""
    found = {}
    for reference in draw(st.sets(st.sampled_from([f"{name}:{tag}" for name in NAMES for tag in "12"]))):
        children = draw(st.one_of(st.none(), st.lists(digests, max_size=2)))
        found[reference] = published(draw(digests), children=children, pullable=draw(st.booleans()))
    return found


def cluster_with(objects, has_rival=False, **spec):
    """A cluster with these objects, the Update `update-sample` that looks at all of them, and perhaps an older one."""
    targets = [{"kind": item["kind"], "name": item["metadata"]["name"]} for item in objects if item["kind"] in KINDS]
    rival = [update("another", targets=targets[:1])] if has_rival else []
    return FakeCluster(update(targets=targets, **spec), *rival, *objects)

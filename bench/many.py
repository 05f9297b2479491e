# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Group `images`: a namespace with 200 Deployments of distinct images, against one of the same shape with one.

The controllers make real ReplicaSets and Pods. A scheduling gate keeps the Pods from every node, so no kubelet touches
their status, and what a kubelet would report is written through the API instead.
"""

from __future__ import annotations

import contextlib
import typing as t

from bench import cluster
from bench.passes import update_play
from bench.play import Play
from testbed import Testbed, images
from testbed.console import step

NAMES = ("update_1_image", "update_200_images")
MANY = 200
LABELS = {"bench": "images"}
BEGAN = "2026-01-01T00:00:00Z"
Object = dict[str, t.Any]
Make = t.Callable[[str, str], Object]
Run = t.Callable[[t.Mapping[str, t.Any], t.Mapping[str, str]], Object]


@contextlib.contextmanager
def prepared(bed: Testbed) -> t.Iterator[dict[str, Play]]:
    """The plays of the group, by name, each over a namespace where nothing is left to do."""
    with contextlib.ExitStack() as stack:
        with step(f"{MANY} images in the registry"):
            pushed = push(bed, MANY)
        plays = {}
        for name, count in (("update_1_image", 1), ("update_200_images", MANY)):
            where = stack.enter_context(cluster.namespace(bed, f"images-{count}"))
            with step(f"{count} Deployment(s), each with a Pod of its own image"):
                fill(bed, where, pushed[:count])
            plays[name] = update_play(name, where, bed, current=count)
        yield plays


def push(bed: Testbed, count: int) -> list[tuple[str, str]]:
    """`(image, digest)` of that many images, the same in every run, so that a registry does not grow by benches."""
    names = [f"kubesteward-bench/image-{number}:1" for number in range(count)]
    layouts = [images.tiny_image(f"bench {number}") for number in range(count)]
    digests = images.push_many(zip(layouts, names, strict=True), bed.registry)
    return [(bed.image_name(name), digest) for name, digest in zip(names, digests, strict=True)]


def fill(
    bed: Testbed,
    where: str,
    pushed: t.Sequence[tuple[str, str]],
    make: Make | None = None,
    run: Run | None = None,
    updates: t.Sequence[Object] = (),
) -> None:
    """Updates, a Deployment `web-0`, `web-1`, ... per image, and Pods that look as if they ran.

    :param make: `deployment`, or another way to write one
    :param run: `running_status`, or another status of a Pod that runs
    :param updates: one that selects all of them where there is none
    """
    make, run = make or deployment, run or running_status
    deployments = [make(f"web-{number}", image) for number, (image, _digest) in enumerate(pushed)]
    objects = [*(updates or [update("update-sample", {"selector": {"matchLabels": LABELS}})]), *deployments]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    cluster.kubectl(bed, "create", "--namespace", where, "--filename=-", stdin=listed)
    cluster.wait_for(
        f"{len(pushed)} Pods in namespace {where}", lambda: len(cluster.items(bed, "pods", where)) == len(pushed)
    )
    digests = dict(pushed)
    pods = cluster.items(bed, "pods", where)
    cluster.write_statuses(bed, where, {pod["metadata"]["name"]: run(pod, digests) for pod in pods})
    cluster.wait_for(
        f"{len(pushed)} available Deployments in namespace {where}",
        lambda: all(
            (item["status"].get("availableReplicas") == 1) for item in cluster.items(bed, "deployments", where)
        ),
    )


def update(name: str, target: t.Mapping[str, t.Any]) -> Object:
    """An Update of the Deployments that `target` tells by `name` or by `selector`."""
    return {
        "apiVersion": "install.sios.nginx.testing/v1",
        "kind": "Update",
        "metadata": {"name": name},
        "spec": {"targets": [{"kind": "Deployment", **target}]},
    }


def deployment(name: str, image: str) -> Object:
    """A Deployment of one container whose Pod is never scheduled."""
    labels = {"app": name}
    gates = [{"name": "kubesteward.io/bench"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": LABELS},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"schedulingGates": gates, "containers": [{"name": "web", "image": image}]},
            },
        },
    }


def running_status(pod: t.Mapping[str, t.Any], digests: t.Mapping[str, str]) -> Object:
    """The status that a kubelet with containerd reports for a Pod of one container that runs and is ready.

    :param digests: image as in the Pod's spec -> digest
    """
    container = pod["spec"]["containers"][0]
    image = container["image"]
    repository = image.rpartition(":")[0]
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": BEGAN}],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": image,
                "imageID": f"{repository}@{digests[image]}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": BEGAN}},
            }
        ],
    }

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A namespace of Deployments with an Update, and passes over it."""

from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.module_utils.images import running
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    REPOSITORY,
    pod_of,
    published,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    one_pass,
)

TARGETS = [{"kind": "Deployment", "name": name} for name in ("a", "b", "c")]
PUSHED = {IMAGE: published(I2, children=())}
SAME = {IMAGE: published(I1, children=())}


def at(digest):
    return f"{REPOSITORY}@{digest}"


def cluster_of(*names, **spec):
    """Deployments that run the first digest, and an Update that looks at all of them."""
    objects = [update(targets=TARGETS[: len(names)], **spec)]
    for name in names:
        owner = workload(name=name)
        one, between = pod_of(owner, at(I1), name=f"pod-{name}")
        objects += [owner, one, *between]
    return FakeCluster(*objects)


def image(cluster, name, kind="Deployment"):
    return running.pod_template(cluster.read(kind, name))["spec"]["containers"][0]["image"]


def settle(cluster, *names):
    """What the controllers and the kubelet do: the rollout ends, the Pods run the digest that the spec names."""
    for name in names:
        _name, at_sign, digest = image(cluster, name).rpartition("@")

        def run(pod, digest=digest):
            pod["status"]["containerStatuses"][0]["imageID"] = at(digest)

        def seen(deployment):
            deployment["status"]["observedGeneration"] = deployment["metadata"]["generation"]

        cluster.edit("Deployment", name, seen)
        if at_sign:
            cluster.edit("Pod", f"pod-{name}", run)


def status(cluster):
    return cluster.read("Update", "update-sample")["status"]


def flags(cluster):
    return status(cluster)["check_id"], status(cluster)["update"]


def run(cluster, registry, **more):
    return one_pass(cluster, registry, "update-sample", **more)

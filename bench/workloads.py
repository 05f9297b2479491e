# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""500 workloads in one namespace: Deployments as people write them, each with a Pod of an image of its own.

Made as in `many`: real objects of the cluster's controllers, with a status that no kubelet wrote. A Node of our own
would do no better: it is not read for these, and everything else in the cluster would see a node that does not work.
"""

from __future__ import annotations

import contextlib
import copy
import typing as t
from dataclasses import dataclass, field

from bench import cluster, many
from bench.memory import Peak
from bench.passes import update_play
from bench.play import Play
from testbed import Testbed
from testbed.console import step

MANY = 500
NAME = "update_500_workloads"
RSS = f"{NAME}_rss_mb"
NAMES = (NAME, RSS)
KIB_PER_MB = 1000 * 1000 / 1024
#: what a kubelet reports of a Pod that runs, beside `Ready`
CONDITIONS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "PodScheduled")


@dataclass
class Watched:
    """A play whose memory is watched while it is timed.

    :ivar peak: of the last run
    """

    play: Play
    peak: Peak = field(default_factory=Peak)

    def run(self, unchanged: bool = True) -> float:
        """Seconds."""
        return self.play.run(unchanged, self.peak.watching)


@dataclass(frozen=True)
class Memory:
    """What the last run of `watched` needed."""

    watched: Watched

    def run(self, unchanged: bool = True) -> float:
        """MB, millions of bytes."""
        return self.watched.peak.kib / KIB_PER_MB


@contextlib.contextmanager
def prepared(bed: Testbed) -> t.Iterator[dict[str, Watched | Memory]]:
    """The pass over the namespace, where nothing is left to do, and what it needs."""
    with step(f"{MANY} images in the registry"):
        pushed = many.push(bed, MANY)
    with cluster.namespace(bed, f"workloads-{MANY}") as where:
        with step(f"{MANY} Deployments, each with a Pod of its own image"):
            many.fill(bed, where, pushed, deployment, running_status)
        watched = Watched(update_play(NAME, where, bed, current=MANY))
        yield {NAME: watched, RSS: Memory(watched)}


def deployment(name: str, image: str) -> many.Object:
    """`many.deployment` with what people set beside the image, so that objects are as long as theirs."""
    made = many.deployment(name, image)
    template = made["spec"]["template"]
    labels = {f"app.kubernetes.io/{key}": value for key, value in (("name", name), ("part-of", "shop"))}
    made["metadata"]["labels"] = {**made["metadata"]["labels"], **labels}
    template["metadata"]["labels"] = {**template["metadata"]["labels"], **labels}
    template["metadata"]["annotations"] = {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}
    (container,) = template["spec"]["containers"]
    container |= {
        "env": [{"name": f"SETTING_{number}", "value": f"value of setting {number}"} for number in range(5)],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "periodSeconds": 10},
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
    }
    template["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    return made


def running_status(pod: t.Mapping[str, t.Any], digests: t.Mapping[str, str]) -> many.Object:
    """`many.running_status` with the rest of what a kubelet writes."""
    status = copy.deepcopy(many.running_status(pod, digests))
    since = {"status": "True", "lastTransitionTime": many.BEGAN}
    status["conditions"] += [{"type": kind, **since} for kind in CONDITIONS]
    (container,) = status["containerStatuses"]
    container["containerID"] = f"containerd://{container['imageID'].rpartition(':')[2]}"
    return {**status, "startTime": many.BEGAN, "hostIP": "192.0.2.1", "podIP": "192.0.2.2", "qosClass": "Burstable"}

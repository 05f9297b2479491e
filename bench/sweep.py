# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many Updates in one pass: 30 of a namespace, and 1,000 in 50 namespaces with 2,000 containers of 300 images.

Made as in `many`: real objects of the cluster's controllers, with a status that no kubelet wrote.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import tempfile
import typing as t
from dataclasses import dataclass

from monitoring.fake_operator import FakeOperator

from bench import cluster, many
from bench.passes import UNCHANGED
from bench.play import Expected, Play, environment
from bench.workloads import Memory, Watched
from testbed import Testbed
from testbed.console import step

FEW, MANY = "update_30_updates", "update_1000_updates"
PEAK, REQUESTS = f"{MANY}_peak_mb", f"{MANY}_requests"
NAMES = (FEW, MANY, PEAK, REQUESTS)
NAMESPACES, EACH, IMAGES = 50, 20, 300
FEW_UPDATES = 30
COUNTER = "kubesteward_registry_requests_total"
Pushed = t.Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Requests:
    """What a run asks registries, as it counts it itself for the operator."""

    play: Play

    def run(self, unchanged: bool = True) -> float:
        """Number of requests."""
        with contextlib.closing(FakeOperator()) as server, tempfile.TemporaryDirectory(prefix="kubesteward-") as folder:
            more = {"KUBESTEWARD_METRICS_URL": server.url, "ANSIBLE_LOCAL_TEMP": folder}
            dataclasses.replace(self.play, environment={**self.play.environment, **more}).run(unchanged)
            return sum(post["counter"]["add"] for post in server.posts if post["name"] == COUNTER)


@contextlib.contextmanager
def prepared(bed: Testbed) -> t.Iterator[dict[str, Watched | Memory | Requests]]:
    """The passes, where nothing is left to do, and what the large one needs."""
    with step(f"{IMAGES} images in the registry"):
        pushed = many.push(bed, IMAGES)
    with contextlib.ExitStack() as stack:
        few = stack.enter_context(cluster.namespace(bed, "sweep-few"))
        with step(f"{FEW_UPDATES} Updates of a namespace, each with a Deployment"):
            many.fill(bed, few, pushed[:FEW_UPDATES], updates=updates(FEW_UPDATES))
        names = [stack.enter_context(cluster.namespace(bed, f"sweep-{number}")) for number in range(NAMESPACES)]
        with step(f"{NAMESPACES * EACH} Updates in {NAMESPACES} namespaces, each with a Deployment of two containers"):
            for number, name in enumerate(names):
                fill(bed, name, number, pushed)
        count = 2 * NAMESPACES * EACH
        watched = Watched(play(MANY, bed, names, Expected(UNCHANGED, texts=(f"{count} containers are current",))))
        alone = Watched(play(FEW, bed, [few], Expected(UNCHANGED, current=FEW_UPDATES)))
        yield {FEW: alone, MANY: watched, PEAK: Memory(watched), REQUESTS: Requests(watched.play)}


def updates(count: int) -> list[many.Object]:
    """An Update for each of the Deployments `web-0`, `web-1`, ..."""
    return [many.update(f"web-{number}", {"name": f"web-{number}"}) for number in range(count)]


def play(name: str, bed: Testbed, namespaces: t.Sequence[str], expected: Expected) -> Play:
    """Our playbook over all Updates of these namespaces."""
    given: many.Object = {"update_namespaces": list(namespaces)}
    if bed.registries():
        given["update_registries"] = bed.registries()
    return Play(name, ("kubesteward.core.update", "-e", json.dumps(given)), expected, environment(bed))


def fill(bed: Testbed, where: str, number: int, pushed: Pushed) -> None:
    """The Updates and Deployments of one namespace; the images are taken in turn."""
    digests = dict(pushed)

    def second(image: str) -> str:
        place = [name for name, _digest in pushed].index(image)
        return pushed[(place + 1) % len(pushed)][0]

    def deployment(name: str, image: str) -> many.Object:
        made = many.deployment(name, image)
        containers = made["spec"]["template"]["spec"]["containers"]
        containers.append({**containers[0], "name": "side", "image": second(image)})
        return made

    def status(pod: t.Mapping[str, t.Any], _digests: t.Mapping[str, str]) -> many.Object:
        found: many.Object = {}
        for container in pod["spec"]["containers"]:
            one = copy.deepcopy(many.running_status({"spec": {"containers": [container]}}, digests))
            found = {**one, "containerStatuses": [*found.get("containerStatuses", []), *one["containerStatuses"]]}
        return found

    mine = [pushed[(number * EACH + place) % len(pushed)] for place in range(EACH)]
    many.fill(bed, where, mine, deployment, status, updates(EACH))

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Group `operator`: passes as ansible-operator makes them, and what they need of a container's memory, /tmp and CPU.

The program itself is not among it: it is another one's, and need not be on this machine.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import resource
import tempfile
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from bench import cgroup, cluster, many, ns, passes, workloads
from bench.play import ROOT
from bench.reconcile import Reconciler, variables
from testbed import Testbed, images
from testbed.console import step

#: MB of ansible-operator itself, see README.md
PROGRAM_MB = 100
UPDATES = 100
NSPROS = 20
#: sets how many Updates are reconciled at once
WORKERS = "MAX_CONCURRENT_RECONCILES_UPDATE_INSTALL_SIOS_NGINX_TESTING"
#: measure -> what else its runs tell
TOLD = {
    "operator_pass": ("peak_mb", "cpu_s", "tmp_mb"),
    "operator_pass_500": ("peak_mb", "cpu_s", "tmp_mb"),
    "operator_start": ("peak_mb", "cpu_s", "tmp_mb"),
    "operator_nspro": ("peak_mb", "cpu_s", "tmp_mb"),
    "operator_100_updates": ("peak_mb", "cpu_s", "tmp_mb", "per_minute"),
}
NAMES = tuple(name for measure, also in TOLD.items() for name in (measure, *(f"{measure}_{what}" for what in also)))
Object = dict[str, t.Any]


@dataclass
class Reconciled:
    """Passes of some resources, as many at once as there are workers.

    :ivar told: what the last run needed: `peak_mb` of all processes together, `cpu_s` per pass, `tmp_mb` of what is
        left in /tmp, `per_minute` passes
    """

    reconciler: Reconciler
    group: cgroup.Group
    resources: t.Sequence[Object]
    workers: int = 1
    told: dict[str, float] = field(default_factory=dict)

    def run(self, unchanged: bool = True) -> float:
        """Seconds until the last pass has ended.

        :raises BenchError: a pass failed, or changed something where nothing was to be changed
        """
        used, began = _cpu(), time.perf_counter()
        with self.group.watching(), concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            for _none in pool.map(lambda one: self.reconciler.run(one, unchanged), self.resources):
                pass
        seconds, count = time.perf_counter() - began, len(self.resources)
        left = sum(_size(self.reconciler.folder(one)) for one in self.resources)
        self.told = {
            "peak_mb": self.group.peak / cgroup.MB,
            "cpu_s": (_cpu() - used) / count,
            "tmp_mb": left / cgroup.MB,
            "per_minute": 60 * count / seconds,
        }
        return seconds


@dataclass(frozen=True)
class Told:
    """What the last run of `reconciled` told of one matter."""

    reconciled: Reconciled
    what: str

    def run(self, unchanged: bool = True) -> float:
        """In the unit of the matter."""
        return self.reconciled.told[self.what]


def _cpu() -> float:
    """CPU seconds of all children that have ended, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _size(folder: Path) -> int:
    """Bytes that a folder takes on its disk, as the kubelet counts an emptyDir."""
    return sum(path.lstat().st_blocks * 512 for path in (folder, *folder.rglob("*")))


@contextlib.contextmanager
def prepared(bed: Testbed) -> t.Iterator[dict[str, Reconciled | Told]]:
    """What is run, by name."""
    with contextlib.ExitStack() as stack:
        found = _resources(bed, stack)
        group = stack.enter_context(cgroup.made())
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubesteward-bench-")))
        container, settings = manager(), {"update_registries": bed.registries()}
        reconciler = Reconciler(top, bed, watches(), settings, group.command, container)
        stack.enter_context(reconciler.events.received())
        plays: dict[str, Reconciled | Told] = {}
        for name, some in found.items():
            plays[name] = one = Reconciled(reconciler, group, some, int(variables(container)[WORKERS]))
            plays |= {f"{name}_{what}": Told(one, what) for what in TOLD[name]}
        yield plays


def manager() -> Object:
    """The container of the manager's Deployment."""
    text = (ROOT / "config/manager/manager.yaml").read_text()
    (deployment,) = [item for item in yaml.safe_load_all(text) if item and item["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return container


def watches() -> dict[str, Object]:
    """By kind, with what the operator fills in."""
    text = (ROOT / "watches.yaml").read_text().replace("${POD_NAMESPACE}", "kubesteward-system")
    return {watch["kind"]: watch for watch in yaml.safe_load(text)}


def _resources(bed: Testbed, stack: contextlib.ExitStack) -> dict[str, list[Object]]:
    """Resources in the cluster by measure, as the API server has them, each with what it is about."""
    with step(f"{workloads.MANY} images in the registry"):
        pushed = many.push(bed, workloads.MANY)
    where = stack.enter_context(cluster.namespace(bed, "operator"))
    with step(f"{UPDATES} Deployments, each with a Pod of its own image and an Update"):
        updates = [many.update(f"update-{number}", {"name": f"web-{number}"}) for number in range(UPDATES)]
        many.fill(bed, where, pushed[:UPDATES], workloads.deployment, workloads.running_status, updates)
    crowd = stack.enter_context(cluster.namespace(bed, "operator-500"))
    with step(f"{workloads.MANY} Deployments of one Update"):
        many.fill(bed, crowd, pushed, workloads.deployment, workloads.running_status)
    with step(f"a Start, and {NSPROS} Nspros"):
        image = bed.image_name("kubesteward-bench/web:1")
        images.push(images.web_image("bench"), "kubesteward-bench/web:1", bed.registry)
        made = ns.names(NSPROS)
        stack.callback(ns.delete, bed, made)
        listed = {"apiVersion": "v1", "kind": "List", "items": [_start(image), *map(_nspro, made)]}
        cluster.kubectl(bed, "create", "--namespace", where, "--filename=-", stdin=listed)
        passes.started(bed, where, "bench-sample")
        # what their quotas count is known to the next pass, which writes it
        passes.once(bed, where, "nspro")
    of = {kind: cluster.items(bed, kind, where) for kind in ("updates", "starts", "nspros")}
    return {
        "operator_pass": of["updates"][:1],
        "operator_pass_500": cluster.items(bed, "updates", crowd),
        "operator_start": of["starts"],
        "operator_nspro": of["nspros"][:1],
        "operator_100_updates": of["updates"],
    }


def _start(image: str) -> Object:
    # a probe that fails on a busy machine would change the status
    spec = {"name": "bench", "image": image, "readiness": "none"}
    return {"apiVersion": "install.sios.nginx.testing/v1", "kind": "Start", "metadata": {"name": "start"}, "spec": spec}


def _nspro(name: str) -> Object:
    api, spec = "nspro.example.com/v1alpha1", {"nssize": "small", "managed": True}
    return {"apiVersion": api, "kind": "Nspro", "metadata": {"name": name}, "spec": spec}

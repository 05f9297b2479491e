# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces by size: with ns_provision in one call, and the same objects with kubernetes.core.k8s in a loop."""

from __future__ import annotations

import collections
import json
import typing as t
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from bench import cluster
from bench.errors import BenchError
from bench.passes import UNCHANGED
from bench.play import Expected, Play, environment
from testbed import Testbed
from testbed.audit import AuditLog, Event
from testbed.console import say

AGENT = "kubesteward"
REQUEST = {"size": "small", "managed": True}
#: what ns_provision makes in a namespace for this request
KINDS = ("ResourceQuota", "LimitRange", "NetworkPolicy")
LABEL = "app.kubernetes.io/managed-by=kubesteward"
#: names in one call of kubectl
AT_ONCE = 200
Object = dict[str, t.Any]


def names(count: int) -> list[str]:
    """That many names that nobody has."""
    prefix = f"bench-ns-{uuid.uuid4().hex[:8]}"
    return [f"{prefix}-{number}" for number in range(count)]


def provision(name: str, bed: Testbed, wanted: t.Sequence[str], folder: Path, changed: int = 0) -> Play:
    """ns_provision over `wanted`, in one call; `name` is that of the measure."""
    given = {"bench_namespaces": [{"name": namespace, **REQUEST} for namespace in wanted]}
    return _play(name, "bench/ns.yml", given, bed, folder, changed)


def loop(name: str, bed: Testbed, objects: t.Sequence[Object], folder: Path, changed: int = 0) -> Play:
    """kubernetes.core.k8s over `objects`, one after the other."""
    return _play(name, "bench/ns_k8s_module.yml", {"bench_objects": objects}, bed, folder, changed)


def _play(name: str, playbook: str, given: Object, bed: Testbed, folder: Path, changed: int) -> Play:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(given))
    return Play(name, (playbook, "-e", f"@{path}"), Expected({**UNCHANGED, "changed": changed}), environment(bed))


def objects(bed: Testbed, wanted: t.Collection[str]) -> list[Object]:
    """Manifests of what there is of these namespaces, as people write them, each Namespace before what is in it.

    :raises BenchError: something is missing
    """
    found = json.loads(cluster.kubectl(bed, "get", "namespaces", *wanted, "--output=json"))
    # kubectl makes no list of one
    found = found.get("items", [found])
    kinds = ",".join(kind.lower() for kind in KINDS)
    inside = cluster.kubectl(bed, "get", kinds, "--all-namespaces", f"--selector={LABEL}", "--output=json")
    found += [item for item in json.loads(inside)["items"] if item["metadata"]["namespace"] in wanted]
    if len(found) != len(wanted) * (1 + len(KINDS)):
        raise BenchError(f"{len(wanted)} namespaces have {len(found)} objects instead of {1 + len(KINDS)} each")
    return [manifest(item) for item in sorted(found, key=_place)]


def _place(item: Object) -> tuple[str, int]:
    if item["kind"] == "Namespace":
        return item["metadata"]["name"], 0
    return item["metadata"]["namespace"], 1 + KINDS.index(item["kind"])


def manifest(item: t.Mapping[str, t.Any]) -> Object:
    """An object without what the API server adds."""
    meta = {key: item["metadata"][key] for key in ("name", "namespace", "annotations") if key in item["metadata"]}
    labels = {key: value for key, value in item["metadata"]["labels"].items() if key != "kubernetes.io/metadata.name"}
    found = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": {**meta, "labels": labels}}
    return found if item["kind"] == "Namespace" else {**found, "spec": item["spec"]}


def delete(bed: Testbed, gone: t.Sequence[str]) -> None:
    """Begin to delete namespaces; that takes the cluster minutes, which nobody waits for."""
    for first in range(0, len(gone), AT_ONCE):
        some = gone[first : first + AT_ONCE]
        try:
            cluster.kubectl(bed, "delete", "namespace", *some, "--wait=false", "--ignore-not-found")
        except BenchError as exc:
            # must not hide the error that brought us here
            say(f"Namespaces {some[0]} and following are still there: {exc}")


def most_writes(events: t.Iterable[Event], wanted: t.Collection[str]) -> int:
    """Mutating requests of ours for the one of these namespaces that took most; dry runs aside."""
    counted: collections.Counter[str] = collections.Counter()
    for event in events:
        namespace = event.name if event.resource == "namespaces" else event.namespace
        if event.user_agent.startswith(AGENT) and not event.dry_run and namespace in wanted:
            counted[namespace] += 1
    return max(counted.values(), default=0)


@dataclass
class Log:
    """The audit log, where the cluster has one that can be read."""

    bed: Testbed

    def mark(self) -> int:
        """Where the log ends now."""
        return AuditLog.of(self.bed).mark() if self.bed.audit_log else 0

    def most_writes(self, mark: int, wanted: t.Collection[str]) -> int | None:
        """See above; None where nobody can say."""
        return most_writes(AuditLog.of(self.bed).since(mark), wanted) if self.bed.audit_log else None


class Counted(t.Protocol):
    """Something that knows what its last run has written."""

    writes: int | None


@dataclass(frozen=True)
class Writes:
    """What the last run of `counted` wrote in a namespace."""

    counted: Counted

    def run(self, unchanged: bool = True) -> float:
        """Mutating requests.

        :raises BenchError: there is no audit log
        """
        if self.counted.writes is None:
            raise BenchError("Writes are counted in the testbed's audit log: unset TESTBED_KUBECONFIG to use it.")
        return self.counted.writes


@dataclass
class Watched:
    """A play over namespaces whose writes are counted; see `Counted`."""

    play: Play
    wanted: t.Collection[str]
    log: Log
    writes: int | None = field(default=None, init=False)

    def run(self, unchanged: bool = True) -> float:
        """Seconds."""
        mark = self.log.mark()
        seconds = self.play.run(unchanged)
        self.writes = self.log.most_writes(mark, self.wanted)
        return seconds

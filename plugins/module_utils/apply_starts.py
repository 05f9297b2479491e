# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply Starts: read the namespace once, apply what differs, write each Start's status.

`cluster` is `kube.Cluster` or anything with its methods.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import starts
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.telling import apply_status

Object = dict[str, t.Any]


@dataclasses.dataclass
class Done:
    """What was done, or would be in check mode; `starts` as documented for start_apply."""

    changed: bool = False
    starts: list[Object] = dataclasses.field(default_factory=list)
    diff: list[Object] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Done) -> None:
        """What was done in another namespace."""
        self.changed = self.changed or other.changed
        for field in ("starts", "diff", "warnings", "errors"):
            getattr(self, field).extend(getattr(other, field))


def run(cluster: Cluster, params: t.Mapping[str, t.Any], check_mode: bool, now: str) -> Done:
    """Apply what `params`, the options of start_apply, ask for; one that fails never stops the others."""
    done = Done()
    for namespace, starts_in in _by_namespace(cluster, params).items():
        cluster.begin()
        try:
            found = _in_namespace(cluster, {**params, "namespace": namespace, "starts": starts_in}, check_mode, now)
        except StewardError as exc:
            if params.get("namespaces") is None:
                raise
            found = Done(errors=[f"{namespace}: {exc}"])
        if params.get("namespaces") is not None:
            found.starts = [{"namespace": namespace, **entry} for entry in found.starts]
        done.add(found)
    return done


def _by_namespace(cluster: Cluster, params: t.Mapping[str, t.Any]) -> dict[str, list[Object] | None]:
    """Which Starts of which namespaces, None for all of it."""
    asked: list[Object] | None = params["starts"]
    if not asked:
        return dict.fromkeys(snapshot.namespaces(params, cluster, "Start"), asked)
    names = [entry.get("namespace") or snapshot.named_namespace(params) for entry in asked]
    given = list(zip(names, asked, strict=True))
    return {name: [entry for where, entry in given if where == name] for name in dict.fromkeys(names)}


def _in_namespace(cluster: Cluster, params: t.Mapping[str, t.Any], check_mode: bool, now: str) -> Done:
    namespace, spec = params["namespace"], params["spec"]
    done = Done()
    if spec:
        wanted = [_without_resource(spec)]
        target = snapshot.Target("Deployment", snapshot.deployment_name(wanted[0]))
        seen = snapshot.read_targets(cluster, namespace, [target])
    else:
        seen = snapshot.read_targets(cluster, namespace, [snapshot.Target("Start")])
        if not seen.starts:
            snapshot.require_namespace(cluster, namespace)
        wanted = _select(seen.starts, params, done, check_mode)
    applier = _Applier(cluster, namespace, seen, check_mode, now, done)
    for start in wanted:
        # the Deployment of one that is being deleted goes with it: a new one would keep it from ending
        if not start["metadata"].get("deletionTimestamp"):
            applier.one(start)
    return done


def _without_resource(spec: t.Mapping[str, t.Any]) -> Object:
    found = {key: value for key, value in spec.items() if value is not None and key != "image_pull_secrets"}
    found["imagePullSecrets"] = [{"name": name} for name in spec.get("image_pull_secrets") or ()]
    return {"metadata": {}, "spec": found}


def _select(everyone: t.Sequence[Object], params: t.Mapping[str, t.Any], done: Done, check_mode: bool) -> list[Object]:
    if params["starts"] is None:
        return list(everyone)
    by_name = {item["metadata"]["name"]: item for item in everyone}
    chosen = []
    for entry in params["starts"]:
        start = by_name.get(entry["name"])
        if start:
            # otherwise the Start has it, or has by now what somebody wrote since
            chosen.append(_with_image(start, entry.get("image")) if check_mode else start)
        elif params["must_exist"]:
            done.errors.append(f"There is no Start {entry['name']} in namespace {params['namespace']}")
    return chosen


def _with_image(start: Object, image: str | None) -> Object:
    """The Start as it will be once its image is that: in check mode the patch before was a dry run."""
    if not image or image == start["spec"]["image"]:
        return start
    meta = {**start["metadata"], "generation": start["metadata"]["generation"] + 1}
    return {**start, "metadata": meta, "spec": {**start["spec"], "image": image}}


@dataclasses.dataclass
class _Applier:
    """One run over the Starts of a namespace."""

    cluster: Cluster
    namespace: str
    seen: snapshot.Snapshot
    check_mode: bool
    now: str
    done: Done

    def __post_init__(self) -> None:
        self.live = {item["metadata"]["name"]: item for item in self.seen.workloads}
        self.digests: dict[str, str] = {}
        for container in inventory.containers(self.seen, {}, self.namespace):
            if container["running"]:
                self.digests.setdefault(container["workload"]["name"], container["running"][0]["digest"])

    def one(self, start: Object) -> None:
        """Apply one Start and write its status."""
        name = snapshot.deployment_name(start)
        deployment = self.live.get(name)
        problem = starts.conflict(start, self.seen.starts, deployment)
        if problem:
            state, deployment = "conflict", None
            self.done.warnings.append(f"Start {start['metadata'].get('name', name)}: {problem}")
        else:
            try:
                state, deployment = self._apply(starts.desired(start, self.namespace), deployment)
            except ApiError as exc:
                state, problem = "failed", str(exc)
                self.done.errors.append(problem)
        digest = None if problem else self.digests.get(name)
        told = starts.status(start, deployment, digest, problem, self.now)
        self._tell(start, told)
        entry = {"start": start["metadata"].get("name"), "deployment": name, "state": state, "msg": problem}
        self.done.starts.append({**entry, "digest": digest, "ready": told["readyReplicas"]})

    def _apply(self, wanted: Object, live: Object | None) -> tuple[str, Object | None]:
        planned = self.cluster.apply(wanted, dry_run=True)
        if not starts.differs(live, planned):
            return "unchanged", live
        self._changed(f"Deployment/{wanted['metadata']['name']}", live["spec"] if live else None, planned["spec"])
        # what somebody made since is not taken from them
        return "applied", planned if self.check_mode else self.cluster.apply(wanted, force=live is not None)

    def _tell(self, start: Object, told: Object) -> None:
        meta, before = start["metadata"], start.get("status") or {}
        if "uid" not in meta or not starts.is_news(before, told):
            return
        self._changed(f"Start/{meta['name']} status", before, {**before, **told})
        try:
            if not self.check_mode:
                apply_status(self.cluster, start, told)
        except ApiError as exc:
            # deleted while its pass ran: nobody is left to tell
            if exc.status != 404:
                self.done.errors.append(str(exc))

    def _changed(self, header: str, before: Object | None, after: Object) -> None:
        texts = {"before": _text(before) if before else "", "after": _text(after)}
        self.done.changed = True
        self.done.diff.append({"before_header": header, "after_header": header, **texts})


def _text(value: t.Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"

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
from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP, ApiError, Cluster

Object = dict[str, t.Any]


@dataclasses.dataclass
class Done:
    """What was done, or would be in check mode; `starts` and `missing` as documented for start_apply."""

    changed: bool = False
    starts: list[Object] = dataclasses.field(default_factory=list)
    missing: list[str] = dataclasses.field(default_factory=list)
    diff: list[Object] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)


def run(cluster: Cluster, params: t.Mapping[str, t.Any], check_mode: bool, now: str) -> Done:
    """Apply what `params`, the options of start_apply, ask for; one that fails never stops the others."""
    namespace, spec = params["namespace"], params["spec"]
    done = Done()
    if spec:
        wanted = [_without_resource(spec)]
        names = [snapshot.Target("Deployment", snapshot.deployment_name(wanted[0]))]
        seen = snapshot.read_targets(cluster, namespace, names)
        everyone: list[Object] = []
    else:
        seen = snapshot.read_targets(cluster, namespace, [snapshot.Target("Start")])
        everyone = list(seen.starts)
        wanted = _select(everyone, params, done)
    digests = _digests(seen, namespace)
    live = {item["metadata"]["name"]: item for item in seen.workloads}
    for start in wanted:
        deployment = live.get(snapshot.deployment_name(start))
        problem = starts.conflict(start, everyone, deployment)
        if problem:
            done.warnings.append(f"{_title(start)}: {problem}")
        _one(cluster, namespace, start, deployment, problem, digests, check_mode, now, done)
    return done


def _without_resource(spec: t.Mapping[str, t.Any]) -> Object:
    found = {key: value for key, value in spec.items() if value is not None and key != "image_pull_secrets"}
    found["imagePullSecrets"] = [{"name": name} for name in spec.get("image_pull_secrets") or ()]
    return {"metadata": {}, "spec": found}


def _select(everyone: list[Object], params: t.Mapping[str, t.Any], done: Done) -> list[Object]:
    names = [params["start"]] if params["start"] else params["starts"]
    if names is None:
        return everyone
    by_name = {item["metadata"]["name"]: item for item in everyone}
    done.missing = [name for name in names if name not in by_name]
    return [by_name[name] for name in names if name in by_name]


def _digests(seen: snapshot.Snapshot, namespace: str) -> dict[str, str]:
    """Deployment name -> the digest that most of its Pods run."""
    found = {}
    for container in inventory.containers(seen, {}, namespace):
        if container["running"]:
            found.setdefault(container["workload"]["name"], container["running"][0]["digest"])
    return found


def _title(start: Object) -> str:
    name = start["metadata"].get("name")
    return f"Start {name}" if name else f"Deployment {snapshot.deployment_name(start)}"


def _one(
    cluster: Cluster,
    namespace: str,
    start: Object,
    live: Object | None,
    problem: str | None,
    digests: t.Mapping[str, str],
    check_mode: bool,
    now: str,
    done: Done,
) -> None:
    name = snapshot.deployment_name(start)
    state, after = ("conflict", live) if problem else ("unchanged", live)
    if not problem:
        try:
            state, after = _apply(cluster, starts.desired(start, namespace), live, check_mode, done)
        except ApiError as exc:
            state, problem = "failed", str(exc)
            done.errors.append(problem)
    digest = None if state in ("conflict", "failed") else digests.get(name)
    told = starts.status(start, after if state != "conflict" else None, digest, problem, now)
    _write_status(cluster, start, told, check_mode, done)
    entry = {"start": start["metadata"].get("name"), "deployment": name, "state": state, "msg": problem}
    done.starts.append({**entry, "digest": digest, "ready": told["readyReplicas"]})


def _apply(cluster: Cluster, wanted: Object, live: Object | None, check_mode: bool, done: Done) -> tuple[str, Object | None]:
    planned = cluster.apply(wanted, dry_run=True)
    if not starts.differs(live, planned):
        return "unchanged", live
    done.changed = True
    header = f"Deployment/{wanted['metadata']['name']}"
    before = _text(live["spec"]) if live else ""
    done.diff.append(
        {"before_header": header, "after_header": header, "before": before, "after": _text(planned["spec"])}
    )
    return "applied", planned if check_mode else cluster.apply(wanted)


def _text(value: t.Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def _write_status(cluster: Cluster, start: Object, told: Object, check_mode: bool, done: Done) -> None:
    meta = start["metadata"]
    if "uid" not in meta or not starts.is_news(start.get("status") or {}, told):
        return
    done.changed = True
    header = f"Start/{meta['name']} status"
    done.diff.append(
        {
            "before_header": header,
            "after_header": header,
            "before": _text(start.get("status") or {}),
            "after": _text({**(start.get("status") or {}), **told}),
        }
    )
    if check_mode:
        return
    body = {
        "apiVersion": INSTALL_GROUP,
        "kind": "Start",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "status": told,
    }
    try:
        cluster.apply(body, subresource="status")
    except ApiError as exc:
        # deleted while its pass ran: nobody is left to tell
        if exc.status != 404:
            done.errors.append(str(exc))

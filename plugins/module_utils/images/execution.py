# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out what was decided: patch the owners, write the Update's status, say so in Events.

`cluster` is `kube.Cluster` or anything with its methods. The order matters for a pass that is killed: owners first
(each patch carries the memory of its roll), then the status, then Events, then the Update's own end.
"""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow as follows
from ansible_collections.kubesteward.core.plugins.module_utils.images import rollout, status
from ansible_collections.kubesteward.core.plugins.module_utils.images.announce import events, post_events, roll_events
from ansible_collections.kubesteward.core.plugins.module_utils.images.inventory import lookup_key, platforms_of
from ansible_collections.kubesteward.core.plugins.module_utils.images.snapshot import read_platforms
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy, Verdict, decide, limit
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP, ApiError, Cluster, Reference

Object = dict[str, t.Any]
Judged = list[tuple[t.Mapping[str, t.Any], Verdict]]

#: times a roll is tried again on fresh data when somebody else edits the object meanwhile
ATTEMPTS = 3


def judge(
    containers: t.Iterable[t.Mapping[str, t.Any]],
    published: t.Iterable[t.Mapping[str, t.Any]],
    policy: Policy,
    before: status.Status | None = None,
    now: str = "",
    nodes: t.Callable[[], t.Mapping[str, str]] = dict,
    platforms: t.Sequence[str] = (),
) -> Judged:
    """A verdict for every container.

    :param published: registry_digest's entries, in any order
    :param before: the Update's status, which remembers since when a digest is seen
    :param now: `2006-01-02T15:04:05Z`
    :param nodes: gives node name -> platform; called at most once, where an index is to be rolled
    :param platforms: those to assume where Nodes may not be read
    """
    by_key: dict[t.Any, t.Mapping[str, t.Any]] = {}
    for entry in published:
        by_key[lookup_key(entry["image"], entry.get("pull_secrets"))] = entry
        by_key.setdefault(entry["image"], entry)
    judged: Judged = []
    nodes = functools.cache(nodes)
    for container in containers:
        key = lookup_key(container["reference"], container["pull_secrets"])
        entry = by_key.get(key) or by_key.get(container["reference"])
        digest = entry.get("digest") if entry else None
        seen = {**container, "published": digest, "seen_for": status.seen_for(before or {}, container, digest, now)}
        verdict = decide(seen, entry, policy)
        if verdict.rolls and entry and entry.get("children") and not seen["platforms"]:
            seen["platforms"] = platforms_of(seen, nodes(), platforms)
            verdict = decide(seen, entry, policy)
        judged.append((seen, verdict))
    return limit(judged, policy.max_concurrent)


@dataclasses.dataclass
class Outcome:
    """What became of the planned rolls.

    :ivar judged: the verdicts, with those of failed rolls replaced by what held them
    :ivar rolled: {`workload`, `container`, `owner`, `from`, `to`} of every container that was patched
    :ivar errors: answers of the API server that were neither success nor somebody else's edit
    """

    judged: Judged
    rolled: list[Object] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)


def carry_out(cluster: Cluster, namespace: str, judged: Judged, now: str, dry_run: bool) -> Outcome:
    """Patch every owner that has a stale container; one that cannot be patched never stops the others."""
    outcome = Outcome(list(judged))
    for roll in rollout.plan(judged):
        try:
            conflict = _roll_one(cluster, namespace, roll, now, dry_run)
        except ApiError as exc:
            outcome.errors.append(str(exc))
            _explain(outcome, roll, None, str(exc))
            continue
        if conflict:
            _explain(outcome, roll, "conflict", conflict)
            continue
        for change in roll.changes:
            entry = {"workload": roll.workload, "container": change.container, "owner": roll.owner}
            outcome.rolled.append({**entry, "from": change.before, "to": change.after})
    return outcome


def _roll_one(cluster: Cluster, namespace: str, roll: rollout.Roll, now: str, dry_run: bool) -> str | None:
    """Patch one owner; returns what was in the way, where somebody else's edits were.

    :raises ApiError: the patch is refused for another reason
    """
    target = Reference(roll.owner["api_version"], roll.owner["kind"], namespace, roll.owner["name"])
    problem = f"{target} was edited while this pass looked at it; the next pass looks again"
    for attempt in range(ATTEMPTS):
        live = cluster.get(target.api_version, target.kind, target.namespace, target.name)
        operations = rollout.patch(roll, live, now) if live else None
        if operations is None:
            return problem
        try:
            cluster.json_patch(target, operations, dry_run=dry_run)
            return None
        except ApiError as exc:
            if exc.status == 404:
                return problem
            # a test that fails on fresh data again and again is none: the API server will not have the object so
            if not exc.changed_meanwhile or (exc.status == 422 and attempt == ATTEMPTS - 1):
                raise
            problem = str(exc)
    return problem


def _explain(outcome: Outcome, roll: rollout.Roll, reason: str | None, message: str) -> None:
    names = {change.container for change in roll.changes}
    for index, (container, verdict) in enumerate(outcome.judged):
        if container["workload"] == roll.workload and container["container"] in names and verdict.rolls:
            told = dataclasses.replace(verdict, reason=reason or verdict.reason, message=message)
            outcome.judged[index] = (container, told)


@dataclasses.dataclass
class Pass:
    """Everything a pass did, or would have done in check mode; `report.result` makes the module's result of it."""

    judged: Judged = dataclasses.field(default_factory=list)
    rolled: list[Object] = dataclasses.field(default_factory=list)
    released: list[Object] = dataclasses.field(default_factory=list)
    starts: list[dict[str, str]] = dataclasses.field(default_factory=list)
    update: Object | None = None
    status: status.Status | None = None
    wrote_status: bool = False
    deleted: bool = False
    warnings: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)


def reconcile(cluster: Cluster, namespace: str, params: t.Mapping[str, t.Any], check_mode: bool, now: str) -> Pass:
    """One pass: judge, roll, write the status, tell, and end the Update where its work is done.

    :param params: image_rollout's `update`, `update_resource`, `running`, `missing`, `published`, `dry_run`,
        `delete_flag`
    """
    update = _update(cluster, namespace, params)
    spec = (update or {}).get("spec") or {}
    before = (update or {}).get("status") or {}
    policy = Policy(
        suspended=bool(spec.get("suspend")),
        dry_run=params["dry_run"] or bool(spec.get("dryRun")),
        stable_for=spec.get("stableForSeconds", 0),
        max_concurrent=spec.get("maxConcurrent", Policy.max_concurrent),
    )
    judged = judge(
        params["running"],
        params["published"],
        policy,
        before,
        now,
        lambda: read_platforms(cluster),
        spec.get("platforms") or (),
    )
    outcome = carry_out(cluster, namespace, judged, now, check_mode)
    done = Pass(outcome.judged, outcome.rolled, update=update, errors=outcome.errors)
    done.warnings = [f"There is no {name} in namespace {namespace}" for name in params["missing"]]
    # applying a Start that somebody edited is a roll too
    done.starts = [] if policy.suspended or policy.dry_run else starts_to_apply(done.judged, done.rolled)
    if update:
        done.status = status.following(update, done.judged, done.rolled, now, params["missing"])
        done.wrote_status = status.is_news(before, done.status)
        wants_end = params["delete_flag"] if params["delete_flag"] is not None else spec.get("delete_flag", False)
        done.deleted = bool(wants_end) and not params["missing"] and status.is_settled(done.judged, done.rolled)
    if not check_mode:
        _record(cluster, namespace, done, before, now)
    return done


def _update(cluster: Cluster, namespace: str, params: t.Mapping[str, t.Any]) -> Object | None:
    given = params["update_resource"]
    if given or not params["update"]:
        return given or None
    return cluster.get(INSTALL_GROUP, "Update", namespace, params["update"])


def _record(cluster: Cluster, namespace: str, done: Pass, before: status.Status, now: str) -> None:
    told = events(done.update, before, done.judged, done.rolled)
    try:
        if done.update and done.status is not None and done.wrote_status:
            write_status(cluster, done.update, done.status, now)
    except ApiError as exc:
        # the Update may have been deleted while its pass ran: then nobody is left to tell
        if exc.status != 404:
            done.errors.append(str(exc))
        # what the status does not remember would be told in every pass
        told = roll_events(done.rolled)
    done.warnings += post_events(cluster, namespace, told, now)
    if done.update and done.deleted:
        try:
            meta = done.update["metadata"]
            cluster.delete(Reference(INSTALL_GROUP, "Update", namespace, meta["name"]), meta["uid"])
        except ApiError as exc:
            done.errors.append(str(exc))


def starts_to_apply(judged: Judged, rolled: t.Sequence[Object]) -> list[dict[str, str]]:
    """Starts to apply where no operator does: just rolled, left so by a run that was cut off, or with an old status."""
    images = {}
    for container, _verdict in judged:
        owner = container["workload"]["owner"]
        if owner and (container["spec_image"] != container["image"] or _has_old_status(owner, container)):
            images[owner["name"]] = container["spec_image"]
    images.update({roll["owner"]["name"]: roll["to"] for roll in rolled if roll["owner"]["kind"] == "Start"})
    return [{"name": name, "image": image} for name, image in sorted(images.items())]


def _has_old_status(owner: Object, container: t.Mapping[str, t.Any]) -> bool:
    """The Start's status still names the digest from before a rollout that is complete by now."""
    most = container["running"][0]["digest"] if container["running"] else None
    known = owner.get("digest")
    return bool(known) and container["rollout"]["complete"] and most != known


def write_status(cluster: Cluster, update: Object, after: status.Status, now: str) -> None:
    """Server-side apply of our fields: the operator's own conditions and keys stay."""
    meta = update["metadata"]
    cluster.apply(
        {
            "apiVersion": INSTALL_GROUP,
            "kind": "Update",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
            "status": {**after, "lastCheckTime": now},
        },
        subresource="status",
    )


def release(cluster: Cluster, namespace: str, containers: t.Iterable[t.Mapping[str, t.Any]], dry_run: bool) -> Pass:
    """Put the followed references back and remove our annotation from every owner."""
    owners: dict[tuple[str, str], tuple[Object, dict[str, str]]] = {}
    for container in containers:
        workload = container["workload"]
        owner = rollout.owner_of(workload)
        owners.setdefault((owner["kind"], owner["name"]), (owner, {}))[1][container["container"]] = container["path"]
    done = Pass()
    for owner, paths in owners.values():
        try:
            _release_one(cluster, namespace, owner, paths, dry_run, done)
        except ApiError as exc:
            done.errors.append(str(exc))
    return done


def _release_one(
    cluster: Cluster, namespace: str, owner: Object, paths: dict[str, str], dry_run: bool, done: Pass
) -> None:
    target = Reference(owner["api_version"], owner["kind"], namespace, owner["name"])
    live = cluster.get(target.api_version, target.kind, namespace, target.name)
    operations = rollout.release(live, paths) if live else []
    if not live or not operations:
        return
    after = cluster.json_patch(target, operations, dry_run=dry_run)
    done.released.append({"owner": owner, "containers": sorted(name for name in follows.read(live) if name in paths)})
    if owner["kind"] == "Start":
        done.starts.append({"name": owner["name"], "image": after["spec"]["image"]})

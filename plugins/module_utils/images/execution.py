# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out what was decided: patch the owners, write the Update's status, say so in Events.

`cluster` is `kube.Cluster` or anything with its methods. The order matters for a pass that is killed: owners first
(each patch carries the memory of its roll), then the status, then Events, then the Update's own end.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import claims, rollout, status
from ansible_collections.kubesteward.core.plugins.module_utils.images import judge as judgement
from ansible_collections.kubesteward.core.plugins.module_utils.images import release as releases
from ansible_collections.kubesteward.core.plugins.module_utils.images.announce import (
    events,
    release_events,
    roll_events,
)
from ansible_collections.kubesteward.core.plugins.module_utils.images.judge import Judged
from ansible_collections.kubesteward.core.plugins.module_utils.images.snapshot import read_platforms
from ansible_collections.kubesteward.core.plugins.module_utils.images.trial import Rollback
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import place
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP, ApiError, Cluster, Reference
from ansible_collections.kubesteward.core.plugins.module_utils.telling import apply_status, post_events

Object = dict[str, t.Any]

#: times a roll is tried again on fresh data when somebody else edits the object meanwhile
ATTEMPTS = 3


@dataclasses.dataclass
class Pass:
    """Everything a pass did, or would have done in check mode; `report.result` makes the module's result of it.

    :ivar judged: the verdicts, with those of failed writes replaced by what held them
    :ivar rolled: {`workload`, `container`, `owner`, `from`, `to`} of every container that was rolled
    :ivar rolled_back: the same of every container whose last roll was taken back
    :ivar settled: the same of every container whose trial is over
    :ivar freed: {`workload`, `pod`} of every broken Pod that was deleted since it stood in a rollout's way
    :ivar errors: answers of the API server that were neither success nor somebody else's edit
    """

    judged: Judged = dataclasses.field(default_factory=list)
    rolled: list[Object] = dataclasses.field(default_factory=list)
    rolled_back: list[Object] = dataclasses.field(default_factory=list)
    settled: list[Object] = dataclasses.field(default_factory=list)
    freed: list[Object] = dataclasses.field(default_factory=list)
    released: list[Object] = dataclasses.field(default_factory=list)
    starts: list[dict[str, str]] = dataclasses.field(default_factory=list)
    update: Object | None = None
    status: status.Status | None = None
    wrote_status: bool = False
    deleted: bool = False
    warnings: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)

    @property
    def images_written(self) -> list[Object]:
        """Rolls and rollbacks."""
        return [*self.rolled, *self.rolled_back]


def carry_out(cluster: Cluster, namespace: str, done: Pass, rolls: t.Iterable[rollout.Roll], dry_run: bool) -> None:
    """Patch every owner that has something to change; one that cannot be patched never stops the others."""
    told = {"roll": done.rolled, "roll_back": done.rolled_back, "settle": done.settled}
    for roll in rolls:
        try:
            conflict = _roll_one(cluster, namespace, roll, dry_run)
        except ApiError as exc:
            done.errors.append(str(exc))
            _explain(done, roll, None, str(exc))
            continue
        if conflict:
            _explain(done, roll, "conflict", conflict)
            continue
        for change in roll.changes:
            entry = {"workload": roll.workload, "container": change.container, "owner": roll.owner}
            if change.message:
                entry["message"] = change.message
            told[change.kind].append({**entry, "from": change.before, "to": change.after})
    taken = {place(roll) for roll in done.rolled_back}
    for index, (container, verdict) in enumerate(done.judged):
        if place(container) in taken:
            done.judged[index] = (_with_stuck(container), judgement.rolled_back(container, verdict))


def _with_stuck(container: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
    """What is broken stands in the way of an ordered StatefulSet from the rollback on."""
    trial = container["trial"]
    if not trial["ordered"]:
        return container
    return {
        **container,
        "stuck": [*container["stuck"], *({"name": x["pod"], "uid": x["uid"]} for x in trial["troubled"])],
    }


def free(cluster: Cluster, namespace: str, done: Pass, dry_run: bool) -> None:
    """Delete the broken Pods that a StatefulSet waits for."""
    seen: set[str] = set()
    for container, _verdict in done.judged:
        for pod in container["stuck"]:
            if pod["uid"] in seen:
                continue
            seen.add(pod["uid"])
            try:
                if not dry_run:
                    cluster.delete(Reference("v1", "Pod", namespace, pod["name"]), pod["uid"])
            except ApiError as exc:
                done.errors.append(str(exc))
                continue
            done.freed.append({"workload": container["workload"], "pod": pod["name"]})


def _roll_one(cluster: Cluster, namespace: str, roll: rollout.Roll, dry_run: bool) -> str | None:
    """Patch one owner; returns what was in the way, where somebody else's edits were.

    :raises ApiError: the patch is refused for another reason
    """
    target = Reference(roll.owner["api_version"], roll.owner["kind"], namespace, roll.owner["name"])
    problem = f"{target} was edited while this pass looked at it; the next pass looks again"
    for attempt in range(ATTEMPTS):
        live = cluster.get(target.api_version, target.kind, target.namespace, target.name)
        operations = rollout.patch(roll, live) if live else None
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


def _explain(done: Pass, roll: rollout.Roll, reason: str | None, message: str) -> None:
    """A write that failed: the verdict stays what it was, and says why nothing came of it."""
    names = {change.container for change in roll.changes}
    for index, (container, verdict) in enumerate(done.judged):
        if container["workload"] != roll.workload:
            continue
        if container["container"] in names:
            why = reason if reason and verdict.rolls else verdict.reason
            verdict = dataclasses.replace(verdict, reason=why, message=message if verdict.rolls else verdict.message)
        # a Pod that is deleted now would come again from the template that was to be changed first
        done.judged[index] = ({**container, "stuck": []}, verdict)


def reconcile(cluster: Cluster, namespace: str, params: t.Mapping[str, t.Any], check_mode: bool, now: str) -> Pass:
    """One pass: judge, roll, write the status, tell, and end the Update where its work is done.

    :param params: image_rollout's `update`, `update_resource`, `running`, `missing`, `published`, `dry_run`,
        `delete_flag`; `only_watch`: roll nothing; `spec`: the Update's, where that is gone by now; `nodes`: gives
        what `read_platforms` does
    """
    update = _update(cluster, namespace, params)
    spec = (update or {}).get("spec") or params.get("spec") or {}
    before = (update or {}).get("status") or {}
    policy = policy_of(params, spec)
    done = Pass(update=update)
    done.judged = judgement.judge(
        params["running"],
        params["published"],
        policy,
        before,
        now,
        params.get("nodes") or (lambda: read_platforms(cluster)),
        params.get("platforms") or spec.get("platforms") or (),
        namespace,
    )
    if params.get("only_watch"):
        done.judged = judgement.left_to_the_next_run(done.judged)
    name = update["metadata"]["name"] if update else ""
    if not update or _leave_to_older(cluster, namespace, done, update):
        carry_out(cluster, namespace, done, rollout.plan(done.judged, now, name), check_mode)
        if not (policy.suspended or policy.dry_run):
            free(cluster, namespace, done, check_mode)
    done.warnings = [f"There is no {name} in namespace {namespace}" for name in params["missing"]]
    # applying a Start that somebody edited is a roll too
    done.starts = [] if policy.suspended or policy.dry_run else starts_to_apply(done.judged, done.images_written)
    if update:
        done.status = status.following(update, done, now, params["missing"])
        done.wrote_status = status.is_news(before, done.status)
        wants_end = params["delete_flag"] if params["delete_flag"] is not None else spec.get("delete_flag", False)
        done.deleted = bool(wants_end) and not params["missing"] and status.is_settled(done.judged, done.images_written)
    if not check_mode:
        _record(cluster, namespace, done, before, now)
    return done


def _leave_to_older(cluster: Cluster, namespace: str, done: Pass, update: Object) -> bool:
    """Hold what older Updates have; False where nobody can tell what that is: then nothing may be written to owners."""
    try:
        done.judged = judgement.conflicting(done.judged, claims.older_holder(cluster, namespace, update))
    except ApiError as exc:
        done.errors.append(str(exc))
        return False
    return True


def policy_of(params: t.Mapping[str, t.Any], spec: t.Mapping[str, t.Any]) -> Policy:
    """What the options and the Update's spec say together; an option that is given wins."""
    wanted = spec.get("rollback") or {}
    given = params.get("rollback") or {}
    enabled, deadline = given.get("enabled"), given.get("progress_deadline_seconds")

    def option(name: str, key: str, default: t.Any) -> t.Any:
        return spec.get(key, default) if params.get(name) is None else params[name]

    return Policy(
        suspended=bool(option("suspend", "suspend", False)),
        dry_run=params["dry_run"] or bool(spec.get("dryRun")),
        stable_for=option("stable_for_seconds", "stableForSeconds", 0),
        max_concurrent=option("max_concurrent", "maxConcurrent", Policy.max_concurrent),
        rollback=Rollback(
            enabled=wanted.get("enabled", True) if enabled is None else enabled,
            deadline=wanted.get("progressDeadlineSeconds", Rollback.deadline) if deadline is None else deadline,
        ),
        verification=params.get("verification_seconds", Policy.verification),
        has_memory=bool(params.get("update_resource") or params.get("update")),
    )


def _update(cluster: Cluster, namespace: str, params: t.Mapping[str, t.Any]) -> Object | None:
    given = params["update_resource"]
    if given or not params["update"]:
        return given or None
    return cluster.get(INSTALL_GROUP, "Update", namespace, params["update"])


def _record(cluster: Cluster, namespace: str, done: Pass, before: status.Status, now: str) -> None:
    told = events(done, before)
    try:
        if done.update and done.status is not None and done.wrote_status:
            apply_status(cluster, done.update, {**done.status, "lastCheckTime": now})
    except ApiError as exc:
        # the Update may have been deleted while its pass ran: then nobody is left to tell
        if exc.status != 404:
            done.errors.append(str(exc))
        # what the status does not remember would be told in every pass
        told = roll_events(done)
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


def release(
    cluster: Cluster,
    namespace: str,
    containers: t.Sequence[t.Mapping[str, t.Any]],
    dry_run: bool,
    published: t.Iterable[t.Mapping[str, t.Any]] = (),
    policy: releases.Policy = releases.PUT_BACK,
    now: str = "",
) -> Pass:
    """Let go of every owner: the references go back, unless the policy says otherwise, and our annotation goes.

    :param published: registry_digest's entries, as far as there are any
    :param now: time of the Events, `2006-01-02T15:04:05Z`
    """
    done = Pass()
    for owner in releases.owners(containers, published):
        try:
            _release_one(cluster, namespace, owner, policy, dry_run, done)
        except ApiError as exc:
            done.errors.append(str(exc))
    if not dry_run:
        done.warnings += post_events(cluster, namespace, release_events(done), now)
    return done


def _release_one(
    cluster: Cluster, namespace: str, owner: releases.Owner, policy: releases.Policy, dry_run: bool, done: Pass
) -> None:
    target = Reference(owner.owner["api_version"], owner.owner["kind"], namespace, owner.owner["name"])
    planned = releases.Plan()

    def let_go(live: Object) -> list[Object]:
        nonlocal planned
        planned = releases.plan(owner, live, policy)
        return planned.operations

    after = _patch_fresh(cluster, target, let_go, dry_run)
    if after and planned.operations:
        done.released.append(
            {
                "owner": owner.owner,
                "workload": owner.workload,
                "containers": planned.containers,
                "images": planned.images,
            }
        )
        if target.kind == "Start" and planned.images:
            done.starts.append({"name": target.name, "image": planned.images[0]["to"]})
    # also where an earlier run was cut off before this
    if after and not dry_run:
        _patch_fresh(cluster, target, releases.without_our_fields, False, after)


def _patch_fresh(
    cluster: Cluster,
    target: Reference,
    operations: t.Callable[[Object], list[Object]],
    dry_run: bool,
    live: Object | None = None,
) -> Object | None:
    """Patch an object by what its present state asks for; returns it as it is then, None where it is gone.

    :param live: the object, where it was read just now
    :raises ApiError: the patch is refused, or others edit the object again and again
    """
    for attempt in range(ATTEMPTS):
        live = live or cluster.get(target.api_version, target.kind, target.namespace, target.name)
        wanted = operations(live) if live else []
        if not live or not wanted:
            return live
        try:
            return cluster.json_patch(target, wanted, dry_run=dry_run)
        except ApiError as exc:
            if exc.status == 404:
                return None
            if not exc.changed_meanwhile or attempt == ATTEMPTS - 1:
                raise
            live = None
    return None

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a roll: does the new image work? Pure.

A roll is on trial until the rollout is complete and every new Pod has run steadily for a while. Neither "available" nor
the new image ID is proof: a container that dies after a second has both for a moment.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images import running

Object = t.Mapping[str, t.Any]

#: seconds that the new containers must run without a restart, where nobody says otherwise
VERIFICATION = 60
#: seconds for which a Pod may wait for a node before that is told: an autoscaler needs a moment
PATIENCE = 60
#: Pods that are named
_MOST = 20
#: the registry or the way to it is at fault, where it does not answer us either
_PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
#: the image itself is at fault, whatever else was edited
_NOT_GOT = _PULLING | {"ErrImageNeverPull", "ImageInspectError", "InvalidImageName", "SignatureValidationFailed"}


@dataclasses.dataclass(frozen=True)
class Rollback:
    """What is done about a roll that fails.

    :ivar enabled: put the previous image back
    :ivar deadline: seconds that a new Pod has to pull, start and pass its probe
    """

    enabled: bool = True
    deadline: int = 600


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a roll on trial is.

    :ivar state: `under_way`, `steady` (the trial is over), `failed`, or `blocked` by something that is not the image
    :ivar reason: one word for a condition, where it failed or is blocked
    :ivar message: the same for people
    :ivar healthy: the rollout is complete and nothing is wrong so far: only time is missing
    """

    state: str
    reason: str = ""
    message: str = ""
    healthy: bool = False


def facts(workload: Object, live: t.Sequence[Object], name: str, kind: str) -> dict[str, t.Any]:
    """What the new Pods of a workload tell about one container.

    :param live: the live Pods of the current revision
    :param kind: the container's type, `container`, `init` or `sidecar`
    :returns: `pods` (count), `steady_since` (start of the youngest container, None where one does not run),
        `min_ready_seconds` (what the workload asks for), `restarts`, `unscheduled` [{`pod`, `uid`, `reason`, `since`}],
        `troubled` (of the same shape, with `unready_since` and the seconds `ran` of the last run, None where there was
        none), `others` (the same of other containers, with `container` and the time `restarted`, empty where it does
        not run), `obstacle` {`reason`, `message`}, `ordered` (an ordered StatefulSet)
    """
    starts: list[str | None] = []
    restarts = 0
    troubled, unscheduled, others = [], [], []
    for pod in live:
        meta = pod["metadata"]
        who = {"pod": meta["name"], "uid": meta["uid"], "since": meta.get("creationTimestamp", "")}
        why = _unscheduled(pod)
        if why:
            unscheduled.append({**who, "reason": why})
        entry = next(running.container_statuses(pod, name), None) or {}
        restarts += entry.get("restartCount", 0)
        trouble = _trouble(entry, kind)
        if trouble:
            troubled.append({**who, "reason": trouble, "unready_since": _unready_since(pod), "ran": _ran(entry)})
        others += [{**who, **other} for other in _others(pod, name)]
        starts.append(None if trouble else _started(entry, kind))
    return {
        "pods": len(starts),
        "steady_since": max((x for x in starts if x), default=None) if all(starts) else None,
        "min_ready_seconds": (workload.get("spec") or {}).get("minReadySeconds") or 0,
        "restarts": restarts,
        "troubled": sorted(troubled, key=lambda item: item["since"])[:_MOST],
        "unscheduled": sorted(unscheduled, key=lambda item: item["since"])[:_MOST],
        "others": others[:_MOST],
        "obstacle": _obstacle(workload),
        "ordered": is_ordered(workload),
    }


def _unscheduled(pod: Object) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return condition.get("message") or condition.get("reason") or "is not scheduled"
    return ""


def _trouble(entry: Object, kind: str) -> str:
    """Why a container does not do its work, as far as its image may be the cause; empty where it does."""
    state = entry.get("state") or {}
    waiting = (state.get("waiting") or {}).get("reason", "")
    if waiting:
        return waiting if waiting in running.FAILING else ""
    ended = state.get("terminated")
    if ended:
        is_done = kind == "init" and ended.get("exitCode") == 0
        return "" if is_done else f"ended with exit code {ended.get('exitCode')}"
    if not state.get("running"):
        return ""
    if kind == "init":
        return "does not end"
    return "" if entry.get("ready") else "is not ready"


def _ran(entry: Object) -> int | None:
    """Seconds that the last run of a container took which is over."""
    last = (entry.get("state") or {}).get("terminated") or (entry.get("lastState") or {}).get("terminated") or {}
    return age(last["startedAt"], last.get("finishedAt") or "") if last.get("startedAt") else None


def _unready_since(pod: Object) -> str:
    made: str = pod["metadata"].get("creationTimestamp", "")
    told = {x.get("type"): x for x in (pod.get("status") or {}).get("conditions") or ()}
    ready = told.get("ContainersReady") or told.get("Ready") or {}
    return max(made, ready.get("lastTransitionTime") or "") if ready.get("status") != "True" else made


def _others(pod: Object, name: str) -> t.Iterator[dict[str, str]]:
    """Containers beside the one on trial that fail, or did and were started again."""
    for entry in running.all_statuses(pod):
        state = entry.get("state") or {}
        reason = (state.get("waiting") or {}).get("reason", "")
        code = (state.get("terminated") or {}).get("exitCode")
        restarted = (state.get("running") or {}).get("startedAt", "") if entry.get("restartCount") else ""
        if entry["name"] != name and (reason in running.FAILING or code or restarted):
            ended = f"ended with exit code {code}" if code else f"restarted {entry.get('restartCount')} times"
            why = reason or ended
            yield {"container": entry["name"], "reason": why, "restarted": restarted}


def _started(entry: Object, kind: str) -> str | None:
    state = entry.get("state") or {}
    if kind == "init":
        return (state.get("terminated") or {}).get("finishedAt")
    return (state.get("running") or {}).get("startedAt")


def _obstacle(workload: Object) -> dict[str, str] | None:
    """What keeps a rollout from going on, whatever the image."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            reason = "QuotaExceeded" if "quota" in condition.get("message", "") else "ReplicaFailure"
            return {"reason": reason, "message": condition.get("message", "")[:512]}
    if spec.get("paused"):
        return {"reason": "Paused", "message": "the Deployment is paused"}
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return {"reason": "OnDelete", "message": "new Pods come only where somebody deletes the old ones (OnDelete)"}
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    if partition:
        return {"reason": "Partition", "message": f"Pods below ordinal {partition} keep the old revision (partition)"}
    return None


def _unwell_since(troubled: t.Mapping[str, t.Any], seconds: int) -> str:
    """Since when a container is in trouble: since its Pod was made, unless it ran well for long enough before."""
    ran = troubled["ran"]
    # what dies again and again is ready in between
    since: str = troubled["since" if ran is not None and ran < seconds else "unready_since"]
    return since


def assess(
    container: t.Mapping[str, t.Any],
    now: str,
    deadline: int,
    answers: bool = True,
    verification: int = VERIFICATION,
) -> Progress:
    """Where the roll of one container is.

    :param container: an entry of pod_image_id with `trial`, `rollout` and `follow`
    :param now: `2006-01-02T15:04:05Z`
    :param deadline: seconds that a new Pod has
    :param answers: the registry answered in this pass: where it does not, a Pod that cannot pull proves nothing
    :param verification: seconds that the new containers must run without a restart; the workload's minReadySeconds may
        ask for more
    """
    trial, rollout = container["trial"], container["rollout"]
    if container["image"] != container["spec_image"]:
        # the Pods are those from before: they prove nothing, and nothing against it
        return _unapplied(container, now, deadline)
    if rollout["observed"] < rollout["generation"]:
        return Progress("under_way")
    if rollout["desired"] == 0:
        # nobody knows, and nothing goes on
        return Progress("under_way", healthy=rollout["complete"])
    # a StatefulSet that goes back to an earlier template may have Pods that are older than the roll
    rolled = container["follow"]["at"]
    # a clock that was put right since must not put a way back off
    rolled = rolled if age(rolled, now) >= 0 else ""
    seconds_well = max(verification, trial["min_ready_seconds"])
    overdue = [(x, age(max(_unwell_since(x, seconds_well), rolled), now)) for x in trial["troubled"]]
    first, seconds = max(overdue, key=lambda item: item[1], default=(None, 0))
    if first and seconds >= deadline:
        message = f"Pod {first['pod']}: {first['reason']} for {seconds} s"
        if not answers and first["reason"] in _PULLING:
            return Progress("blocked", "RegistryUnreachable", f"{message}, and the registry does not answer")
        if trial["edited"] and first["reason"] not in _NOT_GOT:
            return Progress("blocked", "TemplateEdited", f"{message}, and {trial['edited']} edited the template since")
        return Progress("failed", "RolloutFailed", message)
    others = [x for x in trial["others"] if not x["restarted"] or age(x["restarted"], now) < verification]
    if others and not trial["troubled"]:
        # also where such a Pod was available for a moment, which ends a Deployment's rollout
        pod, name, reason = (others[0][key] for key in ("pod", "container", "reason"))
        return Progress("blocked", "OtherContainer", f"Pod {pod}: container {name}: {reason}")
    since = trial["steady_since"]
    if rollout["complete"] and trial["pods"] and (since or trial["troubled"]):
        is_steady = bool(since) and age(since, now) >= seconds_well
        healthy = bool(since) and (is_steady or not trial["restarts"])
        return Progress("steady" if is_steady else "under_way", healthy=healthy)
    return _waiting_for(container, now, deadline)


def _unapplied(container: t.Mapping[str, t.Any], now: str, deadline: int) -> Progress:
    """A Start was rolled, and its Deployment does not have the image yet."""
    if age(container["follow"]["at"], now) < deadline:
        return Progress("under_way")
    message = f"the Deployment does not have the Start's image after {deadline} s: is the Start applied?"
    return Progress("blocked", "NoProgress", message)


def _waiting_for(container: t.Mapping[str, t.Any], now: str, deadline: int) -> Progress:
    trial, rollout = container["trial"], container["rollout"]
    if trial["obstacle"]:
        return Progress("blocked", trial["obstacle"]["reason"], trial["obstacle"]["message"])
    waiting = [x for x in trial["unscheduled"] if age(x["since"], now) >= min(PATIENCE, deadline)]
    if waiting:
        return Progress("blocked", "Unschedulable", f"Pod {waiting[0]['pod']}: {waiting[0]['reason']}")
    if not trial["troubled"] and age(container["follow"]["at"], now) >= deadline:
        message = f"{rollout['updated']} of {rollout['desired']} Pods are updated after {deadline} s"
        return Progress("blocked", "NoProgress", message)
    return Progress("under_way")


def age(since: str, now: str) -> int:
    """Seconds from one time to another; 0 where `since` is none."""
    try:
        return int((conditions.moment(now) - conditions.moment(since)).total_seconds())
    except ValueError:
        return 0


def stuck_pods(workload: Object, pods: t.Iterable[Object], left: t.Container[str], failed: str | None) -> list[Object]:
    """Pods that stand in the way of an ordered StatefulSet: broken ones of an old revision with a digest of ours.

    The controller waits until they are ready, which they never will be.

    :param left: digests that were left
    :param failed: the one in quarantine: of this one even a Pod that is merely not ready is broken
    :returns: [{`name`, `uid`}]
    """
    if not is_ordered(workload):
        return []
    current = (workload.get("status") or {}).get("updateRevision")
    return [
        {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for pod in pods
        if running.revision_hash(pod) != current
        # the controller would make such a Pod of the old revision again
        and _ordinal(pod) >= _first_updated(workload)
        and not pod["metadata"].get("deletionTimestamp")
        and any(_is_broken(pod, container, left, failed) for container in running.template_containers(pod))
    ]


def _first_updated(workload: Object) -> int:
    """Ordinal from which on a StatefulSet makes Pods of the new revision."""
    spec = workload["spec"]
    partition = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0
    return partition + ((spec.get("ordinals") or {}).get("start") or 0)


def _ordinal(pod: Object) -> int:
    number = pod["metadata"]["name"].rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def is_ordered(workload: Object) -> bool:
    """True for a StatefulSet that replaces its Pods one after the other by itself."""
    spec = workload["spec"]
    by_hand = (spec.get("updateStrategy") or {}).get("type") == "OnDelete"
    return workload["kind"] == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel" and not by_hand


def _is_broken(pod: Object, container: Object, left: t.Container[str], failed: str | None) -> bool:
    digest = container["image"].rpartition("@")[2]
    trouble = _trouble(next(running.container_statuses(pod, container["name"]), {}), container["type"])
    return bool(trouble) and (digest == failed or (digest in left and trouble in running.FAILING))


def is_under_way(rollout: t.Mapping[str, t.Any]) -> bool:
    """An incomplete rollout is waited for, unless it fails: then a newer image may be what mends it."""
    return not (rollout["complete"] or rollout["failing"] or rollout["deadline_exceeded"])


def is_replacing(rollout: t.Mapping[str, t.Any]) -> bool:
    """True while Pods of an old revision are left; one that is merely not available is none of them."""
    return not rollout["complete"] and (
        rollout["observed"] < rollout["generation"] or rollout["updated"] < rollout["replicas"]
    )

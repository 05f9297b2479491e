# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a roll: does the new image work? Pure.

A roll is on trial until the rollout is complete and every new Pod has run steadily for a while. Neither "available" nor
the new image ID is proof: a container that dies after a second has both for a moment.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images import crashes, running
from ansible_collections.kubesteward.core.plugins.module_utils.images.crashes import age
from ansible_collections.kubesteward.core.plugins.module_utils.texts import cut

Object = t.Mapping[str, t.Any]

#: seconds that the new containers must run without a restart, where nobody says otherwise
VERIFICATION = 60
#: seconds for which a Pod may wait for a node before that is told: an autoscaler needs a moment
PATIENCE = 60
#: Pods that are named
_MOST = 20


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
    :ivar until: when the deadline of what is in trouble ends, where something is
    :ivar not_got: it failed since the image cannot be had
    """

    state: str
    reason: str = ""
    message: str = ""
    healthy: bool = False
    until: str = ""
    not_got: bool = False


def facts(
    workload: Object, live: t.Sequence[Object], name: str, kind: str, elsewhere: t.Iterable[Object]
) -> dict[str, t.Any]:
    """What the new Pods of a workload tell about one container.

    :param live: the live Pods of the current revision
    :param kind: the container's type, `container`, `init` or `sidecar`
    :param elsewhere: what `others` gives for these Pods
    :returns: `pods` (count), `steady_since` (start of the youngest container, None where one does not run),
        `min_ready_seconds` (what the workload asks for), `restarts`, `well` (Pods that run it without a restart),
        `troubled` [{`pod`, `uid`, `reason`, `since`, and what `crashes.times` and `crashes.evidence` give}],
        `unscheduled` (of the first four), `others` (the same of other containers, with `container` and the time
        `restarted`, empty where it does not run), `obstacle` {`reason`, `message`}, `ordered` (an ordered StatefulSet)
    """
    starts: list[str | None] = []
    restarts = well = 0
    troubled, unscheduled = [], []
    for pod in live:
        meta = pod["metadata"]
        who = {"pod": meta["name"], "uid": meta["uid"], "since": meta.get("creationTimestamp", "")}
        why = _unscheduled(pod)
        if why:
            unscheduled.append({**who, "reason": why})
        entry = next(running.container_statuses(pod, name), None) or {}
        restarts += entry.get("restartCount", 0)
        trouble = crashes.trouble(entry, kind)
        if trouble:
            did = {**crashes.times(pod, entry), **crashes.evidence(pod, entry)}
            troubled.append({**who, "reason": trouble, **did})
        started = None if trouble else _started(entry, kind)
        well += bool(started and not entry.get("restartCount"))
        starts.append(started)
    return {
        "pods": len(starts),
        "steady_since": max((x for x in starts if x), default=None) if all(starts) else None,
        "min_ready_seconds": (workload.get("spec") or {}).get("minReadySeconds") or 0,
        "restarts": restarts,
        "well": well,
        "troubled": sorted(troubled, key=lambda item: item["since"])[:_MOST],
        "unscheduled": sorted(unscheduled, key=lambda item: item["since"])[:_MOST],
        "others": list(itertools.islice((x for x in elsewhere if x["container"] != name), _MOST)),
        "obstacle": _obstacle(workload),
        "ordered": is_ordered(workload),
    }


def unwell(live: t.Sequence[Object], name: str, kind: str) -> dict[str, str] | None:
    """What is wrong with a container in every one of its Pods, {`reason`, `since`}, or None where one is well."""
    found = []
    for pod in live:
        entry = next(running.container_statuses(pod, name), None) or {}
        reason = "" if entry.get("ready") else crashes.trouble(entry, kind)
        if not reason:
            return None
        since = crashes.unwell_since(crashes.times(pod, entry), crashes.LASTS)
        found.append({"reason": reason, "since": since})
    return max(found, key=lambda x: x["since"]) if found else None


def _unscheduled(pod: Object) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return cut(condition.get("message") or "", 512) or condition.get("reason") or "is not scheduled"
    return ""


def others(live: t.Iterable[Object]) -> list[dict[str, str]]:
    """Containers that fail, or did and were started again: a trial looks at those beside its own, see `facts`."""
    found = []
    for pod in live:
        meta = pod["metadata"]
        who = {"pod": meta["name"], "uid": meta["uid"], "since": meta.get("creationTimestamp", "")}
        for entry in running.all_statuses(pod):
            state = entry.get("state") or {}
            reason = (state.get("waiting") or {}).get("reason", "")
            code = (state.get("terminated") or {}).get("exitCode")
            restarted = (state.get("running") or {}).get("startedAt", "") if entry.get("restartCount") else ""
            if reason in running.FAILING or code or restarted:
                ended = f"ended with exit code {code}" if code else f"restarted {entry.get('restartCount')} times"
                found.append({**who, "container": entry["name"], "reason": reason or ended, "restarted": restarted})
    return found


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
            return {"reason": reason, "message": cut(condition.get("message", ""), 512)}
    if spec.get("paused"):
        return {"reason": "Paused", "message": "the Deployment is paused"}
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return {"reason": "OnDelete", "message": "new Pods come only where somebody deletes the old ones (OnDelete)"}
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    if partition:
        return {"reason": "Partition", "message": f"Pods below ordinal {partition} keep the old revision (partition)"}
    return None


@dataclasses.dataclass(frozen=True)
class _Terms:
    """What a roll is measured by: times, seconds, and whether the registry answers."""

    now: str
    rolled: str
    deadline: int
    answers: bool
    verification: int
    seconds_well: int


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
    terms = _Terms(now, rolled, deadline, answers, verification, seconds_well)
    found = _failure(container, terms)
    if found:
        return found
    others = _failing_others(trial, terms)
    if others and not trial["troubled"]:
        # also where such a Pod was available for a moment, which ends a Deployment's rollout
        pod, name, reason = (others[0][key] for key in ("pod", "container", "reason"))
        return Progress("blocked", "OtherContainer", f"Pod {pod}: container {name}: {reason}")
    since = trial["steady_since"]
    if rollout["complete"] and trial["pods"] and (since or trial["troubled"]):
        is_steady = bool(since) and age(since, now) >= seconds_well
        healthy = bool(since) and (is_steady or not trial["restarts"])
        progress = Progress("steady" if is_steady else "under_way", healthy=healthy)
    else:
        progress = _waiting_for(container, now, deadline)
    return progress if progress.state != "under_way" else _with_trouble(progress, trial, terms)


def _failing_others(trial: t.Mapping[str, t.Any], terms: _Terms) -> list[t.Mapping[str, t.Any]]:
    return [x for x in trial["others"] if not x["restarted"] or age(x["restarted"], terms.now) < terms.verification]


def _in_trouble(trial: t.Mapping[str, t.Any], terms: _Terms) -> list[tuple[t.Mapping[str, t.Any], int]]:
    """What is in trouble, and for how many seconds of this roll."""
    found = [(x, max(crashes.unwell_since(x, terms.seconds_well), terms.rolled)) for x in trial["troubled"]]
    return [(x, age(since, terms.now)) for x, since in found]


def _failure(container: t.Mapping[str, t.Any], terms: _Terms) -> Progress | None:
    """What a Pod that is in trouble for too long, or for a reason that needs no more time, makes of the roll."""
    trial = container["trial"]
    first, seconds = max(_in_trouble(trial, terms), key=lambda item: item[1], default=(None, 0))
    if first and seconds < terms.deadline:
        first, seconds = _proof(container, terms) or (None, 0)
    if not first:
        return None
    message = crashes.told(first, seconds)
    not_got = first["reason"] in crashes.NOT_GOT
    if not terms.answers and first["reason"] in crashes.PULLING:
        return Progress("blocked", "RegistryUnreachable", f"{message}; the registry does not answer")
    if trial["edited"] and not not_got:
        return Progress("blocked", "TemplateEdited", f"{message}; {trial['edited']} edited the template since")
    before = container["follow"].get("unwell")
    if before and crashes.gravity(first["reason"]) <= crashes.gravity(before):
        why = f"the image before was not well either ({before}), so that nothing is taken back"
        return Progress("blocked", "UnwellBefore", f"{message}; {why}")
    return Progress("failed", "RolloutFailed", message, not_got=not_got)


def _proof(container: t.Mapping[str, t.Any], terms: _Terms) -> tuple[t.Mapping[str, t.Any], int] | None:
    """What proves before the deadline that the image does not work, and its seconds."""
    trial = container["trial"]
    # one of many, or one beside another container that fails, may have a cause of its own
    has_another_cause = trial.get("well") or _failing_others(trial, terms) or trial["edited"]
    if has_another_cause or container["follow"].get("unwell"):
        return None
    for item, seconds in _in_trouble(trial, terms):
        is_silence = not terms.answers and item["reason"] in crashes.PULLING
        if not is_silence and crashes.proves(item, terms.rolled, seconds, terms.seconds_well):
            return item, seconds
    return None


def _with_trouble(progress: Progress, trial: t.Mapping[str, t.Any], terms: _Terms) -> Progress:
    """What is wrong so far, and when time is up."""
    troubles = _in_trouble(trial, terms)
    if not troubles:
        return progress
    worst, seconds = max(troubles, key=lambda x: (crashes.gravity(x[0]["reason"]), x[0].get("restarts", 0)))
    if crashes.gravity(worst["reason"]) == 1 and not worst.get("restarts"):
        # it starts
        return progress
    until = conditions.later(terms.now, terms.deadline - seconds)
    return dataclasses.replace(progress, message=crashes.told(worst, seconds), until=until)


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
        message = f"{availability(rollout)} after {deadline} s"
        return Progress("blocked", "NoProgress", message)
    return Progress("under_way")


def stuck_pods(workload: Object, pods: t.Iterable[Object], left: t.Container[str], failed: str | None) -> list[Object]:
    """Pods that stand in the way of an ordered StatefulSet: broken ones of an old revision with a digest of ours.

    The controller waits until they are ready, which they never will be.

    :param left: digests that were left
    :param failed: the one in quarantine: of this one even a Pod that is merely not ready is broken
    :returns: [{`name`, `uid`}]; of those that run and are not ready the last one, with the time `since` when
    """
    if not is_ordered(workload):
        return []
    current = (workload.get("status") or {}).get("updateRevision")
    found, unready = [], []
    for pod in pods:
        # below the partition the controller would make such a Pod of the old revision again
        is_kept = running.ordinal(pod) < running.first_updated(workload)
        if running.revision_hash(pod) == current or is_kept or pod["metadata"].get("deletionTimestamp"):
            continue
        who = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        troubles = [_trouble_of_ours(pod, container, left, failed) for container in running.template_containers(pod)]
        if any(is_broken for is_broken, _since in troubles):
            found.append(who)
        elif any(since for _is_broken, since in troubles):
            since = max(since for _is_broken, since in troubles)
            unready.append((running.ordinal(pod), {**who, "since": since}))
    return [*found, *(entry for _number, entry in sorted(unready, key=lambda x: x[0])[-1:])]


def is_in_the_way(entry: Object, container: Object, now: str, deadline: int) -> bool:
    """Whether a Pod of `stuck` is to be deleted: one that merely is not ready where the new image may mend it.

    :param entry: of `stuck_pods`
    """
    if "since" not in entry:
        return True
    has_new_trouble = not container["trial"] or container["trial"]["troubled"]
    lasts = age(entry["since"], now) >= deadline and age(container["follow"]["at"], now) >= PATIENCE
    return lasts and not has_new_trouble


def is_ordered(workload: Object) -> bool:
    """True for a StatefulSet that replaces its Pods one after the other by itself."""
    spec = workload["spec"]
    by_hand = (spec.get("updateStrategy") or {}).get("type") == "OnDelete"
    return workload["kind"] == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel" and not by_hand


def _trouble_of_ours(pod: Object, container: Object, left: t.Container[str], failed: str | None) -> tuple[bool, str]:
    """Whether a container with a digest of ours is broken, or else since when it is not well."""
    entry = next(running.container_statuses(pod, container["name"]), None) or {}
    trouble = crashes.trouble(entry, container["type"])
    image_id = running.parse_image_id(entry.get("imageID") or "")
    # before the first roll the spec has the tag
    digests = {container["image"].rpartition("@")[2], image_id.digest if image_id else ""}
    was_left = any(digest in left for digest in digests)
    if not trouble or not (was_left or failed in digests):
        return False, ""
    is_broken = failed in digests or trouble in running.FAILING
    return is_broken, "" if is_broken else crashes.unwell_since(crashes.times(pod, entry), crashes.LASTS)


def is_under_way(rollout: t.Mapping[str, t.Any]) -> bool:
    """Pods are being replaced, and that is waited for, unless it fails: then a newer image may be what mends it.

    Pods that are merely not available are no rollout.
    """
    return is_replacing(rollout) and not (rollout["failing"] or rollout["deadline_exceeded"])


def is_replacing(rollout: t.Mapping[str, t.Any]) -> bool:
    """True while the workload was not seen by its controller, or has Pods of an earlier revision to replace."""
    if rollout["complete"]:
        return False
    outdated = rollout.get("outdated", rollout["replicas"] - rollout["updated"])
    return rollout["observed"] < rollout["generation"] or outdated > 0


def availability(rollout: t.Mapping[str, t.Any]) -> str:
    """`1 of 3 Pods are updated, 0 of 3 available`."""
    desired = rollout["desired"]
    return f"{rollout['updated']} of {desired} Pods are updated, {rollout['available']} of {desired} available"

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of an Update: from the last one and this pass's verdicts to the next. Pure.

The operator rebuilds the list of conditions when it writes its own: it keeps ours without their observedGeneration,
so none is set, and resets times that are not of the form `2006-01-02T15:04:05Z`.
"""

from __future__ import annotations

import collections
import json
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import (
    CURRENT,
    STALE,
    UNKNOWN,
    Verdict,
    carries,
    is_replacing,
    is_under_way,
)

Container = t.Mapping[str, t.Any]
Status = dict[str, t.Any]
Judged = t.Sequence[tuple[Container, Verdict]]
Rolls = t.Sequence[t.Mapping[str, t.Any]]

HISTORY = 10
#: etcd takes objects of 1.5 MiB; the rest of the status and the managed fields need room too
IMAGES_BYTES = 1_000_000
_OURS = (
    *("run_name", "run_id", "registory_id", "check_id", "update", "observedGeneration", "images", "counts"),
    *("lastRoll", "pending", "history", "conditions"),
)
#: reasons that say something about the way to the registry
_NOT_REACHED = ("unreachable", "tls_error", "rate_limited")


def following(
    update: t.Mapping[str, t.Any], judged: Judged, rolled: Rolls, now: str, missing: t.Sequence[str] = ()
) -> Status:
    """The status after a pass, without `lastCheckTime`.

    :param update: the Update as it is now
    :param judged: containers with their verdicts; a container's key `published` is the digest its tag names
    :param rolled: the rolls carried out, {`workload`, `container`, `from`, `to`}
    :param now: `2006-01-02T15:04:05Z`
    :param missing: workloads that were asked for by name and do not exist, `Kind/name`
    """
    before = update.get("status") or {}
    rolled = [*_unrecorded(update, judged), *({**roll, "time": now} for roll in rolled)]
    status: Status = {**_first_published(judged), **_flags(before, judged, rolled)}
    status["observedGeneration"] = update["metadata"].get("generation", 0)
    images = [_image(container, verdict) for container, verdict in judged]
    _keep_last_known(before, status, images)
    status["images"] = _fitting(images)
    status["counts"] = counts(verdict for _container, verdict in judged)
    entries = [_roll_entry(roll) for roll in rolled]
    if entries:
        status["lastRoll"] = entries[-1]
    elif before.get("lastRoll"):
        status["lastRoll"] = before["lastRoll"]
    status["pending"] = _pending(before, judged, now)
    history = [*(before.get("history") or ()), *({**entry, "outcome": "rolled"} for entry in entries)]
    status["history"] = history[-HISTORY:]
    status["conditions"] = conditions.stamped(
        before.get("conditions") or (), _condition_values(judged, rolled, missing), now
    )
    return status


def is_news(before: Status, after: Status) -> bool:
    """Does `after` say anything that `before` does not?"""
    return any(_comparable(before, key) != _comparable(after, key) for key in _OURS)


def _comparable(status: Status, key: str) -> t.Any:
    value = status.get(key)
    if key == "images":
        # a message may carry a moment's figures, e.g. a time to wait: alone it is no news
        return [{name: item[name] for name in item if name != "message"} for item in value or ()]
    if key == "conditions":
        kinds = {kind for kind, _value, _reason, _message in _condition_values((), ())}
        return {
            x["type"]: (x.get("status"), x.get("reason"), x.get("message")) for x in value or () if x["type"] in kinds
        }
    return value or None


def counts(verdicts: t.Iterable[Verdict]) -> dict[str, int]:
    """Containers by verdict; all three keys are always there."""
    found = collections.Counter(verdict.verdict for verdict in verdicts)
    return {kind: found[kind] for kind in (CURRENT, STALE, UNKNOWN)}


def is_settled(judged: Judged, rolled: t.Sequence[t.Any]) -> bool:
    """True where nothing is in progress and nothing is left to find out: a one-time Update has done its work."""
    return (
        bool(judged)
        and not rolled
        and all(verdict.verdict == CURRENT and not _is_in_progress(container) for container, verdict in judged)
    )


def _is_in_progress(container: Container) -> bool:
    """A roll of ours until it is complete, even one that fails; a rollout of others while it gets on."""
    rollout = container["rollout"]
    return not rollout["complete"] and (bool(container["follow"]) or is_under_way(rollout))


def _unrecorded(update: t.Mapping[str, t.Any], judged: Judged) -> list[dict[str, t.Any]]:
    """Rolls that an earlier pass carried out and did not live to record: the annotations know them."""
    last = (update.get("status") or {}).get("lastRoll") or {}
    found = []
    for container, _verdict in judged:
        follow = container["follow"]
        if not follow:
            continue
        since = last.get("time")
        if follow["at"] > since if since else follow["at"] >= update["metadata"].get("creationTimestamp", ""):
            found.append({**container, "from": follow["from"], "to": container["spec_image"], "time": follow["at"]})
    return sorted(found, key=lambda roll: roll["time"])


def seen_for(before: Status, container: Container, digest: str | None, now: str) -> int:
    """Seconds since the status first named `digest` as what this container waits to be rolled to; 0 where it is new."""
    for entry in before.get("pending") or ():
        if (entry["workload"], entry["container"], entry["digest"]) == (*place(container), digest):
            return int((conditions.moment(now) - conditions.moment(entry["firstSeen"])).total_seconds())
    return 0


def _pending(before: Status, judged: Judged, now: str) -> list[dict[str, str]]:
    """What is seen and has to be stable first, since when."""
    known = {(x["workload"], x["container"], x["digest"]): x["firstSeen"] for x in before.get("pending") or ()}
    found = []
    for container, verdict in judged:
        if verdict.reason != "unstable" or not verdict.candidate:
            continue
        key = (*place(container), verdict.candidate)
        names = dict(zip(("workload", "container", "digest"), key, strict=True))
        found.append({**names, "firstSeen": known.get(key, now)})
    return found


def place(container: Container) -> tuple[str, str]:
    """What tells one container from another: `Kind/name` and the container's name."""
    return workload_name(container["workload"]), container["container"]


def _first_published(judged: Judged) -> Status:
    """The three fields as first published, of the first followed container."""
    if not judged:
        return {}
    container, verdict = next((pair for pair in judged if not pair[0]["pinned"]), judged[0])
    first = container["running"][0] if container["running"] else {}
    values = {
        "run_name": container["image"],
        "run_id": first.get("image_id"),
        "registory_id": verdict.candidate or container.get("published"),
    }
    return {key: value for key, value in values.items() if value}


def _flags(before: Status, judged: Judged, rolled: Rolls) -> dict[str, bool]:
    """`check_id,update`: false,false until a difference is found, true,false while it stands, true,true once rolled."""
    if standing(judged, rolled) or any(_waits_its_turn(*pair) for pair in judged):
        return {"check_id": True, "update": False}
    if rolled:
        return {"check_id": True, "update": True}
    found = bool(before.get("check_id"))
    settled = found and bool(judged) and all(verdict.verdict == CURRENT for _container, verdict in judged)
    return {"check_id": found, "update": bool(before.get("update")) or settled}


def _key(entry: t.Mapping[str, t.Any]) -> tuple[str, str]:
    return workload_name(entry["workload"]), entry["container"]


def standing(judged: Judged, rolled: Rolls) -> Judged:
    """Differences that nothing was done about: held ones, and those whose roll failed."""
    done = {_key(roll) for roll in rolled}
    return [
        (container, verdict)
        for container, verdict in judged
        if verdict.verdict == STALE
        and verdict.reason != "rollout_in_progress"
        and not (verdict.rolls and _key(container) in done)
    ]


def _waits_its_turn(container: Container, verdict: Verdict) -> bool:
    """Held by another rollout: unlike one that is on its way, the spec does not have what was found."""
    held = verdict.verdict == STALE and verdict.reason == "rollout_in_progress"
    return held and not carries(container["spec_image"], verdict.candidate or "")


def _keep_last_known(before: Status, status: Status, images: list[dict[str, t.Any]]) -> None:
    """Where a registry does not answer, what it named last stays; RegistryReachable says since when it is old."""
    known = {(x["workload"], x["container"], x["image"]): x.get("published") for x in before.get("images") or ()}
    for image in images:
        last = known.get((image["workload"], image["container"], image["image"]))
        if image["verdict"] == UNKNOWN and last:
            image.setdefault("published", last)
    if images and images[0]["verdict"] == UNKNOWN and before.get("registory_id"):
        status.setdefault("registory_id", before["registory_id"])


def _image(container: Container, verdict: Verdict) -> dict[str, t.Any]:
    entry = {
        "workload": workload_name(container["workload"]),
        "container": container["container"],
        "image": container["image"],
        "follow": container["reference"] if container["follow"] else None,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "message": verdict.message[:1024],
        "running": [
            {"digest": item["digest"], "kind": item["id_kind"], "pods": item["pods"]} for item in container["running"]
        ],
        "published": container.get("published"),
    }
    return {key: value for key, value in entry.items() if value is not None}


def _fitting(images: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """As much as an object may hold: messages go first, then what is current, then the end."""
    if _size(images) <= IMAGES_BYTES:
        return images
    images = [{key: value for key, value in image.items() if key != "message"} for image in images]
    if _size(images) > IMAGES_BYTES:
        images = [image for image in images if image["verdict"] != CURRENT]
    room, kept = IMAGES_BYTES, []
    for image in images:
        room -= _size(image)
        if room >= 0:
            kept.append(image)
    return kept


def _size(value: t.Any) -> int:
    return len(json.dumps(value)) + 2


def workload_name(workload: t.Mapping[str, t.Any]) -> str:
    """`Kind/name`, as kubectl writes it."""
    return f"{workload['kind']}/{workload['name']}"


def _roll_entry(roll: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {
        "workload": workload_name(roll["workload"]),
        "container": roll["container"],
        "from": roll["from"],
        "to": roll["to"],
        "time": roll["time"],
    }


def _condition_values(judged: Judged, rolled: Rolls, missing: t.Sequence[str] = ()) -> list[tuple[str, str, str, str]]:
    open_ones = standing(judged, rolled)
    held = {place(container) for container, _verdict in open_ones}
    rolling = [pair for pair in judged if place(pair[0]) not in held and _is_rolling(*pair)]
    return [_up_to_date(judged, missing), _rolling(rolling), _blocked(open_ones), _reachable(judged)]


def _is_rolling(container: Container, verdict: Verdict) -> bool:
    """Also where the first new Pods run what is published, and old ones are left."""
    return verdict.verdict == STALE or (bool(container["follow"]) and is_replacing(container["rollout"]))


def _up_to_date(judged: Judged, missing: t.Sequence[str]) -> tuple[str, str, str, str]:
    absent = f"; there is no {_some(missing)}" if missing else ""
    if not judged:
        return "UpToDate", "Unknown", "NoWorkload", f"no workload was found to look at{absent}"
    found = counts(verdict for _container, verdict in judged)
    message = ", ".join(f"{number} {kind}" for kind, number in found.items() if number) + absent
    if found[STALE]:
        return "UpToDate", "False", "Stale", message
    if found[UNKNOWN]:
        return "UpToDate", "Unknown", "Unknown", message
    if missing:
        return "UpToDate", "Unknown", "TargetNotFound", message
    return "UpToDate", "True", "Current", message


def _rolling(rolling: Judged) -> tuple[str, str, str, str]:
    if rolling:
        return "Rolling", "True", "RolloutInProgress", f"rolling: {_names(rolling)}"
    return "Rolling", "False", "Idle", "no rollout is in progress"


def _blocked(open_ones: Judged) -> tuple[str, str, str, str]:
    if open_ones:
        reasons = ", ".join(sorted({verdict.reason for _container, verdict in open_ones}))
        return "RolloutBlocked", "True", "Held", f"held ({reasons}): {_names(open_ones)}"
    return "RolloutBlocked", "False", "NotHeld", "nothing is held"


def _reachable(judged: Judged) -> tuple[str, str, str, str]:
    missed = [pair for pair in judged if pair[1].reason in _NOT_REACHED]
    if missed:
        return "RegistryReachable", "False", "LookupFailed", f"not looked up: {_names(missed)}"
    return "RegistryReachable", "True", "Reached", "every registry that was asked answered"


def _names(judged: Judged) -> str:
    return _some([f"{workload_name(c['workload'])} {c['container']} ({v.reason})" for c, v in judged])


def _some(names: t.Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

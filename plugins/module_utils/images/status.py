# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of an Update: from the last one and this pass's verdicts to the next. Pure.

The operator rebuilds the list of conditions when it writes its own: it keeps ours without their observedGeneration,
so none is set, and resets times that are not of the form `2006-01-02T15:04:05Z`.
"""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images import update_conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images.follow import carries
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import (
    Container,
    Judged,
    Rolls,
    counts,
    place,
    standing,
    waits_its_turn,
    workload_name,
)
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import CURRENT, STALE, UNKNOWN, Verdict
from ansible_collections.kubesteward.core.plugins.module_utils.texts import NAME, cut

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass

Status = dict[str, t.Any]

HISTORY = 10
#: etcd takes objects of 1.5 MiB; the rest of the status and the managed fields need room too
IMAGES_BYTES = 1_000_000
_OURS = (
    *("run_name", "run_id", "registory_id", "check_id", "update", "observedGeneration", "images", "counts"),
    *("lastRoll", "pending", "quarantine", "history", "conditions", "staleSince"),
)


def following(update: t.Mapping[str, t.Any], done: Pass, now: str, missing: t.Sequence[str] = ()) -> Status:
    """The status after a pass, without `lastCheckTime`.

    :param update: the Update as it is now
    :param done: verdicts (a container's key `published` is the digest its tag names) and what was carried out
    :param now: `2006-01-02T15:04:05Z`
    :param missing: workloads that were asked for by name and do not exist, `Kind/name`
    """
    before, judged = update.get("status") or {}, done.judged
    rolled = [*_unrecorded(update, judged), *({**roll, "time": now} for roll in done.rolled)]
    status: Status = {**_first_published(judged), **_flags(before, judged, rolled)}
    status["observedGeneration"] = update["metadata"].get("generation", 0)
    images = [_image(container, verdict) for container, verdict in judged]
    _keep_last_known(before, status, images)
    since = _stale_since(before, images, now)
    if since:
        status["staleSince"] = since
    status["images"] = _fitting(images)
    status["counts"] = counts(verdict for _container, verdict in judged)
    entries = [_roll_entry(roll) for roll in rolled]
    if entries:
        status["lastRoll"] = entries[-1]
    elif before.get("lastRoll"):
        status["lastRoll"] = before["lastRoll"]
    status["pending"] = _pending(before, judged, now)
    status["quarantine"] = _quarantine(before, done, now)
    outcomes = [{**entry, "outcome": "rolled"} for entry in entries] + _outcomes(before, status, done, now)
    status["history"] = [*(before.get("history") or ()), *outcomes][-HISTORY:]
    _tell_outcome(status, outcomes)
    known = before.get("conditions") or ()
    status["conditions"] = conditions.stamped(known, _told(known, judged, rolled, missing), now)
    return status


def _told(
    before: t.Iterable[t.Mapping[str, t.Any]], judged: Judged, rolled: Rolls, missing: t.Sequence[str]
) -> list[update_conditions.Condition]:
    """Conditions; the rare ones only where they say something, or were there: the operator keeps what it knows."""
    known = {condition["type"] for condition in before}
    found = update_conditions.values(judged, rolled, missing)
    return [x for x in found if x[0] not in update_conditions.RARE or x[1] == "True" or x[0] in known]


def _tell_outcome(status: Status, outcomes: t.Sequence[t.Mapping[str, str]]) -> None:
    """What became of the last roll, beside it: a date alone looks as if all went well."""
    last = status.get("lastRoll") or {}
    for entry in outcomes:
        is_its_own = all(entry[key] == last.get(key) for key in ("workload", "container"))
        if is_its_own and last.get("to") in (entry["to"], entry.get("from")):
            last = status["lastRoll"] = {**last, "outcome": entry["outcome"]}


def _quarantine(before: Status, done: Pass, now: str) -> list[dict[str, str]]:
    """Digests that failed: what the annotations have in quarantine, or get in this pass, or nobody takes back."""
    known = {(x["workload"], x["container"], x["digest"]): x for x in before.get("quarantine") or ()}
    rolled = {place(roll) for roll in done.rolled}
    found = []
    for container, verdict in done.judged:
        if place(container) in rolled:
            continue
        failed = ((container["follow"] or container["undone"]) or {}).get("quarantine")
        # one that is to be taken back and could not be is taken back by the next pass
        if verdict.progress and verdict.progress.state == "failed" and verdict.action != "roll_back":
            reason = cut(verdict.progress.message, 256)
            failed = {"digest": container["follow"]["digest"], "reason": reason, "at": now}
        if failed:
            workload, name = place(container)
            key = workload, name, failed["digest"]
            entry = dict(zip(("workload", "container", "digest"), key, strict=True))
            # the seconds in a reason must not make it news in every pass
            found.append(known.get(key) or {**entry, "reason": failed["reason"], "since": failed["at"]})
    return found


def _outcomes(before: Status, status: Status, done: Pass, now: str) -> list[dict[str, str]]:
    """What became of earlier rolls, for the history: told once, also where an earlier pass did not live to tell it."""
    known = {(x["workload"], x["container"], x["digest"]) for x in before.get("quarantine") or ()}
    found = _proven(before, done, now)
    containers = {place(container): container for container, _verdict in done.judged}
    taken_back = {place(roll): roll for roll in done.rolled_back}
    last = {(x["workload"], x["container"]): x for x in before.get("history") or ()}
    for entry in status["quarantine"]:
        key = entry["workload"], entry["container"]
        if (*key, entry["digest"]) in known and key not in taken_back:
            continue
        spec_image = containers[key]["spec_image"]
        # a pass that did not live to tell it wrote down where it came from
        memory = containers[key]["follow"] or containers[key]["undone"]
        failed = spec_image if key in taken_back else memory["from"]
        goes = {"from": failed, "to": spec_image, "outcome": "rolledBack"}
        if key in taken_back:
            roll = taken_back[key]
            goes = {**goes, "to": roll["to"], "time": now, "message": roll.get("message") or entry["reason"]}
        if key not in taken_back and carries(spec_image, entry["digest"]):
            goes = {"to": spec_image, "outcome": "failed"}
            told = last.get(key) or {}
            if (told.get("to"), told.get("outcome")) == (spec_image, "failed"):
                # what crashes again and again is well in between
                continue
        names = {"workload": key[0], "container": key[1], "time": entry["since"], "message": entry["reason"]}
        found.append({**names, **goes})
    found += _failed_ways_back(done, last, now)
    return sorted(found, key=lambda entry: entry["time"])


def _failed_ways_back(
    done: Pass, last: t.Mapping[tuple[str, str], t.Mapping[str, str]], now: str
) -> t.Iterator[dict[str, str]]:
    """What went back and does not come up, each once."""
    taken_back = {place(roll) for roll in done.rolled_back}
    failing = [
        (place(container), container["spec_image"], verdict.progress)
        for container, verdict in done.judged
        if verdict.progress and verdict.progress.reason == "RollbackFailed" and place(container) not in taken_back
    ]
    # of more than the history holds those that fall out would be told in every pass
    for key, image, progress in failing[:HISTORY]:
        told = last.get(key) or {}
        if (told.get("to"), told.get("outcome")) != (image, "failed"):
            names = {"workload": key[0], "container": key[1], "time": now, "message": cut(progress.message, 512)}
            yield {**names, "to": image, "outcome": "failed"}


def _proven(before: Status, done: Pass, now: str) -> list[dict[str, str]]:
    """Rolls of the history whose trial is over and whose rollout is complete; each is told once."""
    settled = {place(roll) for roll in done.settled}
    last = {(x["workload"], x["container"], x.get("to")): x for x in before.get("history") or ()}
    found = []
    for container, _verdict in done.judged:
        key, follow = place(container), container["follow"]
        entry = last.get((*key, container["spec_image"]))
        if not (entry and follow and entry["outcome"] == "rolled" and container["rollout"]["complete"]):
            continue
        if key in settled or not follow.get("trial"):
            found.append({**entry, "time": now, "outcome": "done"})
    return found


def is_news(before: Status, after: Status) -> bool:
    """Does `after` say anything that `before` does not?"""
    return any(_comparable(before, key) != _comparable(after, key) for key in _OURS)


def _comparable(status: Status, key: str) -> t.Any:
    value = status.get(key)
    if key == "images":
        # a message may carry a moment's figures, e.g. a time to wait: alone it is no news
        return [{name: item[name] for name in item if name != "message"} for item in value or ()]
    if key == "conditions":
        ours = update_conditions.TYPES
        return {
            x["type"]: (x.get("status"), x.get("reason"), _without_figures(x.get("message") or ""))
            for x in value or ()
            if x["type"] in ours
        }
    return value or None


def _without_figures(message: str) -> str:
    """Time that passes is no news, nor is one more restart of what restarts again and again."""
    return re.sub(r"\b[0-9]+ (s|restarts)\b", "", message)


def is_settled(judged: Judged, rolled: t.Sequence[t.Any]) -> bool:
    """True where nothing is in progress and nothing is left to find out: a one-time Update has done its work."""
    return (
        bool(judged)
        and not rolled
        and all(verdict.verdict == CURRENT and not _is_in_progress(container, verdict) for container, verdict in judged)
    )


def _is_in_progress(container: Container, verdict: Verdict) -> bool:
    """A roll of ours until it is complete and nothing is wrong with it; a rollout of others while it gets on."""
    rollout = container["rollout"]
    if verdict.progress:
        return not verdict.progress.healthy
    is_stuck = bool(rollout["failing"]) or rollout["deadline_exceeded"]
    return not rollout["complete"] and (bool(container["follow"]) or not is_stuck)


def _unrecorded(update: t.Mapping[str, t.Any], judged: Judged) -> list[dict[str, t.Any]]:
    """Rolls that an earlier pass carried out and did not live to record: the annotations know them."""
    last = (update.get("status") or {}).get("lastRoll") or {}
    found = []
    for container, _verdict in judged:
        follow = container["follow"]
        # a way back is no roll, and another Update's is not ours
        if not follow or follow.get("by") != update["metadata"]["name"] or follow.get("quarantine"):
            continue
        since = last.get("time")
        if follow["at"] > since if since else follow["at"] >= update["metadata"].get("creationTimestamp", ""):
            found.append({**container, "from": follow["from"], "to": container["spec_image"], "time": follow["at"]})
    return sorted(found, key=lambda roll: roll["time"])


def seen_for(before: Status, container: Container, digest: str | None, now: str) -> int:
    """Seconds since the status first named `digest` as what this container waits to be rolled to; 0 where it is new."""
    for entry in before.get("pending") or ():
        if (entry["workload"], entry["container"], entry["digest"]) == (*place(container), digest):
            return conditions.age(entry["firstSeen"], now) or 0
    return 0


def _pending(before: Status, judged: Judged, now: str) -> list[dict[str, str]]:
    """What is seen and has to be stable first, since when."""
    # what is no time of ours would never become older
    told = [x for x in before.get("pending") or () if conditions.age(x["firstSeen"], now) is not None]
    known = {(x["workload"], x["container"], x["digest"]): x["firstSeen"] for x in told}
    found = []
    for container, verdict in judged:
        if verdict.reason != "unstable" or not verdict.candidate:
            continue
        key = (*place(container), verdict.candidate)
        names = dict(zip(("workload", "container", "digest"), key, strict=True))
        found.append({**names, "firstSeen": known.get(key, now)})
    return found


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
    return {key: cut(value, NAME) for key, value in values.items() if value}


def _flags(before: Status, judged: Judged, rolled: Rolls) -> dict[str, bool]:
    """`check_id,update`: false,false until a difference is found, true,false while it stands, true,true once rolled."""
    if standing(judged, rolled) or any(waits_its_turn(*pair) for pair in judged):
        return {"check_id": True, "update": False}
    if rolled:
        return {"check_id": True, "update": True}
    found = bool(before.get("check_id"))
    settled = found and bool(judged) and all(verdict.verdict == CURRENT for _container, verdict in judged)
    return {"check_id": found, "update": bool(before.get("update")) or settled}


def _keep_last_known(before: Status, status: Status, images: list[dict[str, t.Any]]) -> None:
    """Where a registry does not answer, what it named last stays; RegistryReachable says since when it is old."""
    known = {(x["workload"], x["container"], x["image"]): x.get("published") for x in before.get("images") or ()}
    for image in images:
        last = known.get((image["workload"], image["container"], image["image"]))
        if image["verdict"] == UNKNOWN and last:
            image.setdefault("published", last)
    if images and images[0]["verdict"] == UNKNOWN and before.get("registory_id"):
        status.setdefault("registory_id", before["registory_id"])


def _stale_since(before: Status, images: list[dict[str, t.Any]], now: str) -> str | None:
    """Write down since when each image is stale; the oldest of those times.

    One that is unknown for a while keeps its time: a registry that answers now and then makes nothing younger.
    """
    listed = before.get("images") or ()
    known = {(x["workload"], x["container"]): x.get("staleSince") for x in listed}
    # of what a full status had no room for only the oldest time is known; what was current goes first, and had none
    counted, kept = before.get("counts") or {}, sum(x["verdict"] != CURRENT for x in listed)
    unlisted = before.get("staleSince") if counted.get(STALE, 0) + counted.get(UNKNOWN, 0) > kept else None
    for image in images:
        last = known.get((image["workload"], image["container"]), unlisted)
        since = last or now if image["verdict"] == STALE else last if image["verdict"] == UNKNOWN else None
        if since:
            image["staleSince"] = since
    # the form of the times sorts as they do
    return min((x["staleSince"] for x in images if x["verdict"] == STALE), default=None)


def _image(container: Container, verdict: Verdict) -> dict[str, t.Any]:
    entry = {
        "workload": workload_name(container["workload"]),
        "container": container["container"],
        "image": cut(container["image"], NAME),
        "follow": cut(container["reference"], NAME) if container["follow"] else None,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "message": cut(verdict.message),
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


def _roll_entry(roll: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {
        "workload": workload_name(roll["workload"]),
        "container": roll["container"],
        "from": cut(roll["from"], NAME),
        "to": cut(roll["to"], NAME),
        "time": roll["time"],
    }

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events: what a pass has to say that the pass before did not say."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import status
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import (
    place,
    standing,
    workload_name,
)
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import UNKNOWN
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass

Object = dict[str, t.Any]

#: Events on verdicts in one pass
MOST_NEWS = 20


def roll_events(done: Pass) -> list[Object]:
    """One Event on its workload for each container that was rolled, taken back or has proven itself."""
    found: list[Object] = []
    for reason, kind, rolls in (
        ("ImageRolled", "Normal", done.rolled),
        ("RolledBack", "Warning", done.rolled_back),
        ("RollSettled", "Normal", done.settled),
    ):
        for roll in rolls:
            name = f"{workload_name(roll['workload'])} {roll['container']}"
            message = f"{name}: {roll['from']} -> {roll['to']}"
            if roll.get("message"):
                message += f": {roll['message']}"
            if reason == "RollSettled":
                message = f"{name}: {roll['to']} runs steadily"
            found.append({"reason": reason, "type": kind, "message": message, "about": _about(roll["workload"])})
    for freed in done.freed:
        message = f"deleted Pod {freed['pod']}, which was broken and kept the rollout from going on"
        about = _about(freed["workload"])
        found.append({"reason": "StuckPodDeleted", "type": "Warning", "message": message, "about": about})
    return found


def release_events(done: Pass) -> list[Object]:
    """One Event on its workload for each container whose image was ours, and is somebody else's from now on."""
    found: list[Object] = []
    for item in done.released:
        for image in item["images"]:
            what = image["from"] if image["to"] == image["from"] else f"{image['from']} -> {image['to']}"
            more = f"; {image['message']}" if image["message"] else ""
            message = f"{workload_name(item['workload'])} {image['container']}: {what}{more}"
            found.append(
                {"reason": "Released", "type": "Normal", "message": message, "about": _about(item["workload"])}
            )
    return found


def _about(workload: Object) -> Object:
    return {key: value for key, value in workload.items() if key in ("kind", "name", "api_version", "uid")}


def events(done: Pass, before: status.Status) -> list[Object]:
    """What is new in this pass, {`reason`, `type`, `message`, `about`}; an unchanged pass has none."""
    found = roll_events(done)
    update, judged = done.update, done.judged
    if update is None:
        return found
    about = {"kind": "Update", "name": update["metadata"]["name"], "api_version": INSTALL_GROUP}
    about["uid"] = update["metadata"]["uid"]
    found += [{**event, "about": about} for event in found]
    found += _failures(done, before, about)
    known = {(x["workload"], x["container"]): (x["verdict"], x["reason"]) for x in before.get("images") or ()}
    held = {place(container) for container, _verdict in standing(judged, done.rolled)}
    news: list[Object] = []
    for container, verdict in judged:
        name = workload_name(container["workload"])
        worth_telling = verdict.verdict == UNKNOWN or place(container) in held
        if not worth_telling or known.get((name, container["container"])) == (verdict.verdict, verdict.reason):
            continue
        normal = verdict.reason in ("waiting", "no_pods", "suspended", "dry_run", "unstable")
        reason = "VerdictUnknown" if verdict.verdict == UNKNOWN else "RollHeld"
        message = f"{name} {container['container']}: {verdict.reason}: {verdict.message}"
        news.append({"reason": reason, "type": "Normal" if normal else "Warning", "message": message, "about": about})
    found += _capped(news)
    found += [{**event, "about": about} for event in _volumes(done, before)]
    was_empty = any(x["type"] == "UpToDate" and x.get("reason") == "NoWorkload" for x in before.get("conditions") or ())
    if not judged and not was_empty:
        message = "no workload was found to look at; the next pass looks again"
        found.append({"reason": "NoWorkload", "type": "Normal", "message": message, "about": about})
    return found


def _volumes(done: Pass, before: status.Status) -> list[Object]:
    """What no pass follows is told once, and again where it becomes more or less."""
    told: list[Object] = [
        next((x for x in conditions or () if x["type"] == "ImageVolumeNotFollowed" and x["status"] == "True"), {})
        for conditions in ((done.status or {}).get("conditions"), before.get("conditions"))
    ]
    if not told[0] or told[0]["message"] == told[1].get("message"):
        return []
    return [{"reason": "ImageVolumeNotFollowed", "type": "Normal", "message": told[0]["message"]}]


def _failures(done: Pass, before: status.Status, about: Object) -> list[Object]:
    """Rolls that fail and stay: nobody takes them back. Told with the history, once."""
    known = before.get("history") or ()
    back = {
        place(container): _about(container["workload"])
        for container, verdict in done.judged
        if verdict.progress and verdict.progress.reason == "RollbackFailed"
    }
    failed = [x for x in (done.status or {}).get("history") or () if x["outcome"] == "failed" and x not in known]
    return [
        {
            "reason": "RollbackFailed" if went_back else "RolloutFailed",
            "type": "Warning",
            "message": f"{entry['workload']} {entry['container']}: {entry['to']}: {entry['message']}",
            "about": who,
        }
        for entry in failed
        for went_back in [(entry["workload"], entry["container"]) in back]
        # a roll that nobody takes back is the Update's doing; who looks at the workload must see what keeps it down
        for who in ([about, back[entry["workload"], entry["container"]]] if went_back else [about])
    ]


def _capped(news: list[Object]) -> list[Object]:
    """A registry that fails makes news of everything at once: the first ones, and how many more there are."""
    if len(news) <= MOST_NEWS:
        return news
    rest = len(news) - MOST_NEWS + 1
    summary = {**news[MOST_NEWS - 1], "message": f"{rest} more containers have a new verdict; see status.images"}
    return [*news[: MOST_NEWS - 1], summary]

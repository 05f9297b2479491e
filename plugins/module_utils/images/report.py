# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a pass for machines and for people. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import status, update_conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import CURRENT, STALE, Verdict

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass

_COLUMNS = ("WORKLOAD", "CONTAINER", "VERDICT", "REASON", "RUNNING", "PUBLISHED")
#: messages below the table
_NOTES = 20
_NOTHING = "Nothing to look at: the namespace has no Start with a Deployment, or none of the named workloads exists"


def result(done: Pass, with_diff: bool, nothing_ran: bool = False) -> dict[str, t.Any]:
    """The documented result of image_rollout.

    :param nothing_ran: there was no container to look at
    """
    verdicts = [_entry(container, verdict) for container, verdict in done.judged]
    patched = {status.place(roll) for roll in done.rolled}
    found: dict[str, t.Any] = {
        "changed": bool(
            done.images_written or done.settled or done.freed or done.released or done.wrote_status or done.deleted
        ),
        "verdicts": verdicts,
        "counts": status.counts(verdict for _container, verdict in done.judged),
        "rolled": done.rolled,
        "rolled_back": done.rolled_back,
        "settled": done.settled,
        "freed": done.freed,
        "held": [entry for entry in verdicts if entry["verdict"] == STALE and status.place(entry) not in patched],
        "released": done.released,
        "starts": done.starts,
        "deleted": done.deleted,
        "table": [*table(done, patched), *notes(done, patched), *([_NOTHING] if nothing_ran else [])],
    }
    if done.status is not None:
        found["status"] = done.status
    if with_diff:
        found["diff"] = diff(done)
    return found


def aggregated(errors: t.Sequence[str]) -> str:
    """One message for everything that went wrong; the rest of the pass was done."""
    if len(errors) == 1:
        return errors[0]
    return f"{len(errors)} objects could not be written, the others were: " + "; ".join(errors)


def _entry(container: t.Mapping[str, t.Any], verdict: Verdict) -> dict[str, t.Any]:
    return {
        "workload": container["workload"],
        "container": container["container"],
        "image": container["image"],
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "message": verdict.message,
        "running": [item["digest"] for item in container["running"]],
        "published": container["published"],
    }


def table(done: Pass, patched: t.Container[tuple[str, str]]) -> list[str]:
    """The verdicts as aligned lines, digests cut to 12 digits."""
    rows = [_COLUMNS]
    for container, verdict in done.judged:
        name = status.workload_name(container["workload"])
        said = "rolled" if (name, container["container"]) in patched else verdict.verdict
        running = ",".join(_short(item["digest"]) for item in container["running"][:3])
        more = len(container["running"]) - 3
        running += f" and {more} more" if more > 0 else ""
        cells = (name, container["container"], said, verdict.reason, running or "-", _short(container["published"]))
        rows.append(cells)
    widths = [max(len(row[index]) for row in rows) for index in range(len(_COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def notes(done: Pass, patched: t.Container[tuple[str, str]]) -> list[str]:
    """Why containers are unknown or held, and what was released: a reason alone names no host and no Secret."""
    messages: dict[str, None] = {}
    for container, verdict in done.judged:
        key = status.workload_name(container["workload"]), container["container"]
        if verdict.verdict != CURRENT and key not in patched and verdict.message:
            messages[f"{key[0]} {key[1]}: {verdict.message}"] = None
    for name in update_conditions.image_volumes(done.judged):
        messages[f"{name}: images of volumes are not followed"] = None
    for item in done.released:
        messages[f"{item['owner']['kind']}/{item['owner']['name']} {', '.join(item['containers'])}: released"] = None
    found = list(messages)
    more = len(found) - _NOTES
    return [*found[:_NOTES], *([f"and {more} more"] if more > 0 else [])]


def _short(digest: str | None) -> str:
    return (digest or "-").rpartition(":")[2][:12]


def diff(done: Pass) -> list[dict[str, str]]:
    """Which container would move from which image and digests to which, and what the Update's status would say."""
    running = {
        status.place(container): [item["digest"] for item in container["running"]] for container, _ in done.judged
    }
    found = []
    for roll in done.images_written:
        name = status.workload_name(roll["workload"])
        header = f"{name} container {roll['container']}"
        before = [f"image: {roll['from']}", *(f"runs: {x}" for x in running[status.place(roll)])]
        found.append(_change(header, before, [f"image: {roll['to']}"]))
    for roll in done.settled:
        header = f"{status.workload_name(roll['workload'])} container {roll['container']}"
        found.append(_change(header, ["trial: true"], []))
    for item in done.freed:
        found.append(_change(f"Pod/{item['pod']}", ["state: present"], ["state: absent"]))
    for item in done.released:
        header = f"{item['owner']['kind']}/{item['owner']['name']}"
        found.append(_change(header, [f"follow: {name}" for name in item["containers"]], []))
    if done.wrote_status and done.update and done.status is not None:
        header = f"Update/{done.update['metadata']['name']} status"
        before = (done.update.get("status")) or {}
        found.append(_change(header, _status_lines(before), _status_lines(done.status)))
    if done.deleted and done.update:
        found.append(_change(f"Update/{done.update['metadata']['name']}", ["state: present"], ["state: absent"]))
    return found


def _change(header: str, before: t.Sequence[str], after: t.Sequence[str]) -> dict[str, str]:
    return {
        "before_header": header,
        "after_header": header,
        "before": "".join(f"{line}\n" for line in before),
        "after": "".join(f"{line}\n" for line in after),
    }


def _status_lines(value: t.Mapping[str, t.Any]) -> list[str]:
    lines = [f"{key}: {str(bool(value.get(key))).lower()}" for key in ("check_id", "update")]
    for image in value.get("images") or ():
        lines.append(f"{image['workload']} {image['container']}: {image['verdict']} ({image['reason']})")
    return lines

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a pass for machines and for people. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import (
    counts,
    image_volumes,
    place,
    warnings,
    workload_name,
)
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import CURRENT, STALE, UNKNOWN, Verdict
from ansible_collections.kubesteward.core.plugins.module_utils.texts import NAME, cut

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass

COLUMNS = ("WORKLOAD", "CONTAINER", "VERDICT", "REASON", "RUNNING", "PUBLISHED")
VERDICT = COLUMNS.index("VERDICT")
#: messages below the table
_NOTES = 20
_NOTHING = "Nothing to look at: the namespace has no Start with a Deployment, or none of the named workloads exists"


def result(done: Pass, with_diff: bool, nothing_ran: bool = False, is_check: bool = False) -> dict[str, t.Any]:
    """The documented result of image_rollout.

    :param nothing_ran: there was no container to look at
    :param is_check: nothing was written: the table says what would be
    """
    verdicts = [_entry(container, verdict) for container, verdict in done.judged]
    patched = {place(roll) for roll in done.rolled}
    found: dict[str, t.Any] = {
        "changed": bool(
            done.images_written or done.settled or done.freed or done.released or done.wrote_status or done.deleted
        ),
        "verdicts": verdicts,
        "counts": counts(verdict for _container, verdict in done.judged),
        "rolled": done.rolled,
        "rolled_back": done.rolled_back,
        "settled": done.settled,
        "freed": done.freed,
        "held": [entry for entry in verdicts if entry["verdict"] == STALE and place(entry) not in patched],
        "released": done.released,
        "starts": done.starts,
        "deleted": done.deleted,
        "errors": done.errors,
        "table": [
            *table(done, patched, is_check),
            *notes(done, patched, is_check),
            *([_NOTHING] if nothing_ran else []),
        ],
    }
    if done.update:
        found["update_name"] = done.update["metadata"]["name"]
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


#: what a run may be failed for
FAIL_ON = ("unknown", "held", "stale", "rolled_back")


def failures(done: Pass, missing: t.Iterable[str], fail_on: t.Collection[str]) -> list[str]:
    """What of a pass its caller wants to fail for, one line each.

    :param missing: workloads that were asked for by name and do not exist
    :param fail_on: words of `FAIL_ON`: `unknown` (missing ones too), `held` (stale and not rolled), `stale` (rolled or
        not), `rolled_back` (in this pass, or the digest that the tag names is one that was taken back)
    """
    patched = {place(roll) for roll in done.rolled}
    taken = {place(roll) for roll in done.rolled_back}
    found = [f"{name}: there is none" for name in missing if "unknown" in fail_on]
    for container, verdict in done.judged:
        where = place(container)
        words = {
            "unknown": verdict.verdict == UNKNOWN,
            "held": verdict.verdict == STALE and where not in patched,
            "stale": verdict.verdict == STALE,
            "rolled_back": where in taken or verdict.reason == "quarantined",
        }
        if any(words[word] for word in fail_on):
            why = f"{verdict.verdict} ({verdict.reason})" + (f": {verdict.message}" if verdict.message else "")
            found.append(f"{' '.join(where)}: {why}")
    return found


def _entry(container: t.Mapping[str, t.Any], verdict: Verdict) -> dict[str, t.Any]:
    return {
        "workload": container["workload"],
        "container": container["container"],
        "image": cut(container["image"], NAME),
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "message": verdict.message,
        "running": [item["digest"] for item in container["running"]],
        "published": container["published"],
    }


def table(done: Pass, patched: t.Container[tuple[str, str]], is_check: bool = False) -> list[str]:
    """The verdicts as aligned lines, digests cut to 12 digits."""
    return aligned([COLUMNS, *rows(done, patched, is_check)])


def rows(done: Pass, patched: t.Container[tuple[str, str]], is_check: bool) -> list[tuple[str, ...]]:
    """A row of texts for each container."""
    found: list[tuple[str, ...]] = []
    for container, verdict in done.judged:
        name = workload_name(container["workload"])
        said = ("would roll" if is_check else "rolled") if place(container) in patched else verdict.verdict
        running = ",".join(_short(item["digest"]) for item in container["running"][:3])
        more = len(container["running"]) - 3
        running += f" and {more} more" if more > 0 else ""
        cells = (name, container["container"], said, verdict.reason, running or "-", _short(container["published"]))
        found.append(cells)
    return found


def aligned(lines: t.Sequence[t.Sequence[str]]) -> list[str]:
    """Rows of one length as lines with their columns below each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def notes(done: Pass, patched: t.Container[tuple[str, str]], is_check: bool = False) -> list[str]:
    """Why containers are unknown or held, and what else was written: a reason alone names no host and no Secret."""
    was = "would be" if is_check else "was"
    messages: dict[str, None] = {}
    for container, verdict in done.judged:
        key = workload_name(container["workload"]), container["container"]
        is_told = verdict.verdict != CURRENT or verdict.reason == "on_trial"
        if is_told and key not in patched and verdict.message:
            messages[f"{key[0]} {key[1]}: {verdict.message}"] = None
    for warning in warnings(done.judged):
        messages[warning] = None
    for name in image_volumes(done.judged):
        messages[f"{name}: images of volumes are not followed"] = None
    for item in done.released:
        name = f"{item['owner']['kind']}/{item['owner']['name']}"
        messages.update((f"{name} {x['container']}: {x['message']}", None) for x in item["images"] if x["message"])
    for item in done.released:
        owner = f"{item['owner']['kind']}/{item['owner']['name']} {', '.join(item['containers'])}"
        messages[f"{owner}: {'would be released' if is_check else 'released'}"] = None
    for roll in done.settled:
        name = f"{workload_name(roll['workload'])} {roll['container']}"
        messages[f"{name}: its roll has run well, which {was} written down (settled)"] = None
    for item in done.freed:
        messages[f"{workload_name(item['workload'])}: its broken Pod {item['pod']} {was} deleted"] = None
    found = list(messages)
    more = len(found) - _NOTES
    return [*found[:_NOTES], *([f"and {more} more"] if more > 0 else [])]


def _short(digest: str | None) -> str:
    return (digest or "-").rpartition(":")[2][:12]


def diff(done: Pass) -> list[dict[str, str]]:
    """Which container would move from which image and digests to which, and what the Update's status would say."""
    running = {
        place(container): [item["digest"] for item in container["running"]] for container, _verdict in done.judged
    }
    found = []
    for roll in done.images_written:
        name = workload_name(roll["workload"])
        header = f"{name} container {roll['container']}"
        before = [f"image: {roll['from']}", *(f"runs: {x}" for x in running[place(roll)])]
        found.append(_change(header, before, [f"image: {roll['to']}"]))
    for roll in done.settled:
        header = f"{workload_name(roll['workload'])} container {roll['container']}"
        found.append(_change(header, ["trial: true"], []))
    for item in done.freed:
        found.append(_change(f"Pod/{item['pod']}", ["state: present"], ["state: absent"]))
    for item in done.released:
        header = f"{item['owner']['kind']}/{item['owner']['name']}"
        for image in item["images"]:
            if image["to"] != image["from"]:
                lines = [f"image: {image['from']}"], [f"image: {image['to']}"]
                found.append(_change(f"{header} container {image['container']}", *lines))
        found.append(_change(header, [f"follow: {name}" for name in item["containers"]], []))
    if done.wrote_status and done.update and done.status is not None:
        header = f"Update/{done.update['metadata']['name']} status"
        found.append(_change(header, _status_lines(done.update.get("status") or {}), _status_lines(done.status)))
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

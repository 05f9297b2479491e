# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All containers of a pass together: their verdicts, the trials of earlier rolls, how many may roll at once. Pure."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import nodes as for_nodes
from ansible_collections.kubesteward.core.plugins.module_utils.images import status, trial
from ansible_collections.kubesteward.core.plugins.module_utils.images.inventory import lookup_key, platforms_of
from ansible_collections.kubesteward.core.plugins.module_utils.images.running import parse_image_id
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import workload_name
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import (
    STALE,
    Container,
    Policy,
    Published,
    Verdict,
    decide,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references

Judged = list[tuple[Container, Verdict]]


def judge(
    containers: t.Iterable[Container],
    published: t.Iterable[Published],
    policy: Policy,
    before: status.Status | None = None,
    now: str = "",
    nodes: t.Callable[[], t.Mapping[str, str] | None] = dict,
    platforms: t.Sequence[str] = (),
) -> Judged:
    """A verdict for every container, each with the keys `published`, `seen_for` and `gone` beside those it came with.

    :param published: registry_digest's entries, in any order
    :param before: the Update's status, which remembers since when a digest is seen
    :param now: `2006-01-02T15:04:05Z`
    :param nodes: gives node name -> platform, or None where Nodes may not be read; called at most once, where an index
        is to be rolled
    :param platforms: those to assume where Nodes may not be read
    """
    by_key = _by_key(published)
    judged: Judged = []
    nodes = functools.cache(nodes)
    for container in containers:
        key = lookup_key(container["reference"], container["pull_secrets"])
        found = by_key.get(key) or by_key.get(container["reference"])
        seen = _seen(container, found, before or {}, now)
        verdict = decide(seen, found, policy)
        if found and _nodes_matter(verdict, seen, found):
            seen["platforms"] = platforms_of(seen, nodes(), platforms)
            seen["nodes_unread"] = nodes() is None
            seen["cluster_platforms"] = sorted(set((nodes() or {}).values()))
            verdict = decide(seen, found, policy)
        judged.append((seen, _on_trial(seen, verdict, found, policy, now)))
    return limit(_spared(judged), policy.max_concurrent)


def _by_key(published: t.Iterable[Published]) -> dict[t.Any, Published]:
    """Entries by look-up; what was asked for all alike, without a proof of one set of secrets, by reference, too."""
    found: dict[t.Any, Published] = {}
    for entry in published:
        found[lookup_key(entry["image"], entry.get("pull_secrets"))] = entry
        if not entry.get("pull_secrets") and entry.get("pullable") is None:
            found.setdefault(entry["image"], entry)
    return found


def _nodes_matter(verdict: Verdict, container: Container, published: Published) -> bool:
    """Whether the nodes' platforms, which are not known yet, may change the verdict."""
    if verdict.verdict != STALE or container["platforms"]:
        return False
    return (verdict.rolls and for_nodes.name_matters(published)) or for_nodes.may_get_the_same(container, published)


def _seen(container: Container, found: Published | None, before: status.Status, now: str) -> dict[str, t.Any]:
    # of a pinned digest only whether it is there is asked: nothing is published for it
    digest = found.get("digest") if found and not container["pinned"] else None
    gone = set(found.get("gone") or ()) if found else set()
    return {
        **container,
        "published": digest,
        "seen_for": status.seen_for(before, container, digest, now),
        "gone": sorted(gone & {*_own_digests(container), container["pinned"]}) if gone else [],
    }


def _own_digests(container: Container) -> set[str]:
    """What runs under the reference's own repository; a runtime may name another, whose digests this one never had."""
    own = references.parse(container["reference"]).name
    found = set()
    for item in container["running"]:
        image_id = parse_image_id(item["image_id"])
        # a name that cannot be read is not the own one
        with contextlib.suppress(StewardError):
            if image_id and image_id.repository and references.parse(image_id.repository).name == own:
                found.add(image_id.digest)
    return found


def _on_trial(container: Container, verdict: Verdict, found: Published | None, policy: Policy, now: str) -> Verdict:
    """The verdict with what the trial of the last roll asks for; a roll to a newer digest comes before a way back."""
    if not container["trial"]:
        return verdict
    answers = found is not None and found["state"] == "found"
    progress = trial.assess(container, now, policy.rollback.deadline, answers, policy.verification)
    action = ""
    if not (policy.suspended or policy.dry_run or verdict.rolls):
        if progress.state == "steady":
            action = "settle"
        elif progress.state == "failed" and policy.rollback.enabled and _has_way_back(container):
            action = "roll_back"
    return dataclasses.replace(verdict, progress=progress, action=action)


def _has_way_back(container: Container) -> bool:
    return bool(container["follow"].get("back")) and not container["controller"]


def rolled_back(container: Container, verdict: Verdict) -> Verdict:
    """The verdict after the previous image went back: what the tag names is quarantined."""
    failed = container["follow"]["digest"]
    why = verdict.progress.message if verdict.progress else ""
    if container.get("published") != failed:
        # the tag has moved on meanwhile, or nobody knows: the next pass looks at that
        return dataclasses.replace(verdict, action="")
    message = f"{failed} failed ({why}); {container['follow']['back']} went back"
    return Verdict(STALE, "quarantined", message, failed, verdict.progress)


def _spared(judged: Judged) -> Judged:
    """Hold what would roll to a digest that failed elsewhere."""
    failed: dict[str, str] = {}
    for container, verdict in judged:
        name = workload_name(container["workload"])
        memory = container["follow"] or container["undone"] or {}
        if memory.get("quarantine"):
            failed[memory["quarantine"]["digest"]] = name
        if verdict.progress and verdict.progress.state == "failed":
            failed[memory["digest"]] = name
    return [
        (container, _held_by_failure(verdict, failed))
        if verdict.rolls and container["retry"] != verdict.candidate
        else (container, verdict)
        for container, verdict in judged
    ]


def _held_by_failure(verdict: Verdict, failed: t.Mapping[str, str]) -> Verdict:
    where = failed.get(t.cast(str, verdict.candidate))
    if not where:
        return verdict
    return dataclasses.replace(verdict, reason="quarantined", message=f"{verdict.candidate} failed on {where}")


def limit(judged: t.Iterable[tuple[Container, Verdict]], most: int) -> Judged:
    """Hold what would make more than `most` workloads roll at the same time; the next passes take it up."""
    pairs = list(judged)
    rolling = {_workload(container) for container, verdict in pairs if _takes_a_place(container, verdict)}
    limited = []
    for container, verdict in pairs:
        if verdict.rolls and _workload(container) not in rolling and len(rolling) >= most:
            message = f"{len(rolling)} workloads are rolling already, and at most {most} may"
            verdict = dataclasses.replace(verdict, reason="rollout_in_progress", message=message)
        elif verdict.rolls:
            rolling.add(_workload(container))
        limited.append((container, verdict))
    return limited


def _takes_a_place(container: Container, verdict: Verdict) -> bool:
    """Rolling, on trial, or broken by what the tag names now, which must not reach more.

    One that is blocked by something else, broken otherwise, or lacks a Pod on a lost node, stops no other.
    """
    rollout, follow = container["rollout"], container["follow"]
    if verdict.progress:
        is_open = verdict.progress.state in ("under_way", "failed")
        # one that was scaled to nothing may stay so for ever
        return is_open and not (rollout["desired"] == 0 and rollout["complete"])
    is_ours = bool(follow) and follow["digest"] == container.get("published")
    others = trial.is_under_way(rollout) and trial.is_replacing(rollout)
    return others or (is_ours and not rollout["complete"])


def _workload(container: Container) -> tuple[str, str]:
    return container["workload"]["kind"], container["workload"]["name"]


def conflicting(judged: Judged, holder: t.Callable[[Container], str | None]) -> Judged:
    """Hold whatever would be written to a workload that an older Update has.

    :param holder: name of the older Update that has a container, or None
    """
    found: Judged = []
    for container, verdict in judged:
        name = holder(container) if verdict.rolls or verdict.action or container["stuck"] else None
        if name:
            message = f"the older Update {name} has this workload; two must not follow one"
            reason = "conflict" if verdict.verdict == STALE else verdict.reason
            progress = verdict.progress
            if progress and progress.state == "failed":
                # what becomes of it is the other one's to do and to tell
                progress = dataclasses.replace(progress, state="blocked")
            verdict = dataclasses.replace(verdict, reason=reason, message=message, action="", progress=progress)
            container = {**container, "stuck": []}
        found.append((container, verdict))
    return found

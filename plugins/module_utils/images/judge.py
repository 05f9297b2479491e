# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All containers of a pass together: their verdicts, the trials of earlier rolls, how many may roll at once. Pure."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import crashes, holds, status, trial, wayback
from ansible_collections.kubesteward.core.plugins.module_utils.images import nodes as for_nodes
from ansible_collections.kubesteward.core.plugins.module_utils.images.follow import carries
from ansible_collections.kubesteward.core.plugins.module_utils.images.inventory import lookup_key, platforms_of
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import workload_name
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import (
    CURRENT,
    STALE,
    Container,
    Policy,
    Published,
    Verdict,
    decide,
)
from ansible_collections.kubesteward.core.plugins.module_utils.texts import cut

Judged = list[tuple[Container, Verdict]]


def judge(
    containers: t.Iterable[Container],
    published: t.Iterable[Published],
    policy: Policy,
    before: status.Status | None = None,
    now: str = "",
    nodes: t.Callable[[], t.Mapping[str, str] | None] = dict,
    platforms: t.Sequence[str] = (),
    namespace: str = "",
) -> Judged:
    """A verdict for every container, each with more keys beside those it came with.

    These are `published`, `seen_for`, `gone` (what runs, or is to run, and is not there any more), `there` and
    `gone_there` (digests that its repository has, and has not), `doubt` (of the way back), and `namespace`.

    :param published: registry_digest's entries, in any order
    :param before: the Update's status, which remembers since when a digest is seen
    :param now: `2006-01-02T15:04:05Z`
    :param nodes: gives node name -> platform, or None where Nodes may not be read; called at most once, where an index
        is to be rolled
    :param platforms: those to assume where Nodes may not be read
    :param namespace: for hints
    """
    found_by = by_key(published)
    judged: Judged = []
    nodes = functools.cache(nodes)
    for container in containers:
        key = lookup_key(container["reference"], container["pull_secrets"])
        found = found_by.get(key) or found_by.get(container["reference"])
        seen = {**_seen(container, found, before or {}, now), "namespace": namespace}
        seen["stuck"] = [x for x in seen["stuck"] if trial.is_in_the_way(x, seen, now, policy.rollback.deadline)]
        verdict = decide(seen, found, policy)
        if found and _nodes_matter(verdict, seen, found):
            seen["platforms"] = platforms_of(seen, nodes(), platforms)
            seen["nodes_unread"] = nodes() is None
            seen["cluster_platforms"] = sorted(set((nodes() or {}).values()))
            verdict = decide(seen, found, policy)
        # it may quote what others wrote
        verdict = dataclasses.replace(verdict, message=cut(verdict.message))
        judged.append((seen, _on_trial(seen, verdict, found, policy, now)))
    return limit(_spared(judged), policy.max_concurrent)


def by_key(published: t.Iterable[Published]) -> dict[t.Any, Published]:
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
    if verdict.rolls and for_nodes.name_matters(published):
        return True
    return for_nodes.may_get_the_same(container, published)


def _seen(container: Container, found: Published | None, before: status.Status, now: str) -> dict[str, t.Any]:
    # of a pinned digest only whether it is there is asked: nothing is published for it
    digest = found.get("digest") if found and not container["pinned"] else None
    gone = set(found.get("gone") or ()) if found else set()
    there = {digest, *(found.get("compared") or ())} if found else set()
    seen = {
        **container,
        "published": digest,
        "seen_for": status.seen_for(before, container, digest, now),
        "warnings": [cut(text) for text in (found or {}).get("warnings") or ()],
        "gone": sorted(gone & {*_expected_there(container), container["pinned"]}) if gone else [],
        "there": sorted(x for x in there if x and x not in gone),
        "gone_there": sorted(gone),
    }
    return {**seen, "doubt": wayback.doubt(seen)}


def _expected_there(container: Container) -> set[str]:
    """What runs under the reference's own repository, and what we wrote into the spec."""
    follow = container["follow"]
    is_ours = follow and carries(container["spec_image"], follow["digest"])
    return wayback.own_digests(container) | ({follow["digest"]} if is_ours else set())


def _on_trial(container: Container, verdict: Verdict, found: Published | None, policy: Policy, now: str) -> Verdict:
    """The verdict with what the trial of the last roll asks for; a roll to a newer digest comes before a way back."""
    if not container["trial"]:
        return verdict
    # that it has no such tag is an answer too
    answers = found is not None and (found["state"] == "found" or found["reason"] == "not_found")
    progress = trial.assess(container, now, policy.rollback.deadline, answers, policy.verification)
    back = _goes_back_to(container, progress)
    if progress.state == "failed" and wayback.is_back(container["follow"]):
        message = f"what went back does not come up: {progress.message}"
        progress = dataclasses.replace(progress, state="blocked", reason="RollbackFailed", message=message)
    action = ""
    may_write = not (policy.suspended or policy.dry_run or verdict.rolls)
    if may_write and progress.state == "steady":
        action = "settle"
    elif may_write and back and policy.rollback.enabled:
        action = "roll_back"
    verdict = _with_progress(verdict, progress, _what_follows(container, progress, policy, back))
    return dataclasses.replace(verdict, progress=progress, action=action, back=back if action == "roll_back" else "")


def _goes_back_to(container: Container, progress: trial.Progress) -> str:
    """The image that goes back now, or an empty text: what ran well and crashes now is no better any further back."""
    is_due = progress.state == "failed" and (progress.not_got or not wayback.is_back(container["follow"]))
    return wayback.choose(container) if is_due and not container["controller"] else ""


def _what_follows(container: Container, progress: trial.Progress, policy: Policy, back: str) -> str:
    """What becomes of a roll that is in trouble, for people."""
    if not policy.rollback.enabled:
        return "rollback is off"
    if policy.suspended or policy.dry_run:
        return "nothing is taken back while the Update only looks"
    if progress.state == "blocked":
        return ""
    if progress.state == "failed":
        return "" if back else "nothing is known to go back to"
    if wayback.is_back(container["follow"]):
        return "it went back, and is watched"
    crashed = f"after {crashes.CRASHES} restarts" if "CrashLoop" in progress.message else f"after {crashes.SOON} s"
    return f"it is taken back {crashed} if it goes on, at the latest at {progress.until}"


def _with_progress(verdict: Verdict, progress: trial.Progress, follows: str) -> Verdict:
    """The verdict that says what is wrong with the Pods of a roll on trial."""
    is_told = progress.state in ("under_way", "failed") or progress.reason in ("RollbackFailed", "UnwellBefore")
    if not progress.message or not is_told or verdict.rolls:
        return verdict
    message = f"on trial: {progress.message}" + (f"; {follows}" if follows else "")
    if verdict.verdict == CURRENT:
        return dataclasses.replace(verdict, reason="on_trial", message=message)
    return dataclasses.replace(verdict, message=f"{verdict.message}; {message}")


def rolled_back(container: Container, verdict: Verdict) -> Verdict:
    """The verdict after the previous image went back: what the tag names is quarantined."""
    failed = container["follow"]["digest"]
    why = verdict.progress.message if verdict.progress else ""
    if container.get("published") != failed:
        # the tag has moved on meanwhile, or nobody knows: the next pass looks at that
        return dataclasses.replace(verdict, action="")
    message = f"{failed} failed ({why}); {verdict.back} went back; {holds.again(container, failed)}"
    return Verdict(STALE, "quarantined", message, failed, verdict.progress, back=verdict.back)


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
            verdict = dataclasses.replace(
                verdict, reason=reason, message=message, action="", back="", progress=progress
            )
            container = {**container, "stuck": []}
        found.append((container, verdict))
    return found


def left_to_the_next_run(judged: Judged) -> Judged:
    """Hold whatever would roll: what its tag names was looked up some time ago."""
    message = "this run waits for its rolls; the next one looks again"

    def held(verdict: Verdict) -> Verdict:
        if not verdict.rolls:
            return verdict
        return dataclasses.replace(verdict, reason="rollout_in_progress", message=message)

    return [(container, held(verdict)) for container, verdict in judged]

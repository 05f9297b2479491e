# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions of an Update: what a pass means for people and for `kubectl wait`. Pure."""

from __future__ import annotations

import collections
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images.follow import carries
from ansible_collections.kubesteward.core.plugins.module_utils.images.trial import is_replacing
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import CURRENT, STALE, UNKNOWN, Verdict
from ansible_collections.kubesteward.core.plugins.module_utils.telling import some_of

Container = t.Mapping[str, t.Any]
Judged = t.Sequence[tuple[Container, Verdict]]
Rolls = t.Sequence[t.Mapping[str, t.Any]]
Condition = tuple[str, str, str, str]

TYPES = (
    *("UpToDate", "Rolling", "RolloutBlocked", "RegistryReachable", "RolloutDidNotTakeEffect", "RunningDigestGone"),
    "ImageVolumeNotFollowed",
)
#: those that are left out as long as they have nothing to say
RARE = ("ImageVolumeNotFollowed",)
#: reasons that say something about the way to the registry
#: figures and ids in what others say: of requests, of seconds, of bytes
_MOVING = re.compile(r"\s?(?<![\w.:@/-])(?:[0-9a-f]{8}-[0-9a-f-]{27}|(?=[0-9a-f]*[0-9])[0-9a-f]{8,40}|[0-9.]+ ?m?s)\b")
_NOT_REACHED = ("unreachable", "tls_error", "rate_limited")


def workload_name(workload: t.Mapping[str, t.Any]) -> str:
    """`Kind/name`, as kubectl writes it."""
    return f"{workload['kind']}/{workload['name']}"


def place(entry: t.Mapping[str, t.Any]) -> tuple[str, str]:
    """What tells one container from another, of a container or of a roll: `Kind/name` and the container's name."""
    return workload_name(entry["workload"]), entry["container"]


def counts(verdicts: t.Iterable[Verdict]) -> dict[str, int]:
    """Containers by verdict; all three keys are always there."""
    found = collections.Counter(verdict.verdict for verdict in verdicts)
    return {kind: found[kind] for kind in (CURRENT, STALE, UNKNOWN)}


def standing(judged: Judged, rolled: Rolls) -> Judged:
    """Differences that nothing was done about: held ones, and those whose roll failed."""
    done = {place(roll) for roll in rolled}
    return [
        (container, verdict)
        for container, verdict in judged
        if verdict.verdict == STALE
        and verdict.reason != "rollout_in_progress"
        and not (verdict.rolls and place(container) in done)
    ]


def waits_its_turn(container: Container, verdict: Verdict) -> bool:
    """Held by another rollout: unlike one that is on its way, the spec does not have what was found."""
    held = verdict.verdict == STALE and verdict.reason == "rollout_in_progress"
    return held and not carries(container["spec_image"], verdict.candidate or "")


def values(judged: Judged, rolled: Rolls, missing: t.Sequence[str] = ()) -> list[Condition]:
    """(type, status, reason, message) of every condition, all of them in every pass.

    :param rolled: the rolls carried out, {`workload`, `container`}
    :param missing: workloads that were asked for by name and do not exist
    """
    open_ones = standing(judged, rolled)
    held = {place(container) for container, _verdict in open_ones}
    # what goes back is held and rolls all the same
    rolling = [pair for pair in judged if (place(pair[0]) not in held or pair[1].progress) and _is_rolling(*pair)]
    return [
        _up_to_date(judged, missing),
        _rolling(rolling),
        _blocked(open_ones, judged),
        _reachable(judged),
        _no_effect(judged),
        _gone(judged),
        _volumes(judged),
    ]


def _is_rolling(container: Container, verdict: Verdict) -> bool:
    """Also where the first new Pods run what is published, and old ones are left, or a roll is on trial."""
    if verdict.back and not verdict.action:
        # it goes back now
        return True
    if verdict.progress:
        return verdict.progress.state == "under_way" and not verdict.progress.healthy
    return verdict.verdict == STALE or (bool(container["follow"]) and is_replacing(container["rollout"]))


def _up_to_date(judged: Judged, missing: t.Sequence[str]) -> Condition:
    absent = f"; there is no {some_of(missing)}" if missing else ""
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
    unfinished = [pair for pair in judged if _is_unfinished(*pair)]
    if unfinished:
        told = _troubles(unfinished) or "not every Pod runs it yet"
        return "UpToDate", "False", "RolloutInProgress", f"{message}; {told}"
    return "UpToDate", "True", "Current", message


def _is_unfinished(container: Container, verdict: Verdict) -> bool:
    """The first new Pods run what is published, and the rollout gets no further, or is not that far yet."""
    return not verdict.progress.healthy if verdict.progress else _is_rolling(container, verdict)


def _rolling(rolling: Judged) -> Condition:
    if rolling:
        told = _troubles(rolling)
        message = f"rolling: {_names(rolling)}" + (f"; {told}" if told else "")
        return "Rolling", "True", "RolloutInProgress", message
    return "Rolling", "False", "Idle", "no rollout is in progress"


def _troubles(judged: Judged) -> str:
    """What is wrong with rolls on trial; the figures in it are no news."""
    told = [(c, v.progress.message) for c, v in judged if v.progress and v.progress.message]
    return some_of([f"{' '.join(place(container))}: {message}" for container, message in told])


def _blocked(open_ones: Judged, judged: Judged) -> Condition:
    stopped = [(c, v.progress) for c, v in judged if v.progress and v.progress.state in ("blocked", "failed")]
    parts = []
    if open_ones:
        reasons = ", ".join(sorted({verdict.reason for _container, verdict in open_ones}))
        parts.append(f"held ({reasons}): {_names(open_ones)}")
    held = {place(container) for container, _verdict in open_ones}
    # one that went back and does not come up is held for the digest that failed, too
    stopped = [(c, p) for c, p in stopped if place(c) not in held or p.reason == "RollbackFailed"]
    if stopped:
        parts.append(some_of([f"{' '.join(place(c))}: {progress.message}" for c, progress in stopped]))
    if not parts:
        return "RolloutBlocked", "False", "NotHeld", "nothing is held"
    return "RolloutBlocked", "True", stopped[0][1].reason if stopped else "Held", "; ".join(parts)


def _reachable(judged: Judged) -> Condition:
    missed = [pair for pair in judged if pair[1].reason in _NOT_REACHED]
    if missed:
        return "RegistryReachable", "False", "LookupFailed", f"not looked up: {_names(missed)}"
    told = "every registry that was asked answered"
    found = warnings(judged)
    # once for all containers, and without what is another in every pass
    steady = dict.fromkeys(_MOVING.sub("", text) for text in found)
    return "RegistryReachable", "True", "Reached", f"{told}; {some_of(list(steady))}" if steady else told


def warnings(judged: Judged) -> list[str]:
    """What went wrong on the way to an answer: a mirror that refuses, a Secret that cannot be read; each once."""
    return list(dict.fromkeys(text for container, _verdict in judged for text in container.get("warnings") or ()))


def _no_effect(judged: Judged) -> Condition:
    found = [pair for pair in judged if pair[1].reason == "no_effect"]
    if found:
        return "RolloutDidNotTakeEffect", "True", "OtherDigestRuns", f"run something else: {_names(found)}"
    return "RolloutDidNotTakeEffect", "False", "TakesEffect", "Pods run what was rolled"


def _gone(judged: Judged) -> Condition:
    found = [
        f"{' '.join(place(container))} ({', '.join(container['gone'])})"
        for container, _v in judged
        if container.get("gone")
    ]
    doubts = [
        f"{' '.join(place(container))}: {container['doubt']}" for container, _v in judged if container.get("doubt")
    ]
    if found:
        message = "; ".join([f"a Pod that moves could not pull what it runs: {some_of(found)}", *doubts])
        return "RunningDigestGone", "True", "DigestNotFound", message
    if doubts:
        return "RunningDigestGone", "True", "WayBackNotFound", some_of(doubts)
    return "RunningDigestGone", "False", "DigestsFound", "no running digest is known to be gone from its registry"


def image_volumes(judged: Judged) -> list[str]:
    """`Kind/name volume (image)` of what nobody follows, each once."""
    return list(
        dict.fromkeys(
            f"{workload_name(container['workload'])} {volume['name']} ({volume['image']})"
            for container, _verdict in judged
            for volume in container["image_volumes"]
        )
    )


def _volumes(judged: Judged) -> Condition:
    found = image_volumes(judged)
    if found:
        message = f"images of volumes are not followed, only those of containers: {some_of(found)}"
        return "ImageVolumeNotFollowed", "True", "ImageVolumes", message
    return "ImageVolumeNotFollowed", "False", "NoImageVolume", "no volume has an image with a tag"


def _names(judged: Judged) -> str:
    return some_of([f"{workload_name(c['workload'])} {c['container']} ({v.reason})" for c, v in judged])

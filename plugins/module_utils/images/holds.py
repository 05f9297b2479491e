# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What speaks against a roll, each with its documented word and a sentence for people. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import nodes
from ansible_collections.kubesteward.core.plugins.module_utils.images.follow import RETRY
from ansible_collections.kubesteward.core.plugins.module_utils.images.trial import availability, is_under_way

Container = t.Mapping[str, t.Any]
#: reason and message, or None where nothing speaks against it
Hold: t.TypeAlias = "tuple[str, str] | None"

#: seconds for which a digest that was left must be seen again: a cache may serve an old one for a while
RETURNING = 600


def foreign(container: Container) -> str | None:
    """Why a workload is nothing to roll, whatever its image."""
    if container["workload"]["kind"] == "Pod":
        return "a Pod that no workload controls is not rolled"
    if container["controller"]:
        return f"{container['controller']} controls this workload and would undo a change"
    return None


def refused(container: Container, candidate: str) -> Hold:
    """Experience, or a person, speaks against a digest; the annotation `kubesteward.io/retry` overrules both."""
    if container["retry"] == candidate:
        return None
    hint = again(container, candidate)
    for memory in _memories(container):
        failed = memory.get("quarantine")
        if failed and failed["digest"] == candidate:
            return "quarantined", f"{candidate} failed at {failed['at']} ({failed['reason']}); {hint}"
    undone = container["undone"]
    if not undone:
        return None
    by = f" by {undone['manager']}" if undone["manager"] else ""
    if undone["how"] == "tag":
        if undone.get("answered"):
            return "reverted", f"the tag was put back{by} again and again; stop that, or {hint}"
        return None
    if undone["digest"] == candidate:
        message = f"{candidate} was rolled at {undone['at']}, and an earlier image was put back{by}"
        return "rolled_back_by_hand", f"{message}; held until the tag names another digest; {hint}"
    return None


def _memories(container: Container) -> list[t.Mapping[str, t.Any]]:
    return [container[key] for key in ("follow", "undone") if container[key]]


def again(container: Container, candidate: str) -> str:
    """How a person has a digest rolled that is held, as a sentence with the whole command."""
    return f"to try it all the same: {_command(container, candidate)}"


def _command(container: Container, candidate: str) -> str:
    owner = container["workload"]["owner"] or container["workload"]
    namespace = f" -n {container['namespace']}" if container.get("namespace") else ""
    # kubectl refuses to replace what an annotation says
    overwrite = " --overwrite" if container["retry"] else ""
    return f"kubectl annotate {owner['kind'].lower()}/{owner['name']}{namespace} {RETRY}={candidate}{overwrite}"


def not_now(container: Container, message: str) -> Hold:
    """An earlier rollout has to end first."""
    rollout = container["rollout"]
    if rollout["paused"]:
        return "suspended", f"the Deployment is paused; {message}"
    if is_under_way(rollout) and not _waits_for_nothing(container):
        return "rollout_in_progress", f"an earlier rollout: {availability(rollout)} so far"
    return None


def _waits_for_nothing(container: Container) -> bool:
    """The controller knows the spec and has no Pod of it, e.g. for a quota: another image restarts nothing."""
    rollout = container["rollout"]
    seen = rollout["observed"] >= rollout["generation"]
    return seen and not (rollout["updated"] or container["running"] or container["waiting"])


def unstable(container: Container, candidate: str, stable_for: int, has_memory: bool) -> Hold:
    """What is missing to the time for which a candidate must have been seen.

    :param stable_for: seconds that are asked for
    :param has_memory: there is an Update whose status remembers since when a digest is seen
    """
    left = [digest for memory in _memories(container) for digest in memory.get("left") or ()]
    returns = candidate in left and container["retry"] != candidate
    needed = max(stable_for, RETURNING) if returns else stable_for
    seen_for = container.get("seen_for", 0)
    if seen_for >= needed:
        return None
    message = f"{candidate} was seen for {seen_for} of {needed} s"
    if returns:
        message += "; it was left before, and a cache may serve an old digest for a while"
    if not has_memory:
        message += f"; only an Update remembers that; without one: {_command(container, candidate)}"
    return "unstable", message


def not_pullable(container: Container, published: t.Mapping[str, t.Any], candidate: str) -> Hold:
    """The nodes could not pull it, would find nothing in it that runs there, or are told never to pull."""
    if published.get("pullable") is False:
        return "not_pullable", f"{candidate} cannot be pulled: {published.get('pullable_msg')}"
    told = nodes.cannot_run(container, published)
    return ("not_pullable", told) if told else None

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is a container stale? Three-valued, with one reason each; only `stale` ever rolls. Pure."""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import holds, nodes
from ansible_collections.kubesteward.core.plugins.module_utils.images.follow import carries, digest_of_next
from ansible_collections.kubesteward.core.plugins.module_utils.images.running import parse_image_id
from ansible_collections.kubesteward.core.plugins.module_utils.images.trial import VERIFICATION, Progress, Rollback
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import (
    DOCKER_MANIFEST,
    OCI_MANIFEST,
)

Container = t.Mapping[str, t.Any]
Published = t.Mapping[str, t.Any]

CURRENT, STALE, UNKNOWN = "current", "stale", "unknown"
#: the reasons of `stale` that roll; every other one holds
ROLLING_REASONS = ("digest_differs", "mixed_replicas")


@dataclasses.dataclass(frozen=True)
class Policy:
    """What an administrator or the Update says about rolling.

    :ivar stable_for: seconds for which a digest must have been seen before it is rolled
    :ivar max_concurrent: workloads that may be rolling at the same time
    :ivar verification: seconds that a new image must run well before its roll is taken as good
    :ivar has_memory: there is an Update whose status remembers since when a digest is seen
    """

    suspended: bool = False
    dry_run: bool = False
    stable_for: int = 0
    max_concurrent: int = 10
    rollback: Rollback = dataclasses.field(default_factory=Rollback)
    verification: int = VERIFICATION
    has_memory: bool = True


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One container's verdict.

    :ivar reason: one documented word
    :ivar message: the same for people
    :ivar candidate: top-level digest to roll to; set for every `stale`, held or not
    :ivar progress: where a roll on trial is
    :ivar action: what is to be done beside a roll: `roll_back`, `settle` (write down that the trial is over) or nothing
    :ivar back: the image that a `roll_back` writes, or wrote in this pass, where nothing is to be done any more
    """

    verdict: str
    reason: str
    message: str
    candidate: str | None = None
    progress: Progress | None = None
    action: str = ""
    back: str = ""

    @property
    def rolls(self) -> bool:
        """True where the container is to be patched."""
        return self.verdict == STALE and self.reason in ROLLING_REASONS


def decide(container: Container, published: Published | None, policy: Policy = Policy()) -> Verdict:
    """The decision for one container.

    :param container: an entry of pod_image_id's `containers`
    :param published: registry_digest's entry for its reference, or None where it was not looked up
    """
    if container["invalid"]:
        return Verdict(UNKNOWN, "invalid_reference", container["invalid"])
    if not container["running"] and not container["waiting"]:
        return _without_pods(container, published, policy)
    if container["pinned"]:
        return _pinned(container)
    if published is None:
        names = ", ".join(item["name"] for item in container["pull_secrets"])
        return Verdict(
            UNKNOWN, "waiting", f"was not looked up in this pass{f' with the pull secrets {names}' if names else ''}"
        )
    if published["state"] != "found":
        return Verdict(UNKNOWN, published["reason"], published["msg"])
    verdict = _compare(container, published) if container["running"] else _compare_written(container, published)
    return _hold(verdict, container, published, policy) if verdict.verdict == STALE else verdict


def _without_pods(container: Container, published: Published | None, policy: Policy) -> Verdict:
    """Where the spec carries a digest that we wrote, what the next Pod runs is known all the same."""
    nothing = f"no Pod of the current revision runs{_excluded(container)}"
    written = digest_of_next(container)
    if not written or published is None:
        return Verdict(UNKNOWN, "no_pods", nothing)
    if published["state"] != "found":
        return Verdict(UNKNOWN, "no_pods", f"{nothing}, the next one runs {written}; {published['msg']}")
    candidate = published["digest"]
    if written == candidate:
        return Verdict(CURRENT, "digest_equal", f"{nothing}, the next one runs {candidate}")
    if nodes.get_the_same(container, published, written):
        return Verdict(
            CURRENT, "index_changed_only", f"{nothing}; {candidate} is another index of the images of {written}"
        )
    if not _children_are_known(published) and published.get("pullable") is not False:
        return _not_read(published)
    message = f"{nothing}, the next one would run {written}, and {container['reference']} names {candidate}"
    return _hold(Verdict(STALE, "digest_differs", message, candidate), container, published, policy)


def _pinned(container: Container) -> Verdict:
    if not container["running"]:
        return _waiting(container)
    return Verdict(
        CURRENT, "pinned", f"{container['spec_image']} names a digest and no tag: there is nothing to follow"
    )


def _waiting(container: Container) -> Verdict:
    reasons = ", ".join(f"{count} x {reason}" for reason, count in container["waiting_reasons"].items())
    return Verdict(UNKNOWN, "waiting", f"no Pod runs an image yet ({reasons})")


def _excluded(container: Container) -> str:
    reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(container["excluded"].items()))
    return f" (left out: {reasons})" if reasons else ""


def _compare(container: Container, published: Published) -> Verdict:
    candidate = published["digest"]
    pods: collections.Counter[str] = collections.Counter()
    undecided = []
    for item in container["running"]:
        match = _match(item, container, published)
        pods[match] += item["pods"]
        if match == "undecided":
            undecided.append(item)
    if pods["other"] == pods.total():
        return Verdict(STALE, "digest_differs", f"{container['reference']} now names {candidate}", candidate)
    if pods["other"]:
        message = f"{pods['other']} of {pods.total()} Pods do not run {candidate}"
        return Verdict(STALE, "mixed_replicas", message, candidate)
    if undecided:
        return _inconclusive(undecided[0], container, published)
    if pods["content"]:
        return Verdict(CURRENT, "same_content", f"the Pods run the image that {candidate} describes")
    if pods["index"]:
        return Verdict(CURRENT, "index_changed_only", f"{candidate} is another index of the images that the Pods run")
    if pods["child"]:
        return Verdict(CURRENT, "platform_equal", f"the Pods run their platform's image of {candidate}")
    follow = container["follow"]
    if follow and follow["digest"] != candidate:
        # a CronJob's Job, a paused Deployment, a Start that nobody applied yet: the next Pods run what is written
        message = f"the Pods run {candidate}, the spec has {follow['digest']}"
        return Verdict(STALE, "digest_differs", message, candidate)
    return Verdict(CURRENT, "digest_equal", f"the Pods run {candidate}")


def _match(item: t.Mapping[str, t.Any], container: Container, published: Published) -> str:
    """How one running image relates to what is published: `top`, `child`, `index`, `content`, `other`, `undecided`."""
    kind, digest = item["id_kind"], item["digest"]
    if kind == "none":
        return "undecided"
    place = _place_in(digest, published)
    if kind == "config" and not place:
        # a local ID is the digest of a config: a different one may still be the same, but what we wrote is known
        if digest == published.get("config_digest"):
            return "content"
        digest = _written(container) or ""
        if not digest:
            return "undecided"
        place = _place_in(digest, published)
    if place:
        return place
    if kind == "manifest" and _is_of_another_name(container["reference"], item["image_id"]):
        return "undecided"
    if nodes.get_the_same(container, published, digest):
        return "index"
    # what cannot be pulled is held anyway, so its children need not be known
    return "other" if _children_are_known(published) or published.get("pullable") is False else "undecided"


def _place_in(digest: str, published: Published) -> str:
    """`top`, `child`, or empty; Docker with containerd's image store has these digests for local IDs."""
    if digest == published["digest"]:
        return "top"
    return "child" if any(digest == child["digest"] for child in published.get("children") or ()) else ""


def _written(container: Container) -> str | None:
    """The digest that the spec has by our hand and the rollout has reached: all Pods of the revision run it."""
    follow = container["follow"]
    if not follow or not container["rollout"]["complete"] or container["workload"]["kind"] == "CronJob":
        return None
    return follow["digest"] if carries(container["image"], follow["digest"]) else None


def _is_of_another_name(reference: str, image_id: str) -> bool:
    """True where a short name may mean a stranger's image: the Pods run one of that name from somewhere else."""
    named = references.parse(reference)
    if reference.startswith(named.domain) or named.domain != references.HUB:
        return False
    image = parse_image_id(image_id)
    try:
        return image is not None and references.parse(image.repository).name != named.name
    except StewardError:
        return True


def _children_are_known(published: Published) -> bool:
    """False for an index that was not read: any digest may be one of its children; and for what could not be read."""
    is_single = published.get("media_type") in (DOCKER_MANIFEST, OCI_MANIFEST) and not published.get("unread")
    return published.get("children") is not None or is_single


def _not_read(published: Published) -> Verdict:
    """Nobody knows whether the nodes can run it."""
    limited = published.get("ratelimit_remaining") is not None
    message = f"{published['digest']} was not read, so that nobody knows whether the nodes can run it"
    return Verdict(UNKNOWN, "rate_limited" if limited else "waiting", message)


def _compare_written(container: Container, published: Published) -> Verdict:
    """No Pod has an image ID. Where the spec carries a digest that we wrote, a newer one may mend what cannot start."""
    follow, candidate = container["follow"], published["digest"]
    if not follow or follow["digest"] == candidate:
        return _waiting(container)
    if not _children_are_known(published) and published.get("pullable") is not False:
        return _not_read(published)
    return Verdict(
        STALE, "digest_differs", f"no Pod could start {follow['digest']} yet, and the tag moved on", candidate
    )


def _inconclusive(item: t.Mapping[str, t.Any], container: Container, published: Published) -> Verdict:
    if item["id_kind"] == "manifest" and _is_of_another_name(container["reference"], item["image_id"]):
        message = f"the Pods run {item['image_id']}, which is not what {container['reference']} means"
        return Verdict(UNKNOWN, "unsupported_image_id", f"{message}; write the registry's host into the reference")
    if item["id_kind"] == "manifest":
        message = f"{item['digest']} may be a child of {published['digest']}, whose children were not read"
        if published.get("media_type") in (DOCKER_MANIFEST, OCI_MANIFEST):
            message = f"{published['digest']} was not read, so that nobody knows whether the nodes can run it"
        limited = published.get("ratelimit_remaining") is not None
        return Verdict(UNKNOWN, "rate_limited" if limited else "waiting", message)
    if item["id_kind"] == "config":
        message = f"the runtime reports the local image ID {item['image_id']}, which the registry cannot confirm"
        return Verdict(UNKNOWN, "config_digest_only", message)
    return Verdict(UNKNOWN, "unsupported_image_id", f"image ID {item['image_id']!r} has a form no known runtime writes")


def _hold(verdict: Verdict, container: Container, published: Published, policy: Policy) -> Verdict:
    """The first thing that speaks against a roll, if any."""

    def held(reason: str, message: str) -> Verdict:
        return dataclasses.replace(verdict, reason=reason, message=message)

    candidate = t.cast(str, verdict.candidate)
    if policy.suspended:
        return held("suspended", f"suspended; {verdict.message}")
    foreign = holds.foreign(container)
    if foreign:
        return held("foreign_owner", foreign)
    if carries(container["spec_image"], candidate):
        return _already_written(verdict, container)
    found = (
        holds.refused(container, candidate)
        or holds.not_now(container, verdict.message)
        or holds.not_pullable(container, published, candidate)
        or holds.unstable(container, candidate, policy.stable_for, policy.has_memory)
    )
    if found:
        return held(*found)
    if policy.dry_run:
        return held("dry_run", f"dry run; {verdict.message}")
    return verdict


def _already_written(verdict: Verdict, container: Container) -> Verdict:
    """The spec has the candidate: rolling it again would change nothing."""
    if container["workload"]["kind"] == "CronJob":
        return Verdict(CURRENT, "digest_equal", f"the next Job runs {verdict.candidate}")
    count = sum(item["pods"] for item in container["running"] if item["digest"] != verdict.candidate)
    if container["rollout"]["complete"] and carries(container["image"], verdict.candidate or ""):
        message = f"the rollout of {verdict.candidate} is complete, and {count} Pods run something else all the same"
        return dataclasses.replace(verdict, reason="no_effect", message=f"{message}: a mirror or a webhook gives it")
    message = f"the spec has {verdict.candidate}, {count} Pods do not run it yet"
    return dataclasses.replace(verdict, reason="rollout_in_progress", message=message)

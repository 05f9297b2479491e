# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is a container stale? Three-valued, with one reason each; only `stale` ever rolls. Pure."""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import (
    DOCKER_MANIFEST,
    OCI_MANIFEST,
    normal_platform,
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
    """

    suspended: bool = False
    dry_run: bool = False
    stable_for: int = 0
    max_concurrent: int = 10


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One container's verdict.

    :ivar reason: one documented word
    :ivar message: the same for people
    :ivar candidate: top-level digest to roll to; set for every `stale`, held or not
    """

    verdict: str
    reason: str
    message: str
    candidate: str | None = None

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
        return Verdict(UNKNOWN, "no_pods", f"no Pod of the current revision runs{_excluded(container)}")
    if container["pinned"]:
        return _pinned(container)
    if published is None:
        return Verdict(UNKNOWN, "waiting", "was not looked up in this pass")
    if published["state"] != "found":
        return Verdict(UNKNOWN, published["reason"], published["msg"])
    verdict = (
        _compare(container, published) if container["running"] else _compare_written(container, published["digest"])
    )
    return _hold(verdict, container, published, policy) if verdict.verdict == STALE else verdict


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
        match = _match(item, published)
        pods[match] += item["pods"]
        if match == "undecided":
            undecided.append(item)
    if pods["other"] == pods.total():
        return Verdict(STALE, "digest_differs", f"{container['reference']} now names {candidate}", candidate)
    if pods["other"]:
        message = f"{pods['other']} of {pods.total()} Pods do not run {candidate}"
        return Verdict(STALE, "mixed_replicas", message, candidate)
    if undecided:
        return _inconclusive(undecided[0], published)
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


def _match(item: t.Mapping[str, t.Any], published: Published) -> str:
    """How one running image relates to what is published: `top`, `child`, `index`, `content`, `other`, `undecided`."""
    kind, digest = item["id_kind"], item["digest"]
    if kind == "manifest":
        if digest == published["digest"]:
            return "top"
        if any(digest == child["digest"] for child in published.get("children") or ()):
            return "child"
        if _has_the_same_images(digest, published):
            return "index"
        # what cannot be pulled is held anyway, so its children need not be known
        return "other" if _children_are_known(published) or published.get("pullable") is False else "undecided"
    # a local ID is the digest of a config: it says nothing about manifests, and a different one may still be the same
    return "content" if kind == "config" and digest == published.get("config_digest") else "undecided"


def _has_the_same_images(digest: str, published: Published) -> bool:
    """True where an index was pushed again with the same images: in another order, or with other attestations."""
    running = (published.get("compared") or {}).get(digest)
    children = [child["digest"] for child in published.get("children") or ()] or [published["digest"]]
    return bool(running) and set(running) == set(children)


def _children_are_known(published: Published) -> bool:
    """False for an index that was not read, e.g. to spare a rate limit: any digest may be one of its children."""
    return published.get("children") is not None or published.get("media_type") in (DOCKER_MANIFEST, OCI_MANIFEST)


def _compare_written(container: Container, candidate: str) -> Verdict:
    """No Pod has an image ID. Where the spec carries a digest that we wrote, a newer one may mend what cannot start."""
    follow = container["follow"]
    if not follow or follow["digest"] == candidate:
        return _waiting(container)
    return Verdict(
        STALE, "digest_differs", f"no Pod could start {follow['digest']} yet, and the tag moved on", candidate
    )


def _inconclusive(item: t.Mapping[str, t.Any], published: Published) -> Verdict:
    if item["id_kind"] == "manifest":
        message = f"{item['digest']} may be a child of {published['digest']}, whose children were not read"
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

    rollout = container["rollout"]
    if policy.suspended:
        return held("suspended", f"suspended; {verdict.message}")
    foreign = _foreign(container)
    if foreign:
        return held("foreign_owner", foreign)
    if carries(container["spec_image"], t.cast(str, verdict.candidate)):
        return _already_written(verdict, container)
    if rollout["paused"]:
        return held("suspended", f"the Deployment is paused; {verdict.message}")
    if is_under_way(rollout):
        return held("rollout_in_progress", f"{rollout['updated']} of {rollout['desired']} Pods are updated so far")
    trouble = _pull_trouble(container, published)
    if trouble:
        return held("not_pullable", f"{verdict.candidate} {trouble}")
    seen_for = container.get("seen_for", 0)
    if seen_for < policy.stable_for:
        message = f"{verdict.candidate} was seen for {seen_for} of {policy.stable_for} s"
        return held("unstable", message)
    if policy.dry_run:
        return held("dry_run", f"dry run; {verdict.message}")
    return verdict


def _foreign(container: Container) -> str | None:
    if container["workload"]["kind"] == "Pod":
        return "a Pod that no workload controls is not rolled"
    if container["controller"]:
        return f"{container['controller']} controls this workload and would undo a change"
    return None


def _pull_trouble(container: Container, published: Published) -> str | None:
    if published.get("pullable") is False:
        return f"cannot be pulled: {published.get('pullable_msg')}"
    lacking = _lacking(container["platforms"], published.get("children") or ())
    return f"has no image for {lacking}, where Pods run" if lacking else None


def _lacking(platforms: t.Iterable[str], children: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Those platforms that an index has nothing for; empty where the index does not name platforms."""
    if not children or not all(child.get("platform") for child in children):
        return ""
    known = {_without_variant(child["platform"]) for child in children}
    return ", ".join(platform for platform in platforms if _without_variant(platform) not in known)


def _without_variant(platform: str) -> str:
    """Nodes do not tell their variant."""
    return "/".join(normal_platform(platform).split("/")[:2])


def limit(judged: t.Iterable[tuple[Container, Verdict]], most: int) -> list[tuple[Container, Verdict]]:
    """Hold what would make more than `most` workloads roll at the same time; the next passes take it up."""
    pairs = list(judged)
    rolling = {_workload(container) for container, _verdict in pairs if _takes_a_place(container)}
    limited = []
    for container, verdict in pairs:
        if verdict.rolls and _workload(container) not in rolling and len(rolling) >= most:
            message = f"{len(rolling)} workloads are rolling already, and at most {most} may"
            verdict = dataclasses.replace(verdict, reason="rollout_in_progress", message=message)
        elif verdict.rolls:
            rolling.add(_workload(container))
        limited.append((container, verdict))
    return limited


def _takes_a_place(container: Container) -> bool:
    """Rolling, or broken by what the tag names now, which must not reach more; one broken otherwise stops no other."""
    rollout, follow = container["rollout"], container["follow"]
    is_ours = bool(follow) and follow["digest"] == container.get("published")
    return is_under_way(rollout) or (is_ours and not rollout["complete"])


def is_replacing(rollout: t.Mapping[str, t.Any]) -> bool:
    """True while Pods of an old revision are left; one that is merely not available is none of them."""
    return not rollout["complete"] and (
        rollout["observed"] < rollout["generation"] or rollout["updated"] < rollout["replicas"]
    )


def _workload(container: Container) -> tuple[str, str]:
    return container["workload"]["kind"], container["workload"]["name"]


def carries(image: str, digest: str) -> bool:
    """True where an image of a spec is pinned to `digest` already."""
    return image.rpartition("@")[2] == digest


def _already_written(verdict: Verdict, container: Container) -> Verdict:
    """The spec has the candidate: rolling it again would change nothing."""
    if container["workload"]["kind"] == "CronJob":
        return Verdict(CURRENT, "digest_equal", f"the next Job runs {verdict.candidate}")
    count = sum(item["pods"] for item in container["running"] if item["digest"] != verdict.candidate)
    message = f"the spec has {verdict.candidate}, {count} Pods do not run it yet"
    return dataclasses.replace(verdict, reason="rollout_in_progress", message=message)


def is_under_way(rollout: t.Mapping[str, t.Any]) -> bool:
    """An incomplete rollout is waited for, unless it fails: then a newer image may be what mends it."""
    return not (rollout["complete"] or rollout["failing"] or rollout["deadline_exceeded"])

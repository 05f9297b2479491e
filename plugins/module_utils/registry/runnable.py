# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can these nodes run it? What a node of each platform gets where it is told to run a digest. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import INDEXES, Child
from ansible_collections.kubesteward.core.plugins.module_utils.registry.platforms import normal_platform, rank

#: what a node gets: the image that runs, another one, one for another platform, none, something that is no image, or
#: an image of an index of which nobody can say which, since the node's platform is not known
SAME, ANOTHER, FOREIGN, NONE, NO_IMAGE, UNKNOWN = "same", "another", "foreign", "none", "no_image", "unknown"

#: platforms of an index in a message
MOST_NAMED = 10


@dataclasses.dataclass(frozen=True)
class Content:
    """What a digest stands for.

    :ivar children: of an index; None for a single image
    :ivar platform: of a single image, as its config says; empty where it does not, or was not read
    :ivar artifact: what it is instead of an image, e.g. `a Helm chart`; empty for images
    """

    digest: str
    children: tuple[Child, ...] | None = None
    platform: str = ""
    artifact: str = ""

    @property
    def images(self) -> tuple[Child, ...]:
        """Children that a node may take: manifests of images that name a platform."""
        return tuple(child for child in self.children or () if child.may_be_taken)


def of_result(digest: str, entry: t.Mapping[str, t.Any]) -> Content:
    """The content that an entry of registry_digest describes, or one of its `compared_contents`."""
    children = entry.get("children")
    # registry_digest lists no children of a single image
    is_index = bool(children) or (children is not None and entry.get("media_type") in INDEXES)
    return Content(
        digest,
        tuple(map(_child, children or ())) if is_index else None,
        entry.get("image_platform") or "",
        entry.get("artifact") or "",
    )


def _child(item: t.Mapping[str, t.Any]) -> Child:
    """A hand may have written it: what is no text counts as absent."""
    keys = ("media_type", "platform", "os_version", "os_features", "artifact_type")
    kind, *more = (item[key] if isinstance(item.get(key), str) else "" for key in keys)
    return Child(item["digest"], kind, None, *more)


@dataclasses.dataclass(frozen=True)
class Got:
    """What one node gets.

    :ivar kind: one of the words above
    :ivar digest: of the image's manifest; None where the node gets none, or nobody can say which
    :ivar message: why it cannot run, for people; empty where it can
    """

    kind: str
    digest: str | None
    message: str = ""

    @property
    def runs(self) -> bool:
        """False where it is known that nothing runs."""
        return self.kind in (SAME, ANOTHER, UNKNOWN)


def nodes_get(
    content: Content,
    platforms: t.Iterable[str],
    pull_policy: str = "",
    running: Content | None = None,
    works: bool = False,
) -> dict[str, Got]:
    """What nodes of these platforms get for a digest.

    :param platforms: none for nodes of which nothing is known; what they get is found as that of the platform ""
    :param pull_policy: the container's `imagePullPolicy`
    :param running: what runs there now
    :param works: what runs is ready, which proves that nodes take what is of its kind: they may emulate a platform
    """
    return {name: _get(content, name, pull_policy, running, works) for name in list(platforms) or [""]}


def _get(content: Content, platform: str, pull_policy: str, running: Content | None, works: bool) -> Got:
    if pull_policy == "Never":
        return Got(NONE, None, "the container's imagePullPolicy is Never: no node pulls another image")
    proof = running if works else None
    if content.artifact and not (proof and proof.artifact == content.artifact):
        return Got(NO_IMAGE, None, f"{content.digest} is {content.artifact}, not a container image")
    if content.children is None:
        return _single(content, platform, running, proof)
    if not content.images:
        return Got(NO_IMAGE, None, f"{content.digest} is an index that lists no image for any platform")
    if not platform:
        return Got(UNKNOWN, None)
    child = pick(content.children, platform)
    if child is not None:
        return _of(child.digest, platform, running)
    have = sorted({child.full_platform for child in content.images})
    more = f" and {len(have) - MOST_NAMED} more" if len(have) > MOST_NAMED else ""
    names = ", ".join(have[:MOST_NAMED]) + more
    return Got(NONE, None, f"{content.digest} has no image for {platform}, only for {names}")


def _single(content: Content, platform: str, running: Content | None, proof: Content | None) -> Got:
    """Runtimes take a manifest without an index whatever it is for; then it cannot start."""
    fits = not platform or not content.platform or rank(content.platform, platform) is not None
    emulated = proof is not None and proof.children is None and _are_equal(proof.platform, content.platform)
    if fits or emulated:
        return _of(content.digest, platform, running)
    return Got(FOREIGN, content.digest, f"{content.digest} is an image for {content.platform}, not for {platform}")


def _are_equal(one: str, other: str) -> bool:
    return bool(one) and normal_platform(one) == normal_platform(other)


def _of(digest: str, platform: str, running: Content | None) -> Got:
    return Got(SAME if running and digest == _digest(running, platform) else ANOTHER, digest)


def _digest(content: Content, platform: str) -> str | None:
    if content.artifact or content.children is None:
        return content.digest
    child = pick(content.children, platform) if platform else None
    return child.digest if child else None


def pick(children: t.Iterable[Child], platform: str) -> Child | None:
    """The child that a runtime on `platform` takes: the first of those that suit it best."""
    ranked = [(rank(child.full_platform, platform), child) for child in children if child.may_be_taken]
    best = min((number for number, _child in ranked if number is not None), default=None)
    return next((child for number, child in ranked if number == best), None) if best is not None else None

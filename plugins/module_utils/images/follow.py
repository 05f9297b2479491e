# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The annotation that remembers which tag a digest was rolled for, and what became of earlier digests.

A roll replaces the tag of an image by a digest. What was followed would be forgotten, so the same patch writes
`kubesteward.io/follow` on the patched object: JSON by container, `{reference, digest, from, at, ...}`. It counts only
while the object's spec still carries what we wrote: a person who writes another image has taken over.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references
from ansible_collections.kubesteward.core.plugins.module_utils.texts import cut

ANNOTATION = "kubesteward.io/follow"
#: a person's word that a digest may be tried again, whatever speaks against it
RETRY = "kubesteward.io/retry"
#: digests that were left and are remembered
MOST_LEFT = 10
#: earlier images that are remembered beside the one that goes back
MOST_EARLIER = 2
#: characters of what was wrong before
MOST_UNWELL = 64
#: as far as it is counted how often a tag was rolled again: a hand may write any number
MOST_ANSWERED = 1000
#: characters of the reason of a quarantine: the Update's status and its history repeat it
MOST_REASON = 256
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@dataclasses.dataclass(frozen=True)
class Quarantine:
    """A digest whose roll failed, why, and since when (`2006-01-02T15:04:05Z`)."""

    digest: str
    reason: str
    at: str


@dataclasses.dataclass(frozen=True)
class Follow:
    """One followed container: `reference` names the tag, `digest` what it was rolled to, `origin` the image before.

    :ivar at: time of the roll, `2006-01-02T15:04:05Z`
    :ivar by: name of the Update that rolled; empty for a run without one
    :ivar image: what the spec carries, where that is not the reference's repository at `digest`
    :ivar back: image that a rollback writes
    :ivar left: digests that the container ran before, the last one at the end
    :ivar trial: the roll has not proven itself yet
    :ivar earlier: images that ran before `back`, the newest first
    :ivar unproven: image that ran well and was left before it had proven itself: better than nothing
    :ivar lacking: digest that ran before, and that the registry did not have when it was left
    :ivar unwell: what was wrong with every Pod of the image before, where something was
    :ivar answered: how often a tag that somebody put back was rolled again
    """

    reference: str
    digest: str
    origin: str
    at: str
    by: str = ""
    image: str = ""
    back: str = ""
    left: tuple[str, ...] = ()
    trial: bool = False
    quarantine: Quarantine | None = None
    answered: int = 0
    earlier: tuple[str, ...] = ()
    unproven: str = ""
    lacking: str = ""
    unwell: str = ""

    def holds_for(self, image: str) -> bool:
        """True while `image`, as the spec has it now, is still what we wrote.

        The same digest behind another repository or tag is somebody's choice: they have taken over.
        """
        try:
            ours = dataclasses.replace(references.parse(self.reference), tag=None, digest=self.digest)
            return references.parse(image) == (references.parse(self.image) if self.image else ours)
        except StewardError:
            return False

    def as_dict(self) -> dict[str, t.Any]:
        """The annotation's form; what is not so is left out."""
        found = {"reference": self.reference, "digest": self.digest, "from": self.origin, "at": self.at}
        more = {
            "by": self.by,
            "image": self.image,
            "back": self.back,
            "left": list(self.left),
            "trial": self.trial,
            "quarantine": dataclasses.asdict(self.quarantine) if self.quarantine else None,
            "answered": self.answered,
            "earlier": list(self.earlier),
            "unproven": self.unproven,
            "lacking": self.lacking,
            "unwell": self.unwell,
        }
        return {**found, **{key: value for key, value in more.items() if value}}


def read(obj: t.Mapping[str, t.Any]) -> dict[str, Follow]:
    """The annotation of an object by container; entries that nobody can read count as absent."""
    text = (obj["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        entries = json.loads(text) if text else {}
        items = list(entries.items())
    except (ValueError, AttributeError, RecursionError):
        return {}
    found = {}
    for name, entry in items:
        follow = of_dict(entry)
        if follow:
            found[name] = follow
    return found


def of_dict(entry: t.Any) -> Follow | None:
    """The inverse of `as_dict`; None for what we never write: a status made of it would be refused."""
    try:
        needed = [entry["reference"], entry["digest"], entry["from"], entry["at"]]
    except (KeyError, TypeError):
        return None
    if not all(isinstance(value, str) for value in needed):
        return None
    follow = Follow(*needed)
    if not references.is_digest(follow.digest) or not _is_time(follow.at):
        return None
    # a hand must not make us write, or take for ours, what is of another repository than the one that is followed
    images = {
        key: entry[key] for key in ("image", "back", "unproven") if is_of_repository(entry.get(key), follow.reference)
    }
    by, left, earlier = entry.get("by"), entry.get("left"), entry.get("earlier")
    answered, lacking, unwell = entry.get("answered"), entry.get("lacking"), entry.get("unwell")
    return dataclasses.replace(
        follow,
        **images,
        by=by if isinstance(by, str) else "",
        left=tuple(x for x in left if _is_digest(x))[-MOST_LEFT:] if isinstance(left, list) else (),
        trial=entry.get("trial") is True,
        quarantine=_quarantine(entry.get("quarantine")),
        answered=min(max(answered, 0), MOST_ANSWERED) if isinstance(answered, int) else 0,
        earlier=tuple(x for x in earlier if is_of_repository(x, follow.reference))[:MOST_EARLIER]
        if isinstance(earlier, list)
        else (),
        lacking=lacking if _is_digest(lacking) else "",
        unwell=unwell[:MOST_UNWELL] if isinstance(unwell, str) else "",
    )


def is_of_repository(image: t.Any, reference: str) -> bool:
    """True for an image of the repository that a reference names."""
    if not isinstance(image, str):
        return False
    try:
        return references.parse(image).name == references.parse(reference).name
    except StewardError:
        return False


def _quarantine(entry: t.Any) -> Quarantine | None:
    try:
        found = Quarantine(entry["digest"], entry["reason"], entry["at"])
    except (KeyError, TypeError):
        return None
    is_ours = _is_digest(found.digest) and isinstance(found.reason, str) and isinstance(found.at, str)
    return dataclasses.replace(found, reason=cut(found.reason, MOST_REASON)) if is_ours and _is_time(found.at) else None


def _is_digest(value: t.Any) -> bool:
    return isinstance(value, str) and references.is_digest(value)


def _is_time(text: str) -> bool:
    try:
        return _TIME.fullmatch(text) is not None and bool(conditions.moment(text))
    except ValueError:
        return False


def render(entries: t.Mapping[str, Follow]) -> str:
    """The annotation's text for these containers."""
    return json.dumps({name: entry.as_dict() for name, entry in sorted(entries.items())}, sort_keys=True)


def carries(image: str, digest: str) -> bool:
    """True where an image of a spec is pinned to `digest` already."""
    return image.rpartition("@")[2] == digest


def digest_of_next(container: t.Mapping[str, t.Any]) -> str:
    """The digest that we wrote and the spec carries: what the next Pod runs, whatever runs now; empty where none is.

    :param container: an entry of pod_image_id's `containers`
    """
    entry = container["follow"]
    return entry["digest"] if entry and carries(container["spec_image"], entry["digest"]) else ""


def with_left(left: t.Iterable[str], *digests: str) -> tuple[str, ...]:
    """`left` and these digests behind it, each once, the oldest ones dropped."""
    found = dict.fromkeys(left)
    for digest in filter(None, digests):
        found.pop(digest, None)
        found[digest] = None
    return tuple(found)[-MOST_LEFT:]


@dataclasses.dataclass(frozen=True)
class PutBack:
    """Somebody wrote an earlier image over ours.

    :ivar entry: our last roll, which was undone
    :ivar how: `digest` (an older digest), `undo` (a revision was put back) or `tag` (the followed tag)
    """

    entry: Follow
    how: str


def put_back(entry: Follow, image: str, by_undo: bool) -> PutBack | None:
    """What became of our last roll, where `image` is what the spec has now; None where it is nothing we know.

    :param by_undo: the whole revision was put back, as `kubectl rollout undo` does
    """
    try:
        now, followed = references.parse(image), references.parse(entry.reference)
    except StewardError:
        return None
    if (now.registry, now.repository) != (followed.registry, followed.repository):
        return None
    if now.pinned:
        return PutBack(entry, "digest") if now.digest in entry.left else None
    if now == followed or image == entry.origin:
        return PutBack(entry, "undo" if by_undo else "tag")
    return None

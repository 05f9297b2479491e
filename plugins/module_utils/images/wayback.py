# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes back where a roll fails: chosen when the roll is made, and asked for again before it is put back. Pure.

An image goes back by its digest: the tag names the failed one by now. But a digest must be there: one that the
registry has lost, or never had because the image was loaded into the nodes by hand, would be an outage without end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import follow as follows
from ansible_collections.kubesteward.core.plugins.module_utils.images.running import parse_image_id
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references

Container = t.Mapping[str, t.Any]

#: where an image is, best first: the registry has it, nobody knows, nodes may have it
_THERE, _OPEN, _ON_NODES = range(3)


@dataclasses.dataclass(frozen=True)
class Choice:
    """What goes back.

    :ivar back: the image
    :ivar earlier: those that come after it, best first
    :ivar unproven: one that comes last, since it has not proven itself
    :ivar lacking: digest that runs, and that the registry does not have
    """

    back: str
    earlier: tuple[str, ...]
    unproven: str = ""
    lacking: str = ""


def at_roll(container: Container, known: follows.Follow | None, digest: str) -> Choice:
    """What goes back where a roll to `digest` fails.

    :param container: with `there` and `gone_there`, digests that its repository has and has not
    :param known: what the last roll wrote down
    """
    if known and known.trial and known.back:
        # the last one that has proven itself; what runs now has not, and may be better than nothing
        unproven = container["spec_image"] if _runs_well(container, known.digest) else known.unproven
        earlier = _distinct([*known.earlier, *_as_tag(known)], known.back)
        return Choice(known.back, earlier, unproven, known.lacking)
    written = container["spec_image"]
    earlier = known.earlier if known else ()
    runs = {item["digest"] for item in container["running"] if item["id_kind"] == "manifest"} - {digest}
    if references.parse(written).digest or len(runs) != 1:
        return Choice(written, _distinct(earlier, written))
    only = runs.pop()
    back = references.parse(container["reference"]).at(only)
    is_own = only in own_digests(container)
    # a runtime may name another repository, which is no promise that this one has it
    if only in container.get("there", ()) or (is_own and only not in container.get("gone_there", ())):
        return Choice(back, _distinct(earlier, back))
    return Choice(written, _distinct([*([back] if is_own else []), *earlier], written), lacking=only)


def _runs_well(container: Container, digest: str) -> bool:
    return any(item["ready"] and item["digest"] == digest for item in container["running"])


def own_digests(container: Container) -> set[str]:
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


def choose(container: Container) -> str:
    """The image to put back now, or an empty text where none can be had.

    :param container: on trial, with `published`, `there` and `gone_there`
    """
    memory = t.cast(follows.Follow, follows.of_dict(container["follow"]))
    failed = {memory.digest, memory.quarantine.digest if memory.quarantine else ""}
    images = [image for image in (*ways(memory), memory.unproven) if image and image != container["spec_image"]]
    ranked = [(_rank(container, image, failed), image == memory.unproven, image) for image in images]
    # whatever has proven itself comes first
    possible = [(is_unproven, rank, image) for rank, is_unproven, image in ranked if rank is not None]
    return min(possible, key=lambda x: x[:2], default=(False, 0, ""))[2]


def ways(memory: follows.Follow) -> tuple[str, ...]:
    """Images that ran before, the newest first."""
    # after a way back, what was there before it is the failed image
    tags = _as_tag(memory) if memory.back and not memory.quarantine else ()
    return _distinct([*filter(None, [memory.back]), *memory.earlier, *tags])


def _as_tag(memory: follows.Follow) -> tuple[str, ...]:
    """What stood in the spec before our first roll, where it was a tag: the nodes may have that image still."""
    origin = memory.origin
    is_tag = follows.is_of_repository(origin, memory.reference) and not _digest(origin)
    return (origin,) if is_tag else ()


def _rank(container: Container, image: str, failed: t.Container[str]) -> int | None:
    digest = references.parse(image).digest
    pulls_always = container.get("pull_policy") == "Always"
    if not digest:
        # pulled anew the tag brings what it names by now: the failed image, or one that was never rolled
        return None if pulls_always else _ON_NODES
    if digest in failed:
        return None
    if digest in container.get("there", ()):
        return _THERE
    if digest not in container.get("gone_there", ()):
        return _OPEN
    # a node that ran it may have it still; behind the tag, whose name the node knows for sure
    return None if pulls_always else _ON_NODES + 1


def _distinct(images: t.Iterable[str], *but: str) -> tuple[str, ...]:
    return tuple(image for image in dict.fromkeys(images) if image not in but)[: follows.MOST_EARLIER]


def after_settling(memory: follows.Follow) -> tuple[str, ...]:
    """What is remembered of earlier images once a roll has proven itself: those that a digest names for ever."""
    return tuple(image for image in _distinct([memory.back, *memory.earlier]) if "@" in image)


def wanted(memory: t.Mapping[str, t.Any]) -> set[str]:
    """Digests of the images that may go back, to be asked for."""
    found = follows.of_dict(memory)
    images = [*ways(found), *filter(None, [found.unproven])] if found else []
    return {digest for digest in map(_digest, images) if digest}


def _digest(image: str) -> str | None:
    return references.parse(image).digest


def is_back(memory: t.Mapping[str, t.Any] | None) -> bool:
    """True where the last thing we wrote was an earlier image: the failed one is in quarantine."""
    return bool(memory and memory.get("quarantine"))


def doubt(container: Container) -> str:
    """What is to be said of the way back of a roll on trial, or of what went back; empty where nothing is."""
    memory = container["follow"]
    if not (memory and container["trial"]):
        return ""
    if is_back(memory):
        digest = memory["digest"]
        if digest in container.get("gone_there", ()) and digest != memory["quarantine"]["digest"]:
            return f"{digest} went back, and the registry does not have it"
        return ""
    lacking = lacks(t.cast(follows.Follow, follows.of_dict(memory)))
    if lacking:
        return lacking
    back = memory.get("back") or ""
    if back and _digest(back) in container.get("gone_there", ()):
        return f"the registry does not have {back} any more; {_instead(choose(container))}"
    return ""


def lacks(memory: follows.Follow) -> str:
    """What is to be said where the image that was left cannot go back by its digest; else an empty text."""
    if not memory.lacking:
        return ""
    return f"{memory.lacking} ran, and the registry does not have it; {_instead(memory.back)}"


def _instead(image: str | None) -> str:
    return f"a roll that fails goes back to {image or 'nothing'}"

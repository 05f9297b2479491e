# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The annotation that remembers which tag a digest was rolled for.

A roll replaces the tag of an image by a digest. What was followed would be forgotten, so the same patch writes
`kubesteward.io/follow` on the patched object: JSON by container, `{reference, digest, from, at}`. It counts only while
the object's spec still carries `digest` of that repository: a person who writes another image has taken over.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references

ANNOTATION = "kubesteward.io/follow"
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@dataclasses.dataclass(frozen=True)
class Follow:
    """One followed container: `reference` names the tag, `digest` what it was rolled to, `origin` the image before.

    :ivar at: time of the roll, `2006-01-02T15:04:05Z`
    """

    reference: str
    digest: str
    origin: str
    at: str

    def holds_for(self, image: str) -> bool:
        """True while `image`, as the spec has it now, is still what we wrote.

        The same digest behind another repository or tag is somebody's choice: they have taken over.
        """
        try:
            ours = dataclasses.replace(references.parse(self.reference), tag=None, digest=self.digest)
            return references.parse(image) == ours
        except StewardError:
            return False

    def as_dict(self) -> dict[str, str]:
        """The annotation's form."""
        return {"reference": self.reference, "digest": self.digest, "from": self.origin, "at": self.at}


def read(obj: t.Mapping[str, t.Any]) -> dict[str, Follow]:
    """The annotation of an object by container; entries that nobody can read count as absent."""
    text = (obj["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        entries = json.loads(text) if text else {}
        items = list(entries.items())
    except (ValueError, AttributeError):
        return {}
    found = {}
    for name, entry in items:
        try:
            follow = Follow(entry["reference"], entry["digest"], entry["from"], entry["at"])
        except (KeyError, TypeError):
            continue
        if _is_ours(follow):
            found[name] = follow
    return found


def _is_ours(follow: Follow) -> bool:
    """False for what we never write; a status made of it would be refused by the API server."""
    if not all(isinstance(value, str) for value in dataclasses.astuple(follow)):
        return False
    return references.is_digest(follow.digest) and _is_time(follow.at)


def _is_time(text: str) -> bool:
    try:
        return _TIME.fullmatch(text) is not None and bool(conditions.moment(text))
    except ValueError:
        return False


def render(entries: t.Mapping[str, Follow]) -> str:
    """The annotation's text for these containers."""
    return json.dumps({name: entry.as_dict() for name, entry in sorted(entries.items())}, sort_keys=True)

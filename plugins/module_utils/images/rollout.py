# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roll: one JSON patch per object that tests what was seen and replaces just the images. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow as follows
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Verdict
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references

Container = t.Mapping[str, t.Any]
Operation = dict[str, t.Any]

#: the annotation as a JSON pointer, in which a slash of a name is ~1
_POINTER = f"/metadata/annotations/{follows.ANNOTATION.replace('/', '~1')}"


@dataclasses.dataclass(frozen=True)
class Change:
    """One container's image in the object to patch: `path` is the container there, `/spec` in a Start."""

    container: str
    path: str
    before: str
    after: str
    reference: str

    @property
    def in_start(self) -> bool:
        """A Start has no containers, only its one image."""
        return self.path == "/spec"


@dataclasses.dataclass(frozen=True)
class Roll:
    """All changes of one object, `owner` {`kind`, `name`, `api_version`}, for `workload` of the same shape."""

    owner: t.Mapping[str, str]
    workload: t.Mapping[str, t.Any]
    changes: tuple[Change, ...]


def plan(judged: t.Iterable[tuple[Container, Verdict]]) -> list[Roll]:
    """The rolls that the verdicts ask for, one per object, in the order of the containers."""
    grouped: dict[tuple[str, str], Roll] = {}
    for container, verdict in judged:
        if not verdict.rolls:
            continue
        workload = container["workload"]
        owner = owner_of(workload)
        target = references.parse(container["reference"]).at(t.cast(str, verdict.candidate))
        change = Change(
            container["container"], container["path"], container["spec_image"], target, container["reference"]
        )
        key = owner["kind"], owner["name"]
        known = grouped.get(key)
        changes = (*known.changes, change) if known else (change,)
        grouped[key] = Roll(owner, workload, changes)
    return list(grouped.values())


def owner_of(workload: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The object to patch, {`kind`, `name`, `api_version`}: the Start where there is one, else the workload itself."""
    source = workload["owner"] or workload
    return {key: source[key] for key in ("kind", "name", "api_version")}


def patch(roll: Roll, live: t.Mapping[str, t.Any], at: str) -> list[Operation] | None:
    """The JSON patch for `live`, the object as it is now; None where an image is no longer what the verdict saw.

    :param at: time for the annotation, `2006-01-02T15:04:05Z`
    """
    operations: list[Operation] = []
    for change in roll.changes:
        if not _is_unchanged(change, live):
            return None
        if not change.in_start:
            operations.append({"op": "test", "path": f"{change.path}/name", "value": change.container})
        operations += _replace_image(change)
    return operations + _annotate(roll, live, at)


def _is_unchanged(change: Change, live: t.Mapping[str, t.Any]) -> bool:
    found = _lookup(live, change.path) or {}
    if not change.in_start and found.get("name") != change.container:
        return False
    return (found.get("image") or "") == change.before


def _lookup(live: t.Any, path: str) -> t.Any:
    for part in path.strip("/").split("/"):
        try:
            live = live[int(part)] if isinstance(live, list) else live.get(part)
        except IndexError:
            return None
        if live is None:
            return None
    return live


def _replace_image(change: Change) -> list[Operation]:
    image = f"{change.path}/image"
    return [
        {"op": "test", "path": image, "value": change.before},
        {"op": "replace", "path": image, "value": change.after},
    ]


def _annotate(roll: Roll, live: t.Mapping[str, t.Any], at: str) -> list[Operation]:
    entries = follows.read(live)
    for change in roll.changes:
        digest = change.after.rpartition("@")[2]
        entries[change.container] = follows.Follow(change.reference, digest, change.before, at)
    text = follows.render(entries)
    annotations = live["metadata"].get("annotations") or {}
    if follows.ANNOTATION in annotations:
        # another pass may have written the memory of another container meanwhile
        before = {"op": "test", "path": _POINTER, "value": annotations[follows.ANNOTATION]}
        return [before, {"op": "replace", "path": _POINTER, "value": text}]
    # no test can say that something is absent, so that nothing may have been written meanwhile
    unedited = {"op": "test", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]}
    if annotations:
        return [unedited, {"op": "add", "path": _POINTER, "value": text}]
    return [unedited, {"op": "add", "path": "/metadata/annotations", "value": {follows.ANNOTATION: text}}]


def release(obj: t.Mapping[str, t.Any], paths: t.Mapping[str, str]) -> list[Operation]:
    """The JSON patch that puts the followed references back and removes their annotation; empty where there is none.

    :param paths: container name -> its place in the object; what is remembered of other containers stays
    """
    text = (obj["metadata"].get("annotations") or {}).get(follows.ANNOTATION)
    if text is None:
        return []
    entries = follows.read(obj)
    kept = {name: entry for name, entry in entries.items() if name not in paths}
    if entries and len(kept) == len(entries):
        return []
    operations: list[Operation] = []
    for name, entry in entries.items():
        path = paths.get(name)
        image = (_lookup(obj, path) or {}).get("image") if path else None
        if path and image and entry.holds_for(image):
            operations.append({"op": "test", "path": f"{path}/image", "value": image})
            operations.append({"op": "replace", "path": f"{path}/image", "value": entry.reference})
    operations.append({"op": "test", "path": _POINTER, "value": text})
    if kept:
        return [*operations, {"op": "replace", "path": _POINTER, "value": follows.render(kept)}]
    return [*operations, {"op": "remove", "path": _POINTER}]

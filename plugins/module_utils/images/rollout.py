# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roll: one JSON patch per object that tests what was seen and replaces just the images. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import crashes, wayback
from ansible_collections.kubesteward.core.plugins.module_utils.images import follow as follows
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Verdict
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references

Container = t.Mapping[str, t.Any]
Operation = dict[str, t.Any]

#: the annotations as JSON pointers, in which a slash of a name is ~1
_POINTER, _RETRY = (f"/metadata/annotations/{name.replace('/', '~1')}" for name in (follows.ANNOTATION, follows.RETRY))


@dataclasses.dataclass(frozen=True)
class Change:
    """One container in the object to patch: `path` is its place there, `/spec` in a Start.

    :ivar kind: `roll`, `roll_back`, or `settle`, which writes only what is remembered
    :ivar memory: what the annotation says of the container from then on
    :ivar message: why, or what there is to know of it
    """

    kind: str
    container: str
    path: str
    before: str
    after: str
    memory: follows.Follow
    message: str = ""

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


def plan(judged: t.Iterable[tuple[Container, Verdict]], now: str, by: str = "") -> list[Roll]:
    """The changes that the verdicts ask for, one per object, in the order of the containers.

    :param now: time for the annotation, `2006-01-02T15:04:05Z`
    :param by: name of the Update
    """
    grouped: dict[tuple[str, str], Roll] = {}
    for container, verdict in judged:
        if verdict.rolls:
            change = _roll(container, t.cast(str, verdict.candidate), now, by)
        elif verdict.action == "roll_back":
            change = _roll_back(container, verdict, now, by)
        elif verdict.action == "settle":
            change = _settle(container)
        else:
            continue
        workload = container["workload"]
        owner = owner_of(workload)
        key = owner["kind"], owner["name"]
        known = grouped.get(key)
        changes = (*known.changes, change) if known else (change,)
        grouped[key] = Roll(owner, workload, changes)
    return list(grouped.values())


def _roll(container: Container, digest: str, now: str, by: str) -> Change:
    before, reference = container["spec_image"], container["reference"]
    known, undone = (follows.of_dict(container[key]) for key in ("follow", "undone"))
    last = undone or known
    runs = [item["digest"] for item in container["running"] if item["id_kind"] == "manifest"]
    # a Job ends: there is nothing to watch
    on_trial = container["workload"]["kind"] != "CronJob"
    way = wayback.at_roll(container, known, digest)
    memory = follows.Follow(
        reference,
        digest,
        before,
        now,
        by=by,
        back=way.back if on_trial else "",
        earlier=way.earlier if on_trial else (),
        unproven=way.unproven if on_trial else "",
        lacking=way.lacking if on_trial else "",
        unwell=(known.unwell if known and known.trial and known.back else _unwell(container, now)) if on_trial else "",
        left=_without(follows.with_left(last.left if last else (), *runs, last.digest if last else ""), digest),
        trial=on_trial,
        answered=undone.answered + 1
        if undone and undone.digest == digest and container["undone"]["how"] == "tag"
        else 0,
    )
    after = references.parse(reference).at(digest)
    return Change("roll", container["container"], container["path"], before, after, memory, wayback.lacks(memory))


def _without(digests: tuple[str, ...], digest: str) -> tuple[str, ...]:
    return tuple(item for item in digests if item != digest)


def _unwell(container: Container, now: str) -> str:
    """What is wrong with every Pod of the image that is left, and has been for a while."""
    found = container.get("unwell") or {}
    lasts = bool(found) and crashes.age(found["since"], now) >= crashes.LASTS
    return found["reason"][: follows.MOST_UNWELL] if lasts else ""


def _roll_back(container: Container, verdict: Verdict, now: str, by: str) -> Change:
    memory = t.cast(follows.Follow, follows.of_dict(container["follow"]))
    back = verdict.back
    digest = references.parse(back).digest
    why = verdict.progress.message if verdict.progress else ""
    failed = follows.Quarantine(memory.digest, why[: follows.MOST_REASON], now)
    after = dataclasses.replace(
        memory,
        digest=digest or memory.digest,
        origin=container["spec_image"],
        at=now,
        by=by,
        image="" if digest and back == references.parse(memory.reference).at(digest) else back,
        back="",
        earlier=tuple(image for image in wayback.ways(memory) if image != back),
        unproven="" if memory.unproven == back else memory.unproven,
        lacking="",
        unwell="",
        left=_without(follows.with_left(memory.left, memory.digest), digest or ""),
        # watched like a roll
        trial=True,
        # of a way back that failed too, what the tag names stays in quarantine
        quarantine=memory.quarantine or failed,
    )
    return Change("roll_back", container["container"], container["path"], container["spec_image"], back, after, why)


def _settle(container: Container) -> Change:
    memory = t.cast(follows.Follow, follows.of_dict(container["follow"]))
    image = container["spec_image"]
    earlier = wayback.after_settling(memory)
    after = dataclasses.replace(memory, trial=False, back="", earlier=earlier, unproven="", lacking="", unwell="")
    return Change("settle", container["container"], container["path"], image, image, after)


def owner_of(workload: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The object to patch, {`kind`, `name`, `api_version`}: the Start where there is one, else the workload itself."""
    source = workload["owner"] or workload
    return {key: source[key] for key in ("kind", "name", "api_version")}


def patch(roll: Roll, live: t.Mapping[str, t.Any]) -> list[Operation] | None:
    """The JSON patch for `live`, the object as it is now; None where an image is no longer what the verdict saw."""
    operations: list[Operation] = []
    for change in roll.changes:
        if not _is_unchanged(change, live):
            return None
        if not change.in_start:
            operations.append({"op": "test", "path": f"{change.path}/name", "value": change.container})
        operations += _replace_image(change)
    return [*operations, *_annotate(roll, live), *_consume_retry(roll, live)]


def _is_unchanged(change: Change, live: t.Mapping[str, t.Any]) -> bool:
    found = lookup(live, change.path) or {}
    if not change.in_start and found.get("name") != change.container:
        return False
    return (found.get("image") or "") == change.before


def lookup(live: t.Any, path: str) -> t.Any:
    """What is at a place, `/spec/...`, of an object; None where there is nothing."""
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
    test = {"op": "test", "path": image, "value": change.before}
    return [test, {"op": "replace", "path": image, "value": change.after}] if change.after != change.before else [test]


def _annotate(roll: Roll, live: t.Mapping[str, t.Any]) -> list[Operation]:
    entries = follows.read(live)
    entries.update({change.container: change.memory for change in roll.changes})
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


def _consume_retry(roll: Roll, live: t.Mapping[str, t.Any]) -> list[Operation]:
    """A person's word counts for one roll."""
    wanted = (live["metadata"].get("annotations") or {}).get(follows.RETRY)
    if not any(change.kind == "roll" and change.memory.digest == wanted for change in roll.changes):
        return []
    return [{"op": "test", "path": _RETRY, "value": wanted}, {"op": "remove", "path": _RETRY}]


def forget(live: t.Mapping[str, t.Any], kept: t.Mapping[str, follows.Follow]) -> list[Operation]:
    """The JSON patch that removes our annotations from an object that has them, but for what is `kept`."""
    annotations = live["metadata"]["annotations"]
    operations: list[Operation] = []
    if follows.RETRY in annotations:
        operations.append({"op": "remove", "path": _RETRY})
    operations.append({"op": "test", "path": _POINTER, "value": annotations[follows.ANNOTATION]})
    if kept:
        return [*operations, {"op": "replace", "path": _POINTER, "value": follows.render(kept)}]
    return [*operations, {"op": "remove", "path": _POINTER}]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels and annotations of a Namespace: ours are set and taken away again, those of others stay. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import CLAIM, Claim

Object = dict[str, t.Any]
Marks = t.Mapping[str, t.Mapping[str, str]]

FIELDS = ("labels", "annotations")


def of(live: t.Mapping[str, t.Any] | None, field: str) -> t.Mapping[str, str]:
    """The labels or annotations of a Namespace that may not be there."""
    return (live or {"metadata": {}})["metadata"].get(field) or {}


def known(before: Claim | None, field: str) -> t.Collection[str]:
    """Keys that are ours."""
    return () if before is None else before.labels if field == "labels" else before.annotations


def kept(live: t.Mapping[str, t.Any] | None, wanted: Marks, before: Claim | None) -> list[str]:
    """What somebody else had set to the same before we wanted it, as `labels/key`: it is theirs to take away."""
    stays = set(before.kept) if before else set()
    return [
        f"{field}/{key}"
        for field in FIELDS
        for key, value in wanted[field].items()
        if f"{field}/{key}" in stays or (key not in known(before, field) and of(live, field).get(key) == value)
    ]


def foreign(live: t.Mapping[str, t.Any] | None, wanted: Marks, before: Claim | None) -> list[tuple[str, str]]:
    """(field, key) of what somebody else had set otherwise before we wanted it; adoption alone takes such over."""
    if before is None:
        return []
    return [
        (field, key)
        for field in FIELDS
        for key, value in wanted[field].items()
        if key not in known(before, field) and of(live, field).get(key, value) != value
    ]


def drifted(live: t.Mapping[str, t.Any] | None, wanted: Marks, before: Claim | None) -> list[tuple[str, str, str]]:
    """Paths of what was ours already and is no longer as we set it."""
    return [
        ("metadata", field, key)
        for field in FIELDS
        for key, value in wanted[field].items()
        if key in known(before, field) and of(live, field).get(key) != value
    ]


def patch(live: t.Mapping[str, t.Any], wanted: Marks, before: Claim | None) -> tuple[list[Object], Object]:
    """A JSON patch that sets ours and removes what was ours and is no longer wanted; and what it leads to.

    The patch is empty where nothing is to be done. It fails where somebody else has written meanwhile.
    """
    operations: list[Object] = []
    after = dict(live["metadata"])
    for field in FIELDS:
        stays = {key.partition("/")[2] for key in (before.kept if before else ()) if key.startswith(f"{field}/")}
        there = of(live, field)
        gone = [key for key in known(before, field) if key in there and key not in {*wanted[field], *stays}]
        operations += _of_map(field, live["metadata"].get(field), wanted[field], gone)
        after[field] = {**{key: value for key, value in there.items() if key not in gone}, **wanted[field]}
    if operations:
        # a test of a key that is absent is not possible
        version = live["metadata"]["resourceVersion"]
        operations.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": version})
    return operations, {**live, "metadata": after}


def _of_map(
    field: str, live: t.Mapping[str, str] | None, wanted: t.Mapping[str, str], gone: t.Iterable[str]
) -> list[Object]:
    if live is None:
        return [{"op": "add", "path": f"/metadata/{field}", "value": dict(wanted)}] if wanted else []
    changes: list[Object] = [
        {"op": "add", "path": f"/metadata/{field}/{escaped(key)}", "value": value}
        for key, value in wanted.items()
        if live.get(key) != value
    ]
    return changes + [{"op": "remove", "path": f"/metadata/{field}/{escaped(key)}"} for key in gone]


def closing(claim: Claim, final: Claim) -> list[Object]:
    """A JSON patch that forgets what has been taken away by then: until that is done, the claim must know of it."""
    path = f"/metadata/annotations/{escaped(CLAIM)}"
    return [
        {"op": "test", "path": path, "value": claim.render()},
        {"op": "replace", "path": path, "value": final.render()},
    ]


def escaped(key: str) -> str:
    """A key as a step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")

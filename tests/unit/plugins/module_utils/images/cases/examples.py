# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixtures of the cases: from the short form in YAML to objects as the API returns them.

A fixture says `what` goes wrong elsewhere and gives one example, or several below `examples`; what stands beside
`examples` holds for each that does not say otherwise. An example with `each` is run once for each of these rows, whose
values replace `<name>`. A name that begins with a capital is a digest: `<I1>` of the body I1 where `bodies` has it,
else one made up for the name; `<C1.hex>` is its 64 hex digits alone.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import re
import typing as t
from pathlib import Path

import yaml

Object = dict[str, t.Any]

FOLDER = Path(__file__).parent / "fixtures"
_DEFAULTS: dict[str, Object] = yaml.safe_load((Path(__file__).parent / "defaults.yml").read_text())
_NAME = re.compile(r"<([A-Za-z][A-Za-z0-9_]*)(\.hex)?>")
#: of one list another, whose first item completes its items too
_LIKE = {"initContainers": "containers", "initContainerStatuses": "containerStatuses"}
#: one of several: completed, it would be two at once
_WHOLE = ("state", "lastState")
#: kind -> kinds that control it, the last one before it in a fixture
_CONTROLLED_BY = {
    "ReplicaSet": ("Deployment",),
    "ControllerRevision": ("DaemonSet",),
    "Job": ("CronJob",),
    "Pod": ("ReplicaSet", "StatefulSet", "DaemonSet", "Job"),
}


@dataclasses.dataclass(frozen=True)
class Example:
    """One example, expanded.

    :ivar where: fixture, example and row, for messages
    :ivar objects: what is in the cluster
    :ivar registry: entries of registry_digest; None where the registry speaks HTTP
    :ivar http: `serves` (tag -> name of a body) and `answers` that come before it, [{`request`, `accept`, `status`,
        `headers`, `body`}]
    :ivar bodies: raw bytes by name
    :ivar lookup: an entry of registry_digest's `images`, in place of what the Pods ask for
    :ivar steps: passes, each with `at`, `change`, `gone`, `fail`, `registry`, `expect`; empty where one decision is all
    :ivar spoil: merged into what pod_image_id returns of each container, before image_rollout gets it
    :ivar expect: see `checking`
    """

    where: str
    objects: tuple[Object, ...] = ()
    registry: tuple[Object, ...] | None = None
    serves: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    http: tuple[Object, ...] = ()
    bodies: t.Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    lookup: Object | None = None
    steps: tuple[Object, ...] = ()
    spoil: Object = dataclasses.field(default_factory=dict)
    expect: Object = dataclasses.field(default_factory=dict)


_KEYS = {"objects", "registry", "serves", "http", "bodies", "lookup", "steps", "spoil", "expect"}


def load(fixture: str, folder: Path = FOLDER) -> list[Example]:
    """The examples of a fixture, by its file's name without `.yml`.

    :raises ValueError: a key or a name that nobody knows, or nothing that is expected
    """
    data = yaml.safe_load((folder / f"{fixture}.yml").read_text())
    if not str(data.pop("what", "")).strip():
        raise ValueError(f"{fixture} does not say what it is about")
    found = []
    for number, own in enumerate(data.pop("examples", [{}]), 1):
        merged = {**data, **own}
        name = merged.pop("example", f"example {number}")
        for row_number, row in enumerate(merged.pop("each", [{}]), 1):
            found.append(_example(f"{fixture}, {name}, row {row_number}", merged, row))
    return found


def _example(where: str, data: Object, row: Object) -> Example:
    unknown = set(data) - _KEYS
    if unknown:
        raise ValueError(f"{where}: unknown keys {sorted(unknown)}")
    if "lookup" in data:
        # nothing runs, and what the other examples run is not asked for its names
        data = {key: value for key, value in data.items() if key != "objects"}
    bodies: dict[str, bytes] = {}
    names = _Names(row, bodies, where)
    for name, body in (data.get("bodies") or {}).items():
        # text stays as it is: a page of HTML has angle brackets too
        bodies[name] = body.encode() if isinstance(body, str) else json.dumps(names.expand(body)).encode()
    expanded = names.expand({key: value for key, value in data.items() if key != "bodies"})
    expects = [expanded.get("expect"), *(step.get("expect") for step in expanded.get("steps") or ())]
    if not any(expects):
        raise ValueError(f"{where}: nothing is expected")
    if expanded.get("registry") is not None:
        expanded["registry"] = tuple(entry(item) for item in expanded["registry"])
    for step in expanded.get("steps") or ():
        if "registry" in step:
            step["registry"] = tuple(entry(item) for item in step["registry"])
    expanded["objects"] = complete(expanded.get("objects") or ())
    for key in ("http", "steps"):
        expanded[key] = tuple(expanded.get(key) or ())
    return Example(where, bodies=bodies, **expanded)


def digest_of(name: str) -> str:
    """The digest of what has no bytes: the same for the same name."""
    return f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"


class _Names:
    def __init__(self, row: Object, bodies: t.Mapping[str, bytes], where: str) -> None:
        self.row, self.bodies, self.where = row, bodies, where

    def expand(self, value: t.Any) -> t.Any:
        if isinstance(value, dict):
            return {self.expand(key): self.expand(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.expand(item) for item in value]
        if not isinstance(value, str):
            return value
        whole = _NAME.fullmatch(value)
        if whole and whole[1] in self.row:
            return self.expand(copy.deepcopy(self.row[whole[1]]))
        return _NAME.sub(lambda match: str(self._value(match)), value)

    def _value(self, match: re.Match[str]) -> t.Any:
        name, as_hex = match.groups()
        if name in self.row:
            return self.expand(self.row[name])
        if not name[0].isupper():
            raise ValueError(f"{self.where}: no row gives <{name}>")
        body = self.bodies.get(name)
        digest = digest_of(name) if body is None else f"sha256:{hashlib.sha256(body).hexdigest()}"
        return digest.partition(":")[2] if as_hex else digest


def entry(given: Object) -> Object:
    """An entry of registry_digest: found and pullable where it does not say otherwise; `raw` is one as it is."""
    if "raw" in given:
        return t.cast(Object, given["raw"])
    if given.get("state") == "unknown":
        return {"image": "registry.example/shop/web:1", "msg": f"the registry says {given['reason']}", **given}
    return {"image": "registry.example/shop/web:1", "state": "found", "pullable": True, **given}


def complete(given: t.Iterable[Object | str], before: t.Iterable[Object] = ()) -> tuple[Object, ...]:
    """Objects with what their kind's default has beside, an owner, a name and an uid."""
    known = list(before)
    start = len(known)
    for item in given:
        known.append(_complete({"kind": item} if isinstance(item, str) else dict(item), known))
    return tuple(known[start:])


def _complete(item: Object, known: t.Sequence[Object]) -> Object:
    kind = item["kind"]
    owner = _owner(item.pop("of", None), kind, known)
    found = merge(_DEFAULTS[kind], item)
    metadata = found["metadata"]
    beside = sum(other["kind"] == kind for other in known) + 1
    metadata.setdefault("name", f"{owner['metadata']['name']}-{beside}" if owner else "web")
    metadata["uid"] = f"uid-{kind}-{metadata['name']}"
    metadata["resourceVersion"] = str(len(known) + 1)
    if owner:
        names = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**names, "uid": owner["metadata"]["uid"], "controller": True}]
    return found


def _owner(named: str | None, kind: str, known: t.Sequence[Object]) -> Object | None:
    if named:
        return next(item for item in known if f"{item['kind']}/{item['metadata']['name']}" == named)
    return next((item for item in reversed(known) if item["kind"] in _CONTROLLED_BY.get(kind, ())), None)


def merge(default: t.Any, given: t.Any) -> t.Any:
    """`given` completed with `default`, deeply; a null removes."""
    if isinstance(default, dict) and isinstance(given, dict):
        found = copy.deepcopy(default)
        for key, value in given.items():
            if value is None:
                found.pop(key, None)
            elif key in _WHOLE:
                found[key] = copy.deepcopy(value)
            else:
                found[key] = merge(default.get(key, default.get(_LIKE.get(key, ""))), value)
        return found
    if isinstance(default, list) and isinstance(given, list) and default:
        return [merge(default[0], item) for item in given]
    return copy.deepcopy(given)

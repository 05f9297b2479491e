# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a new schema of a resource breaks for those that are stored already. Pure.

A stored object is validated anew with every write, so whatever one version has admitted must be admitted, kept and
meant by the next one, too.
"""

from __future__ import annotations

import typing as t

Schema = t.Mapping[str, t.Any]

#: a bound may be loosened and taken away; which of two is the tighter one
LOWER = ("minimum", "minLength", "minItems", "minProperties")
UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
#: have no say in what is admitted or kept
SILENT = ("description", "title", "example", "externalDocs")
CHILDREN = ("properties", "items", "additionalProperties")
#: rule -> the one that it took the place of, and follows from
FOLLOWS_FROM = {"!(has(self.name) && has(self.selector))": "has(self.name) != has(self.selector)"}
#: patterns that gave way to one that admits more
_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
WIDER = {f"^({_NAME}/)?{_NAME}$": f"^({_NAME}/)?{_NAME}(\\.{_NAME})*$"}
SETS = ("enum", "required", "x-kubernetes-validations")


def breaks(old: Schema, new: Schema, path: str = "") -> list[str]:
    """Sentences on what `new` refuses, drops or means otherwise of what `old` admits; empty where it is compatible.

    A keyword that this does not know must stay as it is.

    :param old: an openAPIV3Schema, or a part of it
    :param path: of the part, for the sentences
    """
    here = path or "the resource"
    found = [*_sets(old, new, here), *_bounds(old, new, here), *_children(old, new, path)]
    known = {*LOWER, *UPPER, *SILENT, *CHILDREN, *SETS}
    for key in sorted({*old, *new} - known):
        is_wider = key == "pattern" and key in old and new.get(key) in (None, WIDER.get(old[key]))
        if old.get(key) != new.get(key) and not is_wider:
            found.append(f"{here}: {key} was {old.get(key)!r} and is {new.get(key)!r}")
    return found


def _sets(old: Schema, new: Schema, here: str) -> list[str]:
    """What can only be given up, or only be added."""
    found = []
    if "enum" in new:
        if "enum" not in old:
            found.append(f"{here}: any value was allowed, now only {new['enum']}")
        found += [f"{here}: the value {value!r} is gone" for value in old.get("enum", ()) if value not in new["enum"]]
    for name in new.get("required", ()):
        # what has a default is there before anybody asks
        if name not in old.get("required", ()) and "default" not in new.get("properties", {}).get(name, {}):
            found.append(f"{here}: {name} has become required")
    rules = {rule["rule"] for rule in old.get("x-kubernetes-validations", ())}
    for rule in new.get("x-kubernetes-validations", ()):
        if not {rule["rule"], FOLLOWS_FROM.get(rule["rule"])} & rules:
            found.append(f"{here}: a rule has come in: {rule['rule']}")
    return found


def _bounds(old: Schema, new: Schema, here: str) -> list[str]:
    found = []
    for key in (*LOWER, *UPPER):
        before, after = old.get(key), new.get(key)
        if after is None:
            continue
        if key == "minProperties":
            # as many are there as were required
            before = max(before or 0, len(old.get("required", ())))
        tighter = before is None or (after > before if key in LOWER else after < before)
        # nothing can be shorter
        if tighter and not (key in LOWER and key != "minimum" and after == 0):
            found.append(f"{here}: {key} was {before} and is {after}")
    return found


def _children(old: Schema, new: Schema, path: str) -> list[str]:
    found = []
    for name, child in old.get("properties", {}).items():
        inside = f"{path}.{name}"
        if name in new.get("properties", {}):
            found += breaks(child, new["properties"][name], inside)
        else:
            found.append(f"{inside}: the field is gone")
    # a field that comes in was dropped before, so nothing of it is stored
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            found += breaks(before, after, f"{path}{mark}")
        elif before != after:
            found.append(f"{path or 'the resource'}: {key} was {before!r} and is {after!r}")
    return found


def crd_breaks(old: Schema, new: Schema) -> list[str]:
    """The same of two CustomResourceDefinitions: what they are called, which versions there are, and their schemas."""
    found = []
    before, after = old["spec"], new["spec"]
    for key in ("group", "scope"):
        if before[key] != after[key]:
            found.append(f"{key} was {before[key]} and is {after[key]}")
    for key in ("kind", "listKind", "plural", "singular"):
        if before["names"].get(key) != after["names"].get(key):
            found.append(f"names.{key} was {before['names'].get(key)} and is {after['names'].get(key)}")
    gone = set(before["names"].get("shortNames", ())) - set(after["names"].get("shortNames", ()))
    found += [f"the short name {name} is gone" for name in sorted(gone)]
    versions = {version["name"]: version for version in after["versions"]}
    for version in before["versions"]:
        found += [f"{version['name']}: {text}" for text in _version(version, versions.get(version["name"]))]
    return found


def _version(old: Schema, new: Schema | None) -> list[str]:
    if new is None or (old["served"] and not new["served"]):
        return ["the version is no longer served"]
    schemas = (version["schema"]["openAPIV3Schema"] for version in (old, new))
    gone = sorted(set(old.get("subresources", {})) - set(new.get("subresources", {})))
    return [f"the subresource {name} is gone" for name in gone] + breaks(*schemas)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as a break of stored resources, case by case."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack import schema_changes

TEXT = {"type": "string", "description": "Any text."}
OLD = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"]},
        "count": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 10, "default": 1},
        "names": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {**TEXT, "maxLength": 9}},
        "labels": {"type": "object", "additionalProperties": {**TEXT, "pattern": "^a*$"}},
        "note": TEXT,
    },
    "x-kubernetes-validations": [{"rule": "has(self.note)", "message": "a note"}],
}
CRD = {
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Shop", "plural": "shops", "singular": "shop", "shortNames": ["sh"]},
        "versions": [
            {"name": "v1", "served": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": OLD}}
        ],
    }
}


def changed(old, path, value):
    """A copy with another value at `a.b.0.c`; None takes it away."""
    found = copy.deepcopy(old)
    *way, last = path.split("/")
    at = found
    for step in way:
        at = at[int(step)] if isinstance(at, list) else at[step]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return found


BREAKS = [
    ("properties/note", None, ".note: the field is gone"),
    ("properties/size/enum", ["large"], ".size: the value 'small' is gone"),
    ("properties/note/enum", ["a"], ".note: any value was allowed, now only ['a']"),
    ("required", ["size", "note"], "the resource: note has become required"),
    ("properties/count/minimum", 1, ".count: minimum was 0 and is 1"),
    ("properties/count/maximum", 9, ".count: maximum was 10 and is 9"),
    ("properties/count/default", 2, ".count: default was 1 and is 2"),
    ("properties/count/default", None, ".count: default was 1 and is None"),
    ("properties/note/default", "x", ".note: default was None and is 'x'"),
    ("properties/count/format", "int32", ".count: format was 'int64' and is 'int32'"),
    ("properties/count/type", "string", ".count: type was 'integer' and is 'string'"),
    ("properties/count/multipleOf", 2, ".count: multipleOf was None and is 2"),
    ("properties/note/maxLength", 100, ".note: maxLength was None and is 100"),
    ("properties/note/minLength", 1, ".note: minLength was None and is 1"),
    ("properties/note/pattern", "^a$", ".note: pattern was None and is '^a$'"),
    ("properties/names/maxItems", 4, ".names: maxItems was 5 and is 4"),
    ("properties/names/items/maxLength", 8, ".names[]: maxLength was 9 and is 8"),
    (
        "properties/names/x-kubernetes-list-type",
        "atomic",
        ".names: x-kubernetes-list-type was 'set' and is 'atomic'",
    ),
    ("properties/labels/additionalProperties/pattern", "^b*$", ".labels{}: pattern was '^a*$' and is '^b*$'"),
    ("properties/labels/additionalProperties", False, ".labels: additionalProperties was"),
    ("x-kubernetes-validations/0/rule", "false", "the resource: a rule has come in: false"),
]
FITS = [
    ("properties/more", {"type": "string", "minLength": 3}),
    ("properties/size/enum", ["small", "medium", "large"]),
    ("properties/size/enum", None),
    ("required", None),
    ("properties/count/minimum", -1),
    ("properties/count/maximum", None),
    ("properties/note/minLength", 0),
    ("properties/note/description", "Another text."),
    ("properties/names/maxItems", 6),
    ("x-kubernetes-validations", None),
    ("x-kubernetes-validations/0/message", "another"),
]


@pytest.mark.parametrize(("path", "value", "told"), BREAKS)
def test_a_change_that_breaks_stored_resources_is_told(path, value, told):
    (found,) = schema_changes.breaks(OLD, changed(OLD, path, value))
    assert found.startswith(told)


@pytest.mark.parametrize(("path", "value"), FITS)
def test_a_change_that_breaks_none_is_not_told(path, value):
    assert schema_changes.breaks(OLD, changed(OLD, path, value)) == []


def test_a_field_with_a_default_may_become_required():
    new = changed(changed(OLD, "required", ["size", "more"]), "properties/more", {"type": "string", "default": "a"})
    assert schema_changes.breaks(OLD, new) == []


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("spec/group", "other.example.com", "group was example.com and is other.example.com"),
        ("spec/scope", "Cluster", "scope was Namespaced and is Cluster"),
        ("spec/names/plural", "shopz", "names.plural was shops and is shopz"),
        ("spec/names/shortNames", [], "the short name sh is gone"),
        ("spec/versions/0/name", "v2", "v1: the version is no longer served"),
        ("spec/versions/0/served", False, "v1: the version is no longer served"),
        ("spec/versions/0/subresources/status", None, "v1: the subresource status is gone"),
        ("spec/versions/0/schema/openAPIV3Schema/properties/note", None, "v1: .note: the field is gone"),
    ],
)
def test_what_a_definition_may_not_change(path, value, told):
    assert schema_changes.crd_breaks(CRD, changed(CRD, path, value)) == [told]


def test_a_definition_may_get_another_version_and_another_short_name():
    versions = [{**CRD["spec"]["versions"][0], "name": "v2"}, *CRD["spec"]["versions"]]
    new = changed(changed(CRD, "spec/versions", versions), "spec/names/shortNames", ["sh", "sp"])
    assert schema_changes.crd_breaks(CRD, new) == []


@pytest.mark.parametrize(("old", "new"), schema_changes.WIDER.items())
@given(data=st.data())
def test_a_pattern_that_is_said_to_admit_more_does(old, new, data):
    text = data.draw(st.from_regex(old, fullmatch=True))
    assert re.fullmatch(new, text)
    assert schema_changes.breaks({"pattern": old}, {"pattern": new}) == []
    assert schema_changes.breaks({"pattern": new}, {"pattern": old})


def test_a_pattern_may_go_and_not_come_in():
    assert schema_changes.breaks({"pattern": "^a$"}, {}) == []
    assert schema_changes.breaks({}, {"pattern": "^a$"})
    assert schema_changes.breaks({"pattern": "^a$"}, {"pattern": "^b$"})

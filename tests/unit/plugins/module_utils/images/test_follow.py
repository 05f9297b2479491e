# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The annotation that remembers which tag a digest was rolled for."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    pod_of,
    workload,
)


def read(text):
    return follow.read({"metadata": {"annotations": {follow.ANNOTATION: text}}})


def test_what_is_written_is_read():
    entry = follow.Follow(IMAGE, I1, IMAGE, "2026-02-01T00:00:00Z")
    assert read(follow.render({"app": entry, "b": entry})) == {"app": entry, "b": entry}
    assert entry.as_dict() == {"reference": IMAGE, "digest": I1, "from": IMAGE, "at": "2026-02-01T00:00:00Z"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", '"text"', "[{}]", '{"app": null}', '{"app": []}', "[" * 100_000]
)
def test_a_damaged_annotation_is_none(text):
    assert read(text) == {}


@pytest.mark.parametrize(
    "spoil", [{"digest": None}, {"at": 7}, {"at": "2026-13-45T99:99:99Z"}, {"reference": ["x"]}, {"from": {}}]
)
def test_one_damaged_entry_does_not_spoil_the_others(spoil):
    text = json.dumps({"app": {**followed(I1), **spoil}, "b": followed(I2), "c": {"reference": IMAGE}})
    assert list(read(text)) == ["b"]


@pytest.mark.parametrize(
    "image",
    ["evil.example/shop/web:1", f"evil.example/shop/web@{I2}", "web", f"{REPOSITORY}x:1", "Not Valid", "", 7, []],
)
@pytest.mark.parametrize("key", ["back", "image"])
def test_no_image_of_another_repository_is_taken_from_it(key, image):
    text = json.dumps({"app": {**followed(I1), "trial": True, key: image}})
    assert getattr(read(text)["app"], key) == ""
    text = json.dumps({"app": {**followed(I1), "trial": True, key: f"{REPOSITORY}:0"}})
    assert getattr(read(text)["app"], key) == f"{REPOSITORY}:0"


def test_of_a_reason_that_somebody_made_long_only_the_beginning_is_read():
    quarantine = {"digest": I2, "reason": "x" * 100_000, "at": "2026-02-01T00:00:00Z"}
    found = read(json.dumps({"app": followed(I1, quarantine=quarantine)}))["app"].quarantine
    assert len(found.reason) == follow.MOST_REASON
    assert found.reason.endswith("(100000 characters)")


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": {"other": "x"}}])
def test_without_the_annotation_nothing_is_followed(metadata):
    assert follow.read({"metadata": metadata}) == {}


@pytest.mark.parametrize(
    ("image", "holds"),
    [
        (f"{REPOSITORY}@{I1}", True),
        (f"{REPOSITORY}@{I2}", False),
        (IMAGE, False),
        # somebody chose another place or another tag for the same content
        (f"mirror.example/shop/web@{I1}", False),
        (f"{REPOSITORY}:2@{I1}", False),
        ("", False),
        (f"https://{REPOSITORY}@{I1}", False),
    ],
)
def test_it_holds_only_while_the_spec_has_what_we_wrote(image, holds):
    assert follow.Follow(IMAGE, I1, IMAGE, "").holds_for(image) is holds


@pytest.mark.parametrize(
    "image", ["nginx", "library/nginx", "docker.io/library/nginx", "index.docker.io/library/nginx"]
)
def test_all_names_of_one_repository_are_the_same(image):
    assert follow.Follow("nginx:1.27", I1, "nginx:1.27", "").holds_for(f"{image}@{I1}")


@pytest.mark.parametrize("reference", ["", "Not A Reference", "https://r.example/a"])
def test_a_reference_that_cannot_be_read_does_not_hold(reference):
    assert not follow.Follow(reference, I1, "", "").holds_for(f"{REPOSITORY}@{I1}")


@pytest.mark.parametrize(
    ("image", "reference", "pinned"),
    [
        (f"{REPOSITORY}@{I1}", IMAGE, None),
        (f"{REPOSITORY}:2", f"{REPOSITORY}:2", None),
        (f"{REPOSITORY}@{I2}", f"{REPOSITORY}@{I2}", I2),
        (f"mirror.example/shop/web@{I1}", f"mirror.example/shop/web@{I1}", I1),
    ],
)
def test_the_reference_comes_from_it_while_it_holds_else_from_the_spec(image, reference, pinned):
    owner = workload(containers=[container(image=image)], annotations=annotation(app=followed(I1)))
    one, between = pod_of(owner, f"{REPOSITORY}@{I1}")
    (found,) = inspect(owner, one, *between)
    assert (found["reference"], found["pinned"]) == (reference, pinned)
    assert (found["follow"] is not None) == (reference == IMAGE)

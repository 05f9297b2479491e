# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/namespaces.md names what there is, and all of it."""

from __future__ import annotations

import re

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim, desired, nspro_status


@pytest.fixture(scope="module")
def text(root) -> str:
    return (root / "docs/namespaces.md").read_text()


def test_every_phase_and_every_reserved_name_is_explained(text):
    missing = [word for word in (*nspro_status._PHASES.values(), *claim.RESERVED) if f"`{word}`" not in text]
    assert missing == []


def test_annotations_and_labels_are_those_of_the_code(text):
    known = {claim.CLAIM, claim.ADOPTABLE, claim.GUARD, desired.SHAREABLE}
    assert set(re.findall(r"kubesteward\.io/[a-z-]+", text)) == known


def test_variables_and_options_that_are_named_exist(root, schemas, text):
    specs = yaml.safe_load((root / "roles/nspro/meta/argument_specs.yml").read_text())
    assert set(re.findall(r"\bnspro_[a-z_]+(?![a-z_.])", text)) <= {
        *specs["argument_specs"]["main"]["options"],
        *("nspro_role", "nspro_editor_role", "nspro_viewer_role"),
    }
    spec = schemas["Nspro"]["properties"]["spec"]["properties"]
    for option in ("sameNamespace", "fromNamespaces", "ports", "restrictEgress", "toNamespaces"):
        assert f"`{option}" in text
        assert option in spec["networkPolicy"]["properties"]


def test_every_file_of_rights_for_nspros_is_listed_with_the_role_that_it_makes(root, text):
    for path in (root / "config/rbac").glob("nspro_*.yaml"):
        role = yaml.safe_load(path.read_text())
        assert f"`{path.name}`" in text
        assert f"`{role['metadata']['name']}`" in text


def test_finalizer_is_that_of_the_watch(watches, text):
    assert f"`{watches['Nspro']['finalizer']['name']}`" in text


def test_patch_for_another_size_meets_the_enum(crds, text):
    (path,) = re.findall(r"path: /spec/versions/0(/\S+)/-$", text, re.MULTILINE)
    found = crds["Nspro"]["spec"]["versions"][0]
    for key in path.strip("/").split("/"):
        found = found[key]
    assert found == ["large", "medium", "small"]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What earlier versions stored is valid, read and meant the same now, and what is stored has the names that it had.

The files of `tests/integration/stored` are what an API server returned; see there.
"""

from __future__ import annotations

import jsonschema
import pytest
from integration import stored_objects
from integration.stored_objects import Stored

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow, update_conditions
from ansible_collections.kubesteward.core.plugins.module_utils.kube import FIELD_MANAGER
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim
from hack import schema_changes

KINDS = {"Nspro": "nspros", "Start": "starts", "Update": "updates"}
PAIRS = [(version, kind) for version in stored_objects.VERSIONS for kind in KINDS]


def closed(schema: dict) -> dict:
    """The schema with every key that it does not know an error: the API server would drop it."""
    result = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if "properties" in schema:
        result["properties"] = {name: closed(child) for name, child in schema["properties"].items()}
        result["additionalProperties"] = False
    if "items" in schema:
        result["items"] = closed(schema["items"])
    return result


@pytest.mark.parametrize("version", stored_objects.VERSIONS)
def test_no_definition_breaks_what_is_stored(crds, version):
    old = {crd["spec"]["names"]["kind"]: crd for crd in stored_objects.crds(version)}
    assert old.keys() == KINDS.keys()
    assert [text for kind in KINDS for text in schema_changes.crd_breaks(old[kind], crds[kind])] == []


@pytest.mark.parametrize(("version", "kind"), PAIRS)
def test_stored_resources_are_valid_and_lose_nothing(schemas, version, kind):
    items = Stored(version, {}).items(KINDS[kind])
    assert len(items) >= 2
    validator = jsonschema.Draft202012Validator(closed(schemas[kind]))
    for item in items:
        bare = {**item, "metadata": {}}
        assert [error.message for error in validator.iter_errors(bare)] == []


@pytest.mark.parametrize("version", stored_objects.VERSIONS)
def test_what_is_followed_is_read_and_would_be_written_the_same(version):
    items = [item for kind in ("starts", "deployments") for item in Stored(version, {}).items(kind)]
    texts = [item["metadata"]["annotations"].get("kubesteward.io/follow") for item in items]
    assert len(list(filter(None, texts))) >= 3
    for item, text in zip(items, texts, strict=True):
        entries = follow.read(item)
        assert bool(entries) == bool(text)
        if text:
            assert follow.render(entries) == text
    quarantined = [entry for item in items for entry in follow.read(item).values() if entry.quarantine]
    assert quarantined


@pytest.mark.parametrize("version", stored_objects.VERSIONS)
def test_claims_are_read_and_would_be_written_the_same(version):
    mark = Stored(version, {}).recorded
    for item in Stored(version, {}).items("namespaces"):
        found = claim.read(item)
        assert found.by == f"{mark['namespace']}/{item['metadata']['name']}"
        assert found.render() == item["metadata"]["annotations"]["kubesteward.io/claim"]


def test_names_that_stored_objects_carry_are_kept_for_ever():
    assert (follow.ANNOTATION, follow.RETRY) == ("kubesteward.io/follow", "kubesteward.io/retry")
    assert (claim.CLAIM, claim.ADOPTABLE) == ("kubesteward.io/claim", "kubesteward.io/adoptable-by")
    assert (claim.GUARD, claim.REPAIRS) == ("kubesteward.io/guard", "kubesteward.io/repairs")
    # whose fields and whose claims are ours
    assert FIELD_MANAGER == "kubesteward"


@pytest.mark.parametrize("version", stored_objects.VERSIONS)
def test_conditions_that_a_version_stored_are_conditions_of_this_one(version):
    for update in Stored(version, {}).items("updates"):
        kinds = {item["type"] for item in update["status"]["conditions"]} - set(stored_objects.OPERATORS)
        assert kinds <= set(update_conditions.TYPES)

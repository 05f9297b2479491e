# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered, loops, and policy."""

from __future__ import annotations

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases.checking import check, schemas
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases.examples import load


def test_what_was_pushed_while_nothing_ran_is_rolled_once():
    check("pushed_while_down")


def test_what_runs_decides_and_not_the_spec():
    check("what_is_deployed")


def test_a_roll_writes_a_digest_where_the_pull_policy_lets_nodes_pull():
    check("pull_policy")


def test_the_policy_is_one_by_container():
    check("containers_left_alone")


def test_a_native_sidecar_survives_a_roll_whole():
    check("native_sidecar")


def test_several_builds_in_one_replica_set_are_counted_and_made_equal():
    check("several_builds")


def test_an_event_that_fails_stops_neither_roll_nor_status():
    check("event_fails")


def test_a_roll_without_effect_is_told_and_not_repeated():
    check("no_effect")


def test_refusals_and_approvals_are_for_one_digest():
    check("bound_to_one_digest")


def test_no_list_of_tags_downgrades_anything():
    check("no_downgrade")


def test_a_failing_roll_is_taken_back_and_held():
    check("failing_roll")


def test_a_string_is_no_boolean():
    check("string_for_a_boolean")
    refused = {field for example in load("string_for_a_boolean") for field in example.expect["refused"]}
    assert booleans() <= refused


def booleans():
    """Every boolean that the spec of one of our kinds has."""
    found = set()
    for validator in schemas().values():
        below = [("$.spec", validator.schema["properties"]["spec"])]
        for path, node in below:
            below += [(f"{path}.{name}", child) for name, child in (node.get("properties") or {}).items()]
            found |= {path} if node["type"] == "boolean" else set()
    return found


def test_a_forged_memory_rolls_nothing_that_the_registry_did_not_answer():
    check("forged_memory")


def test_an_unknown_payload_is_a_clear_error():
    check("unknown_payload")

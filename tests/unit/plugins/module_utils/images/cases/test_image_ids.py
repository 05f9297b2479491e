# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases A: the forms of image IDs, and which Pods count."""

from __future__ import annotations

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases.checking import check


def test_A1_the_prefix_docker_pullable_changes_no_digest():
    check("A1_docker_pullable")


def test_A2_a_config_is_never_compared_with_a_manifest():
    check("A2_config_is_no_manifest")


def test_A3_a_config_is_compared_with_the_config_of_the_platform():
    check("A3_config_of_the_platform")


def test_A4_64_hex_digits_are_a_config():
    check("A4_64_hex_digits")


def test_A5_a_runtime_that_changes_the_form_of_its_ids_causes_no_roll():
    check("A5_form_changes")


def test_A8_the_tag_is_that_of_the_spec():
    check("A8_tag_of_the_spec")


def test_A9_replicas_of_one_tag_run_different_digests():
    check("A9_mixed_replicas")


def test_A10_the_list_digest_or_a_child_of_it():
    check("A10_list_digest_or_child")


def test_A11_schema_1_is_unknown():
    check("A11_schema_1")


def test_A13_waiting_containers_are_skipped_and_crashing_ones_are_not():
    check("A13_waiting")


def test_A15_the_manifest_of_the_platform_runs():
    check("A15_platform_manifest")


def test_A17_pods_on_a_lost_node_and_of_an_old_revision_decide_nothing():
    check("A17_lost_node")

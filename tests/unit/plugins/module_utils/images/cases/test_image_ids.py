# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forms of image IDs, and which Pods count."""

from __future__ import annotations

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases.checking import check


def test_the_prefix_docker_pullable_changes_no_digest():
    check("docker_pullable")


def test_a_config_is_never_compared_with_a_manifest():
    check("config_is_no_manifest")


def test_a_config_is_compared_with_the_config_of_the_platform():
    check("config_of_the_platform")


def test_64_hex_digits_are_a_config():
    check("64_hex_digits")


def test_a_runtime_that_changes_the_form_of_its_ids_causes_no_roll():
    check("form_changes")


def test_the_tag_is_that_of_the_spec():
    check("tag_of_the_spec")


def test_replicas_of_one_tag_run_different_digests():
    check("mixed_replicas")


def test_the_list_digest_or_a_child_of_it():
    check("list_digest_or_child")


def test_schema_1_is_unknown():
    check("schema_1")


def test_waiting_containers_are_skipped_and_crashing_ones_are_not():
    check("waiting")


def test_the_manifest_of_the_platform_runs():
    check("platform_manifest")


def test_pods_on_a_lost_node_and_of_an_old_revision_decide_nothing():
    check("lost_node")

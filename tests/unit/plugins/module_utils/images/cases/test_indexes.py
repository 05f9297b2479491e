# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases B: indexes, their children and attestations."""

from __future__ import annotations

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases.checking import check


def test_B1_the_index_and_a_child_of_it_are_no_difference():
    check("B1_index_or_child")


def test_B2_an_unchanged_tag_has_one_identity():
    check("B2_digest_flips")


def test_B3_a_list_and_a_config_never_differ():
    check("B3_list_against_config")


def test_B5_a_child_never_takes_the_place_of_the_list():
    check("B5_child_is_picked")


def test_B6_an_index_pushed_again_with_the_same_images_rolls_nothing():
    check("B6_index_pushed_again")


def test_B7_a_pinned_child_moves_to_the_index():
    check("B7_pinned_child")


def test_B8_mixed_architectures_are_rolled_to_the_index():
    check("B8_mixed_architectures")


def test_B10_a_stale_cache_rolls_nothing_and_a_true_move_back_does():
    check("B10_stale_cache")


def test_B11_an_attestation_is_no_image():
    check("B11_attestation_child")


def test_B12_a_changed_attestation_rolls_nothing():
    check("B12_attestation_changes")


def test_B15_an_index_is_known_by_its_body():
    check("B15_index_as_json")

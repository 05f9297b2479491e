# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Indexes, their children and attestations."""

from __future__ import annotations

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases.checking import check


def test_the_index_and_a_child_of_it_are_no_difference():
    check("index_or_child")


def test_an_unchanged_tag_has_one_identity():
    check("digest_flips")


def test_a_list_and_a_config_never_differ():
    check("list_against_config")


def test_a_child_never_takes_the_place_of_the_list():
    check("child_is_picked")


def test_an_index_pushed_again_with_the_same_images_rolls_nothing():
    check("index_pushed_again")


def test_a_pinned_child_moves_to_the_index():
    check("pinned_child")


def test_mixed_architectures_are_rolled_to_the_index():
    check("mixed_architectures")


def test_a_stale_cache_rolls_nothing_and_a_true_move_back_does():
    check("stale_cache")


def test_an_attestation_is_no_image():
    check("attestation_child")


def test_a_changed_attestation_rolls_nothing():
    check("attestation_changes")


def test_an_index_is_known_by_its_body():
    check("index_as_json")

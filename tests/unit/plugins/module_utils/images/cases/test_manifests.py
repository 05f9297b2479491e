# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases C: media types, HEAD, and digests that the registry does not tell."""

from __future__ import annotations

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases.checking import check


def test_C1_every_type_is_accepted():
    check("C1_accept_lacks_a_type")


def test_C2_every_request_accepts_the_same():
    check("C2_digest_by_accept")


def test_C3_the_digest_is_sha256_of_the_raw_bytes():
    check("C3_sha256_of_the_bytes")


def test_C6_a_missing_header_costs_one_get_and_changes_no_digest():
    check("C6_no_digest_header")


def test_C7_a_digest_header_that_is_none_counts_as_none():
    check("C7_header_of_old_servers")


def test_C8_not_found_is_unknown_and_never_current():
    check("C8_not_found")


def test_C10_a_head_with_nothing_but_a_digest_is_enough():
    check("C10_bare_head")


def test_C11_a_body_that_is_not_what_the_header_says_rolls_nothing():
    check("C11_body_was_rewritten")


def test_C13_a_page_is_not_a_manifest():
    check("C13_page_in_place_of_a_manifest")


def test_C15_a_digest_that_is_not_served_is_not_rolled():
    check("C15_digest_is_not_served")

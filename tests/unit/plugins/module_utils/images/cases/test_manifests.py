# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Media types, HEAD, and digests that the registry does not tell."""

from __future__ import annotations

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases.checking import check


def test_every_type_is_accepted():
    check("accept_lacks_a_type")


def test_every_request_accepts_the_same():
    check("digest_by_accept")


def test_the_digest_is_sha256_of_the_raw_bytes():
    check("sha256_of_the_bytes")


def test_a_missing_header_costs_one_get_and_changes_no_digest():
    check("no_digest_header")


def test_a_digest_header_that_is_none_counts_as_none():
    check("header_of_old_servers")


def test_not_found_is_unknown_and_never_current():
    check("not_found")


def test_a_head_with_nothing_but_a_digest_is_enough():
    check("bare_head")


def test_a_body_that_is_not_what_the_header_says_rolls_nothing():
    check("body_was_rewritten")


def test_a_page_is_not_a_manifest():
    check("page_in_place_of_a_manifest")


def test_a_digest_that_is_not_served_is_not_rolled():
    check("digest_is_not_served")

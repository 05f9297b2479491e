# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities are numbers, however they are written."""

from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import quantity
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import fake_schema, states

SAME = [
    *states.CPU,
    *states.MEMORY,
    *states.COUNTS,
    ("0.1n", "1n", "1m"),
    ("0.3001", "301m", "0.3000001"),
    ("0", "0Mi", "-0", "0e3"),
    ("9223372036854775807",),
]


@pytest.mark.parametrize("spellings", SAME, ids=lambda item: item[0])
def test_spellings_of_one_amount_are_equal(spellings):
    assert len({quantity.parse(text) for text in spellings}) == 1
    assert all(quantity.equal(spellings[0], text) for text in spellings)


@pytest.mark.parametrize(("one", "other"), [("100m", "100M"), ("1Gi", "1G"), ("1", "1m"), ("1E", "1e1"), ("x", "1")])
def test_other_amounts_are_not(one, other):
    assert not quantity.equal(one, other)


@pytest.mark.parametrize(
    "text",
    ["", "m", "1 Gi", "1gi", "1KI", "1K", "ten", "1,5", "0x10", "1e", True, None, "1e1000000000", "1\n", "\u0661"],
)
def test_what_is_no_quantity_says_so(text):
    with pytest.raises(StewardError, match="is no quantity; write a number"):
        quantity.parse(text)


@pytest.mark.parametrize("text", ["9223372036854775808", "8Ei", "1e300", "9" * 500])
def test_what_the_api_server_would_cut_off_is_refused(text):
    with pytest.raises(StewardError, match="more than the API server can store"):
        quantity.parse(text)


def test_what_is_no_quantity_equals_only_itself():
    assert quantity.equal("x", "x")


@pytest.mark.parametrize(
    ("whole", "half"),
    [
        ("300m", "150m"),
        ("100Mi", "50Mi"),
        ("1", "500m"),
        ("2", "1"),
        ("1Gi", "512Mi"),
        ("3Ki", "1536"),
        ("5M", "2500000"),
        ("2.5", "1250m"),
        ("0", "0"),
    ],
)
def test_halves_as_people_write_them(whole, half):
    assert quantity.half(whole) == half


@given(st.integers(1, 10**6), st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]))
def test_half_twice_fits_the_whole_and_leaves_no_thousandth_to_spare(number, suffix):
    whole = f"{number}{suffix}"
    rest = quantity.parse(whole) - quantity.parse(quantity.half(whole)) * 2
    assert whole == "1m" or 0 <= rest <= quantity.MILLI


@pytest.mark.parametrize(
    ("whole", "half"), [("125m", "62m"), ("0.3001", "150m"), ("1m", "1m"), ("1u", "1m"), ("3n", "1m"), ("0.0", "0")]
)
def test_half_of_an_odd_amount_is_rounded_down_to_what_can_be_stored(whole, half):
    assert quantity.parse(quantity.half(whole)) == quantity.parse(half)


@pytest.mark.parametrize(
    ("whole", "half"), [("101", "50"), ("1", "1"), ("1Ki", "512"), ("3", "1"), ("1.5", "1"), ("100Mi", "50Mi")]
)
def test_half_of_bytes_is_whole_bytes(whole, half):
    assert quantity.half(whole, decimal.Decimal(1)) == half


@given(st.decimals(0, 10**6, places=9), st.sampled_from(["", "m", "k", "Ki", "Mi", "e3", "E-3"]))
def test_the_stored_form_is_the_same_amount(number, suffix):
    text = f"{number:f}{suffix}"
    if not suffix.endswith("i"):
        assert quantity.equal(text, fake_schema.stored(text))
    assert isinstance(quantity.parse(text), decimal.Decimal)


def test_half_of_what_is_none_is_refused():
    with pytest.raises(StewardError, match="is no quantity"):
        quantity.half("much")

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Medians, ratios, differences and requirements."""

from __future__ import annotations

from bench import results
from bench.catalog import Limit, Measure

SAMPLES = {"unit": [1.0, 1.5, 0.5], "ours": [2.0, 9.0, 1.5], "theirs": [10.0, 12.0, 8.0]}
KEYS = {"name", "value", "unit", "against", "ratio", "repeats", "min", "max"}


def test_a_timed_measure_is_a_median_with_its_extremes():
    assert results.entry(Measure("unit", "g"), SAMPLES) == {
        "name": "unit",
        "value": 1.0,
        "unit": "s",
        "against": None,
        "ratio": None,
        "repeats": 3,
        "min": 0.5,
        "max": 1.5,
    }


def test_a_comparison_divides_medians():
    found = results.entry(Measure("ours", "g", against="unit"), SAMPLES)
    assert (found["value"], found["against"], found["ratio"]) == (2.0, "unit", 2.0)
    assert (found["min"], found["max"]) == (1.5, 9.0)


def test_a_ratio_has_the_extremes_of_single_rounds():
    found = results.entry(Measure("versus", "g", kind="ratio", of="ours", against="theirs"), SAMPLES)
    assert set(found) == KEYS
    assert (found["value"], found["ratio"], found["unit"]) == (0.2, 0.2, "ratio")
    assert (found["min"], found["max"]) == (0.188, 0.75)


def test_a_difference_is_told_in_seconds():
    found = results.entry(Measure("more", "g", kind="difference", of="theirs", against="ours"), SAMPLES)
    assert (found["value"], found["unit"], found["ratio"]) == (8.0, "s", 5.0)
    assert (found["min"], found["max"]) == (3.0, 8.0)


def test_one_slow_round_does_not_move_a_median():
    calm = results.entry(Measure("x", "g"), {"x": [1.0, 1.0, 1.0, 1.0, 1.1]})
    disturbed = results.entry(Measure("x", "g"), {"x": [1.0, 60.0, 1.0, 1.0, 1.1]})
    assert calm["value"] == disturbed["value"]
    assert disturbed["max"] == 60.0


def test_a_requirement_is_met_up_to_its_limit():
    ratio, value = Limit("ratio", 2.0), Limit("value", 3.0)
    assert results.is_met(ratio, {"ratio": 2.0, "value": 99.0}) is True
    assert results.is_met(ratio, {"ratio": 2.001, "value": 0.1}) is False
    assert results.is_met(value, {"ratio": 9.0, "value": 3.0}) is True
    assert results.is_met(value, {"ratio": 1.0, "value": 3.1}) is False
    assert results.is_met(None, {"ratio": 9.0, "value": 9.0}) is None


def test_a_lower_bound_is_met_from_it_on():
    limit = Limit("ratio", least=4.0)
    assert results.is_met(limit, {"ratio": 4.0}) is True
    assert results.is_met(limit, {"ratio": 3.999}) is False
    assert results.required(Measure("x", "g", limit=limit)) == "ratio >= 4"


def test_a_rate_has_its_own_unit_and_a_ratio_of_rates_none():
    assert results.entry(Measure("ours", "g", kind="rate"), SAMPLES)["unit"] == "1/s"
    versus = results.entry(Measure("x", "g", kind="ratio", of="theirs", against="ours"), SAMPLES)
    assert (versus["value"], versus["unit"]) == (5.0, "ratio")


def test_a_row_says_what_is_required_and_whether_it_was_met():
    measure = Measure("ours", "g", against="unit", limit=Limit("ratio", 1.5))
    row = dict(zip(results.HEADINGS, results.row(measure, results.entry(measure, SAMPLES)), strict=True))
    assert (row["REQUIRED"], row["MET"], row["RATIO"], row["REPEATS"]) == ("ratio <= 1.5", "NO", "2.00", "3")
    seconds = Measure("unit", "g", limit=Limit("value", 3.0))
    row = dict(zip(results.HEADINGS, results.row(seconds, results.entry(seconds, SAMPLES)), strict=True))
    assert (row["REQUIRED"], row["MET"], row["RATIO"], row["AGAINST"]) == ("value <= 3 s", "yes", "", "")
    free = Measure("unit", "g")
    row = dict(zip(results.HEADINGS, results.row(free, results.entry(free, SAMPLES)), strict=True))
    assert (row["REQUIRED"], row["MET"]) == ("", "")


def test_a_comparison_is_of_the_rounds_in_which_both_were_taken():
    samples = {"unit": [1.0, 1.0, 5.0, 5.0, 5.0], "slow": [20.0, 40.0]}
    found = results.entry(Measure("slow", "g", against="unit", rounds=2), samples)
    assert (found["value"], found["ratio"], found["repeats"]) == (30.0, 30.0, 2)
    versus = results.entry(Measure("versus", "g", kind="ratio", of="unit", against="slow"), samples)
    assert (versus["value"], versus["repeats"], versus["min"], versus["max"]) == (0.033, 2, 0.025, 0.05)
    assert results.entry(Measure("unit", "g"), samples)["value"] == 5.0


def test_units_say_what_is_counted():
    assert results.entry(Measure("unit", "g", kind="each"), SAMPLES)["unit"] == "s/namespace"
    assert results.entry(Measure("unit", "g", kind="writes"), SAMPLES)["unit"] == "requests"

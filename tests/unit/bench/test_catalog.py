# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which measures a selection means, and that the catalog hangs together."""

from __future__ import annotations

import pytest

from bench import catalog, workloads
from bench.__main__ import GROUPS
from bench.catalog import MEASURES
from bench.errors import BenchError


def names(only: str) -> list[str]:
    return [measure.name for measure in catalog.select(only)]


def test_without_a_selection_everything_is_measured():
    assert names("") == [measure.name for measure in MEASURES]


def test_a_selection_brings_what_it_is_compared_with_and_nothing_else():
    assert names("update_unchanged") == ["empty_play", "update_unchanged"]
    assert names("empty_play") == ["empty_play"]


def test_a_derived_measure_brings_the_timed_ones_and_what_these_need():
    expected = ["empty_play", "update_unchanged", "article_update_unchanged", "update_unchanged_vs_article"]
    assert names("update_unchanged_vs_article") == expected
    assert names("update_200_images_extra") == ["update_1_image", "update_200_images", "update_200_images_extra"]


def test_several_names_with_blanks_keep_the_order_of_the_catalog():
    assert names(" update_1_image , empty_play,") == ["empty_play", "update_1_image"]


def test_an_unknown_name_is_refused_and_the_known_ones_are_told():
    with pytest.raises(BenchError, match=r"no measure nonsense; these are known: empty_play, .*update_200_images"):
        catalog.select("empty_play,nonsense")


def test_measures_are_grouped_in_order():
    grouped = catalog.groups(catalog.select("update_1_image,update_unchanged"))
    assert {group: [measure.name for measure in members] for group, members in grouped.items()} == {
        "pass": ["empty_play", "update_unchanged"],
        "images": ["update_1_image"],
    }


def test_every_group_can_be_prepared():
    taken = {group: [measure.name for measure in of if measure.taken] for group, of in catalog.groups(MEASURES).items()}
    assert {group: [name for source in sources for name in source.NAMES] for group, sources in GROUPS.items()} == taken


def test_what_is_compared_is_taken_in_the_same_group():
    taken = {measure.name: measure for measure in MEASURES if measure.taken}
    for measure in MEASURES:
        assert [taken[need].group for need in measure.needs] == [measure.group] * len(measure.needs)


def test_what_another_measures_runs_tell_brings_that_measure_which_runs_before():
    assert names("registry_1000_startup") == ["registry_1000", "registry_1000_startup"]
    assert names("update_500_workloads_rss_mb") == ["empty_play", *workloads.NAMES]


def test_rates_are_compared_with_rates():
    kinds = {measure.name: measure.kind for measure in MEASURES}
    for measure in MEASURES:
        compared = (measure.name if measure.taken else measure.of, measure.against)
        assert len({kinds[name] for name in compared if name}) == 1

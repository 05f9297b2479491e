# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components that are added on request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed import cluster, console, extras, settings
from testbed.errors import TestbedError

SETTINGS = settings.from_environment({"TESTBED_HOME": "/tmp/nowhere", "XDG_CACHE_HOME": "/tmp/cache"})


@pytest.mark.parametrize("text", ["network-policies", "network-policies,network-policies", " network-policies, "])
def test_names_are_taken_from_a_list_each_once(text: str) -> None:
    assert extras.names_in(text) == ("network-policies",)


def test_no_name_is_no_extra() -> None:
    assert extras.names_in("") == ()


def test_an_unknown_name_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(TestbedError, match="no component networkpolicies to add; there are: network-policies"):
        extras.names_in("networkpolicies")


@pytest.mark.parametrize("name", extras.EXTRAS)
def test_a_component_has_the_name_under_which_it_is_asked_for(name: str) -> None:
    assert extras.EXTRAS[name].component(SETTINGS, Path("/bin/program")).name == name


def test_nothing_is_added_where_no_testbed_runs(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="No testbed runs in"):
        cluster.add(replace(SETTINGS, home=tmp_path), ())


def test_a_step_of_minutes_is_told_beforehand_and_meanwhile(monkeypatch, capsys) -> None:
    monkeypatch.setattr(console, "PATIENCE", 0.05)
    with console.step("build it", 8):
        assert "build it: about 8 min on two cores" in capsys.readouterr().err
        for _patience in range(100):
            if "still at it after 0 min: build it" in capsys.readouterr().err:
                break
            console.time.sleep(0.05)
        else:
            pytest.fail("nothing was told")

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes on the testbed, seen from where the operator takes counters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from monitoring.fake_operator import FakeOperator

pytestmark = pytest.mark.usefixtures("crds")


@pytest.fixture
def operator(monkeypatch, tmp_path) -> Iterator[FakeOperator]:
    """Takes the counters of passes that the test runs, which share a folder for temporary files."""
    monkeypatch.setenv("ANSIBLE_LOCAL_TEMP", str(tmp_path))
    with contextlib.closing(FakeOperator()) as server:
        monkeypatch.setenv("KUBESTEWARD_METRICS_URL", server.url)
        yield server


def counted(operator: FakeOperator) -> dict[str, float]:
    """What was added since the last look."""
    found: dict[str, float] = {}
    for post in operator.posts:
        name = post["name"].removeprefix("kubesteward_").removesuffix("_total")
        found[name] = found.get(name, 0) + post["counter"]["add"]
    operator.posts.clear()
    return {name: count for name, count in found.items() if count}


def test_what_passes_do_is_counted_once_and_what_they_predict_is_not(shop, operator, monkeypatch):
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    shop.run("start")
    assert counted(operator) == {"starts_applied": 1}
    assert set(operator.values.values()) == {0, 1}
    shop.settled()
    shop.push("v2")
    shop.run("update", "--check")
    predicted = counted(operator)
    assert predicted.pop("registry_requests") >= 1
    assert predicted == {"registry_lookups": 1}
    # started as modules of their own, they are counted by the controller all the same
    monkeypatch.setenv("KUBESTEWARD_DIRECT", "0")
    shop.run("update")
    done = counted(operator)
    assert done.pop("registry_requests") >= 1
    # outside of the operator the update playbook applies the Start too
    assert done == {"registry_lookups": 1, "rolls": 1, "starts_applied": 1}
    assert operator.overlaps == 0


def test_where_nobody_listens_a_pass_warns_once_and_goes_on(shop, operator):
    operator.close()
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    shop.run("start")
    done = shop.run("update")
    assert " ".join(done.output.split()).count("Counters were not posted") == 1

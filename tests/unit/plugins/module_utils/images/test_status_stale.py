# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when the status of an Update says that something is stale."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import status
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import NOW
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    SAME,
    cluster_of,
    run,
    settle,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    status as status_of,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.test_status import (
    CURRENT,
    HELD,
    ROLLING,
    UNKNOWN,
    following,
)

T1, T2, T3 = "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z"


def told(*passes):
    """The last status after passes of (time, verdicts)."""
    before = None
    for now, verdicts in passes:
        before = following(*verdicts, before=before, rolled=[], now=now)
    return before


def times(found):
    return [image.get("staleSince") for image in found["images"]]


def test_nothing_stale_has_no_time():
    found = told((T1, [CURRENT, UNKNOWN]))
    assert "staleSince" not in found
    assert times(found) == [None, None]


def test_the_time_is_that_of_the_pass_that_saw_it_first():
    found = told((T1, [CURRENT]), (T2, [HELD]), (T3, [ROLLING]))
    assert found["staleSince"] == T2


def test_an_unchanged_pass_says_nothing_new():
    before = told((T1, [HELD]))
    after = following(HELD, before=before, rolled=[], now=T2)
    assert after["staleSince"] == T1
    assert not status.is_news(before, after)


def test_the_oldest_of_those_that_are_stale_now_counts():
    first, both = (T1, [HELD, CURRENT]), (T2, [HELD, HELD])
    assert told(first, both)["staleSince"] == T1
    last = told(first, both, (T3, [CURRENT, HELD]))
    assert (last["staleSince"], times(last)) == (T2, [None, T2])


def test_what_was_current_in_between_is_stale_anew():
    assert told((T1, [HELD]), (T2, [CURRENT]), (T3, [HELD]))["staleSince"] == T3


def test_what_is_unknown_in_between_keeps_its_time_and_is_not_stale():
    between = told((T1, [HELD]), (T2, [UNKNOWN]))
    assert "staleSince" not in between
    assert times(between) == [T1]
    assert told((T1, [HELD]), (T2, [UNKNOWN]), (T3, [HELD]))["staleSince"] == T1


def test_what_a_full_status_leaves_out_keeps_the_oldest_time(monkeypatch):
    monkeypatch.setattr(status, "IMAGES_BYTES", 700)
    before = told((T1, [HELD, HELD, HELD]))
    assert len(before["images"]) < 3
    after = following(CURRENT, CURRENT, HELD, before=before, rolled=[], now=T2)
    assert after["staleSince"] == T1


def test_what_was_current_and_left_out_is_stale_since_now(monkeypatch):
    monkeypatch.setattr(status, "IMAGES_BYTES", 700)
    before = told((T1, [HELD, CURRENT, CURRENT]))
    assert [image["verdict"] for image in before["images"]] == ["stale"]
    assert times(following(CURRENT, HELD, CURRENT, before=before, rolled=[], now=T2)) == [T2]


@pytest.mark.parametrize("spec", [{"suspend": True}, {"dryRun": True}])
def test_a_pass_of_a_held_update_writes_the_time_and_the_next_one_nothing(spec):
    cluster = cluster_of("a", **spec)
    assert "staleSince" not in (run(cluster, SAME) and status_of(cluster))
    run(cluster, PUSHED)
    assert status_of(cluster)["staleSince"] == NOW
    writes = len(cluster.writes)
    run(cluster, PUSHED)
    assert cluster.writes[writes:] == []


def test_a_roll_that_arrives_ends_it():
    cluster = cluster_of("a")
    run(cluster, PUSHED)
    settle(cluster, "a")
    run(cluster, PUSHED)
    assert "staleSince" not in status_of(cluster)

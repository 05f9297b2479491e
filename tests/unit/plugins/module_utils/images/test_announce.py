# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events: only what the pass before did not say."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import telling
from ansible_collections.kubesteward.core.plugins.module_utils.images import announce, status
from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Verdict
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NAMESPACE,
    NOW,
    REPOSITORY,
    running,
    update,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster

STALE = Verdict("stale", "digest_differs", "differs", I2)
HELD = Verdict("stale", "not_pullable", "cannot be pulled", I2)
UNKNOWN = Verdict("unknown", "not_found", "no such tag")
CURRENT = Verdict("current", "digest_equal", "")
WAITING = Verdict("unknown", "waiting", "")
ROLLING = Verdict("stale", "rollout_in_progress", "", I2)


def told(verdict, before=None, rolled=(), resource="update"):
    """(reason, type, kind it is about) of every Event; `before` is the verdict of the last pass."""
    pair = [({**running(f"{REPOSITORY}@{I1}"), "published": I2}, verdict)]
    last = status.following(update(), Pass([(pair[0][0], before)]), NOW) if before else {}
    found = announce.events(Pass(pair, list(rolled), update=update() if resource else None), last)
    return [(x["reason"], x["type"], x["about"]["kind"]) for x in found]


ROLL = {
    "workload": {"kind": "Deployment", "name": "web", "api_version": "apps/v1", "uid": "uid-web", "owner": None},
    "container": "app",
    "from": IMAGE,
    "to": f"{REPOSITORY}@{I2}",
}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (UNKNOWN, [("VerdictUnknown", "Warning", "Update")]),
        (HELD, [("RollHeld", "Warning", "Update")]),
        (WAITING, [("VerdictUnknown", "Normal", "Update")]),
        (Verdict("stale", "suspended", "", I2), [("RollHeld", "Normal", "Update")]),
        (CURRENT, []),
        (ROLLING, []),
    ],
)
def test_a_verdict_is_told_once(verdict, expected):
    assert told(verdict) == expected
    assert told(verdict, before=verdict) == []
    assert told(verdict, before=Verdict("unknown", "unreachable", "")) == expected


def test_a_registry_that_fails_for_everything_is_told_in_a_few_events():
    one = {**running(f"{REPOSITORY}@{I1}"), "published": None}
    pair = [({**one, "container": f"c{number}"}, UNKNOWN) for number in range(500)]
    found = announce.events(Pass(pair, update=update()), {})
    assert len(found) == announce.MOST_NEWS
    assert "481 more containers" in found[-1]["message"]


def test_a_roll_is_told_on_the_workload_and_on_the_update():
    assert told(STALE, rolled=[ROLL]) == [("ImageRolled", "Normal", "Deployment"), ("ImageRolled", "Normal", "Update")]
    assert told(STALE, rolled=[ROLL], resource=None) == [("ImageRolled", "Normal", "Deployment")]


def test_a_refused_roll_is_told_once():
    assert told(STALE) == [("RollHeld", "Warning", "Update")]
    assert told(STALE, before=STALE) == []


def test_without_an_update_verdicts_are_not_told():
    assert told(UNKNOWN, resource=None) == []


def test_no_workload_is_told_once():
    found = announce.events(Pass(update=update()), {})
    assert [(x["reason"], x["type"]) for x in found] == [("NoWorkload", "Normal")]
    assert announce.events(Pass(update=update()), status.following(update(), Pass(), NOW)) == []


def test_an_event_as_it_is_posted():
    cluster = FakeCluster()
    found = announce.events(Pass(rolled=[ROLL], update=update()), {})
    found[1]["message"] = "x" * 5000
    assert telling.post_events(cluster, NAMESPACE, found, NOW) == []
    first, second = cluster.events[:2]
    assert first["message"] == f"Deployment/web app: {IMAGE} -> {REPOSITORY}@{I2}"
    assert first["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "namespace": NAMESPACE,
        "uid": "uid-web",
    }
    assert second["involvedObject"]["uid"] == "uid-Update-update-sample"
    assert len(second["message"]) == 1024
    assert (first["firstTimestamp"], first["count"], first["source"]) == (NOW, 1, {"component": "kubesteward"})
    assert first["metadata"] == {"generateName": "web.", "namespace": NAMESPACE}


@pytest.mark.parametrize("separator", ["-", ".", "-.-"])
def test_the_name_of_an_event_is_one_where_the_workloads_is_cut(separator):
    cluster = FakeCluster()
    name = f"{'a' * 199}{separator}{'b' * 20}"
    found = announce.roll_events(Pass(rolled=[{**ROLL, "workload": {**ROLL["workload"], "name": name}}]))
    telling.post_events(cluster, NAMESPACE, found, NOW)
    assert cluster.events[0]["metadata"]["generateName"] == f"{'a' * 199}."
    assert cluster.events[0]["involvedObject"]["name"] == name


def test_one_event_that_is_refused_stops_no_other():
    cluster = FakeCluster()
    refused = []

    def refuse(_verb, _target):
        if not refused:
            refused.append(1)
            raise ApiError("no", 403)

    cluster.before_write = refuse
    assert telling.post_events(cluster, NAMESPACE, announce.events(Pass(rolled=[ROLL], update=update()), {}), NOW) == [
        "no"
    ]
    assert len(cluster.events) == 2

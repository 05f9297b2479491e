# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How soon and how many at once: stableForSeconds and maxConcurrent."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I2,
    IMAGE,
    published,
    sha,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    SAME,
    at,
    cluster_of,
    flags,
    image,
    run,
    settle,
    status,
)


def minute(number):
    return f"2026-03-01T10:{number:02}:00Z"


def reasons(cluster):
    return {entry["workload"]: entry["reason"] for entry in status(cluster)["images"]}


def test_a_digest_is_rolled_once_it_was_seen_for_long_enough():
    cluster = cluster_of("a", stableForSeconds=120)
    run(cluster, PUSHED, now=minute(1))
    assert reasons(cluster) == {"Deployment/a": "unstable"}
    assert flags(cluster) == (True, False)
    assert [entry["firstSeen"] for entry in status(cluster)["pending"]] == [minute(1)]
    run(cluster, PUSHED, now=minute(2))
    assert image(cluster, "a") == IMAGE
    run(cluster, PUSHED, now=minute(3))
    assert image(cluster, "a") == at(I2)
    assert not status(cluster).get("pending")


def test_a_digest_that_moves_on_starts_anew():
    cluster = cluster_of("a", stableForSeconds=120)
    run(cluster, PUSHED, now=minute(1))
    run(cluster, {IMAGE: published(sha("another"), children=())}, now=minute(3))
    assert image(cluster, "a") == IMAGE
    assert [entry["firstSeen"] for entry in status(cluster)["pending"]] == [minute(3)]
    # back at what runs: nothing is pending, and a later push has to be seen from its own beginning
    run(cluster, SAME, now=minute(4))
    run(cluster, PUSHED, now=minute(5))
    assert image(cluster, "a") == IMAGE
    assert [entry["firstSeen"] for entry in status(cluster)["pending"]] == [minute(5)]


def test_a_pass_that_only_waits_writes_nothing():
    cluster = cluster_of("a", stableForSeconds=600)
    run(cluster, PUSHED, now=minute(1))
    cluster.writes.clear()
    run(cluster, PUSHED, now=minute(2))
    assert not cluster.writes


@pytest.mark.parametrize(("most", "rolled"), [(1, 1), (2, 2), (10, 3)])
def test_no_more_workloads_roll_at_once_than_the_update_says(most, rolled):
    cluster = cluster_of("a", "b", "c", maxConcurrent=most)
    run(cluster, PUSHED, now=minute(1))
    assert [image(cluster, name) for name in "abc"].count(at(I2)) == rolled
    assert list(reasons(cluster).values()).count("rollout_in_progress") == 3 - rolled
    assert flags(cluster) == (True, rolled == 3)


def fail(cluster, name):
    """The Pod starts again and again, and the workload is never available."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    cluster.edit("Pod", f"pod-{name}", lambda x: x["status"]["containerStatuses"][0].update(state=waiting, ready=False))
    cluster.edit("Deployment", name, lambda x: x["status"].update(availableReplicas=0))


def test_workloads_that_were_broken_before_stop_no_other():
    cluster = cluster_of("a", "b", "c", maxConcurrent=1)
    cluster.edit("Deployment", "a", lambda x: use(x, "registry.example/other:1"))
    fail(cluster, "a")
    run(cluster, PUSHED, now=minute(1))
    assert image(cluster, "b") == at(I2)


def use(workload, name):
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = name


def test_a_push_that_breaks_a_workload_reaches_no_more_than_may_roll_at_once():
    cluster = cluster_of("a", "b", "c", maxConcurrent=1)
    run(cluster, PUSHED, now=minute(1))
    settle(cluster, "a")
    fail(cluster, "a")
    run(cluster, PUSHED, now=minute(2))
    assert [image(cluster, name) for name in "bc"] == [IMAGE, IMAGE]
    mended = sha("mended")
    run(cluster, {IMAGE: published(mended, children=())}, now=minute(3))
    assert image(cluster, "a") == at(mended)


def test_the_next_passes_take_up_what_had_to_wait():
    cluster = cluster_of("a", "b", "c", maxConcurrent=1)
    for number, name in enumerate("abc", 1):
        run(cluster, PUSHED, now=minute(number))
        settle(cluster, name)
    assert {image(cluster, name) for name in "abc"} == {at(I2)}

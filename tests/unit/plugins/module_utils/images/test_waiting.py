# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that waits ends when what it rolled is proven, taken back, or out of time."""

from __future__ import annotations

import datetime

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import waiting
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.plugins.modules import pod_image_id
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import passes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NAMESPACE,
    NOW,
    published,
)

BEGAN = datetime.datetime.strptime(NOW, "%Y-%m-%dT%H:%M:%SZ")


class Time:
    """A clock that only a pause moves on, by whole seconds; `on_sleep` may change the cluster."""

    def __init__(self, on_sleep=lambda passed: None):
        self.passed, self.pauses, self.on_sleep = 0, [], on_sleep

    def sleep(self, seconds):
        self.passed += int(seconds)
        self.pauses.append(seconds)
        self.on_sleep(self.passed)

    def now(self):
        return (BEGAN + datetime.timedelta(seconds=self.passed)).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def clock(self):
        return waiting.Clock(self.now, lambda: self.passed, self.sleep)


def rolled(*names):
    """A cluster where a pass has just rolled, and what that pass was handed."""
    cluster = passes.cluster_of(*names, maxConcurrent=5)
    seen = pod_image_id.run({"namespace": NAMESPACE, "update": "update-sample"}, cluster)
    rolls = passes.run(cluster, passes.PUSHED).rolled
    found = [{**published(I2, children=()), "image": IMAGE, "pull_secrets": []}]
    given = {"update": None, "update_resource": seen["update_resource"], "running": seen["containers"]}
    more = {"published": found, "missing": [], "dry_run": False, "delete_flag": None, "rollback": None, "rolled": rolls}
    return cluster, {**given, **more, "wait_timeout": 600, "wait_sleep": 5}


def wait(cluster, params, time, **more):
    return waiting.until_proven(cluster, NAMESPACE, {**params, **more}, params["rolled"], time.clock)


def crashed(cluster, name):
    def crash(pod):
        entry = pod["status"]["containerStatuses"][0]
        entry.update(ready=False, state={"waiting": {"reason": "CrashLoopBackOff"}})
        pod["metadata"]["creationTimestamp"] = NOW

    passes.settle(cluster, name)
    cluster.edit("Pod", f"pod-{name}", crash)


def test_it_ends_when_the_new_image_is_proven():
    cluster, params = rolled("a")
    time = Time(lambda passed: passes.settle(cluster, "a") if passed == 10 else None)
    done = wait(cluster, params, time)
    assert done.errors == []
    assert [roll["to"] for roll in done.settled] == [passes.at(I2)]
    assert 60 <= time.passed <= 70
    assert set(time.pauses) == {5}


def test_it_fails_when_the_image_was_taken_back_and_waits_for_the_others():
    cluster, params = rolled("a", "b")
    crashed(cluster, "a")
    passes.settle(cluster, "b")
    done = wait(cluster, params, Time(), wait_timeout=1200)
    assert len(done.rolled_back) == 1
    assert [roll["workload"]["name"] for roll in done.settled] == ["b"]
    assert done.errors == [f"Deployment/a app: {passes.at(I2)} failed and was taken back"]
    assert passes.image(cluster, "a").endswith(I1)


@pytest.mark.parametrize("seconds", [1, 12, 30])
def test_it_fails_when_time_runs_out_and_not_a_second_later(seconds):
    cluster, params = rolled("a")
    time = Time()
    done = wait(cluster, params, time, wait_timeout=seconds)
    assert time.passed == seconds
    assert done.errors == [f"Deployment/a app: its roll has not proven itself after {seconds} s"]


def test_where_nothing_was_rolled_it_does_not_wait():
    cluster = passes.cluster_of("a")
    seen = pod_image_id.run({"namespace": NAMESPACE, "update": "update-sample"}, cluster)
    _other, params = rolled("a")
    params = {**params, "running": seen["containers"], "update_resource": seen["update_resource"]}
    params["rolled"] = []
    params["published"] = [{**published(I1, children=()), "image": IMAGE, "pull_secrets": []}]
    time = Time()
    assert wait(cluster, params, time).errors == []
    assert time.pauses == []


def test_an_update_that_is_deleted_meanwhile_ends_in_its_rolls_all_the_same():
    cluster, params = rolled("a")
    passes.settle(cluster, "a")
    del cluster.objects["Update", NAMESPACE, "update-sample"]
    done = wait(cluster, params, Time())
    assert done.errors == []
    assert len(done.settled) == 1


def test_nothing_is_rolled_that_waits_its_turn_also_when_the_update_is_gone():
    cluster = passes.cluster_of("a", "b", maxConcurrent=1)
    seen = pod_image_id.run({"namespace": NAMESPACE, "update": "update-sample"}, cluster)
    _other, params = rolled("a")
    first = passes.run(cluster, passes.PUSHED)
    params = {**params, "running": seen["containers"], "update_resource": seen["update_resource"]}
    params["rolled"] = first.rolled
    (roll,) = first.rolled
    waits = {"a": "b", "b": "a"}[roll["workload"]["name"]]
    before = passes.image(cluster, waits)
    passes.settle(cluster, roll["workload"]["name"])
    del cluster.objects["Update", NAMESPACE, "update-sample"]
    done = wait(cluster, params, Time())
    assert done.errors == []
    assert done.rolled == []
    assert passes.image(cluster, waits) == before


def test_an_image_that_somebody_else_rolled_meanwhile_stays_and_is_told():
    cluster, params = rolled("a")

    def other(deployment):
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "quay.io/shop/web:other"
        deployment["metadata"]["annotations"].clear()

    cluster.edit("Deployment", "a", other)
    time = Time()
    done = wait(cluster, params, time)
    assert passes.image(cluster, "a") == "quay.io/shop/web:other"
    assert "gave way to quay.io/shop/web:other" in done.errors[0]
    assert time.pauses == []


def test_one_that_another_pass_took_back_fails_the_run():
    cluster, params = rolled("a")
    crashed(cluster, "a")
    for minute in range(1, 25):
        if passes.image(cluster, "a").endswith(I1):
            break
        passes.run(
            cluster, passes.PUSHED, now=(BEGAN + datetime.timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")
        )
    assert passes.image(cluster, "a").endswith(I1)
    done = wait(cluster, params, Time())
    assert done.errors == [f"Deployment/a app: {passes.at(I2)} failed and was taken back"]


def test_a_workload_that_is_gone_is_told():
    cluster, params = rolled("a")
    del cluster.objects["Deployment", NAMESPACE, "a"]
    assert "it is gone" in wait(cluster, params, Time()).errors[0]


def busy(cluster, times):
    """The API server refuses the next looks at the namespace."""
    answers = iter([ApiError("try later", 503)] * times)
    begin = cluster.begin

    def refuse():
        error = next(answers, None)
        if error:
            raise error
        begin()

    cluster.begin = refuse


def test_an_api_server_that_fails_once_is_looked_at_again():
    cluster, params = rolled("a")
    passes.settle(cluster, "a")
    busy(cluster, 1)
    done = wait(cluster, params, Time())
    assert done.errors == []
    assert len(done.settled) == 1


def test_an_api_server_that_fails_to_the_end_is_told_with_the_rolls_that_nobody_saw_proven():
    cluster, params = rolled("a")
    busy(cluster, 100)
    done = wait(cluster, params, Time(), wait_timeout=20)
    assert done.errors == ["try later", "Deployment/a app: it is gone, or nobody could look at it"]


@pytest.mark.parametrize("by", ["option", "spec"])
def test_an_update_with_a_delete_flag_ends_once_its_rolls_are_proven(by):
    cluster, params = rolled("a")
    passes.settle(cluster, "a")
    if by == "spec":
        cluster.edit("Update", "update-sample", lambda found: found["spec"].update(delete_flag=True))
    done = wait(cluster, params, Time(), delete_flag=True if by == "option" else None)
    assert done.errors == []
    assert ("Update", NAMESPACE, "update-sample") not in cluster.objects

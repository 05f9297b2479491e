# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What finding out what runs costs: authors choose how many containers and Pods there are, and no clock runs yet."""

from __future__ import annotations

import collections
import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    pod_of,
    state,
    workload,
)

looked_at = collections.Counter()


class Status(dict):
    """A container, or its status, that counts how often something is read of it."""

    def __getitem__(self, key):
        looked_at["status"] += 1
        return super().__getitem__(key)

    def get(self, key, default=None):
        looked_at["status"] += 1
        return super().get(key, default)


def names_of(count):
    return [f"c{number}" for number in range(count)]


def stateful_set(count, pods, waiting="", **metadata):
    """A StatefulSet of `count` containers and its Pods, the statuses of which count."""
    image = f"{REPOSITORY}@{I2}"
    owner = workload("StatefulSet", containers=[container(name, image) for name in names_of(count)], **metadata)
    found = [owner]
    for number in range(pods):
        statuses = [Status(state(f"{REPOSITORY}@{I1}", name, waiting)) for name in names_of(count)]
        one, _between = pod_of(owner, statuses, name=f"web-{number}")
        one["spec"]["containers"] = [Status(container(name, image)) for name in names_of(count)]
        found.append(one)
    return found


def on_trial(count):
    entry = followed(I2, back=IMAGE, trial=True, left=[I1], quarantine=None)
    entry.pop("quarantine")
    return annotation(**dict.fromkeys(names_of(count), entry))


def broken_ones(count, pods):
    """Of an old revision, so that each may stand in the way of the rollout."""
    objects = stateful_set(count, pods, "CrashLoopBackOff", annotations=on_trial(count))
    objects[0]["status"]["updateRevision"] = "another"
    return objects


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param(lambda count: stateful_set(count, 8), id="that run"),
        pytest.param(lambda count: stateful_set(count, 8, annotations=on_trial(count)), id="on trial"),
        pytest.param(
            lambda count: stateful_set(count, 8, "CrashLoopBackOff", annotations=on_trial(count)), id="that fail"
        ),
        pytest.param(lambda count: broken_ones(count, 8), id="that are in the way"),
    ],
)
def test_twice_as_many_containers_cost_twice_as_much(objects):
    def cost(count):
        found = objects(count)
        looked_at.clear()
        assert len(inspect(*found)) == count
        return looked_at["status"]

    assert cost(80) < 2.5 * cost(40)


def test_what_fails_is_named_up_to_a_number():
    found = inspect(*stateful_set(60, 8, "CrashLoopBackOff"))
    assert len(found[0]["rollout"]["failing"]) == 20
    # each entry of the result repeats it
    assert len(json.dumps(found)) < 60 * 8000


def test_a_name_that_a_pod_has_twice_is_the_container_and_not_the_init_container():
    owner = workload("StatefulSet")
    one, _between = pod_of(owner, f"{REPOSITORY}@{I1}", init=[state(f"{REPOSITORY}@{I2}")])
    (found,) = inspect(owner, one)
    assert [item["digest"] for item in found["running"]] == [I1]


def test_managed_fields_are_read_once_and_not_for_each_container():
    class Fields(dict):
        def get(self, key, default=None):
            looked_at["fields"] += 1
            return super().get(key, default)

    def cost(count):
        owner = stateful_set(count, 1, annotations=on_trial(count))
        entries = [{"manager": f"m{number}", "fieldsV1": Fields({"f:spec": {}})} for number in range(10)]
        owner[0]["metadata"]["managedFields"] = entries
        looked_at.clear()
        inspect(*owner)
        return looked_at["fields"]

    assert cost(40) == cost(10)


def test_what_a_workload_remembers_is_read_once_and_not_for_each_container(monkeypatch):
    read = follow.read

    def counted(source):
        looked_at["annotation"] += 1
        return read(source)

    monkeypatch.setattr(follow, "read", counted)
    looked_at.clear()
    inspect(*stateful_set(30, 1, annotations=on_trial(30)))
    assert looked_at["annotation"] == 1


def test_of_very_many_pull_secrets_the_first_are_tried():
    objects = stateful_set(2, 1)
    objects[1]["spec"]["imagePullSecrets"] = [{"name": f"s{number}"} for number in range(1000)]
    found = inspect(*objects)
    assert [item["name"] for item in found[0]["pull_secrets"]] == [f"s{number}" for number in range(50)]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many Updates in one call: each has what it would have alone, and what several need is read and asked for once."""

from __future__ import annotations

import collections
import copy
import functools
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import results
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.plugins.modules import image_rollout, pod_image_id
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NAMESPACE,
    NOW,
    pod_of,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    answers,
    one_pass,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    at,
    image,
    settle,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.states import (
    KINDS,
    registries,
    workloads,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.test_waiting import Time, crashed


def look(cluster, **params):
    given = {"namespace": None if params.get("namespaces") else NAMESPACE, "each": True, "update_must_exist": True}
    return pod_image_id.run_each({**given, **params}, cluster)


def roll(cluster, registry, check_mode=False, **params):
    """What the role's three calls do; entries and Passes."""
    seen = look(cluster, **params)
    options = {
        **dict.fromkeys(("rolled", "delete_flag", "rollback", "wait")),
        "state": "present",
        "dry_run": False,
        "updates": seen["updates"],
        "published": answers(registry, seen["lookups"]),
    }
    done, _before = image_rollout.run_each(options, cluster, check_mode, NOW)
    return done


def shop(*names, namespace=NAMESPACE):
    """A Deployment for each name, and an Update of that name for it."""
    objects = []
    for name in names:
        owner = workload(name=name)
        one, between = pod_of(owner, at(I1), name=f"pod-{name}")
        objects += [owner, one, *between, update(name, targets=[{"kind": "Deployment", "name": name}])]
    for item in objects:
        item["metadata"]["namespace"] = namespace
    return objects


@pytest.fixture
def three():
    return FakeCluster(*shop("a", "b", "c"))


def names(entries):
    return [(entry["namespace"], entry["name"]) for entry in entries]


@given(workloads(), registries(), st.integers(1, 3))
def test_each_of_many_has_what_it_has_alone(objects, registry, count):
    owners = [item for item in objects if item["kind"] in KINDS]
    updates = [
        update(
            f"u{number}", targets=[{"kind": x["kind"], "name": x["metadata"]["name"]} for x in owners[number::count]]
        )
        for number in range(count)
        if owners[number::count]
    ]
    alone, together = (FakeCluster(*copy.deepcopy([*objects, *updates])) for _way in range(2))
    singles = [one_pass(alone, registry, item["metadata"]["name"]) for item in updates]
    done = roll(together, registry)
    assert [entry["name"] for entry, _own in done] == [item["metadata"]["name"] for item in updates]
    for single, (_entry, own) in zip(singles, done, strict=True):
        for field in ("rolled", "rolled_back", "settled", "freed", "status", "errors", "starts"):
            assert getattr(own, field) == getattr(single, field)
        assert [verdict for _container, verdict in own.judged] == [verdict for _container, verdict in single.judged]
    assert sorted(together.writes) == sorted(alone.writes)


def test_the_lists_are_read_once_for_all_of_a_namespace():
    cluster = FakeCluster(*shop(*(f"w{number:02}" for number in range(30))))
    assert len(look(cluster)["updates"]) == 30
    counted = collections.Counter(request for request in cluster.requests if request != "begin")
    assert counted == {"list Update": 1, "list Deployment": 1, "list Pod": 1, "list ReplicaSet": 1}


def test_one_reference_is_asked_for_once_on_behalf_of_all():
    cluster = FakeCluster(*shop("a", "b"), *shop("c", namespace="other"))
    (asked,) = look(cluster, namespaces=["other", NAMESPACE])["lookups"]
    assert (asked["image"], asked["on_behalf_of"]) == (IMAGE, ["other", NAMESPACE])


def test_references_with_other_secrets_are_asked_for_apart():
    cluster = FakeCluster(*shop("a", "b"))
    cluster.edit("Pod", "pod-b", lambda pod: pod["spec"].update(imagePullSecrets=[{"name": "login"}]))
    assert [len(item["pull_secrets"]) for item in look(cluster)["lookups"]] == [0, 1]


@pytest.mark.parametrize(
    ("namespaces", "found"),
    [
        (["other"], [("other", "c")]),
        (["other", NAMESPACE, "other"], [("other", "c"), (NAMESPACE, "a")]),
        ("all", [("other", "c"), (NAMESPACE, "a")]),
    ],
)
def test_updates_of_several_namespaces(namespaces, found):
    cluster = FakeCluster(*shop("a"), *shop("c", namespace="other"))
    assert sorted(names(look(cluster, namespaces=namespaces)["updates"])) == sorted(found)
    done = roll(cluster, PUSHED, namespaces=namespaces)
    assert [roll["to"] for _entry, own in done for roll in own.rolled] == [at(I2)] * len(found)


@pytest.mark.parametrize("namespaces", [[""], [" "], [3], "shop", {"a": 1}])
def test_what_is_no_list_of_namespaces_is_refused(three, namespaces):
    with pytest.raises(StewardError, match="give a list of names, or the word all"):
        look(three, namespaces=namespaces)


def test_a_namespace_that_does_not_exist_stops_no_other(three):
    done = roll(three, PUSHED, namespaces=["nowhere", NAMESPACE])
    assert done[0][1].errors == ["There is no namespace nowhere in this cluster"]
    assert [len(own.rolled) for _entry, own in done[1:]] == [1, 1, 1]


def forbid(cluster, kind):
    find = cluster.find

    def refuse(api_version, wanted, *more, **options):
        if wanted == kind:
            raise ApiError(f"Could not list {kind}s: forbidden", 403)
        return find(api_version, wanted, *more, **options)

    cluster.find = refuse


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ({"kind": "Nothing", "name": "x"}, "target 1 has kind 'Nothing'"),
        ({"kind": "Deployment", "name": ""}, "empty name"),
        ({"kind": "DaemonSet"}, "Could not list DaemonSets: forbidden"),
    ],
)
def test_one_that_cannot_be_looked_at_stops_no_other_and_is_named(three, target, error):
    three.edit("Update", "b", lambda item: item["spec"].update(targets=[target]))
    forbid(three, "DaemonSet")
    done = roll(three, PUSHED)
    assert [len(own.rolled) for _entry, own in done] == [1, 0, 1]
    told = results.result(done, True, False, [])
    assert [bool(entry["errors"]) for entry in told["results"]] == [False, True, False]
    (only,) = told["errors"]
    assert only.startswith(f"{NAMESPACE}/b: ")
    assert error in only
    assert image(three, "b") == IMAGE


def test_where_a_kind_cannot_be_listed_each_reads_what_it_names(three):
    forbid(three, "Deployment")
    assert [len(entry["containers"]) for entry in look(three)["updates"]] == [1, 1, 1]


def test_an_error_that_nobody_foresaw_stays_with_its_update_and_keeps_its_traceback(three):
    def fail(_verb, target):
        if target.name == "b" and target.kind == "Deployment":
            raise ZeroDivisionError("by zero")

    three.before_write = fail
    done = roll(three, PUSHED)
    assert [len(own.rolled) for _entry, own in done] == [1, 0, 1]
    (error,) = done[1][1].errors
    assert "Update b in namespace" in error
    assert "Traceback" in error
    assert "ZeroDivisionError" in error


def test_the_table_names_the_update_where_there_are_several(three):
    told = results.result(roll(three, PUSHED), True, False, [])
    header, *lines = told["table"]
    assert header.split()[0] == "UPDATE"
    assert [line.split()[:4] for line in lines[:3]] == [
        [f"{NAMESPACE}/{name}", f"Deployment/{name}", "app", "rolled"] for name in "abc"
    ]
    assert len(told["rolled"]) == len(told["diff"]) / 2 == 3
    assert told["changed"]
    alone = results.result(roll(FakeCluster(*shop("a")), PUSHED), False, False, [])
    assert alone["table"][0].split()[0] == "WORKLOAD"


def test_of_very_many_only_those_that_are_not_current_are_shown():
    cluster = FakeCluster(*shop(*(f"w{number:03}" for number in range(201))))
    registry = {IMAGE: {**PUSHED[IMAGE], "digest": I1}}
    first = ("spec", "template", "spec", "containers", 0)
    cluster.edit("Deployment", "w007", lambda item: functools.reduce(operator.getitem, first, item).update(image="x:1"))
    told = results.result(roll(cluster, registry), False, False, [])
    assert next(line for line in told["table"] if "w007" in line).split()[3] == "unknown"
    assert told["table"][-1] == "200 containers are current"
    assert len(told["table"]) < 10


def test_failures_that_were_asked_for_are_with_their_update(three):
    three.edit("Update", "b", lambda item: item["spec"]["targets"].append({"kind": "DaemonSet", "name": "gone"}))
    told = results.result(roll(three, PUSHED), False, False, ["unknown"])
    assert [entry["errors"] for entry in told["results"]] == [[], ["DaemonSet/gone: there is none"], []]


def test_check_mode_writes_nothing_and_foretells_the_run(three):
    predicted = roll(three, PUSHED, check_mode=True)
    assert three.writes == []
    done = roll(three, PUSHED)
    assert [own.rolled for _entry, own in predicted] == [own.rolled for _entry, own in done]
    assert not any(own.rolled for _entry, own in roll(three, PUSHED))
    assert not any(own.rolled or own.wrote_status for _entry, own in roll(three, PUSHED))


def test_a_wait_for_several_ends_with_the_last_and_says_of_each_how_it_ended(monkeypatch):
    cluster = FakeCluster(*shop("a", "b", "c"))
    time = Time(lambda passed: settle(cluster, "b", "c") if passed == 10 else None)
    monkeypatch.setattr(image_rollout, "_clock", lambda: time.clock)
    cluster.edit("Update", "c", lambda item: item["spec"].update(suspend=True))
    seen = look(cluster)
    options = {
        **dict.fromkeys(("rolled", "delete_flag", "rollback", "wait")),
        "state": "present",
        "dry_run": False,
        "updates": seen["updates"],
        "wait_timeout": 1200,
        "wait_sleep": 5,
        "published": answers(PUSHED, seen["lookups"]),
    }
    rolled, _before = image_rollout.run_each(options, cluster, False, NOW)
    first = results.result(rolled, False, False, [])["results"]
    assert [len(entry["rolled"]) for entry in first] == [1, 1, 0]
    crashed(cluster, "a")
    again = {**options, "wait": True, "rolled": first}
    done, before = image_rollout.run_each(again, cluster, False, NOW)
    told = results.result(done, False, False, [], before)
    assert [entry["name"] for entry in told["results"]] == ["a", "b", "c"]
    assert [len(entry["rolled"]) for entry in told["results"]] == [1, 1, 0]
    assert [len(entry["rolled_back"]) for entry in told["results"]] == [1, 0, 0]
    assert told["errors"] == [f"{NAMESPACE}/a: Deployment/a app: {at(I2)} failed and was taken back"]
    assert image(cluster, "b") == at(I2)
    # of the deadline of the one that was taken back
    assert 600 <= time.passed < 700

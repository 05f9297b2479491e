# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Start and its Deployment."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import starts
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    IMAGE,
    NAMESPACE,
    NOW,
    start,
    workload,
)

LATER = "2026-03-02T00:00:00Z"


def test_the_deployment_of_a_start_as_first_published():
    resource = start()
    resource["spec"] = {"name": "nginx", "image": IMAGE}
    assert starts.desired(resource, NAMESPACE) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "nginx-sample",
            "namespace": NAMESPACE,
            "ownerReferences": [
                {
                    "apiVersion": "install.sios.nginx.testing/v1",
                    "kind": "Start",
                    "name": "start-sample",
                    "uid": "uid-Start-start-sample",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "replicas": 1,
            "minReadySeconds": 5,
            "selector": {"matchLabels": {"app": "nginx-app"}},
            "template": {
                "metadata": {"labels": {"app": "nginx-app"}},
                "spec": {
                    "containers": [
                        {
                            "name": "nginx-sample",
                            "image": IMAGE,
                            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                            "readinessProbe": {"tcpSocket": {"port": 8080}},
                        }
                    ]
                },
            },
        },
    }


def test_what_a_start_may_say_besides():
    resource = start(workload_name="shop")
    limits = {"limits": {"cpu": "1"}}
    resource["spec"].update(
        replicas=3, port=80, readiness="none", resources=limits, imagePullSecrets=[{"name": "regcred", "x": 1}]
    )
    spec = starts.desired(resource, NAMESPACE)["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 3
    assert container["name"] == "shop-sample"
    assert container["ports"][0]["containerPort"] == 80
    assert container["resources"] == limits
    assert "readinessProbe" not in container
    assert spec["template"]["spec"]["imagePullSecrets"] == [{"name": "regcred"}]


def test_without_a_resource_nothing_owns_the_deployment():
    found = starts.desired({"metadata": {}, "spec": start()["spec"]}, NAMESPACE)
    assert "ownerReferences" not in found["metadata"]


def test_of_two_starts_of_one_name_the_younger_is_in_conflict():
    old, young = start("old"), start("young", created="2026-02-01T00:00:00Z")
    assert starts.conflict(old, [young, old], None) is None
    message = starts.conflict(young, [young, old], None)
    assert "Start old" in message
    assert "spec.name" in message
    assert starts.conflict(start("other", workload_name="x"), [old, young], None) is None


def test_starts_of_one_second_are_told_apart_by_name():
    a, b = start("a"), start("b")
    assert (starts.conflict(a, [b, a], None), bool(starts.conflict(b, [b, a], None))) == (None, True)


def test_a_deployment_of_another_controller_is_left_alone():
    resource = start()
    foreign = workload(ownerReferences=[{"kind": "Rollout", "name": "r", "uid": "u", "controller": True}])
    assert "Rollout r" in starts.conflict(resource, [resource], foreign)
    assert "Rollout r" in starts.conflict({"metadata": {}, "spec": resource["spec"]}, [], foreign)


def test_its_own_deployment_is_no_conflict():
    resource = start()
    own = workload(
        ownerReferences=[{"kind": "Start", "name": "s", "uid": resource["metadata"]["uid"], "controller": True}]
    )
    assert starts.conflict(resource, [resource], own) is None


def test_a_deployment_that_another_operator_made_for_the_start_is_its_own():
    resource = start()
    marked = [{"kind": "Start", "name": "start-sample", "uid": resource["metadata"]["uid"]}]
    assert starts.conflict(resource, [resource], workload(ownerReferences=marked)) is None
    other = starts.conflict(resource, [resource], workload(ownerReferences=[{"kind": "Team", "name": "t", "uid": "u"}]))
    assert "is there already and belongs to Team t; it is left alone" in other
    # one without a Start has no identity that an owner could be
    plain = starts.conflict({"metadata": {}, "spec": resource["spec"]}, [], workload(ownerReferences=marked))
    assert "belongs to Start start-sample" in plain


PATCHED = {"manager": "kubesteward", "operation": "Update"}
APPLIED = {"manager": "kubesteward", "operation": "Apply"}
OF_STATUS = {**APPLIED, "subresource": "status"}


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"annotations": {"kubesteward.io/adopt": "another-start"}},
        {"annotations": {"kubesteward.io/adopt": ""}},
        {"labels": {"kubesteward.io/adopt": "start-sample"}},
        # a run without a Start has made it: it is no Start's for that
        {"managedFields": [APPLIED]},
    ],
    ids=["bare", "another start", "empty", "label", "of a playbook"],
)
def test_a_deployment_that_nobody_gave_to_the_start_is_left_alone_and_named(metadata):
    resource = start()
    message = starts.conflict(resource, [resource], workload(name="nginx-sample", **metadata))
    assert message.startswith("Deployment nginx-sample is there already and belongs to nobody; it is left alone.")
    assert "goes with it later" in message
    assert message.endswith("kubectl annotate deployment nginx-sample -n shop kubesteward.io/adopt=start-sample")


@pytest.mark.parametrize("metadata", [{}, {"managedFields": [PATCHED]}, {"managedFields": [OF_STATUS]}])
def test_a_run_without_a_start_leaves_what_it_has_not_made_alone(metadata):
    plain = {"metadata": {}, "spec": start()["spec"]}
    message = starts.conflict(plain, [], workload(name="nginx-sample", **metadata))
    assert "Use another start_name" in message
    assert "goes with it" not in message
    assert message.endswith("kubesteward.io/adopt=playbook")


def test_the_word_of_whoever_has_the_deployment_gives_it():
    resource, plain = start(), {"metadata": {}, "spec": start()["spec"]}
    given = workload(annotations={"kubesteward.io/adopt": "start-sample"})
    assert starts.conflict(resource, [resource], given) is None
    assert starts.conflict(plain, [], given)
    assert starts.conflict(plain, [], workload(annotations={"kubesteward.io/adopt": "playbook"})) is None
    assert starts.conflict(plain, [], workload(managedFields=[APPLIED])) is None
    # a controller outranks it
    owned = workload(
        annotations={"kubesteward.io/adopt": "start-sample"},
        ownerReferences=[{"kind": "Rollout", "name": "r", "uid": "u", "controller": True}],
    )
    assert "Rollout r" in starts.conflict(resource, [resource], owned)


def test_only_what_an_apply_would_change_differs():
    live = workload(labels={"a": "b"})
    assert starts.differs(None, live)
    applied = copy.deepcopy(live)
    applied["metadata"].update(resourceVersion="9", generation=9, managedFields=[{"manager": "kubesteward"}])
    applied["status"] = {}
    assert not starts.differs(live, applied)
    for change in ({"labels": {}}, {"annotations": {"x": "y"}}, {"ownerReferences": [{}]}):
        assert starts.differs(live, {**applied, "metadata": {**applied["metadata"], **change}})
    assert starts.differs(live, {**applied, "spec": {**applied["spec"], "replicas": 2}})


def deployment(ready):
    return {**workload(), "status": {"readyReplicas": ready} if ready is not None else {}}


@pytest.mark.parametrize(
    ("live", "problem", "expected"),
    [
        (deployment(1), None, ("True", "Available", 1)),
        (deployment(None), None, ("False", "Progressing", 0)),
        (None, None, ("False", "Progressing", 0)),
        (None, "Start old has it", ("False", "NotApplied", 0)),
    ],
)
def test_the_status_of_a_start(live, problem, expected):
    found = starts.status(start(), live, I1, problem, NOW)
    (condition,) = found["conditions"]
    assert (condition["status"], condition["reason"], found["readyReplicas"]) == expected
    assert (found.get("image"), found["digest"]) == (None if problem else IMAGE, I1)
    if problem:
        assert condition["message"] == problem


def test_time_of_the_condition_is_kept_until_it_changes():
    resource = start()
    resource["status"] = starts.status(resource, deployment(1), I1, None, NOW)
    again = starts.status(resource, deployment(1), I1, None, LATER)
    assert again["conditions"][0]["lastTransitionTime"] == NOW
    assert not starts.is_news(resource["status"], again)
    lost = starts.status(resource, deployment(0), I1, None, LATER)
    assert lost["conditions"][0]["lastTransitionTime"] == LATER
    assert starts.is_news(resource["status"], lost)


@pytest.mark.parametrize(
    "change", [{"image": "x"}, {"digest": "y"}, {"readyReplicas": 7}, {"observedGeneration": 9}, {"conditions": []}]
)
def test_what_is_news(change):
    after = starts.status(start(), deployment(1), I1, None, NOW)
    assert starts.is_news({**after, **change}, after)
    theirs = {"type": "Running", "status": "True"}
    assert not starts.is_news({**after, "conditions": [theirs, *after["conditions"]]}, after)

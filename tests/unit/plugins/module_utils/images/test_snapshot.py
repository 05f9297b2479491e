# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read from a cluster for which targets, and with how few requests."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.snapshot import Target
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    NAMESPACE,
    REPOSITORY,
    pod,
    pod_of,
    start,
    start_deployment,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster

IMAGE_ID = f"{REPOSITORY}@{I1}"


def cluster_of(*owners, more=()):
    objects = list(more)
    for owner in owners:
        one, between = pod_of(owner, IMAGE_ID, name=f"pod-{owner['kind'].lower()}-{owner['metadata']['name']}")
        objects += [owner, one, *between]
    return FakeCluster(*objects)


def names(objects):
    return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in objects)


@pytest.mark.parametrize(
    ("entries", "targets"),
    [
        ([], [Target("Start")]),
        ([{"kind": "Deployment", "name": "a"}], [Target("Deployment", "a")]),
        (
            [{"kind": "CronJob", "selector": {"matchLabels": {"b": "2", "a": "1"}}}],
            [Target("CronJob", None, "a=1,b=2")],
        ),
        (
            [{"kind": "Start", "name": "s"}, {"kind": "DaemonSet", "name": "d"}],
            [Target("Start", "s"), Target("DaemonSet", "d")],
        ),
        ([{"kind": "Deployment"}], [Target("Deployment")]),
        # as a module's suboptions arrive
        ([{"kind": "Start", "name": None, "selector": None, "api_version": None}], [Target("Start")]),
        (
            [{"kind": "Deployment", "selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}],
            [Target("Deployment", None, "a")],
        ),
    ],
)
def test_targets_are_read(entries, targets):
    assert snapshot.targets_of(entries) == targets


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        ({"kind": "Pod", "name": "x"}, "'Pod'"),
        ({"name": "x"}, "None"),
        ({"kind": "Deployment", "name": "x", "selector": {"matchLabels": {"a": "b"}}}, "both name and selector"),
        ({"kind": "Deployment", "selector": {"matchLabels": {}}}, "an empty selector"),
        ({"kind": "Deployment", "selector": {"matchLabels": {}, "matchExpressions": []}}, "an empty selector"),
        ({"kind": "Deployment", "selector": {}}, "an empty selector"),
        ({"kind": "Deployment", "name": ""}, "an empty name"),
        ({"kind": "Deployment", "name": "", "selector": {}}, "both name and selector"),
    ],
)
def test_a_wrong_target_is_named_by_its_number(entry, part):
    with pytest.raises(StewardError) as caught:
        snapshot.targets_of([{"kind": "Start", "name": "s"}, entry])
    assert "target 2" in str(caught.value)
    assert part in str(caught.value)


def test_a_selector_with_expressions_is_the_apis_text():
    rules = [
        {"key": "a", "operator": "In", "values": ["1", "2"]},
        {"key": "b", "operator": "NotIn", "values": ["3"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    text = snapshot.selector_text({"matchLabels": {"app": "web"}, "matchExpressions": rules})
    assert text == "app=web,a in (1,2),b notin (3),c,!d"


@pytest.mark.parametrize(
    ("rules", "part"),
    [
        ([{"key": "a", "operator": "In"}], "need values"),
        ([{"key": "a", "operator": "NotIn", "values": []}], "need values"),
        ([{"key": "a", "operator": "Exists", "values": ["1"]}], "have none"),
        ([{"key": "a", "operator": "Equals", "values": ["1"]}], "In, NotIn, Exists, DoesNotExist"),
        ([{"key": "a"}], "operator"),
        ([{"operator": "Exists"}], "key"),
        ([{"key": "a,b", "operator": "Exists"}], "key"),
        ([{"key": "a", "operator": "In", "values": ["1),b in (2"]}], "values"),
        ([{"key": "a", "operator": "In", "values": "12"}], "values"),
        ({"key": "a", "operator": "Exists"}, "list of maps"),
        (["a"], "list of maps"),
    ],
)
def test_an_expression_that_the_api_would_read_otherwise_is_refused(rules, part):
    with pytest.raises(StewardError, match="matchExpressions") as caught:
        snapshot.selector_text({"matchExpressions": rules})
    assert part in str(caught.value)


def test_a_selector_with_another_key_is_refused():
    with pytest.raises(StewardError, match="matchLables"):
        snapshot.selector_text({"matchLables": {"app": "web"}})


def test_a_kind_alone_is_every_workload_of_it():
    cluster = cluster_of(workload("Deployment"), workload("Deployment", "other"), workload("StatefulSet", "db"))
    seen = snapshot.read_targets(cluster, NAMESPACE, [Target("Deployment")])
    assert sorted(names(seen.workloads)) == ["Deployment/other", "Deployment/web"]
    assert seen.missing == ()


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob"])
def test_one_workload_costs_a_get_and_lists_by_its_labels(kind):
    cluster = cluster_of(workload(kind), workload("StatefulSet", "other"))
    seen = snapshot.read_targets(cluster, NAMESPACE, [Target(kind, "web")])
    assert names(seen.workloads) == [f"{kind}/web"]
    assert len(cluster.requests) <= 3
    assert cluster.requests[0] == f"get {kind}/web"
    assert f"Pod/pod-{kind.lower()}-web" in names(seen.pods)
    if kind != "CronJob":
        assert names(seen.pods) == [f"Pod/pod-{kind.lower()}-web"]


def test_many_workloads_of_a_kind_cost_one_list():
    cluster = cluster_of(*(workload(name=f"w{number}") for number in range(5)))
    targets = [Target("Deployment", f"w{number}") for number in range(4)]
    seen = snapshot.read_targets(cluster, NAMESPACE, targets)
    assert names(seen.workloads) == [f"Deployment/w{number}" for number in range(4)]
    assert sorted(cluster.requests) == ["list Deployment", "list Pod", "list ReplicaSet"]


def test_a_workload_that_two_targets_name_is_there_once():
    labelled = workload(labels={"team": "x"})
    cluster = cluster_of(labelled, workload(name="other"))
    seen = snapshot.read_targets(
        cluster, NAMESPACE, [Target("Deployment", "web"), Target("Deployment", None, "team=x")]
    )
    assert names(seen.workloads) == ["Deployment/web"]


def test_what_does_not_exist_is_missing_and_no_error():
    cluster = cluster_of(workload())
    wanted = [Target("Deployment", "web"), Target("Deployment", "nope"), Target("StatefulSet", "db")]
    seen = snapshot.read_targets(cluster, NAMESPACE, wanted)
    assert seen.missing == (Target("Deployment", "nope"), Target("StatefulSet", "db"))
    assert names(seen.workloads) == ["Deployment/web"]
    assert snapshot.read_targets(FakeCluster(), NAMESPACE, [Target("CronJob", "x")]).missing == (
        Target("CronJob", "x"),
    )


def test_every_start_means_its_deployment():
    resource, second = start(), start("second", workload_name="shop")
    cluster = cluster_of(start_deployment(resource), workload(name="unrelated"), more=[resource, second])
    seen = snapshot.read_targets(cluster, NAMESPACE, [Target("Start")])
    assert names(seen.starts) == ["Start/second", "Start/start-sample"]
    assert names(seen.workloads) == ["Deployment/nginx-sample"]
    # a Start that was not applied yet
    assert seen.missing == (Target("Deployment", "shop-sample"),)


def test_a_namespace_without_starts_costs_one_request():
    cluster = FakeCluster()
    assert snapshot.read_targets(cluster, NAMESPACE, [Target("Start")]) == snapshot.Snapshot()
    assert cluster.requests == ["list Start"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob"])
def test_the_workload_of_a_pod_is_found(kind):
    cluster = cluster_of(workload(kind), workload("StatefulSet", "other"))
    seen = snapshot.read_pods(cluster, NAMESPACE, f"pod-{kind.lower()}-web", None)
    assert names(seen.workloads) == [f"{kind}/web"]
    assert names(seen.pods) == [f"Pod/pod-{kind.lower()}-web"]


def test_pods_by_labels():
    cluster = cluster_of(workload(), workload("StatefulSet", "other"))
    seen = snapshot.read_pods(cluster, NAMESPACE, None, "app=other")
    assert names(seen.workloads) == ["StatefulSet/other"]


@pytest.mark.parametrize(
    "owner",
    [
        None,
        {"apiVersion": "example/v1", "kind": "Odd", "metadata": {"name": "o", "uid": "o"}},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "o", "uid": "o"}},
    ],
)
def test_a_pod_that_no_known_kind_controls_is_its_own(owner):
    cluster = FakeCluster(pod(owner, IMAGE_ID, name="alone"), *([owner] if owner else []))
    seen = snapshot.read_pods(cluster, NAMESPACE, "alone", None)
    assert names(seen.workloads) == ["Pod/alone"]
    assert not any(owner and owner["kind"] in request for request in cluster.requests)


def test_a_pod_whose_controller_is_gone_is_its_own():
    one, _between = pod_of(workload(), IMAGE_ID, name="orphan")
    seen = snapshot.read_pods(FakeCluster(one), NAMESPACE, "orphan", None)
    assert names(seen.workloads) == ["Pod/orphan"]


def test_a_pod_that_does_not_exist_gives_nothing():
    assert snapshot.read_pods(FakeCluster(), NAMESPACE, "nope", None).workloads == ()


def node(name, **labels):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def test_platforms_come_from_the_labels_of_nodes():
    arm = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}
    cluster = FakeCluster(node("a", **arm), node("b", **{"kubernetes.io/arch": "amd64"}), node("c"))
    assert snapshot.read_platforms(cluster) == {"a": "linux/arm64", "b": "linux/amd64"}


class Refusing:
    def __init__(self, status):
        self.status = status

    def find(self, *_args, **_kwargs):
        raise ApiError("refused", self.status)


@pytest.mark.parametrize("status", [401, 403])
def test_nodes_that_may_not_be_read_are_no_error(status):
    assert snapshot.read_platforms(Refusing(status)) is None


def test_a_cluster_that_does_not_answer_is_an_error():
    with pytest.raises(ApiError):
        snapshot.read_platforms(Refusing(0))

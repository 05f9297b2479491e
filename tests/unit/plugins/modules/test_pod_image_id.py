# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pod_image_id: which of its options say what to look at."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import handover
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.modules import pod_image_id
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    C1,
    I1,
    IMAGE,
    NAMESPACE,
    REPOSITORY,
    pod_of,
    start,
    start_deployment,
    state,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster

IMAGE_ID = f"{REPOSITORY}@{I1}"


@pytest.fixture
def cluster():
    """A Deployment, a StatefulSet and the Deployment of a Start, one Pod each, and an Update."""
    resource = start()
    objects = [resource, update("by-label", targets=[{"kind": "StatefulSet", "selector": {"matchLabels": {"t": "x"}}}])]
    owners = [workload(name="web"), workload("StatefulSet", "db", labels={"t": "x"}), start_deployment(resource)]
    for owner in owners:
        name = owner["metadata"]["name"]
        container = "nginx-sample" if name == "nginx-sample" else "app"
        one, between = pod_of(owner, [state(IMAGE_ID, container)], name=f"pod-{name}")
        objects += [owner, one, *between]
    return FakeCluster(*objects)


def look(cluster, **params):
    return pod_image_id.run({"namespace": NAMESPACE, "update_must_exist": True, **params}, cluster)


def names(result):
    return [entry["workload"]["name"] for entry in result["containers"]]


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({}, ["nginx-sample"]),
        ({"starts": True}, ["nginx-sample"]),
        ({"starts": True, "update": "by-label"}, ["nginx-sample"]),
        ({"update": "by-label"}, ["db"]),
        ({"updates": True}, ["db"]),
        ({"workloads": [{"kind": "Deployment", "name": "web"}], "update": "by-label"}, ["web"]),
        ({"name": "pod-web"}, ["web"]),
        ({"label_selectors": ["app=db"]}, ["db"]),
        ({"name": "no-such-pod"}, []),
    ],
)
def test_what_is_looked_at(cluster, params, found):
    result = look(cluster, **params)
    assert names(result) == found
    assert result["changed"] is False
    assert cluster.writes == []


def test_the_flat_fields_and_lookups(cluster):
    result = look(cluster, name="pod-web")
    assert (result["image"], result["image_id"], result["digest"]) == (IMAGE, IMAGE_ID, I1)
    assert [(item["image"], item["expect"]) for item in result["lookups"]] == [(IMAGE, [I1])]


@pytest.mark.parametrize("ways", [{"name": "p", "starts": True}, {"label_selectors": ["a"], "workloads": [{}]}])
def test_ways_exclude_each_other(cluster, ways):
    with pytest.raises(StewardError, match="exclude each other"):
        look(cluster, **ways)


def test_an_update_that_does_not_exist(cluster):
    with pytest.raises(StewardError, match="no Update nope in namespace shop"):
        look(cluster, update="nope")
    result = look(cluster, update="nope", update_must_exist=False)
    assert (result["containers"], result["update_resource"]) == ([], None)


def test_of_many_updates_the_first_by_name_and_the_names_of_the_others(cluster):
    cluster.put(update("zz"))
    cluster.put(update("aa", containers={"ignore": ["nginx-sample"]}))
    result = look(cluster, updates=True)
    assert (result["update_resource"]["metadata"]["name"], result["others"]) == ("aa", ["by-label", "zz"])
    assert names(result) == []
    assert names(look(cluster, updates=True, containers={"follow": ["nginx-sample"]})) == ["nginx-sample"]


def test_without_an_update_there_is_none(cluster):
    del cluster.objects[("Update", NAMESPACE, "by-label")]
    result = look(cluster, updates=True)
    assert (result["update_resource"], result["others"], names(result)) == (None, [], ["nginx-sample"])


def test_what_is_missing_is_named(cluster):
    result = look(cluster, workloads=[{"kind": "StatefulSet", "name": "nope"}])
    assert (result["missing"], result["image"]) == (["StatefulSet/nope"], None)


def test_nodes_are_read_only_for_local_ids(cluster):
    look(cluster, name="pod-web")
    assert "list Node" not in cluster.requests
    cluster.edit("Pod", "pod-web", lambda x: x["status"]["containerStatuses"][0].update(imageID=C1))
    cluster.objects[("Node", None, "node-1")] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1", "labels": {"kubernetes.io/arch": "arm64"}},
    }
    result = look(cluster, name="pod-web")
    assert result["containers"][0]["platforms"] == ["linux/arm64"]
    assert result["lookups"][0]["platform"] == "linux/arm64"


def test_a_namespace_that_does_not_exist_is_an_error(cluster):
    with pytest.raises(StewardError, match="There is no namespace shpo"):
        look(cluster, namespace="shpo", starts=True)


def test_an_empty_namespace_reads_nothing_of_the_cluster(cluster):
    with pytest.raises(StewardError, match="option namespace"):
        look(cluster, namespace="", updates=True)
    assert cluster.requests == []


def test_the_deployment_of_a_start_belongs_to_it_however_it_was_asked_for(cluster):
    result = look(cluster, workloads=[{"kind": "Deployment", "name": "nginx-sample"}])
    assert [(item["workload"]["owner"]["kind"], item["controller"]) for item in result["containers"]] == [
        ("Start", None)
    ]


@pytest.mark.parametrize("params", [{"update": "by-label"}, {"starts": True}, {"name": "no-such-pod"}])
def test_as_text_says_the_same(cluster, params):
    result, texts = look(cluster, **params), look(cluster, as_text=True, **params)
    for key in ("containers", "lookups", "update_resource"):
        assert handover.read(texts[key]) == result[key]
        assert handover.is_text(texts[key]) or result[key] is None
    assert {key: texts[key] for key in ("image", "missing", "others")} == {
        key: result[key] for key in ("image", "missing", "others")
    }

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of listed objects: everything that a pass looks at, and nothing that makes them large."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given

from ansible_collections.kubesteward.core.plugins.module_utils.images import slim
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import states
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    IMAGE,
    NAMESPACE,
    annotation,
    container,
    followed,
    inspect,
    pod,
    revision,
    start,
    start_deployment,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster

LONG = "x" * 400_000
TEMPLATES = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")


@given(states.workloads())
def test_a_pass_sees_the_same_in_what_is_kept(objects):
    whole = inspect(*copy.deepcopy(objects))
    assert inspect(*(slim.kept(copy.deepcopy(item)) for item in objects)) == whole


def test_a_pass_sees_the_same_of_starts_and_image_volumes():
    owner = start(annotations=annotation(**{"nginx-sample": followed(I1)}))
    deployment = start_deployment(owner, extra=[container("side")])
    image = {"name": "models", "image": {"reference": IMAGE}}
    deployment["spec"]["template"]["spec"]["volumes"] = [image, {"name": "tmp", "emptyDir": {}}]
    objects = [owner, deployment]
    assert inspect(*(slim.kept(item) for item in objects)) == inspect(*objects)


@pytest.mark.parametrize("operation", ["Apply", "Update"])
@pytest.mark.parametrize("kind", TEMPLATES)
def test_who_edited_a_template_is_kept(kind, operation):
    image = {"f:containers": {'k:{"name":"app"}': {"f:image": {}, "f:env": {}}}, "f:volumes": {}}
    spec = {"f:template": {"f:metadata": {}, "f:spec": image}}
    spec = {"f:jobTemplate": {"f:spec": spec}} if kind == "CronJob" else spec
    entry = {"manager": "kubectl", "operation": operation, "time": "2026-02-02T00:00:00Z", "fieldsV1": {"f:spec": spec}}
    memory = annotation(app=followed(I1, trial=True))
    owner = workload(kind, annotations=memory, managedFields=[entry, {**entry, "fieldsV1": {"f:status": {}}}])
    small = slim.kept(owner)
    assert inspect(small) == inspect(owner)
    assert inspect(owner)[0]["undone"]["manager"] == "kubectl"
    assert len(small["metadata"]["managedFields"]) == 1


def grown(item):
    """The object with everything that an author may make large and a pass has no use for."""
    meta = item["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), "kubectl.kubernetes.io/last-applied-configuration": LONG}
    meta["labels"] = {**(meta.get("labels") or {}), "note": LONG}
    fields = {"f:template": {"f:spec": {"f:volumes": {LONG: {}}}}}
    meta["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": fields, "f:metadata": {LONG: {}}}}]
    return item


def grown_spec(spec):
    bulk = {"env": [{"name": "A", "value": LONG}], "args": [LONG], "readinessProbe": {"exec": {"command": [LONG]}}}
    for entry in spec["containers"]:
        entry.update(copy.deepcopy(bulk))
    spec["volumes"] = [{"name": "v", "downwardAPI": {"items": [LONG]}}]
    spec["hostAliases"] = [{"hostnames": [LONG]}]


@pytest.mark.parametrize("kind", TEMPLATES)
def test_of_a_large_workload_little_is_kept(kind):
    item = grown(workload(kind))
    spec = item["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else item["spec"]
    grown_spec(spec["template"]["spec"])
    spec["template"]["metadata"]["annotations"] = {"note": LONG}
    item["spec"]["volumeClaimTemplates"] = [LONG]
    assert len(json.dumps(slim.kept(item))) < 2_000


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(pod(workload("StatefulSet"), "x"), id="Pod"),
        pytest.param({**revision(workload("DaemonSet")), "data": {"spec": LONG}}, id="ControllerRevision"),
        pytest.param(revision(workload("Deployment")), id="ReplicaSet"),
    ],
)
def test_of_a_large_pod_or_revision_little_is_kept(item):
    item = grown(copy.deepcopy(item))
    if item["kind"] == "Pod":
        grown_spec(item["spec"])
    assert len(json.dumps(slim.kept(item))) < 2_000


def test_of_nodes_and_updates_everything_is_kept():
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"kubernetes.io/arch": "arm64"}}}
    found = update(targets=[{"kind": "Deployment"}])
    found["metadata"]["labels"] = {"team": "shop"}
    cluster = FakeCluster(found)
    cluster.objects["Node", None, "n"] = node
    reader = slim.SlimReader(cluster)
    assert reader.find("v1", "Node", None) == [node]
    assert reader.find(found["apiVersion"], "Update", NAMESPACE) == [cluster.read("Update", "update-sample")]
    assert reader.get(found["apiVersion"], "Update", NAMESPACE, "update-sample")["metadata"]["labels"]

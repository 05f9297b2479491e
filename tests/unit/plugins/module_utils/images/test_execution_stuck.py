# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Broken Pods of an ordered StatefulSet: deleted once its template is right again, and not before."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    annotation,
    container,
    followed,
    pod_of,
    published,
    state,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    one_pass,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import at

OVERDUE = "2026-03-01T10:00:00Z"


def ordered():
    """A StatefulSet on trial: its new Pod crashes, and an old one of an earlier digest cannot be pulled any more."""
    owner = workload("StatefulSet", containers=[container(image=at(I2))], replicas=2)
    memory = followed(I2, trial=True, back=at(I1), left=[I1])
    owner["metadata"]["annotations"] = annotation(app=memory)
    owner["status"]["updatedReplicas"] = 1
    new, _none = pod_of(owner, [state(at(I2), waiting="CrashLoopBackOff")], name="web-1")
    old, _none = pod_of(owner, [state("", waiting="ImagePullBackOff")], name="web-0")
    old["metadata"]["labels"]["controller-revision-hash"] = "web-before"
    for pod, digest in ((new, I2), (old, I1)):
        pod["spec"]["containers"][0]["image"] = at(digest)
    targets = [{"kind": "StatefulSet", "name": "web"}]
    return FakeCluster(update(targets=targets), owner, new, old)


def test_what_is_in_the_way_goes_after_the_rollback():
    cluster = ordered()
    done = one_pass(cluster, {IMAGE: published(I2, children=())}, "update-sample", now=OVERDUE)
    assert [entry["to"] for entry in done.rolled_back] == [at(I1)]
    assert cluster.writes[:3] == ["patch StatefulSet/web", "delete Pod/web-0", "delete Pod/web-1"]
    assert sorted(entry["pod"] for entry in done.freed) == ["web-0", "web-1"]


@pytest.mark.parametrize("status", [403, 409, 500])
def test_no_pod_is_deleted_while_the_template_cannot_be_written(status):
    cluster = ordered()

    def refuse(verb, target):
        if verb == "patch":
            raise ApiError(f"Could not patch {target}: no", status)

    cluster.before_write = refuse
    done = one_pass(cluster, {IMAGE: published(I2, children=())}, "update-sample", now=OVERDUE)
    assert (done.freed, done.rolled_back) == ([], [])
    assert not any(line.startswith("delete") for line in cluster.writes)

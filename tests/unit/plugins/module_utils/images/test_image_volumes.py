# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of volumes, `volumes[].image.reference`: nobody follows them, and that is said once."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import report
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    container,
    inspect,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    SAME,
    cluster_of,
    image,
    run,
    settle,
    status,
)

MODELS = {"name": "models", "image": {"reference": "quay.io/shop/models:1", "pullPolicy": "Always"}}
NAMED = "Deployment/a models (quay.io/shop/models:1)"


def mount(cluster, *volumes):
    def edit(deployment):
        deployment["spec"]["template"]["spec"]["volumes"] = list(volumes)

    cluster.edit("Deployment", "a", edit)


def told(cluster):
    """Status and message of the condition, or None."""
    conditions = {x["type"]: x for x in status(cluster)["conditions"]}
    found = conditions.get("ImageVolumeNotFollowed")
    return (found["status"], found["message"]) if found else None


@pytest.mark.parametrize(
    ("volume", "seen"),
    [
        (MODELS, [{"name": "models", "image": "quay.io/shop/models:1"}]),
        ({"name": "odd", "image": {"reference": "NO reference"}}, [{"name": "odd", "image": "NO reference"}]),
        # nothing moves under a digest
        ({"name": "models", "image": {"reference": f"quay.io/shop/models@{I1}"}}, []),
        ({"name": "models", "image": {"reference": f"quay.io/shop/models:1@{I1}"}}, []),
        # what a template leaves out is set later by an admission webhook
        ({"name": "models", "image": {"pullPolicy": "Always"}}, []),
        ({"name": "cache", "emptyDir": {}}, []),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob"])
def test_volumes_with_an_image_that_may_move_are_seen(kind, volume, seen):
    owner = workload(kind, containers=[container("one"), container("two")])
    template = owner["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else owner["spec"]
    template["template"]["spec"]["volumes"] = [volume]
    assert [found["image_volumes"] for found in inspect(owner)] == [seen, seen]


def test_what_is_not_followed_is_named_once():
    cluster = cluster_of("a")
    mount(cluster, MODELS)
    done = run(cluster, SAME)
    assert told(cluster) == ("True", f"images of volumes are not followed, only those of containers: {NAMED}")
    assert [event["reason"] for event in cluster.events] == ["ImageVolumeNotFollowed"]
    assert report.notes(done, ()) == [f"{NAMED}: images of volumes are not followed"]
    cluster.events.clear()
    cluster.writes.clear()
    run(cluster, SAME)
    assert (cluster.events, cluster.writes) == ([], [])
    mount(cluster, MODELS, {**MODELS, "name": "more"})
    run(cluster, SAME)
    assert [event["reason"] for event in cluster.events] == ["ImageVolumeNotFollowed"]
    cluster.events.clear()
    mount(cluster)
    for _pass in range(2):
        run(cluster, SAME)
        assert told(cluster) == ("False", "no volume has an image with a tag")
        assert cluster.events == []


def test_a_workload_without_such_volumes_hears_nothing_of_them():
    cluster = cluster_of("a")
    done = run(cluster, SAME)
    assert (told(cluster), report.notes(done, ())) == (None, [])


def test_the_containers_beside_such_a_volume_are_followed():
    cluster = cluster_of("a")
    mount(cluster, MODELS)
    settle(cluster, "a")
    before = image(cluster, "a")
    run(cluster, PUSHED)
    assert image(cluster, "a") != before
    assert cluster.read("Deployment", "a")["spec"]["template"]["spec"]["volumes"] == [MODELS]

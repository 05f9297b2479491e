# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An index that was pushed for other machines than those the Pods run on."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    Q1,
    published,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    SAME,
    at,
    cluster_of,
    flags,
    image,
    run,
    status,
)


def node(arch):
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": arch}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": labels}}


def pushed_for(*platforms):
    children = [{"platform": name, "digest": Q1} for name in platforms]
    return {IMAGE: {**published(I2), "children": children}}


def cluster_on(arch, **spec):
    cluster = cluster_of("a", **spec)
    cluster.put(node(arch))
    return cluster


@pytest.mark.parametrize(
    ("arch", "platforms", "rolls"),
    [
        ("amd64", ("linux/amd64", "linux/arm64"), True),
        ("amd64", ("linux/amd64/v3",), False),
        ("amd64", ("linux/386",), True),
        ("arm", ("linux/arm/v6",), True),
        ("arm64", ("linux/arm64/v8",), True),
        ("amd64", ("linux/arm64",), False),
        ("arm64", ("linux/amd64", "windows/arm64"), False),
        # beside parts that name a platform nothing takes those that name none
        ("amd64", ("linux/arm64", ""), False),
        ("amd64", ("linux/amd64", ""), True),
    ],
)
def test_an_index_is_rolled_only_where_it_has_an_image_for_the_nodes(arch, platforms, rolls):
    cluster = cluster_on(arch)
    done = run(cluster, pushed_for(*platforms))
    assert image(cluster, "a") == (at(I2) if rolls else IMAGE)
    assert done.judged[0][1].reason == ("digest_differs" if rolls else "not_pullable")
    assert flags(cluster) == (True, rolls)
    if not rolls:
        assert f"no image for linux/{arch}" in status(cluster)["images"][0]["message"]


def cluster_without_nodes(**spec):
    """One whose Nodes may not be read, as in a namespaced installation."""
    cluster = cluster_of("a", **spec)
    find = cluster.find

    def refuse(api_version, kind, *arguments, **more):
        if kind == "Node":
            raise ApiError("may not list nodes", 403)
        return find(api_version, kind, *arguments, **more)

    cluster.find = refuse
    return cluster


@pytest.mark.parametrize(("assumed", "rolls"), [(["linux/arm64"], False), (["linux/amd64"], True)])
def test_where_nodes_may_not_be_read_the_update_may_name_the_platforms(assumed, rolls):
    cluster = cluster_without_nodes(platforms=assumed)
    run(cluster, pushed_for("linux/amd64"))
    assert image(cluster, "a") == (at(I2) if rolls else IMAGE)


@pytest.mark.parametrize(
    ("before", "pushed", "told"),
    [
        (["linux/amd64"], ["linux/arm64", "linux/amd64"], ""),
        (["linux/amd64", "linux/arm/v7"], ["linux/arm/v6", "linux/amd64"], ""),
        # the nodes may be the ones that it is not for any more
        (["linux/amd64", "linux/arm64"], ["linux/amd64"], "no image for linux/arm64, which what runs has"),
        # what runs is an image and no index, or cannot be read
        (None, ["linux/amd64"], "what runs does not tell either"),
        (None, ["linux/amd64", ""], "what runs does not tell either"),
        (None, [], "lists no image"),
    ],
)
def test_where_nodes_may_not_be_read_an_index_is_rolled_that_is_for_all_that_the_running_one_is_for(
    before, pushed, told
):
    cluster = cluster_without_nodes()
    found = pushed_for(*pushed)[IMAGE]
    if before:
        found["compared_platforms"] = {I1: before}
    run(cluster, {IMAGE: found})
    assert image(cluster, "a") == (IMAGE if told else at(I2))
    if told:
        message = status(cluster)["images"][0]["message"]
        assert told in message
        assert ("name them in spec.platforms" in message) == ("kubesteward-nodes" in message) == bool(pushed)


def test_nodes_are_read_once_and_only_where_an_index_would_roll():
    cluster = cluster_on("amd64")
    run(cluster, SAME)
    assert "list Node" not in cluster.requests
    cluster = cluster_of("a", "b")
    cluster.put(node("amd64"))
    run(cluster, pushed_for("linux/amd64"))
    assert cluster.requests.count("list Node") == 1

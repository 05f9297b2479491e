# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adoption of a Namespace that needs no change but our marks."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import plan, sizes
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import Answer
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.desired import desired
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import Request

REQUEST = Request("team-a", "small", adoption="IfIdentical")
WANTED = desired(REQUEST, sizes.DEFAULTS["small"])
Change = t.Callable[[dict[str, t.Any]], None]


def live(labels: dict[str, str], change: Change = lambda _objects: None) -> plan.Live:
    """What somebody made by hand: the same objects, none with labels."""
    meta = {"name": "team-a", "labels": labels, "resourceVersion": "1"}
    objects = {
        (item["kind"], item["metadata"]["name"]): {
            **item,
            "metadata": {"name": item["metadata"]["name"], "namespace": "team-a", "uid": "1"},
        }
        for item in WANTED.objects
    }
    change(objects)
    return plan.Live({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, objects)


def planned(there: plan.Live) -> plan.Plan:
    return plan.plan(REQUEST, WANTED, Answer("adopt"), there, "2026-01-02T15:04:05Z")


def test_objects_without_any_labels_are_identical() -> None:
    found = planned(live({"size": "small", "managed": "false"}))
    assert found.conflicts == []
    assert [(item.action, item.kind) for item in found.operations] == [
        ("patch", "Namespace"),
        ("apply", "ResourceQuota"),
        ("apply", "NetworkPolicy"),
        ("apply", "LimitRange"),
    ]


def smaller(objects: dict[t.Any, t.Any]) -> None:
    objects["ResourceQuota", "team-a-quota"]["spec"] = {"hard": {"limits.cpu": "1m"}}


def without_policy(objects: dict[t.Any, t.Any]) -> None:
    del objects["NetworkPolicy", "team-a-np"]


@pytest.mark.parametrize(
    ("labels", "change", "named"),
    [
        ({"size": "small"}, lambda _objects: None, "label managed"),
        ({"size": "small", "managed": "false"}, smaller, "ResourceQuota team-a-quota"),
        ({"size": "small", "managed": "false"}, without_policy, "NetworkPolicy team-a-np"),
    ],
)
def test_what_differs_is_named_and_nothing_is_written(labels: dict[str, str], change: Change, named: str) -> None:
    found = planned(live(labels, change))
    assert found.operations == []
    assert named in found.conflicts[0]


@pytest.mark.parametrize("there", [{}, {"owner": "them"}])
def test_an_annotation_of_others_is_no_mark_of_ours(there: dict[str, str]) -> None:
    wanted = dataclasses.replace(WANTED, annotations={"owner": "us"})
    namespace = live({"size": "small", "managed": "false"})
    namespace.namespace["metadata"]["annotations"] = there
    found = plan.plan(REQUEST, wanted, Answer("adopt"), namespace, "2026-01-02T15:04:05Z")
    assert found.operations == []
    assert "(annotation owner)" in found.conflicts[0]
    namespace.namespace["metadata"]["annotations"] = {"owner": "us"}
    assert plan.plan(REQUEST, wanted, Answer("adopt"), namespace, "2026-01-02T15:04:05Z").conflicts == []

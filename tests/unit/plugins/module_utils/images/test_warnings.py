# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What went wrong on the way to an answer is told, where the answer came all the same."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import report
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import passes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import I1, IMAGE, published

MIRROR = "mirror.example.com: HTTP 403 (denied)"
SECRET = "secret shop/regcred: cannot be read: Forbidden"


def registry(*warnings):
    return {IMAGE: published(I1, children=(), warnings=list(warnings))}


def reachable(cluster):
    return next(x for x in passes.status(cluster)["conditions"] if x["type"] == "RegistryReachable")


@pytest.mark.parametrize("warning", [MIRROR, SECRET, "registry.example/shop/web:1: its children were not read"])
def test_a_warning_of_a_look_up_is_below_the_table_and_in_the_status(warning):
    cluster = passes.cluster_of("a", "b")
    done = passes.run(cluster, registry(warning))
    assert report.result(done, with_diff=False)["table"].count(warning) == 1
    found = reachable(cluster)
    assert (found["status"], found["reason"]) == ("True", "Reached")
    assert found["message"] == f"every registry that was asked answered; {warning}"


def test_without_a_warning_nothing_is_added():
    cluster = passes.cluster_of("a")
    passes.run(cluster, registry())
    assert reachable(cluster)["message"] == "every registry that was asked answered"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("m.example: no answer within 9.5 s", "m.example: no answer within 10 s"),
        ("m.example: asks to wait 120 s", "m.example: asks to wait 59 s"),
        ("m.example: failed after 431ms", "m.example: failed after 90ms"),
        (
            "m.example: 503 (request 0b1c2d3e-1111-2222-3333-444455556666)",
            "m.example: 503 (request 9b1c2d3e-1111-2222-3333-444455556667)",
        ),
        ("m.example: 503, id 7f3a9c0d12", "m.example: 503, id 00aa9c0d13"),
    ],
)
def test_seconds_and_ids_that_move_are_no_news(first, second):
    cluster = passes.cluster_of("a")
    passes.run(cluster, registry(first))
    cluster.writes.clear()
    passes.run(cluster, registry(second))
    assert cluster.writes == []


@pytest.mark.parametrize("other", ["m.example: HTTP 500", "n.example: HTTP 503", SECRET])
def test_another_warning_is_news(other):
    cluster = passes.cluster_of("a")
    passes.run(cluster, registry("m.example: HTTP 503"))
    passes.run(cluster, registry(other))
    assert other in reachable(cluster)["message"]


def test_digests_and_addresses_stay_in_a_warning():
    text = f"10.1.2.3:5000: {IMAGE}@{I1} is gone from 192.168.100.200"
    cluster = passes.cluster_of("a")
    passes.run(cluster, registry(text))
    assert reachable(cluster)["message"].endswith(text)

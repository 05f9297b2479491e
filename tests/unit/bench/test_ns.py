# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop gets the objects that ns_provision makes, and a write of ours is counted for the namespace that it is in."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import desired, request, sizes
from bench import ns, ns_create
from bench.errors import BenchError
from bench.play import Play
from testbed import Testbed
from testbed.audit import Event

BED = Testbed(Path("/k"), "127.0.0.1:1", None, False)


def live(name: str) -> list[dict]:
    """A Namespace and what is in it, in the order of kubectl, as the API server shows them."""
    wanted = desired.desired(
        request.read({"name": name, **ns.REQUEST}, "playbook", [], sizes.DEFAULTS), sizes.DEFAULTS["small"]
    )
    labels = {**wanted.labels, "kubernetes.io/metadata.name": name}
    meta = {"name": name, "labels": labels, "annotations": {"kubesteward.io/claim": "{}"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "spec": {"finalizers": ["kubernetes"]}}
    found = copy.deepcopy([namespace, *reversed(wanted.objects)])
    for item in found:
        item["metadata"] |= {"uid": "u", "resourceVersion": "1", "managedFields": []}
        item["status"] = {}
    return found


def kubectl(namespaces, inside):
    def answer(bed, verb, kind, *arguments):
        if kind != "namespaces":
            return json.dumps({"items": inside})
        return json.dumps(namespaces[0] if len(namespaces) == 1 else {"items": namespaces})

    return answer


def test_the_loop_gets_what_ns_provision_makes_each_namespace_first(monkeypatch):
    first, *inside = live("a")
    stranger = live("z")[1:]
    monkeypatch.setattr(ns.cluster, "kubectl", kubectl([first], inside + stranger))
    found = ns.objects(BED, ["a"])
    assert [item["kind"] for item in found] == ["Namespace", *ns.KINDS]
    assert set(found[0]) == {"apiVersion", "kind", "metadata"}
    assert found[0]["metadata"]["labels"] == {"size": "small", "managed": "true"}
    assert all(set(item) == {"apiVersion", "kind", "metadata", "spec"} for item in found[1:])
    assert all({"uid", "managedFields"}.isdisjoint(item["metadata"]) for item in found)


def test_objects_of_several_namespaces_stay_together(monkeypatch):
    (first, *one), (second, *two) = live("a"), live("b")
    monkeypatch.setattr(ns.cluster, "kubectl", kubectl([second, first], one + two))
    found = [item["metadata"].get("namespace", item["metadata"]["name"]) for item in ns.objects(BED, ["a", "b"])]
    assert found == ["a"] * 4 + ["b"] * 4


def test_a_namespace_that_is_not_complete_ends_the_bench(monkeypatch):
    first, *inside = live("a")
    monkeypatch.setattr(ns.cluster, "kubectl", kubectl([first], inside[1:]))
    with pytest.raises(BenchError, match="1 namespaces have 3 objects instead of 4 each"):
        ns.objects(BED, ["a"])


def test_renamed_objects_are_those_of_the_other_namespace():
    found = ns_create.renamed([ns.manifest(item) for item in live("bench-ns-1-0")], "bench-ns-1-0", "bench-ns-2-7")
    assert found == [ns.manifest(item) for item in live("bench-ns-2-7")]


def event(resource: str, namespace: str, name: str, agent: str = "kubesteward/1", dry_run: bool = False) -> Event:
    return Event("create", resource, "", namespace, name, "me", agent, dry_run, 201, "/")


def test_writes_are_those_of_the_namespace_that_took_most():
    events = [
        event("namespaces", "", "a"),
        event("resourcequotas", "a", "a-quota"),
        event("resourcequotas", "a", "a-quota", dry_run=True),
        event("configmaps", "a", "x", agent="kube-controller-manager"),
        event("namespaces", "b", "b"),
        event("namespaces", "z", "z"),
        event("resourcequotas", "z", "q"),
        event("resourcequotas", "z", "r"),
    ]
    assert ns.most_writes(events, ["a", "b"]) == 2
    assert ns.most_writes(events, ["c"]) == 0


def test_seconds_are_per_namespace_and_every_run_makes_new_ones(monkeypatch):
    asked: list[list[str]] = []
    monkeypatch.setattr(ns, "objects", lambda bed, wanted: [])
    monkeypatch.setattr(Play, "run", lambda self, unchanged=True: 8.0)

    def make(wanted):
        asked.append(wanted)
        return Play("x", (), None, {})

    made = ["pattern"]
    created = ns_create.Created(make, 4, BED, made)
    assert (created.run(unchanged=False), created.run()) == (4.0, 2.0)
    assert made == ["pattern", *asked[0], *asked[1]]
    assert [len(names) for names in asked] == [2, 4]
    assert len(set(made)) == 7


def test_without_an_audit_log_writes_are_not_called_none():
    created = ns_create.Created(lambda wanted: Play("x", (), None, {}), 4, BED, [])
    with pytest.raises(BenchError, match="TESTBED_KUBECONFIG"):
        ns.Writes(created).run()

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the ways of whole passes seldom meet."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import (
    claim,
    contest,
    differences,
    links,
    marks,
    report,
    shrink,
)
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders

NOW = builders.NOW


def remembered(text):
    return contest.read(builders.namespace("n", annotations={claim.REPAIRS: text}), NOW).entries


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": 1}', '{"a": {"manager": "x", "times": 2}}'])
def test_repairs_that_nobody_can_read_are_forgotten(text):
    assert remembered(text) == {}


def test_repairs_are_forgotten_after_a_day():
    entry = {"manager": "helm", "times": 2}
    young, old = {**entry, "at": "2026-01-01T03:04:06Z"}, {**entry, "at": "2026-01-01T03:04:05Z"}
    assert remembered(json.dumps({"young": young, "old": old})) == {"young": young}
    assert contest.read(None, NOW).entries == {}


def test_repairs_of_two_managers_are_counted_apart():
    repairs = contest.read(None, NOW)
    for manager in ("helm", "argocd", "helm"):
        repairs.note("Namespace/n", manager)
    assert repairs.rival("Namespace/n", ["helm", "argocd"]) is None
    repairs.note("Namespace/n", "helm")
    assert repairs.rival("Namespace/n", ["argocd"]) is None
    assert repairs.rival("Namespace/n", ["helm"]) == "helm"


def managed(*entries, **body):
    return {"metadata": {"managedFields": list(entries)}, **body}


def entry(manager, fields, **more):
    return {"manager": manager, "operation": "Update", "fieldsV1": fields, **more}


def test_what_a_status_writer_owns_is_not_ours():
    live = managed(entry("kubesteward", {"f:status": {"f:hard": {}}}, subresource="status"), entry("kubesteward", {}))
    assert differences.owned(live) == []


def test_authors_are_those_who_own_what_differs_above_or_below():
    live = managed(
        entry("above", {"f:spec": {}}),
        entry("below", {"f:spec": {".": {}, "f:hard": {"f:pods": {}}}}),
        entry("beside", {"f:spec": {"f:scopes": {}}}),
        entry("quota", {"f:spec": {"f:hard": {}}}, subresource="status"),
        entry("", {"f:spec": {}}),
        entry("kubesteward", {"f:spec": {}}),
    )
    assert differences.authors(live, [("spec", "hard")]) == ["above", "below"]


@pytest.mark.parametrize("live", [{"metadata": {}}, {"metadata": {}, "spec": None}, {"metadata": {}, "spec": "x"}])
def test_what_is_not_there_at_all_differs(live):
    wanted = {"metadata": {"name": "n"}, "spec": {"podSelector": {}, "hard": {"pods": "1"}, "empty": {}}}
    found = [("spec", "podSelector"), ("spec", "hard", "pods"), ("spec", "empty")]
    assert differences.differences(wanted, live) == found


@pytest.mark.parametrize(
    ("mine", "theirs", "is_same"),
    [
        ({"port": 80}, {"port": 80, "protocol": "TCP"}, True),
        ({"port": 80}, {"port": 80, "protocol": "UDP"}, False),
        ({"port": 80, "protocol": "TCP"}, {"port": 80}, True),
        ({"kind": "User"}, {"kind": "User", "apiGroup": "rbac.authorization.k8s.io"}, True),
        ({"port": 80}, {"port": 80, "endPort": 90}, False),
    ],
)
def test_what_is_filled_in_is_no_difference_below_a_list(mine, theirs, is_same):
    wanted, live = ({"metadata": {}, "spec": {"list": [item]}} for item in (mine, theirs))
    assert (differences.differences(wanted, live) == []) is is_same


def test_an_amount_that_is_none_is_compared_as_text():
    live = {"metadata": {}, "spec": {"hard": {"pods": "many"}}}
    assert differences.differences({"metadata": {}, "spec": {"hard": {"pods": "1"}}}, live)
    assert shrink.check({"pods": "1"}, {**live, "status": {"hard": {"pods": "many"}, "used": {"pods": "0"}}}) is None


def test_an_account_that_was_ours_and_is_gone_needs_no_patch():
    found = links.plan({}, {"regcred": ("default",)}, {})
    assert (found.patches, found.links, found.pending) == ([], {}, [])


def test_a_namespace_without_any_label_gets_a_map_of_them():
    operations, after = marks.patch(
        {"metadata": {"name": "n", "resourceVersion": "7"}}, {"labels": {"size": "small"}, "annotations": {}}, None
    )
    assert operations == [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/metadata/labels", "value": {"size": "small"}},
    ]
    assert after["metadata"]["labels"] == {"size": "small"}


def test_keys_are_escaped_in_paths():
    assert marks.escaped("a/b~c") == "a~1b~0c"


def test_a_table_has_one_line_per_namespace():
    done = [Result("a", "ready"), Result("team-b", "conflict", msg="held by a playbook")]
    assert report.table(done) == [
        "NAMESPACE  STATE     WRITES  MESSAGE",
        "a          ready     0",
        "team-b     conflict  0       held by a playbook",
    ]
    assert "diff" not in report.result(done, {}, with_diff=False)


def test_a_diff_names_each_object_and_what_is_linked():
    api = builders.cluster(builders.secret(), builders.nspro(pullSecrets=[{"name": "regcred"}]))
    builders.one_pass(api)
    told = builders.one_pass(api, check_mode=True)
    found = report.result(told.results, {}, with_diff=True)["diff"]
    assert [item["before_header"] for item in found] == ["team-a ServiceAccount/default"]
    assert found[0]["after"] == "imagePullSecrets: regcred\n"


def test_what_we_set_and_no_longer_want_differs_and_what_the_server_keeps_does_not():
    ours = {
        "f:metadata": {"f:labels": {"f:team": {}, "f:old": {}}, "f:finalizers": {}},
        "f:spec": {"f:hard": {"f:pods": {}, "f:secrets": {}}},
        "f:status": {"f:phase": {}},
        "f:kind": {},
    }
    live = {
        "kind": "ResourceQuota",
        "metadata": {
            "labels": {"team": "a", "old": "x"},
            "finalizers": ["kept"],
            "managedFields": [entry(differences.FIELD_MANAGER, ours)],
        },
        "spec": {"hard": {"pods": "1", "secrets": "2"}},
        "status": {"phase": "Active"},
    }
    wanted = {"kind": "ResourceQuota", "metadata": {"labels": {"team": "a"}}, "spec": {"hard": {"pods": "1"}}}
    assert differences.differences(wanted, live) == [("metadata", "labels", "old"), ("spec", "hard", "secrets")]

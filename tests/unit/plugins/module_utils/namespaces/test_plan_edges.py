# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields that nobody can change, marks that are no difference, and ServiceAccounts that are not there yet."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import desired, links, plan, request, sizes
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import Answer, Claim
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.plan import Live

NOW = "2026-01-01T00:00:00Z"
CLAIM = Claim("playbook", "created", "Delete", labels=("size", "managed"))
ACCESS = [{"role": "view", "users": ["ann"]}]


def planned(answer, **labels):
    """The plan where the binding of `view` gives another role; `labels` are the binding's."""
    asked = request.read(
        {"name": "team", "size": "small", "access": ACCESS, "adoption": "Always"}, "playbook", ["view"], sizes.DEFAULTS
    )
    wanted = desired.desired(asked, sizes.DEFAULTS["small"])
    meta = {
        "name": "team",
        "resourceVersion": "1",
        "labels": dict(wanted.labels),
        "annotations": {"kubesteward.io/claim": CLAIM.render()} if answer.claim else {},
    }
    objects = {(item["kind"], item["metadata"]["name"]): item for item in wanted.objects}
    binding = objects[("RoleBinding", "kubesteward-view")]
    objects[("RoleBinding", "kubesteward-view")] = {
        **binding,
        "metadata": {**binding["metadata"], "labels": labels, "uid": "u1"},
        "roleRef": {**binding["roleRef"], "name": "admin"},
    }
    return plan.plan(asked, wanted, answer, Live({"metadata": meta}, objects), NOW)


def test_a_binding_of_ours_that_gives_another_role_is_made_anew():
    found = planned(Answer("ours", claim=CLAIM), **{"app.kubernetes.io/managed-by": "kubesteward"})
    gone, made = found.operations
    assert (gone.action, gone.kind, gone.name, gone.uid) == ("delete", "RoleBinding", "kubesteward-view", "u1")
    assert (made.action, made.name, made.body["roleRef"]["name"]) == ("apply", "kubesteward-view", "view")
    # whoever makes one of this name in between keeps it
    assert made.before is None


def test_somebody_elses_binding_is_not_deleted_when_its_namespace_is_adopted():
    found = planned(Answer("adopt"))
    assert [item for item in found.operations if item.kind == "RoleBinding"] == []
    assert len(found.conflicts) == 1
    assert found.conflicts[0].startswith("RoleBinding kubesteward-view exists")


def test_a_service_account_that_is_not_there_yet_is_claimed_at_once_and_linked_when_it_is():
    wanted = {"pull": ("default",)}
    first = links.plan(wanted, {}, {})
    assert (first.patches, first.links) == ([], {"pull": ("default",)})
    assert len(first.pending) == 1 and "ServiceAccount default" in first.pending[0]
    there = {"default": {"metadata": {"resourceVersion": "7"}}}
    second = links.plan(wanted, first.links, there)
    assert [name for name, _patch in second.patches] == ["default"]
    assert second.links == first.links
    there["default"]["imagePullSecrets"] = [{"name": "pull"}]
    assert links.plan(wanted, second.links, there) == links.Linked(links=first.links)


@pytest.mark.parametrize("labels", [{}, {"labels": {}}, {"labels": {"theirs": "x"}}], ids=["none", "empty", "others"])
def test_what_differs_only_in_our_mark_is_identical(labels):
    asked = request.read({"name": "team", "size": "small", "adoption": "IfIdentical"}, "playbook", [], sizes.DEFAULTS)
    wanted = desired.desired(asked, sizes.DEFAULTS["small"])
    meta = {"name": "team", "resourceVersion": "1", "labels": dict(wanted.labels)}
    objects = {
        (item["kind"], item["metadata"]["name"]): {**item, "metadata": {"name": item["metadata"]["name"], **labels}}
        for item in wanted.objects
    }
    found = plan.plan(asked, wanted, Answer("adopt"), Live({"metadata": meta}, objects), NOW)
    assert found.conflicts == []
    assert [item.kind for item in found.operations] == ["Namespace", "ResourceQuota", "NetworkPolicy", "LimitRange"]
    quota = objects[("ResourceQuota", "team-quota")]
    objects[("ResourceQuota", "team-quota")] = {**quota, "spec": {"hard": {"limits.cpu": "5"}}}
    other = plan.plan(asked, wanted, Answer("adopt"), Live({"metadata": meta}, objects), NOW)
    assert other.operations == []
    assert "(ResourceQuota team-quota)" in other.conflicts[0]

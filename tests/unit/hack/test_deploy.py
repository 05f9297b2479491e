# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make deploy` decides before it asks a cluster, and what it reads out of one that does not come up."""

from __future__ import annotations

import copy

import pytest

from hack import deploy
from hack.cluster import StopError


def settings(text: str) -> dict:
    return {"kind": "ConfigMap", "metadata": {"name": "kubesteward-settings"}, "data": {"settings.yml": text}}


def manager(*names: str) -> dict:
    labels = {"app.kubernetes.io/name": "kubesteward", "app.kubernetes.io/component": "manager"}
    containers = [{"name": name, "image": "kubesteward:1.0.0"} for name in names or ("manager",)]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {"kind": "Deployment", "metadata": {"name": "m", "namespace": "s"}, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", ""),
        ("update_registries: []\nnspro_sizes: {}\nupdate_auth_file: /x\nupdate_dry_run: true\n", ""),
        ("update_timeout: 10\nupdate_deadline: 1.5\n", ""),
        ("", "has to be a mapping"),
        ("# update_registries: []\n", "has to be a mapping"),
        ("- update_registries\n", "has to be a mapping"),
        ("update_registries: [\n", "is no YAML"),
        ("update_alowed_registries: [a]\n", "update_alowed_registries is no setting; there are nspro_allowed_roles, "),
        ("update_name: mine\n", "update_name is no setting"),
        ("nspro_operator_namespace: mine\n", "nspro_operator_namespace is no setting"),
        ("1: mine\n", "1 is no setting"),
        ("update_registries: quay.io\n", "update_registries has to be of type list"),
        ("update_timeout: true\n", "update_timeout has to be of type float"),
        ("update_verification_seconds: 5\n", ""),
        ("update_verification_seconds: '5'\n", "update_verification_seconds has to be of type int"),
        ("update_verification_seconds: 0\n", "update_verification_seconds has to be from 1 to 86400"),
        ("update_verification_seconds: 86401\n", "update_verification_seconds has to be from 1 to 86400"),
        ("update_dry_run: 'yes'\n", "update_dry_run has to be of type bool"),
        ("update_timeout: 0\n", "update_timeout has to be from 0.1"),
        ("update_deadline: -5\n", "update_deadline has to be from 0.1"),
        ("update_max_concurrent: 0\n", "update_max_concurrent has to be from 1 to 1000"),
        ("update_allowed_registries: [1, null]\n", "update_allowed_registries has to be a list of texts"),
        ("update_registries: [quay.io]\n", "update_registries has to be a list of maps"),
        ("update_registries: [{location: quay.io}, {insecure: maybe}]\n", "update_registries: "),
        ("nspro_sizes: {tiny: {}}\n", "nspro_sizes: size tiny has no quota"),
        ("nspro_allowed_roles: ['a b']\n", "is no name of a ClusterRole"),
    ],
)
def test_settings_that_are_none_are_named(text, problem):
    found = deploy.settings_problems(settings(text))
    assert len(found) == bool(problem)
    assert problem in "".join(found)


def test_only_the_settings_are_looked_at():
    other = {**settings("- 1"), "metadata": {"name": "other"}}
    assert deploy.settings_problems(other) == []
    assert deploy.settings_problems(manager()) == []
    # an overlay may give all names a prefix
    assert deploy.settings_problems({**settings("- 1"), "metadata": {"name": "my-kubesteward-settings"}})


def test_an_image_is_set_in_a_copy():
    objects = [manager("sidecar", "manager")]
    before = copy.deepcopy(objects)
    (changed,) = deploy.with_image(objects, "registry.example.com/k:2")
    images = [item["image"] for item in changed["spec"]["template"]["spec"]["containers"]]
    assert images == ["kubesteward:1.0.0", "registry.example.com/k:2"]
    assert objects == before
    assert deploy.with_image(objects, "") == before


def test_an_overlay_without_the_operator_is_refused():
    with pytest.raises(StopError, match="has 0 Deployments of the operator"):
        deploy.with_image([settings("{}")], "k:2")
    with pytest.raises(StopError, match="no container `manager`"):
        deploy.with_image([manager("other")], "k:2")


def test_namespaces_that_nobody_makes_are_missing():
    objects = [manager(), {"kind": "Role", "metadata": {"name": "r", "namespace": "shop"}}]
    found = deploy.missing_namespaces(objects, set())
    assert ["namespace s." in found[0], "namespace shop." in found[1]] == [True, True]
    made = {"kind": "Namespace", "metadata": {"name": "s"}}
    assert len(deploy.missing_namespaces([*objects, made], set())) == 1
    assert deploy.missing_namespaces([*objects, made], {"shop"}) == []


def test_namespaces_that_are_going_are_no_place_for_anything():
    going = {"metadata": {"name": "s", "deletionTimestamp": "2026-01-02T15:04:05Z"}}
    assert "namespace s is being deleted" in deploy.ending_namespaces([manager()], [going])[0]
    assert deploy.ending_namespaces([manager()], [{"metadata": {"name": "s"}}]) == []
    assert deploy.ending_namespaces([manager()], [{"metadata": {**going["metadata"], "name": "other"}}]) == []


def test_kinds_that_the_cluster_lacks_are_told_unless_the_overlay_brings_them():
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
    }
    (told,) = deploy.missing_kinds([policy], [policy])
    assert "no kind ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1" in told
    sample = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    crd = {"kind": "CustomResourceDefinition", "spec": {"group": "example.com", "names": {"kind": "Thing"}}}
    assert deploy.missing_kinds([sample, crd], [sample]) == []


def test_another_scope_than_before_is_told():
    def watching(names: str) -> dict:
        item = manager()
        container = item["spec"]["template"]["spec"]["containers"][0]
        container["env"] = [{"name": "WATCH_NAMESPACE", "value": names}]
        return item

    (told,) = deploy.other_scopes(watching(""), [watching("shop")])
    assert "watches shop, and would watch the whole cluster" in told
    assert deploy.other_scopes(watching("b,a"), [watching("a,b")]) == []
    assert deploy.other_scopes(watching(""), []) == []


@pytest.mark.parametrize("image", ["", " "])
def test_an_image_without_a_name_is_no_image(image, capsys):
    assert deploy.main(["--image", image]) == 1
    assert "The image has an empty name" in capsys.readouterr().err


def test_reasons_are_the_clusters_words():
    condition = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "violates PodSecurity",
    }
    fine = {"type": "Progressing", "status": "True", "reason": "x", "message": "y"}
    deployment = {**manager(), "status": {"conditions": [condition, fine]}}
    waiting = {"state": {"waiting": {"reason": "ErrImagePull", "message": "not found\n"}}}
    ended = {
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"reason": "Error", "exitCode": 3}},
    }
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "s"},
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
            ],
            "containerStatuses": [waiting, ended],
        },
    }
    assert deploy.reasons([deployment], [pod, {**pod, "status": {}}]) == [
        "s/Deployment/m: FailedCreate: violates PodSecurity",
        "s/Pod/p: Unschedulable: no node",
        "s/Pod/p: waiting: ErrImagePull: not found",
        "s/Pod/p: waiting: CrashLoopBackOff: ",
        "s/Pod/p: before that terminated: Error, exit 3: ",
    ]


def test_events_are_warnings_about_the_operator_in_their_order():
    def event(name: str, kind: str, at: str, message: str) -> dict:
        return {"type": kind, "involvedObject": {"kind": "Pod", "name": name}, "lastTimestamp": at, "message": message}

    items = [
        event("kubesteward-manager-1", "Warning", "2026-01-02T15:04:06Z", "second"),
        event("kubesteward-manager-1", "Normal", "2026-01-02T15:04:05Z", "normal"),
        event("other", "Warning", "2026-01-02T15:04:05Z", "other"),
        event("kubesteward-manager-1", "Warning", "2026-01-02T15:04:05Z", "first"),
    ]
    assert deploy.events(items) == ["Pod kubesteward-manager-1: first", "Pod kubesteward-manager-1: second"]

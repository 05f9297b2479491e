# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Letting go on a real API server: the owner of the manifest applies it again, and nobody is in the way."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from integration.passes import Shop
from integration.test_undeploy import FINALIZERS, Life

import testbed

pytestmark = pytest.mark.usefixtures("crds")


def applied(shop: Shop, image: str) -> subprocess.CompletedProcess[str]:
    """What an owner does who applies a manifest on the server's side."""
    labels = {"run": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": image}]}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    way = ["--server-side", "--field-manager=owner"]
    command = ["kubectl", "apply", *way, "-n", shop.namespace, "-f", "-"]
    environment = {**os.environ, "KUBECONFIG": str(shop.testbed.kubeconfig)}
    text = json.dumps(manifest)
    return subprocess.run(command, env=environment, input=text, capture_output=True, text=True, timeout=60, check=False)


def image(shop: Shop) -> str:
    return shop.get("deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"]


def test_an_owner_who_applies_on_the_servers_side_meets_no_conflict_after_a_release(kubectl, namespace):
    shop = Shop(testbed.connect(), kubectl, namespace)
    shop.push("v1")
    assert applied(shop, shop.image).returncode == 0
    kubectl("rollout", "status", "-n", namespace, "deployment/web", "--timeout=120s")
    pushed = shop.push("v2")
    target = {"update_targets": [{"kind": "Deployment", "name": "web"}]}
    shop.run("update", **target)
    assert image(shop).endswith(pushed)
    followed = applied(shop, f"{shop.image}-other")
    assert followed.returncode == 1
    assert 'conflict with "kubesteward"' in followed.stderr

    said = shop.run("update", "--check", "--diff", update_state="released", **target).output
    assert f"-image: {image(shop)}" in said and f"+image: {shop.image}" in said
    shop.run("update", update_state="released", **target)
    assert image(shop) == shop.image
    asked = ["deployment", "web", "-n", namespace, "--show-managed-fields", "-o", "json"]
    fields = json.loads(kubectl("get", *asked).stdout)["metadata"]["managedFields"]
    assert "owner" in [entry["manager"] for entry in fields]
    assert "kubesteward" not in [entry["manager"] for entry in fields]
    assert shop.run("update", update_state="released", **target).changed == 0
    assert applied(shop, f"{shop.image}-other").returncode == 0
    assert image(shop) == f"{shop.image}-other"
    events = kubectl("get", "events", "-n", namespace, "--field-selector=reason=Released", "-o", "name").stdout
    assert len(events.split()) == 1


def test_a_playbook_lets_go_of_everything_where_no_operator_is(kubectl, namespace):
    life = Life(kubectl, namespace)
    try:
        life.begin()
        assert life.followed() == [True, True]
        # the operators of other tests are none of these namespaces
        given = {"release_namespaces": [namespace], "release_beside_operators": True}
        before = life.versions()
        life.run("release", "--check", **given)
        assert life.versions() == before
        life.run("release", **given)
        assert life.images() == [life.image] * 3
        assert life.followed() == [False, False]
        assert life.finalizers() == FINALIZERS[1:]
        assert life.of_the_team("resourcequota,limitrange,networkpolicy,rolebinding") == []
        assert life.run("release", **given).changed == 0
    finally:
        life.close()

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Annotations with which an author could stop the operator for everybody are refused by config/admission."""

from __future__ import annotations

import itertools
import json

import pytest
import yaml
from integration.nspro_story import nspro
from integration.passes import ROOT
from integration.workloads import until

pytestmark = pytest.mark.usefixtures("crds")

PREFIX = "ansible.sdk.operatorframework.io/"
REFUSED = {
    "verbosity": ["9000000000000000000", "4", "-1", "", "1\n2"],
    "max-runner-artifacts": ["0", "2", "21", "-5", "1000000"],
    "reconcile-period": ["0s", "1ms", "9s", "1ns", "-1h", "1.5h", "soon"],
}
ACCEPTED = {
    "verbosity": ["0", "3"],
    "max-runner-artifacts": ["3", "20"],
    "reconcile-period": ["10s", "5m", "1h"],
}


@pytest.fixture
def policy(kubectl, shop):
    """The policy and its binding under a name of this test, for its namespace alone."""
    folder = ROOT / "config/admission"
    policy, binding = (
        yaml.safe_load((folder / f"{name}.yaml").read_text())
        for name in ("annotations_policy", "annotations_policy_binding")
    )
    own = f"{policy['metadata']['name']}-{shop.namespace}"
    policy["metadata"]["name"] = binding["metadata"]["name"] = binding["spec"]["policyName"] = own
    only = {"matchLabels": {"kubernetes.io/metadata.name": shop.namespace}}
    binding["spec"]["matchResources"] = {"namespaceSelector": only}
    items = [policy, binding]
    kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    yield
    kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", own)


def test_annotations_that_would_stop_the_operator_are_refused(shop, policy):
    def asked(resource, name, value):
        resource["metadata"] = {**resource["metadata"], "annotations": {PREFIX + name: value}}
        create = ("create", "--dry-run=server", "-n", shop.namespace, "-f", "-")
        return shop.kubectl(*create, stdin=resource, check=False)

    resources = [shop.start(), shop.update(), nspro(shop.namespace, "team")]
    # the API server learns of a policy a moment after it is stored
    assert until(lambda: asked(resources[0], "verbosity", "9").returncode, 30)
    for name, values in REFUSED.items():
        for number, value in enumerate(values):
            refused = asked(resources[number % 3], name, value)
            assert f"the annotation {PREFIX}{name} is to be" in refused.stderr, (name, value)
    for name, values in ACCEPTED.items():
        for number, value in enumerate(values):
            accepted = asked(resources[number % 3], name, value)
            assert accepted.returncode == 0, accepted.stderr
    # without annotations, and without a spec, as before
    shop.apply(shop.update("plain"))


def test_nor_does_what_is_being_deleted_take_them_and_it_is_let_go(shop, request):
    """A Nspro has passes until its finalizer is gone; one that said so before there was the policy may go, too."""

    def patch(name, *operations):
        command = ("patch", "nspro", name, "-n", shop.namespace, "--type=json", "-p", json.dumps(operations))
        return shop.kubectl(*command, check=False)

    def annotate(name, value):
        return patch(name, {"op": "add", "path": "/metadata/annotations", "value": {PREFIX + "verbosity": value}})

    create = ("create", "-n", shop.namespace, "-f", "-")
    for name, value in (("old", "9"), ("team", "3")):
        held = nspro(shop.namespace, name)
        held["metadata"] |= {"finalizers": ["example.com/held"], "annotations": {PREFIX + "verbosity": value}}
        # another test may have the policy for the whole cluster just now
        assert until(lambda held=held: shop.kubectl(*create, stdin=held, check=False).returncode == 0, 120), name
    try:
        request.getfixturevalue("policy")
        # the API server learns of a policy a moment after it is stored; what it took until then is nothing new
        values = map(str, itertools.count(9))
        assert until(lambda: annotate("team", next(values)).returncode, 30)
        shop.kubectl("delete", "nspro", "old", "team", "-n", shop.namespace, "--wait=false")
        assert f"the annotation {PREFIX}verbosity is to be" in annotate("team", next(values)).stderr
        assert annotate("team", "2").returncode == 0
    finally:
        gone = [patch(name, {"op": "remove", "path": "/metadata/finalizers"}) for name in ("old", "team")]
    assert [done.returncode for done in gone] == [0, 0], gone

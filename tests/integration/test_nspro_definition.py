# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRD of Nspros goes and comes back: no team loses anything by it.

The whole cluster is without it meanwhile, so nothing else may run there: `make test-long` runs one after the other.
"""

from __future__ import annotations

import pytest
from integration.accounts import connect
from integration.nspro_story import Story
from integration.workloads import until

import testbed

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("crds")]


@pytest.fixture
def found(kubectl, namespace):
    """A story that an administrator tells; its namespace is removed again."""
    admin = connect(testbed.connect().kubeconfig)
    story = Story(admin, admin, namespace)
    yield story
    kubectl("delete", "namespace", story.name, "--ignore-not-found", "--wait=false")


def one(found: Story, **options):
    """One pass over the Nspro, and its result."""
    assert found.run(nspros={"namespace": found.home, "name": found.name}, **options) == []
    (result,) = found.told.results
    return result


def test_a_definition_that_goes_takes_no_quota_along_and_is_known_again_on_its_return(found, kubectl):
    found.write(access=[{"role": "view", "users": ["bob"]}])
    assert one(found).state == "ready"

    def inside():
        names = [("ResourceQuota", "v1", "quota"), ("NetworkPolicy", "networking.k8s.io/v1", "np")]
        items = [found.admin.get(api, kind, found.name, f"{found.name}-{name}") for kind, api, name in names]
        namespace = found.admin.get("v1", "Namespace", None, found.name)
        return [item["spec"] for item in items], namespace["metadata"]["annotations"], namespace["metadata"]["labels"]

    before = inside()
    finalizers = ("patch", "nspro", found.name, "-n", found.home, "--type=merge", "-p")
    kubectl(*finalizers, '{"metadata":{"finalizers":["nspro.example.com/cleanup"]}}')
    try:
        kubectl("delete", "crd", "nspros.nspro.example.com", "--wait=false")
        going = ("get", "nspro", found.name, "-n", found.home, "-o", "jsonpath={.metadata.deletionTimestamp}")
        assert until(lambda: kubectl(*going).stdout, 30)
        result = one(found, state="absent")
        assert (result.state, result.reason, result.done) == ("pending", "in_doubt", [])
        assert "CustomResourceDefinition nspros.nspro.example.com is being deleted" in result.msg
        kubectl(*finalizers, '{"metadata":{"finalizers":null}}')
        kubectl("wait", "--for=delete", "crd/nspros.nspro.example.com", "--timeout=60s")
        # from the command line, where the definition is not found
        assert found.run(nspros={"namespace": found.home}) == []
        (left,) = found.told.results
        assert (left.reason, left.done) == ("in_doubt", [])
        assert inside() == before
    finally:
        kubectl(*finalizers, '{"metadata":{"finalizers":null}}', check=False)
        kubectl("apply", "--server-side", "--force-conflicts", "-k", "config/crd")
        kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/nspros.nspro.example.com")
    assert until(lambda: not found.run(nspros={"namespace": found.home}), 30)
    assert [item.reason for item in found.told.results] == ["in_doubt"]
    found.write(access=[{"role": "view", "users": ["bob"]}])
    again = one(found)
    assert (again.state, again.done) == ("ready", [])
    assert inside() == before

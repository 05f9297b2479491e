# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one workload's pull secrets prove says nothing about another one's."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, judge
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy
from ansible_collections.kubesteward.core.plugins.modules import registry_digest
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import pushes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    NAMESPACE,
    NOW,
    REPOSITORY,
    inspect,
    pod_of,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    params,
    serving,
)

OLD, NEW = pushes.image(note="old"), pushes.image(note="new")
ACCEPTED = "Basic " + base64.b64encode(b"good:x").decode()


def private(asked):
    if asked.authorization != ACCEPTED:
        return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})
    return pushes.serving(NEW, OLD)(asked)


class Secrets:
    """Secrets by name; the user of each is its name."""

    def __init__(self, host):
        self.host = host

    def get(self, api_version, kind, namespace, name):
        auths = {"auths": {self.host: {"username": name, "password": "x"}}}
        data = base64.b64encode(json.dumps(auths).encode()).decode()
        return {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": data}}


def deployment(name, secrets):
    owner = workload(name=name)
    one, between = pod_of(owner, f"{REPOSITORY}@{OLD.digest}", secrets=secrets)
    return [owner, one, *between]


def reasons(**secrets_of):
    """Reason of each Deployment, and the look-ups."""
    containers = inspect(*(item for name, names in secrets_of.items() for item in deployment(name, names)))
    with serving(private) as server:
        rules = [{"prefix": "registry.example", "location": server.host, "insecure": True}]
        lookups = inventory.lookups(containers)
        options = params(images=lookups, registries=rules)
        entries = registry_digest.run(options, lambda: Secrets(server.host))["images"]
    nodes = {"node-1": "linux/amd64"}
    judged = judge.judge(containers, entries, Policy(), {}, NOW, lambda: nodes)
    return {x["workload"]["name"]: verdict.reason for x, verdict in judged}, lookups


@pytest.mark.parametrize("refused", [["bad"], ["bad", "bad"], ["bad", "", "bad"]])
def test_a_refused_secret_borrows_no_proof_however_often_it_is_named(refused):
    found, lookups = reasons(a=["good"], b=refused)
    assert (found["a"], found["b"]) == ("digest_differs", "credential_rejected")
    assert [[x["name"] for x in item["pull_secrets"]] for item in lookups] == [["good"], ["bad"]]


@pytest.mark.parametrize("accepted", [["good", "good"], ["bad", "good", "bad"], ["", "good"]])
def test_names_that_are_given_twice_or_are_empty_are_no_obstacle(accepted):
    found, lookups = reasons(a=accepted, b=["good"])
    assert found == {"a": "digest_differs", "b": "digest_differs"}
    assert all({"namespace": NAMESPACE, "name": "good"} in item["pull_secrets"] for item in lookups)


def test_lists_that_differ_only_in_names_given_twice_are_one_look_up():
    _found, lookups = reasons(a=["good", "good"], b=["good"])
    assert len(lookups) == 1

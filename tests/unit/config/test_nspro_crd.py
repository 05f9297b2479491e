# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRD of a Nspro and the code that reads and writes one say the same."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import yaml
from unit.config.test_crds import errors

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import forms, nspro_status, sizes
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import request as requests
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import Request
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.shrink import Shrink

ROLES = ("admin", "edit", "view")


@pytest.fixture
def spec(schemas) -> dict:
    return schemas["Nspro"]["properties"]["spec"]["properties"]


@pytest.fixture
def every_option(root) -> dict:
    found = yaml.safe_load((root / "config/samples/every_option_nspro.yaml").read_text())
    found["metadata"]["namespace"] = "ops"
    return found


def test_values_of_the_schema_are_those_of_the_code(schemas, spec):
    assert set(spec["nssize"]["enum"]) == set(sizes.DEFAULTS)
    assert tuple(spec["adoption"]["enum"]) == requests.ADOPTION
    assert tuple(spec["deletion"]["enum"]) == requests.DELETION
    assert tuple(spec["shrink"]["enum"]) == requests.SHRINK
    assert spec["limitRange"]["properties"].keys() - {"enabled", "defaultRequest"} == set(sizes.LIMITS) - {
        "default_request"
    }
    phases = schemas["Nspro"]["properties"]["status"]["properties"]["phase"]["enum"]
    assert set(phases) == set(nspro_status._PHASES.values())


def test_defaults_of_the_schema_are_those_of_the_code(spec):
    request = Request("a", "small")
    network = spec["networkPolicy"]["properties"]
    assert spec["managed"]["default"] == request.managed
    assert (spec["adoption"]["default"], spec["shrink"]["default"]) == (request.adoption, request.shrink)
    assert network["sameNamespace"]["default"] == request.network.same_namespace
    assert network["restrictEgress"]["default"] == request.network.restrict_egress
    assert network["dns"]["default"] == request.network.dns
    accounts = spec["pullSecrets"]["items"]["properties"]["serviceAccounts"]
    assert tuple(accounts["default"]) == requests.PullSecret("a").service_accounts


def test_every_option_of_the_schema_arrives(every_option):
    every_option["spec"] |= {"adoption": "Always", "shrink": "Apply"}
    request = requests.read(requests.of_resource(every_option), "ops/team-a", ROLES, sizes.DEFAULTS)
    default = Request("team-a", "medium")
    same = [
        field.name
        for field in dataclasses.fields(Request)
        if getattr(request, field.name) == getattr(default, field.name) and field.name not in ("name", "size")
    ]
    assert same == []
    assert request.limit_range.keys() == set(sizes.LIMITS)
    assert request.access[1] == requests.Access("edit", (), ("team-a",), ("builder", "ci/deployer"))
    assert request.pull_secrets == (requests.PullSecret("registry-login", ("default",)),)
    assert request.network == requests.Network(
        True,
        ({"kubernetes.io/metadata.name": "monitoring"},),
        ({"port": 8443, "protocol": "TCP"},),
        True,
        ({"team": "databases"},),
        ({"cidr": "192.0.2.0/28", "ports": ({"port": 5432, "protocol": "TCP"},)},),
        True,
    )


def test_versions_of_pod_security_levels_arrive(every_option):
    request = requests.read(requests.of_resource(every_option), "ops/team-a", ROLES, sizes.DEFAULTS)
    assert request.pod_security == {
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/enforce-version": "v1.34",
        "pod-security.kubernetes.io/audit": "restricted",
        "pod-security.kubernetes.io/audit-version": "latest",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/warn-version": "latest",
        "security.openshift.io/scc.podSecurityLabelSync": "false",
    }


@pytest.mark.parametrize("limit_range", [{}, {"enabled": False}, {"defaultRequest": {"cpu": "1m"}}])
def test_limit_range_of_a_resource_is_that_of_the_module(every_option, limit_range):
    every_option["spec"]["limitRange"] = limit_range
    request = requests.read(requests.of_resource(every_option), "ops/team-a", ROLES, sizes.DEFAULTS)
    expected = {(): {}, ("enabled",): None, ("defaultRequest",): {"default_request": {"cpu": "1m"}}}
    assert request.limit_range == expected[tuple(limit_range)]


QUOTA = {"status": {"hard": {"limits.cpu": "100m", "limits.memory": "100Mi"}, "used": {"limits.cpu": "0"}}}
SHRUNK = Shrink({"limits.cpu": {"used": "300m", "hard": "100m", "now": "300m"}})


@pytest.mark.parametrize(("state", "more"), [*itertools.product(nspro_status._PHASES, (False, True))])
def test_every_status_that_is_written_fits_the_schema(schemas, every_option, state, more):
    result = Result("team-a").says(state, "shrink_blocked" if state == "held" else state, "because")
    if more:
        result.quota, result.shrunk, result.held = QUOTA, SHRUNK, state == "held"
        result.warnings, result.foreign_policies = ["one", "two"], ["theirs"]
    written = nspro_status.following(every_option, result, "2026-01-02T03:04:05Z")
    assert errors(schemas["Nspro"], {"spec": {"nssize": "small"}, "status": written}) == []
    unknown = set(nspro_status._OURS) - schemas["Nspro"]["properties"]["status"]["properties"].keys()
    assert unknown == set()


def test_a_name_that_no_namespace_can_have_is_refused_by_the_resource_itself(schemas):
    (rule,) = schemas["Nspro"]["x-kubernetes-validations"]
    # the same form as the code's
    assert forms.LABEL in rule["rule"]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""config/rbac: one file for each role, a reason for each rule, and nothing that leads to everything."""

from __future__ import annotations

import re

import pytest
import yaml

NAMESPACED_JOBS = ("update", "update_secrets", "start", "update_operator", "start_operator")


@pytest.fixture(scope="module")
def files(root):
    """File name -> text."""
    found = {path.name: path.read_text() for path in (root / "config/rbac").glob("*.yaml")}
    del found["kustomization.yaml"]
    return found


@pytest.fixture(scope="module")
def roles(files):
    """File name -> role."""
    return {name: yaml.safe_load(text) for name, text in files.items()}


def test_every_file_is_one_role_of_its_name_and_is_applied(root, roles):
    listed = yaml.safe_load((root / "config/rbac/kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(roles)
    for name, role in roles.items():
        assert role["kind"] == ("Role" if name == "leader_election_role.yaml" else "ClusterRole")
        assert role["metadata"]["name"] == f"kubesteward-{name.removesuffix('_role.yaml').replace('_', '-')}"


def test_every_rule_has_its_reason(files, roles):
    for name, text in files.items():
        explained = re.findall(r"(?m)^  # .*\n  - (?:apiGroups|nonResourceURLs): ", text)
        assert len(explained) == len(roles[name]["rules"]), name


def test_no_right_is_for_everything_or_leads_to_others(roles):
    bound = set()
    for role in roles.values():
        for rule in role["rules"]:
            words = {word for key in ("apiGroups", "resources", "verbs") for word in rule.get(key, ())}
            assert not words & {"*", "escalate", "impersonate", "deletecollection"}
            if "bind" in rule["verbs"]:
                bound |= set(rule["resourceNames"])
            if "secrets" in rule.get("resources", ()):
                assert not {"list", "watch"} & set(rule["verbs"])
    assert bound == {"admin", "edit", "view"}


def test_what_an_operator_adds_is_not_in_its_job(roles):
    for kind in ("update", "start", "nspro"):
        job, own = (pairs(roles[f"{kind}{part}_role.yaml"]) for part in ("", "_operator"))
        assert job
        assert own
        assert not job & own


def pairs(role):
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_one_namespace_is_enough_for_updates_and_starts(roles):
    cluster_scoped = {"nodes", "namespaces", "customresourcedefinitions", "clusterroles", "tokenreviews"}
    for kind in NAMESPACED_JOBS:
        assert not {resource for _group, resource, _verb in pairs(roles[f"{kind}_role.yaml"])} & cluster_scoped


def test_the_page_names_every_role_and_what_is_tested(root, roles):
    text = (root / "docs/operator-rights.md").read_text()
    for name, role in roles.items():
        assert f"| `{name}` | `{role['metadata']['name']}` |" in text
    for path in re.findall(r"`(tests/\S+)`", text):
        assert (root / path).is_file()

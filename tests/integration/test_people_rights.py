# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Editors and viewers of each kind, and what `admin`, `edit` and `view` of a namespace get of them."""

from __future__ import annotations

import pytest
import yaml
from integration.accounts import RBAC, Right, rights
from integration.passes import ROOT
from integration.reviews import refused, refused_at_last

import testbed
from testbed.api import Api

pytestmark = pytest.mark.usefixtures("crds")

GROUPS = {
    "updates": "install.sios.nginx.testing",
    "starts": "install.sios.nginx.testing",
    "nspros": "nspro.example.com",
}
READS, WRITES = ("get", "list", "watch"), ("create", "update", "patch", "delete")
FILES = [f"{kind}_{who}_role.yaml" for kind in ("update", "start", "nspro") for who in ("editor", "viewer")]
#: rights that lead to others, or to what is not a person's to write
MORE = [
    *(Right(group, f"{plural}/status", "update") for plural, group in GROUPS.items()),
    *(Right("", "secrets", verb) for verb in ("get", "list")),
    *(Right("", "pods", verb) for verb in ("create", "delete")),
    *(Right("", "serviceaccounts/token", "create"), Right("", "serviceaccounts", "impersonate")),
    *(Right("", "namespaces", verb) for verb in ("create", "patch", "delete")),
    *(Right("apps", "deployments", verb) for verb in ("create", "patch")),
    *(Right(RBAC, "rolebindings", verb) for verb in ("create", "patch")),
    *(Right(RBAC, "clusterroles", verb) for verb in ("bind", "escalate")),
]


def of(plural: str, verbs: tuple[str, ...]) -> set[Right]:
    return {Right(GROUPS[plural], plural, verb) for verb in verbs}


ALL = {plural: of(plural, (*READS, *WRITES)) for plural in GROUPS}
EVERYTHING = {right for held in ALL.values() for right in held}


def named(home: str, file: str) -> str:
    return f"{home}-{file.partition('.')[0].replace('_', '-')}"


@pytest.fixture(scope="module")
def home(kubectl, namespaces, crds):
    """A namespace with an account for each of the roles, which are applied under names of the test's own."""
    name = namespaces()
    roles = []
    for file in FILES:
        role = yaml.safe_load((ROOT / "config/rbac" / file).read_text())
        labels = {**role["metadata"].get("labels", {}), "test": name}
        roles.append({**role, "metadata": {"name": named(name, file), "labels": labels}})
    accounts = {file.partition("_role")[0].replace("_", "-"): named(name, file) for file in FILES}
    accounts.update({role: role for role in ("admin", "edit", "view")})
    items = [item for account, role in accounts.items() for item in bound(name, account, role)]
    try:
        kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": [*roles, *items]})
        yield name
    finally:
        kubectl("delete", "clusterrole", "-l", f"test={name}", "--wait=false")


def bound(home: str, account: str, role: str) -> list[dict]:
    meta = {"name": account, "namespace": home}
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", **meta}]
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": ref,
        "subjects": subjects,
    }
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}, binding]


@pytest.fixture(scope="module")
def api():
    return Api(testbed.connect().kubeconfig)


@pytest.mark.parametrize("plural", list(GROUPS))
@pytest.mark.parametrize(("who", "verbs"), [("editor", (*READS, *WRITES)), ("viewer", READS)])
def test_an_editor_writes_one_kind_a_viewer_reads_it_and_neither_has_another_right(api, home, plural, who, verbs):
    account, held = f"{plural[:-1]}-{who}", of(plural, verbs)
    assert set(rights(f"{plural[:-1]}_{who}_role.yaml")) == held
    assert refused_at_last(api, home, account, EVERYTHING, EVERYTHING - held) == EVERYTHING - held
    assert refused(api, home, account, MORE) == set(MORE)
    assert refused(api, home, account, held, namespace="default") == held


@pytest.mark.parametrize(
    ("role", "held"),
    [
        ("admin", ALL["updates"] | ALL["starts"]),
        ("edit", ALL["updates"] | ALL["starts"]),
        ("view", of("updates", READS) | of("starts", READS)),
    ],
)
def test_who_has_a_namespace_has_its_updates_and_starts_but_no_nspros(api, home, role, held):
    assert refused_at_last(api, home, role, EVERYTHING, EVERYTHING - held) == EVERYTHING - held
    assert set(MORE) & {Right(GROUPS[plural], f"{plural}/status", "update") for plural in GROUPS} <= refused(
        api, home, role, MORE
    )


def test_what_an_update_or_a_start_does_its_author_could_do_as_well(api, home):
    """Otherwise `edit` would get more by it. The status, Nodes and Events are told, and are no power over anything."""
    told = {"updates/status", "starts/status", "nodes", "events"}
    jobs = [right for job in ("update", "update_secrets", "start") for right in rights(f"{job}_role.yaml")]
    power = [right for right in jobs if right.resource not in told]
    assert refused_at_last(api, home, "edit", power, ()) == set()

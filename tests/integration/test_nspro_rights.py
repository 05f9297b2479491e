# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights in config/rbac are enough for the life of a namespace, and none of them is too much."""

from __future__ import annotations

import pytest
from integration.accounts import Accounts, Right, connect, refusal_of, rights
from integration.nspro_story import Story, pull_secret

import testbed

pytestmark = pytest.mark.usefixtures("crds")

JOB = rights("nspro_role.yaml")
CHECK = rights("nspro_check_role.yaml")
OPERATOR = rights("nspro_operator_role.yaml")


@pytest.fixture(scope="module")
def home(kubectl, namespaces, crds) -> str:
    name = namespaces()
    kubectl("create", "-f", "-", stdin=pull_secret(name))
    return name


def without(missing: Right) -> list[Right]:
    return [right for right in [*JOB, *CHECK] if right != missing]


@pytest.fixture(scope="module")
def accounts(kubectl, home, tmp_path_factory):
    """ServiceAccounts `job`, `check`, and `without-<number>` of one right of both."""
    made = Accounts(kubectl, testbed.connect().kubeconfig, home, tmp_path_factory.mktemp("accounts"))
    fewer = {f"without-{number}": without(right) for number, right in enumerate([*JOB, *CHECK])}
    try:
        made.create({"job": JOB, "check": [*JOB, *CHECK], **fewer})
        yield made
    finally:
        made.close()


@pytest.fixture
def story(accounts, home):
    """A story with the rights of an account."""

    def told(name: str) -> Story:
        known = next(right for right in JOB if name != f"without-{JOB.index(right)}")
        return Story(connect(accounts.admin), connect(accounts.kubeconfig(name, known)), home)

    return told


def test_the_rights_are_enough(story):
    assert story("job").first_refusal(Story.passes) == []


@pytest.mark.parametrize("number", range(len(JOB)), ids=[str(right).replace(" ", "-") for right in JOB])
def test_no_right_is_too_much(story, number):
    missing = JOB[number]
    refused = story(f"without-{number}").first_refusal(Story.passes)
    assert refused, f"nothing needs the right to {missing}"
    assert refusal_of(missing) in " ".join(refused)
    if missing.name:
        assert missing.name in " ".join(refused)


def test_check_mode_needs_rights_of_its_own(story):
    assert story("check").first_refusal(Story.forecasts) == []


@pytest.mark.parametrize("number", range(len(CHECK)), ids=[str(right).replace(" ", "-") for right in CHECK])
def test_no_right_of_check_mode_is_too_much(story, number):
    refused = story(f"without-{len(JOB) + number}").first_refusal(Story.forecasts)
    assert refusal_of(CHECK[number]) in " ".join(refused)


def test_no_right_is_for_everything(story):
    for right in [*JOB, *CHECK, *OPERATOR]:
        assert "*" not in (right.group, right.resource, right.verb)
        assert right.verb not in ("escalate", "impersonate", "deletecollection")
    assert {right.name for right in JOB if right.verb == "bind"} == {"admin", "edit", "view"}

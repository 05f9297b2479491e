# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights in config/rbac are enough for the life of a namespace, and none of them is too much."""

from __future__ import annotations

import pytest
from integration.accounts import Accounts, Right, connect, refusal_of, rights
from integration.nspro_story import Story, pull_secret
from integration.passes import AGENT
from integration.recorded import Recorder, audited, written

import testbed
from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")

JOB = rights("nspro_role.yaml")
CHECK = rights("nspro_check_role.yaml")
WEBHOOKS = rights("nspro_webhooks_role.yaml")
OPERATOR = rights("nspro_operator_role.yaml")
#: to give these roles takes rights that no request asks for: the API server looks at them while it writes a RoleBinding
BINDS = [right for right in JOB if right.verb == "bind"]
#: rights that are taken away one by one: those, a read, and a write
MISSING = [
    *BINDS,
    Right("", "namespaces", "list"),
    Right("", "resourcequotas", "create"),
]
#: a right that every account has
KNOWN = next(right for right in JOB if right not in MISSING)


@pytest.fixture(scope="module")
def home(kubectl, namespaces, crds) -> str:
    name = namespaces()
    kubectl("create", "-f", "-", stdin=pull_secret(name))
    return name


def without(missing: Right) -> list[Right]:
    return [right for right in [*JOB, *CHECK] if right != missing]


@pytest.fixture(scope="module")
def accounts(kubectl, home, tmp_path_factory):
    """ServiceAccounts `job`, `check`, those without one right of both, and `nobody`."""
    made = Accounts(kubectl, testbed.connect().kubeconfig, home, tmp_path_factory.mktemp("accounts"))
    fewer = {f"without-{number}": without(right) for number, right in enumerate([*MISSING, *CHECK])}
    try:
        made.create({"job": JOB, "check": [*JOB, *CHECK], **fewer, "nobody": []})
        yield made
    finally:
        made.close()


@pytest.fixture
def story(accounts, home):
    """A story with the rights of an account."""

    def told(name: str) -> Story:
        return Story(connect(accounts.admin), connect(accounts.kubeconfig(name, KNOWN)), home)

    return told


@pytest.fixture
def recorded(accounts, home):
    """Tells a story with the rights of an account; gives what it was refused, and what it used."""

    def told(name, passes) -> tuple[list[str], set[Right]]:
        log = AuditLog.of(testbed.connect())
        mark = log.mark()
        record = Recorder(accounts.kubeconfig(name, KNOWN))
        refused = Story(connect(accounts.admin), record.cluster(), home).first_refusal(passes)
        nobody = accounts.kubeconfig("nobody", None)
        used = record.used(nobody, JOB)
        assert written(used) == audited(log.since(mark, AGENT), accounts.user(name))
        # nothing that it may not do is asked for, but whether a webhook would be cut off
        assert record.refused(nobody) <= set(WEBHOOKS)
        return refused, used

    return told


def test_the_rights_are_enough_and_none_is_too_much(recorded):
    refused, used = recorded("job", Story.passes)
    assert refused == []
    assert used == set(JOB) - set(BINDS)


def test_check_mode_needs_rights_of_its_own_and_none_is_too_much(recorded):
    refused, used = recorded("check", Story.forecasts)
    assert refused == []
    assert used - set(JOB) == set(CHECK)


@pytest.mark.parametrize("missing", MISSING, ids=[str(right).replace(" ", "-") for right in MISSING])
def test_a_pass_without_one_of_the_rights_is_refused(story, missing):
    refused = story(f"without-{MISSING.index(missing)}").first_refusal(Story.passes)
    assert refusal_of(missing) in " ".join(refused)
    assert missing.name in " ".join(refused)


@pytest.mark.parametrize("missing", CHECK, ids=[str(right).replace(" ", "-") for right in CHECK])
def test_check_mode_without_one_of_its_rights_is_refused(story, missing):
    refused = story(f"without-{len(MISSING) + CHECK.index(missing)}").first_refusal(Story.forecasts)
    assert refusal_of(missing) in " ".join(refused)


def test_no_right_is_for_everything(story):
    for right in [*JOB, *CHECK, *OPERATOR]:
        assert "*" not in (right.group, right.resource, right.verb)
        assert right.verb not in ("escalate", "impersonate", "deletecollection")
    assert {right.name for right in JOB if right.verb == "bind"} == {"admin", "edit", "view"}

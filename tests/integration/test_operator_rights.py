# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the ansible-operator program itself asks for is allowed by config/rbac, and every right there is for that."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from integration.accounts import Accounts, Right, rights
from integration.reviews import refused_at_last

import testbed
from testbed.api import Api

pytestmark = pytest.mark.usefixtures("crds")

#: what it does -> rights that it has for it anyway, of the job, and those that are there for the program alone
ROLES = {
    "update": (rights("update_role.yaml"), rights("update_operator_role.yaml")),
    "start": (rights("start_role.yaml"), rights("start_operator_role.yaml")),
    "nspro": (rights("nspro_role.yaml"), rights("nspro_operator_role.yaml")),
    "leader-election": ([], rights("leader_election_role.yaml")),
    "metrics-auth": ([], rights("metrics_auth_role.yaml")),
}
REQUESTS = {
    what: [Right(group, resource, verb, *name) for verb, resource, group, *name in requests]
    for what, requests in yaml.safe_load(Path(__file__).with_name("operator_requests.yml").read_text()).items()
}
#: single rights that are taken away: a read, a write, and what one object alone is allowed for
MISSING = [
    ("start", Right("install.sios.nginx.testing", "starts", "get")),
    ("update", Right("install.sios.nginx.testing", "updates/status", "update")),
    ("leader-election", Right("coordination.k8s.io", "leases", "get", "kubesteward-manager")),
]
NAMES = [f"{what}-{right}".replace(" ", "-") for what, right in MISSING]


@pytest.fixture(scope="module")
def home(kubectl, namespaces, crds):
    """A namespace with a ServiceAccount for each thing that it does, and some with a single right less."""
    name = namespaces()
    made = Accounts(kubectl, testbed.connect().kubeconfig, name, Path(), "namespace")
    given = {what: [*job, *own] for what, (job, own) in ROLES.items()}
    for what, missing in MISSING:
        job, own = ROLES[what]
        given[f"{what}-less"] = [*job, *(right for right in own if right != missing)]
    try:
        made.create(given)
        yield name
    finally:
        made.close()


@pytest.fixture(scope="module")
def api():
    return Api(testbed.connect().kubeconfig)


def test_everything_that_it_does_was_recorded():
    assert REQUESTS.keys() == ROLES.keys()


@pytest.mark.parametrize("what", list(ROLES))
def test_every_request_of_the_program_is_allowed(api, home, what):
    assert refused_at_last(api, home, what, REQUESTS[what], ()) == set()


@pytest.mark.parametrize("what", list(ROLES))
def test_no_right_that_is_there_for_the_program_alone_is_too_much(what):
    job, own = ROLES[what]
    assert set(REQUESTS[what]) - set(job) == set(own)


@pytest.mark.parametrize(("what", "missing"), MISSING, ids=NAMES)
def test_without_a_right_just_its_request_is_refused(api, home, what, missing):
    assert refused_at_last(api, home, f"{what}-less", REQUESTS[what], {missing}) == {missing}

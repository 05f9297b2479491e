# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces that are being deleted: why they do not go, that this is told, and waiting for them."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import report, waiting
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders

NAMESPACE = ("Namespace", None, "team-a")
REMAINING = {
    "type": "NamespaceFinalizersRemaining",
    "status": "True",
    "reason": "SomeFinalizersRemain",
    "message": "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances",
}
DONE = {"type": "NamespaceDeletionContentFailure", "status": "False", "reason": "ContentDeleted", "message": "fine"}


class Clock:
    """Time that goes by only while somebody sleeps."""

    def __init__(self, then=lambda: None, after=1):
        self.now, self.naps, self._then, self._after = 100.0, 0, then, after

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.naps += 1
        if self.naps == self._after:
            self._then()


@pytest.fixture
def clock(monkeypatch):
    def use(*arguments):
        found = Clock(*arguments)
        monkeypatch.setattr(waiting, "time", found)
        return found

    return use


def provided():
    api = builders.cluster(builders.nspro())
    builders.settled(api)
    return api


def stuck(api, *conditions, finalizers=()):
    api.remove(*NAMESPACE)
    there = api.objects[NAMESPACE]
    there["status"]["conditions"] = list(conditions)
    there["metadata"]["finalizers"] = list(finalizers)


@pytest.mark.parametrize("state", ["present", "absent"])
def test_what_keeps_a_namespace_from_going_is_told_in_the_words_of_the_api_server(state):
    api = provided()
    stuck(api, DONE, REMAINING, finalizers=["example.com/theirs"])
    result = builders.only(builders.one_pass(api, state=state))
    assert result.state == "terminating"
    assert f"in its way is: SomeFinalizersRemain: {REMAINING['message']}" in result.msg
    assert "the Namespace itself has finalizers: example.com/theirs" in result.msg
    assert "ContentDeleted" not in result.msg
    assert REMAINING["message"] in builders.condition(api, "team-a", "Ready")["message"]


def test_nothing_is_said_to_be_in_the_way_of_one_that_goes():
    api = provided()
    stuck(api, DONE)
    assert "in its way" not in builders.only(builders.one_pass(api)).msg


def test_a_namespace_that_is_to_be_there_and_is_being_deleted_is_a_warning_and_one_that_is_to_go_is_none():
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small")
    gone = builders.provision(api, name="team-a", state="absent")
    assert report.problems(gone.results, "absent") == []
    told = builders.provision(api, name="team-a", size="small")
    (warning,) = report.problems(told.results)
    assert warning.startswith("Namespace team-a: terminating: Namespace team-a is being deleted; it is made anew")
    assert report.problems(builders.provision(api, name="team-a", state="absent").results, "absent") == []


def test_waiting_for_its_end_makes_it_anew(clock):
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small")
    builders.provision(api, name="team-a", state="absent")
    seen = clock(lambda: api.finish("team-a"), 3)
    told = builders.provision(api, name="team-a", size="small", wait=True)
    result = builders.only(told)
    assert (result.state, seen.naps, result.error) == ("ready", 3, "")
    assert result.done[0].action == "create"


def test_waiting_for_it_to_be_gone(clock):
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small")
    clock(lambda: api.finish("team-a"), 2)
    result = builders.only(builders.provision(api, name="team-a", state="absent", wait=True))
    assert (result.state, result.error) == ("absent", "")
    # what was done before is not forgotten
    assert [(x.action, x.kind) for x in result.done] == [("delete", "Namespace")]


@pytest.mark.parametrize("state", ["present", "absent"])
def test_the_end_of_patience_is_an_error_that_says_what_is_in_the_way(clock, state):
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small")
    stuck(api, REMAINING)
    seen = clock()
    result = builders.only(builders.provision(api, name="team-a", size="small", state=state, wait=True, wait_timeout=7))
    assert (result.state, seen.now) == ("terminating", 107.0)
    assert REMAINING["message"] in result.error
    assert result.error.endswith("(still so after 7 s)")
    assert report.failures([result], (), False) == [result.error]


def test_all_namespaces_of_a_call_share_one_patience(clock):
    api = builders.cluster()
    names = [f"team-{letter}" for letter in "abcdefghijkl"]
    builders.provision(api, size="small", namespaces=[{"name": name} for name in names])
    for name in names:
        api.remove("Namespace", None, name)
    seen = clock()
    told = builders.provision(
        api, size="small", namespaces=[{"name": name} for name in names], wait=True, wait_timeout=10
    )
    assert all(item.error for item in told.results)
    assert seen.now <= 100 + 10 + waiting.PAUSE * len(names)


def test_service_accounts_that_come_by_themselves_are_waited_for(clock):
    api = builders.cluster(builders.secret(), accounts=())
    api.put(builders.nspro(pullSecrets=[{"name": "regcred"}]))
    clock(lambda: api.put_account("team-a", "default"))
    assert builders.only(builders.one_pass(api, wait=True)).state == "ready"


@pytest.mark.parametrize(
    "spec",
    [{"pullSecrets": [{"name": "missing"}]}, {"labels": {"app": "infra"}}],
    ids=["a secret that nobody makes", "invalid"],
)
def test_what_only_people_can_mend_is_not_waited_for(clock, spec):
    seen = clock()
    api = builders.cluster(builders.nspro(**spec))
    result = builders.only(builders.one_pass(api, wait=True))
    assert (result.state in ("pending", "invalid"), seen.naps) == (True, 0)


@pytest.mark.parametrize("given", [{}, {"wait": False}, {"wait": True, "check_mode": True}])
def test_nothing_waits_unasked_or_in_check_mode(clock, given):
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small")
    api.remove(*NAMESPACE)
    seen = clock()
    assert builders.only(builders.provision(api, name="team-a", size="small", **given)).state == "terminating"
    assert seen.naps == 0


@pytest.mark.parametrize(
    ("fail_on", "fails"), [([], 0), (["invalid"], 1), (["conflict", "invalid"], 2), (["held", "pending"], 0)]
)
def test_states_fail_the_run_where_somebody_says_so(fail_on, fails):
    api = builders.cluster()
    entries = [{"name": "a"}, {"name": "b", "size": "smal"}, {"name": "payments"}]
    told = builders.provision(api, size="small", namespaces=entries)
    found = report.failures(told.results, fail_on, False)
    assert len(found) == fails
    assert all(text.startswith("Namespace ") for text in found)
    # and each is named all the same
    assert any("size 'smal' is not known; there are large, medium, small" in x for x in report.problems(told.results))


def test_no_time_at_all_is_over_at_once(clock):
    api = builders.cluster()
    builders.provision(api, name="team-a", size="small")
    api.remove(*NAMESPACE)
    seen = clock()
    result = builders.only(builders.provision(api, name="team-a", size="small", wait=True, wait_timeout=0))
    assert (result.error.endswith("(still so after 0 s)"), seen.naps) == (True, 0)
    api.finish("team-a")
    assert builders.only(builders.provision(api, name="team-a", size="small", wait=True, wait_timeout=0)).error == ""

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that did not do its work is no fast run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.play import Expected, environment, shortcoming
from bench.rounds import alternate
from testbed import Testbed

GOOD = """
TASK [Show the verdicts] ***
ok: [localhost] => {
    "msg": [
        "Deployment/a  web  current  digest_equal  4bf5122f3445  4bf5122f3445",
        "Deployment/b  web  current  digest_equal  e258d248fda9  e258d248fda9"
    ]
}

PLAY RECAP ***
localhost                  : ok=4    changed=0    unreachable=0    failed=0    skipped=1    rescued=0    ignored=0
"""
WANTED = Expected({"changed": 0, "failed": 0, "skipped": 1}, current=2, texts=("4bf5122f3445",))


def test_a_run_that_did_its_work_lacks_nothing():
    assert shortcoming(GOOD, WANTED) == ""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("changed=0", "changed=1", "its recap says changed=1 instead of 0"),
        ("skipped=1", "skipped=2", "its recap says skipped=2 instead of 1"),
        ("failed=0", "", "its recap says failed=None instead of 0"),
        ("current  digest_equal", "unknown  unreachable", "it has 0 verdicts `current digest_equal` instead of 2"),
        ("localhost ", "elsewhere ", "it has no recap of localhost"),
        ("4bf5122f3445", "", "it does not say '4bf5122f3445'"),
    ],
)
def test_a_run_that_did_something_else_is_told(before, after, said):
    assert shortcoming(GOOD.replace(before, after), WANTED) == said


def test_an_empty_play_has_no_recap_and_needs_none():
    assert shortcoming("PLAY [Do nothing] ***\n\nPLAY RECAP ***\n", Expected()) == ""


def test_runs_see_the_testbed_and_nothing_of_the_caller_that_changes_ansible():
    bed = Testbed(Path("/somewhere/kubeconfig"), "127.0.0.1:5000", None, True)
    caller = {"KUBECONFIG": "/production", "ANSIBLE_STDOUT_CALLBACK": "json", "HOME": "/home/me", "NO_PROXY": "inside"}
    found = environment(bed, caller)
    assert found["K8S_AUTH_KUBECONFIG"] == "/somewhere/kubeconfig"
    assert found["HOME"] == "/home/me"
    assert found["NO_PROXY"] == "127.0.0.1,198.18.0.1,inside"
    assert not {"KUBECONFIG", "ANSIBLE_STDOUT_CALLBACK"} & set(found)


def test_runs_alternate():
    order = []
    clock = iter(range(100))

    def run(name):
        def measured():
            order.append(name)
            return float(next(clock))

        return measured

    told = []
    found = alternate({"a": run("a"), "b": run("b")}, 3, told.append)
    assert order == ["a", "b", "a", "b", "a", "b"]
    assert found == {"a": [0.0, 2.0, 4.0], "b": [1.0, 3.0, 5.0]}
    assert told == [1, 2, 3]


def test_what_takes_long_runs_in_the_first_rounds_only():
    found = alternate({"a": lambda: 1.0, "b": lambda: 2.0}, 3, [].append, {"b": 2})
    assert found == {"a": [1.0] * 3, "b": [2.0] * 2}

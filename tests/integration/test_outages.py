# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image that does not work is taken back in about a minute, to what can be had, and told with why.

The story is told once; a test that fails is to be read beside `outage_story.py`.
"""

from __future__ import annotations

import pytest
from integration.outage_story import CRASH_SECONDS, KINDS, LATE, WORDS, Outage
from integration.passes import Shop
from integration.workloads import image_of

import testbed


@pytest.fixture(scope="module")
def outage(kubectl, crds, namespaces) -> Outage:
    story = Outage(Shop(testbed.connect(), kubectl, namespaces()))
    story.tell()
    return story


def test_an_image_that_exits_at_once_is_taken_back_in_about_a_minute(outage):
    assert outage.images["exits"].endswith(f"@{outage.digests['first']['exits']}")
    assert CRASH_SECONDS <= outage.taken_back["exits"] < CRASH_SECONDS + LATE


def test_until_then_the_verdict_says_what_is_wrong_and_when_it_ends(outage):
    entry = outage.entry(outage.during["exits"], "exits")
    assert (entry["verdict"], entry["reason"]) == ("current", "on_trial")
    assert f"last exit code 3 (Error): {WORDS} exits" in entry["message"]
    assert "it is taken back after 3 restarts" in entry["message"]


def test_exit_code_and_last_words_outlive_the_pod(outage):
    said = f"last exit code 3 (Error): {WORDS} exits"
    history = [x for x in outage.told["exits"]["status"]["history"] if x["container"] == "exits"]
    assert [x["outcome"] for x in history] == ["rolled", "rolledBack"]
    assert said in history[-1]["message"]
    told = [x for x in outage.events if x["reason"] == "RolledBack" and said in x["message"]]
    assert sorted(x["involvedObject"]["kind"] for x in told) == ["Deployment", "Update"]


def test_the_columns_say_that_something_is_held(outage):
    assert outage.columns["HELD"] in ("Held", "RolloutFailed")
    assert outage.columns["UPTODATE"] == "False"


def test_the_hint_is_a_command_as_it_stands(outage):
    message = outage.entry(outage.told["exits"], "exits")["message"]
    command = message.rpartition("try it all the same: kubectl ")[2].split()
    outage.shop.kubectl(*command, "--dry-run=server")


def test_where_the_registry_lost_the_image_what_stood_there_goes_back(outage):
    assert outage.images["kept"] == image_of(outage.shop, "kept")
    assert outage.ready["kept"]


def test_where_nothing_can_be_had_that_is_told(outage):
    assert outage.images["lost"].endswith(f"@{outage.digests['second']['lost']}")
    entry = outage.entry(outage.told["lost"], "lost")
    assert "nothing is known to go back to" in entry["message"]
    conditions = {x["type"]: x for x in outage.told["lost"]["status"]["conditions"]}
    assert conditions["RunningDigestGone"]["status"] == "True"
    assert outage.digests["first"]["lost"] in conditions["RunningDigestGone"]["message"]
    assert conditions["RolloutBlocked"]["status"] == "True"


def test_as_soon_as_it_is_there_again_it_goes_back(outage):
    assert outage.again["lost"].endswith(f"@{outage.digests['first']['lost']}")
    assert outage.ready["lost"]


def test_pods_that_never_became_ready_are_replaced_by_the_image_that_mends_them(outage):
    assert outage.again["unready"].endswith(f"@{outage.digests['second']['unready']}")
    assert outage.ready["unready"]


@pytest.mark.parametrize("name", KINDS)
def test_in_the_end_everything_runs(outage, name):
    assert outage.ready[name], outage.again

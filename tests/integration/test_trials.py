# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a roll, on a real cluster: it proves itself, is taken back, or waits for what is in its way.

Deadlines take their time, so each of two stories is told once, both at the same time, and the tests look at what was
seen. A test that fails is to be read beside `rollback_story.py` or `blocked_story.py`.
"""

from __future__ import annotations

import concurrent.futures

import pytest
from integration.blocked_story import REASONS, Blocked, verdict_of
from integration.passes import Shop
from integration.rollback_story import CONTAINERS, CREATION_SECONDS, DEADLINE, ROLLED_BACK, TRIAL_SECONDS, Story
from integration.workloads import image_of, images_in

import testbed
from testbed.audit import AuditLog


@pytest.fixture(scope="module")
def told(kubectl, crds, namespaces) -> tuple[Story, Blocked]:
    found = testbed.connect()
    story = Story(Shop(found, kubectl, namespaces()), AuditLog.of(found))
    blocked = Blocked(Shop(found, kubectl, namespaces()))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for future in [pool.submit(story.tell), pool.submit(blocked.tell)]:
            future.result()
    return story, blocked


@pytest.fixture
def story(told) -> Story:
    return told[0]


@pytest.fixture
def blocked(told) -> Blocked:
    return told[1]


def test_a_good_image_is_rolled_and_settles_once_it_has_proven_itself(story):
    second = story.digests["second"]["good"]
    assert story.seen["rolled"].digest("good") == second
    assert story.seen["rolled"].outcomes("good") == ["rolled"]
    assert all(watch.good == ["rolled"] for watch in story.passes if watch.ended < TRIAL_SECONDS)
    assert story.seen["settled"].outcomes("good") == ["rolled", "done"]
    assert story.seen["settled"].digest("good") == second
    assert story.seen["settled"].verdict("good") == "current/digest_equal"


@pytest.mark.parametrize("name", ROLLED_BACK)
def test_a_bad_image_is_rolled_and_taken_back_after_its_deadline(story, name):
    assert story.seen["rolled"].digest(name) == story.digests["second"][name]
    assert story.seen["back"].image(name).partition("@")[0] == story.shop.image.rpartition(":")[0]
    assert story.seen["back"].digest(name) == story.digests["first"][name]
    assert not [watch for watch in story.passes if watch.ended < DEADLINE and name not in watch.bad]
    assert not [watch for watch in story.passes if watch.began > DEADLINE + CREATION_SECONDS and name in watch.bad]


@pytest.mark.parametrize("name", ROLLED_BACK)
def test_the_bad_digest_is_held_and_told(story, name):
    found = story.seen["settled"]
    assert found.verdict(name) == "stale/quarantined"
    # the history has ten entries, and this story more
    assert found.outcomes(name)[-1] == "rolledBack"
    quarantine = {entry["container"]: entry for entry in found.update["status"]["quarantine"]}
    assert quarantine[CONTAINERS[name]]["digest"] == story.digests["second"][name]
    assert quarantine[CONTAINERS[name]]["reason"]
    told = [event for event in story.events if event["reason"] == "RolledBack" and name in event["message"]]
    assert {event["type"] for event in told} == {"Warning"}


def test_the_condition_says_that_rollouts_are_blocked(story):
    found = story.seen["settled"].condition("RolloutBlocked")
    assert found["status"] == "True"
    assert "quarantined" in found["message"]
    assert story.seen["settled"].condition("UpToDate")["status"] == "False"


@pytest.mark.parametrize("name", ["web", "app"])
def test_the_service_answered_all_the_time(story, name):
    prober = story.probers[name]
    assert prober.failures == []
    assert prober.rate >= 5


@pytest.mark.parametrize("name", ROLLED_BACK)
def test_the_bad_digest_is_not_rolled_again(story, name):
    before, after = story.seen["back"].workloads[name], story.seen["settled"].workloads[name]
    # that it runs steadily is written down beside it, which counts as a generation of a Deployment
    assert after["spec"] == before["spec"]
    assert images_in(after) == images_in(before)


def test_no_other_workload_of_the_tag_is_rolled_to_it(story):
    assert story.seen["settled"].image("late") == image_of(story.shop, "app")
    assert story.seen["settled"].verdict("late") == "stale/quarantined"


def test_a_stuck_pod_of_a_stateful_set_is_deleted_and_comes_back(story):
    deleted = [event for event in story.written if event.verb == "delete" and event.resource == "pods"]
    # the second Pod is replaced first; the other one never had the bad image
    assert [event.name for event in deleted if event.code == 200] == ["db-1"]
    assert story.pods["rolled"]
    assert len(story.pods["settled"]) == 2
    assert not story.pods["rolled"] & story.pods["settled"]
    assert story.seen["settled"].workloads["db"]["status"]["readyReplicas"] == 2


def test_with_rollback_off_a_failed_roll_stays_and_is_told(story):
    found = story.seen["settled"]
    assert found.digest("stays") == story.digests["second"]["stays"]
    assert found.outcomes("stays") == ["rolled", "failed"]
    assert found.condition("RolloutBlocked", "off")["status"] == "True"
    told = [event for event in story.events if event["reason"] == "RolloutFailed" and "stays" in event["message"]]
    assert [event["involvedObject"]["name"] for event in told] == ["off"]


def test_a_person_can_have_it_tried_again(story):
    assert story.retried.digest("torn") == story.digests["second"]["torn"]
    assert "kubesteward.io/retry" not in story.retried.workloads["torn"]["metadata"]["annotations"]
    # of just the digest that was named
    assert story.retried.digest("app") == story.digests["first"]["app"]


@pytest.mark.parametrize("name", [*ROLLED_BACK, "stays", "late"])
def test_a_fixed_image_is_rolled(story, name):
    third = story.digests["third"]["app" if name == "late" else name]
    assert story.seen["fixed"].digest(name) == third
    assert story.seen["end"].verdict(name) == "current/digest_equal"
    assert not story.seen["end"].update["status"].get("quarantine")


@pytest.mark.parametrize(("name", "reason"), REASONS.items())
def test_a_blocked_roll_is_told_with_its_reason(blocked, name, reason):
    assert (blocked.condition(name)["status"], blocked.condition(name)["reason"]) == ("True", reason)
    assert name in blocked.condition(name)["message"]


@pytest.mark.parametrize("name", REASONS)
def test_a_blocked_roll_is_not_taken_back_and_its_digest_not_held(blocked, name):
    assert blocked.image(name).endswith(f"@{blocked.digests[name]}")
    status = blocked.updates[name]["status"]
    assert not status.get("quarantine")
    assert [entry["outcome"] for entry in status["history"]] == ["rolled"]
    assert not [event for event in blocked.events if event["reason"] == "RolledBack"]


@pytest.mark.parametrize("name", REASONS)
def test_once_nothing_is_in_the_way_the_roll_gets_on(blocked, name):
    update = blocked.freed[name]
    assert verdict_of(update) == "current/digest_equal"
    assert update["status"]["images"][0]["running"][0]["digest"] == blocked.digests[name]
    conditions = {condition["type"]: condition["status"] for condition in update["status"]["conditions"]}
    assert conditions["RolloutBlocked"] == "False"

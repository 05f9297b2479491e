# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of an Update: flags, conditions, what counts as news."""

from __future__ import annotations

import json

import jsonschema
import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import status
from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Verdict
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NOW,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    pod_of,
    running,
    update,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import status_schema

LATER = "2026-03-02T00:00:00Z"
CURRENT = Verdict("current", "digest_equal", "the Pods run it")
UNKNOWN = Verdict("unknown", "not_found", "no such tag")
STALE = Verdict("stale", "digest_differs", "differs", I2)
HELD = Verdict("stale", "suspended", "suspended", I2)
ROLLING = Verdict("stale", "rollout_in_progress", "on its way", I2)
WAITING = Verdict("stale", "rollout_in_progress", "another rollout comes first", I2)


def at(digest):
    return f"{REPOSITORY}@{digest}"


def judged(*verdicts):
    """Containers of as many workloads, with these verdicts."""
    images = [at(I2) if verdict is ROLLING else IMAGE for verdict in verdicts]
    found = [running(at(I1), image=image, name=f"w{number}") for number, image in enumerate(images)]
    return [({**item, "published": I2}, verdict) for item, verdict in zip(found, verdicts, strict=True)]


def rolls(pairs):
    return [
        {"workload": c["workload"], "container": c["container"], "from": IMAGE, "to": at(I2)}
        for c, verdict in pairs
        if verdict.rolls
    ]


def following(*verdicts, before=None, rolled=None, now=NOW):
    pairs = judged(*verdicts)
    found = status.following(update(status=before), Pass(pairs, rolls(pairs) if rolled is None else rolled), now)
    jsonschema.Draft202012Validator(status_schema()).validate({**found, "lastCheckTime": now})
    return found


def flags(*verdicts, **more):
    found = following(*verdicts, **more)
    return found["check_id"], found["update"]


NEVER, OPEN, DONE = (False, False), (True, False), (True, True)


@pytest.mark.parametrize("before", [NEVER, OPEN, DONE])
@pytest.mark.parametrize(
    ("verdicts", "after"),
    [
        ((HELD,), {NEVER: OPEN, OPEN: OPEN, DONE: OPEN}),
        ((STALE,), {NEVER: DONE, OPEN: DONE, DONE: DONE}),
        ((STALE, HELD), {NEVER: OPEN, OPEN: OPEN, DONE: OPEN}),
        ((CURRENT,), {NEVER: NEVER, OPEN: DONE, DONE: DONE}),
        ((ROLLING,), {NEVER: NEVER, OPEN: OPEN, DONE: DONE}),
        ((WAITING,), {NEVER: OPEN, OPEN: OPEN, DONE: OPEN}),
        ((STALE, WAITING), {NEVER: OPEN, OPEN: OPEN, DONE: OPEN}),
        ((UNKNOWN,), {NEVER: NEVER, OPEN: OPEN, DONE: DONE}),
        ((CURRENT, UNKNOWN), {NEVER: NEVER, OPEN: OPEN, DONE: DONE}),
        ((), {NEVER: NEVER, OPEN: OPEN, DONE: DONE}),
    ],
)
def test_the_flags(before, verdicts, after):
    assert flags(*verdicts, before={"check_id": before[0], "update": before[1]}) == after[before]


def test_a_roll_that_failed_leaves_the_difference_open():
    assert flags(STALE, rolled=[]) == OPEN
    pairs = judged(STALE, STALE)
    assert flags(STALE, STALE, rolled=rolls(pairs)[:1]) == OPEN


def test_a_roll_of_an_earlier_pass_does_not_hide_one_that_fails_now():
    owner = workload(name="killed", containers=[container(image=at(I2))])
    owner["metadata"]["annotations"] = annotation(app=followed(I2, by="update-sample"))
    one, between = pod_of(owner, at(I1))
    unrecorded = (inspect(owner, one, *between)[0], ROLLING)
    found = status.following(update(), Pass([unrecorded, *judged(STALE)]), NOW)
    assert (found["check_id"], found["update"]) == OPEN
    assert found["lastRoll"]["workload"] == "Deployment/killed"


def test_rolls_from_before_the_update_are_not_its_own():
    owner = workload(
        containers=[container(image=at(I2))],
        annotations=annotation(app=followed(I2, at="2025-01-01T00:00:00Z", by="update-sample")),
    )
    one, between = pod_of(owner, at(I2))
    found = status.following(update(), Pass([(inspect(owner, one, *between)[0], CURRENT)]), NOW)
    assert "lastRoll" not in found
    assert (found["check_id"], found["history"]) == (False, [])


def test_the_three_fields_as_first_published():
    found = following(CURRENT, HELD)
    assert (found["run_name"], found["run_id"], found["registory_id"]) == (IMAGE, at(I1), I2)


def test_the_three_fields_are_those_of_the_first_followed_container():
    pinned = running(at(I2), image=at(I2), name="pinned")
    pairs = [({**pinned, "published": None}, Verdict("current", "pinned", "")), *judged(CURRENT)]
    assert status.following(update(), Pass(pairs), NOW)["run_id"] == at(I1)
    assert status.following(update(), Pass(pairs[:1]), NOW)["run_id"] == at(I2)


def test_without_a_workload_the_status_is_about_none():
    found = following()
    assert found["counts"] == {"current": 0, "stale": 0, "unknown": 0}
    assert "run_name" not in found
    assert conditions(found)["UpToDate"][:2] == ("Unknown", "NoWorkload")


def conditions(found):
    return {x["type"]: (x["status"], x["reason"], x["message"]) for x in found["conditions"]}


@pytest.mark.parametrize(
    ("verdicts", "up_to_date", "rolling", "blocked", "reachable"),
    [
        ((CURRENT,), "True", "False", "False", "True"),
        ((CURRENT, UNKNOWN), "Unknown", "False", "False", "True"),
        ((STALE, UNKNOWN), "False", "True", "False", "True"),
        ((ROLLING,), "False", "True", "False", "True"),
        ((HELD,), "False", "False", "True", "True"),
        ((STALE, HELD), "False", "True", "True", "True"),
        ((Verdict("unknown", "unreachable", ""),), "Unknown", "False", "False", "False"),
        ((Verdict("unknown", "tls_error", ""),), "Unknown", "False", "False", "False"),
        ((Verdict("unknown", "rate_limited", ""),), "Unknown", "False", "False", "False"),
    ],
)
def test_the_conditions(verdicts, up_to_date, rolling, blocked, reachable):
    found = {kind: value[0] for kind, value in conditions(following(*verdicts)).items()}
    assert found == {
        "UpToDate": up_to_date,
        "Rolling": rolling,
        "RolloutBlocked": blocked,
        "RegistryReachable": reachable,
        "RolloutDidNotTakeEffect": "False",
        "RunningDigestGone": "False",
    }


def test_a_refused_roll_is_blocked_and_not_rolling():
    found = conditions(following(STALE, rolled=[]))
    assert found["Rolling"][0] == "False"
    assert found["RolloutBlocked"][0] == "True"
    assert "Deployment/w0 app (digest_differs)" in found["RolloutBlocked"][2]


def test_a_condition_names_at_most_five():
    message = conditions(following(*[HELD] * 7))["RolloutBlocked"][2]
    assert message.count("Deployment/") == 5
    assert message.endswith("and 2 more")


def test_times_of_conditions_are_kept_until_their_status_changes():
    before = following(CURRENT)
    after = following(CURRENT, before=before, now=LATER)
    assert after["conditions"] == before["conditions"]
    changed = {x["type"]: x["lastTransitionTime"] for x in following(HELD, before=before, now=LATER)["conditions"]}
    assert {kind for kind, time in changed.items() if time == LATER} == {"UpToDate", "RolloutBlocked"}


@pytest.mark.parametrize("verdicts", [(CURRENT,), (HELD, UNKNOWN), (ROLLING,), ()])
def test_the_same_again_is_no_news(verdicts):
    before = following(*verdicts)
    assert status.is_news({}, before)
    assert not status.is_news(before, following(*verdicts, before=before, now=LATER))


def test_what_the_operator_makes_of_the_conditions_is_no_news():
    before = following(CURRENT)
    rewritten = [{**x, "lastTransitionTime": LATER} for x in reversed(before["conditions"])]
    theirs = {"type": "Running", "status": "True", "reason": "Successful", "ansibleResult": {"ok": 1}}
    seen = {**before, "lastCheckTime": LATER, "conditions": [theirs, *rewritten]}
    assert not status.is_news(seen, following(CURRENT, before=seen, now=LATER))


def test_a_message_alone_is_no_news():
    def limited(seconds):
        return Verdict("unknown", "rate_limited", f"asks to wait {seconds} s")

    before = following(limited(30))
    assert not status.is_news(before, following(limited(29), before=before))


@pytest.mark.parametrize("verdict", [UNKNOWN, HELD, Verdict("current", "platform_equal", ""), STALE])
def test_another_verdict_or_reason_is_news(verdict):
    before = following(CURRENT)
    assert status.is_news(before, following(verdict, before=before))


def test_a_new_generation_is_news():
    resource = update()
    before = status.following(resource, Pass(judged(CURRENT)), NOW)
    resource["metadata"]["generation"] = 2
    after = status.following({**resource, "status": before}, Pass(judged(CURRENT)), NOW)
    assert after["observedGeneration"] == 2
    assert status.is_news(before, after)


@pytest.mark.parametrize(
    ("verdicts", "settled"),
    [((CURRENT,), True), ((CURRENT, UNKNOWN), False), ((HELD,), False), ((ROLLING,), False), ((), False)],
)
def test_only_where_all_is_current_a_work_is_done(verdicts, settled):
    assert status.is_settled(judged(*verdicts), []) is settled
    assert not status.is_settled(judged(CURRENT), [{"container": "app"}])


@pytest.mark.parametrize(
    ("most", "message", "kept", "told"),
    [(1500, "x" * 200, 1500, True), (1500, "x" * 1024, 1500, False), (4000, "x", 400, False)],
)
def test_the_status_of_very_many_containers_fits_into_etcd(most, message, kept, told):
    container = judged(UNKNOWN)[0][0]
    verdicts = [Verdict("unknown" if number % 10 == 0 else "current", "x", message) for number in range(most)]
    pairs = [
        ({**container, "workload": {**container["workload"], "name": f"workload-{number:05}"}}, verdict)
        for number, verdict in enumerate(verdicts)
    ]
    found = status.following(update(), Pass(pairs), NOW)
    assert len(json.dumps(found)) < 1.2e6
    assert sum(found["counts"].values()) == most
    assert (len(found["images"]), "message" in found["images"][0]) == (kept, told)
    assert len([image for image in found["images"] if image["verdict"] == "unknown"]) == most / 10
    assert not status.is_news(found, status.following(update(status=found), Pass(pairs), LATER))


def test_not_even_what_is_held_makes_a_status_too_large():
    container = judged(UNKNOWN)[0][0]
    found = status.following(update(), Pass([(container, UNKNOWN)] * 5000), NOW)
    assert 1000 < len(found["images"]) < 5000
    assert len(json.dumps(found)) < 1.2e6


def test_long_messages_are_cut():
    found = following(Verdict("unknown", "not_found", "x" * 5000))
    assert len(found["images"][0]["message"]) == 1024


def test_the_last_known_digest_is_kept_and_since_when_it_is_old():
    before = following(CURRENT)
    silent = Verdict("unknown", "unreachable", "no answer")
    pairs = [({**container, "published": None}, silent) for container, _verdict in judged(silent)]
    after = status.following(update(status=before), Pass(pairs), LATER)
    assert after["registory_id"] == before["registory_id"] == I2
    assert [image["published"] for image in after["images"]] == [I2]
    condition = next(x for x in after["conditions"] if x["type"] == "RegistryReachable")
    assert (condition["status"], condition["lastTransitionTime"]) == ("False", LATER)
    later = status.following(update(status=after), Pass(pairs), "2026-03-03T00:00:00Z")
    assert not status.is_news(after, later)
    assert later["images"][0]["published"] == I2

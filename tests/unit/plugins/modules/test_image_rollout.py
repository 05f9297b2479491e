# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""image_rollout takes what the other modules return, as lists or as texts."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import handover
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import execution, inputs
from ansible_collections.kubesteward.core.plugins.modules import image_rollout

GIVEN = {
    "namespace": "shop",
    "running": [{"container": "web"}],
    "published": [{"image": "a"}],
    "update_resource": {"kind": "Update"},
    "dry_run": False,
}


def test_texts_are_what_they_stand_for():
    handed = ("running", "published", "update_resource")
    texts = {key: handover.write(value) if key in handed else value for key, value in GIVEN.items()}
    assert image_rollout.unpacked(texts) == image_rollout.unpacked(GIVEN) == GIVEN


def test_nothing_is_nothing():
    empty = {**GIVEN, "running": handover.write([]), "published": None, "update_resource": None}
    assert image_rollout.unpacked(empty) == {**GIVEN, "running": [], "published": [], "update_resource": None}


@pytest.mark.parametrize("seconds", [-1, 0, 86401])
def test_no_time_at_all_and_more_than_a_day_are_no_verification(seconds):
    given = {"namespace": "shop", "running": [], "published": [], "verification_seconds": seconds}
    with pytest.raises(
        StewardError, match=f"verification_seconds is {seconds}; give a number of seconds from 1 to 86400"
    ):
        image_rollout.run(given, None, check_mode=False, now="2026-03-01T10:00:00Z")


def test_a_minute_is_the_default_and_a_resource_has_no_say_in_it():
    assert image_rollout.argument_spec()["verification_seconds"] == {"type": "int", "default": 60}
    said = {"verificationSeconds": 1, "verification_seconds": 1, "rollback": {"verificationSeconds": 1}}
    policy = execution.policy_of({"dry_run": False, "verification_seconds": 7}, said)
    assert policy.verification == 7


@pytest.mark.parametrize("option", ["running", "published", "update_resource"])
def test_something_else_is_refused_by_name(option):
    with pytest.raises(StewardError, match=f"The option {option} must be"):
        image_rollout.unpacked({**GIVEN, option: "web"})


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"stable_for_seconds": -1}, "stable_for_seconds is -1"),
        ({"stable_for_seconds": 60}, "needs an Update"),
        ({"max_concurrent": 0}, "at least 1"),
        ({"platforms": ["linux"]}, "os/arch"),
        ({"platforms": ["linux/amd64", "Linux/ARM"]}, "'Linux/ARM'"),
    ],
)
def test_options_that_an_update_would_not_be_stored_with_are_refused(given, part):
    with pytest.raises(StewardError) as caught:
        inputs.check_policy(given, has_memory=False)
    assert part in str(caught.value)


@pytest.mark.parametrize("given", [{}, {"max_concurrent": 1, "platforms": ["linux/arm/v7"], "stable_for_seconds": 0}])
def test_options_that_make_sense_are_taken(given):
    inputs.check_policy(given, has_memory=False)
    inputs.check_policy({**given, "stable_for_seconds": 60}, has_memory=True)


@pytest.mark.parametrize(
    ("option", "key", "field", "given", "said"),
    [
        ("suspend", "suspend", "suspended", False, True),
        ("suspend", "suspend", "suspended", True, False),
        ("stable_for_seconds", "stableForSeconds", "stable_for", 0, 300),
        ("max_concurrent", "maxConcurrent", "max_concurrent", 1, 7),
    ],
)
def test_what_an_option_says_counts_before_what_the_update_says(option, key, field, given, said):
    params = {"dry_run": False, "rollback": None, option: given}
    assert getattr(execution.policy_of(params, {key: said}), field) == given
    assert getattr(execution.policy_of({**params, option: None}, {key: said}), field) == said


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"wait_timeout": 0, "wait_sleep": 5}, "wait_timeout is 0"),
        ({"wait_timeout": 60, "wait_sleep": -1}, "wait_sleep is -1"),
        ({"wait_timeout": 86401, "wait_sleep": 5}, "wait_timeout is 86401"),
    ],
)
def test_a_wait_has_bounds(given, problem):
    with pytest.raises(StewardError, match=problem):
        inputs.check_wait(given)

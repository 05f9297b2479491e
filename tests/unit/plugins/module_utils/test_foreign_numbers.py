# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers and times that others write, in annotations, status, answers and files, end no pass."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import follow, status
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import contest, quantity
from ansible_collections.kubesteward.core.plugins.module_utils.registry import challenge, waits
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import I1, I2, NOW
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    at,
    cluster_of,
    run,
)

#: the longest integer that Python reads: one more has too many digits to be written
LONGEST = "9" * 4300
#: an integer that is too large for a float
LARGE = "1" + "0" * 400


@pytest.mark.parametrize("text", ["x", "1e3", "9" * 5000, "-1", "", " 2", "\N{ARABIC-INDIC DIGIT TWO}", "2_0"])
def test_a_replica_set_whose_revision_no_controller_wrote_is_left_out(text):
    owner = builders.workload()
    own, between = builders.pod_of(owner, at(I1))
    forged = builders.revision(owner, 2)
    forged["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": text}
    stray = builders.pod(forged, at(I2))
    (found,) = builders.inspect(owner, own, *between, forged, stray)
    assert [item["digest"] for item in found["running"]] == [I1]


def test_a_replica_set_without_a_revision_yet_is_not_the_newest():
    owner = builders.workload()
    own, between = builders.pod_of(owner, at(I1))
    made = builders.revision(owner, 2)
    made["metadata"]["annotations"] = {}
    (found,) = builders.inspect(owner, own, *between, made, builders.pod(made, at(I2)))
    assert ([item["digest"] for item in found["running"]], found["excluded"]) == ([I1], {"old_revision": 1})


@pytest.mark.parametrize("text", ["2026-02-28T10:00:00+01:00", "2026-02-28T10:00:00.5Z", "yesterday", "0" * 5000])
def test_a_first_sight_that_is_no_time_of_ours_begins_anew(text):
    seen = {"workload": "Deployment/a", "container": "app", "digest": I2, "firstSeen": text}
    (container,) = builders.inspect(builders.workload(name="a"))
    assert status.seen_for({"pending": [seen]}, container, I2, NOW) == 0
    cluster = cluster_of("a", stableForSeconds=60)
    cluster.edit("Update", "update-sample", lambda x: x["status"].update(pending=[seen]))
    done = run(cluster, PUSHED)
    assert [verdict.reason for _container, verdict in done.judged] == ["unstable"]
    assert [entry["firstSeen"] for entry in done.status["pending"]] == [NOW]


@pytest.mark.parametrize("number", [LONGEST, f"-{LONGEST}", "true"])
def test_a_count_of_answers_can_be_written_again(number):
    entry = follow.of_dict({**builders.followed(I1), "answered": json.loads(number)})
    more = dataclasses.replace(entry, answered=entry.answered + 1)
    assert 1 <= json.loads(follow.render({"app": more}))["app"]["answered"] <= follow.MOST_ANSWERED + 1


@pytest.mark.parametrize("number", [LONGEST, f"-{LONGEST}"])
def test_a_count_of_repairs_that_nobody_made_is_forgotten(number):
    text = f'{{"Quota/a hard": {{"manager": "m", "times": {number}, "at": "{NOW}"}}}}'
    found = contest.read({"metadata": {"annotations": {contest.REPAIRS: text}}}, NOW)
    found.note("Quota/a hard", "m")
    assert json.loads(found.render())["Quota/a hard"]["times"] == 1


@pytest.mark.parametrize(
    ("number", "lifetime"),
    [(LARGE, challenge.MAX_LIFETIME), (f"-{LARGE}", challenge.DEFAULT_LIFETIME), ("NaN", challenge.DEFAULT_LIFETIME)],
)
def test_a_token_may_say_that_it_lives_for_ever(number, lifetime):
    token = challenge.read_token(f'{{"token": "a", "expires_in": {number}}}'.encode())
    assert token is not None
    assert token.lifetime == lifetime
    assert isinstance(token.lifetime, float)


def test_a_record_of_waits_with_a_number_that_is_none_counts_for_nothing():
    assert waits._decode(f'{{"slow": {{"a": {LARGE}}}, "spent": []}}'.encode()) == waits.Record()


@pytest.mark.parametrize("text", [LARGE, f"{LARGE}1Ki", LONGEST * 2])
def test_half_of_more_than_can_be_stored_is_refused(text):
    with pytest.raises(StewardError, match="more than the API server can store"):
        quantity.half(text)

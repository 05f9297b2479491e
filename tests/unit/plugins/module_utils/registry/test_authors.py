# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look-ups of several authors in one call: what one of them waits for takes nothing from the others."""

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.registry import batch
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Endpoint
from ansible_collections.kubesteward.core.plugins.module_utils.registry.patience import Patience, Record
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import parse
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Place, Query
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    look_up,
    manifest,
    serving,
)

GOOD = content(tags={f"t{n}": manifest(f"c{n}") for n in range(40)})


def job(image, *authors):
    reference = parse(image)
    place = Place(Endpoint(reference.registry, reference.repository))
    return batch.Job(Query(reference, (place,)), Wanted(), authors)


def slow(_asked):
    time.sleep(0.4)
    return Reply(503)


def test_the_many_of_one_come_in_turn_with_the_few_of_another():
    asked, lock = [], threading.Lock()

    def resolve(query, _wanted, _trace):
        with lock:
            asked.append(query.reference.repository)
        return Found("d", "")

    jobs = [job(f"r.example/many:{n}", "many") for n in range(20)] + [job(f"r.example/few:{n}", "few") for n in "ab"]
    batch.run(jobs, resolve, 1, 1.0)
    assert asked[:4] == ["many", "few", "many", "few"]


def test_an_author_who_has_spent_all_time_is_given_up_alone():
    """Both ask a registry that never answers; one of them has waited for such in the last minutes."""
    release = threading.Event()

    def resolve(_query, _wanted, _trace):
        release.wait(10)
        return Found("d", "")

    jobs = [job(f"{author}.example/app:{n}", author) for author in ("spent", "fresh") for n in "ab"]
    record = Record(spent=((time.time(), 1000.0),))
    patience = {"spent": Patience(0.3, 4, record), "fresh": Patience(0.3, 4, Record())}
    for author in ("spent", "fresh"):
        patience[author].ended("before.example", 0.3, answered=False)
    batch.run(jobs, resolve, 2, 0.3, None, patience)
    release.set()
    why = {
        author: {str(one.error).rpartition(": ")[2] for one in jobs if one.authors == (author,)} for author in patience
    }
    assert any("took all the time" in text for text in why["spent"])
    assert not any("took all the time" in text for text in why["fresh"])


def test_each_author_has_a_record_of_its_own(tmp_path):
    given = {"timeout": 0.5, "cache_dir": str(tmp_path)}
    with serving(slow) as late, serving(GOOD) as server:
        images = [
            {"image": f"{late.host}/app:t1", "on_behalf_of": "shop"},
            {"image": f"{server.host}/app:t1", "on_behalf_of": "ops"},
        ]
        first = look_up(images=images, **given)["images"]
        again = look_up(images=[{**images[0]}], **given)["images"][0]
        others = look_up(images=[{**images[0], "on_behalf_of": "ops"}], **given)["images"][0]
    assert [entry["state"] for entry in first] == ["unknown", "found"]
    assert "slow a short while ago" in again["msg"]
    assert "slow a short while ago" not in others["msg"]


def test_one_reference_of_two_authors_is_asked_for_once():
    with serving(GOOD) as server:
        images = [{"image": f"{server.host}/app:t1", "on_behalf_of": author} for author in ("shop", "ops")]
        result = look_up(images=images)
    assert result["requests_made"] == 1
    assert [entry["state"] for entry in result["images"]] == ["found", "found"]


def test_what_another_one_asks_for_too_is_asked_though_one_has_spent_all_time(tmp_path):
    """In an earlier call the first waited for a registry that is slow, and so for all the time that it gets."""
    given = {"timeout": 0.3, "cache_dir": str(tmp_path)}
    with serving(slow) as late, serving(GOOD) as server:
        for number in range(12):
            look_up(images=[{"image": f"{late.host}/app:t{number}", "on_behalf_of": "spent"}], **given)
        alone = [{"image": f"{late.host}/app:t{number}", "on_behalf_of": "spent"} for number in range(30)]
        shared = {"image": f"{server.host}/app:t1", "on_behalf_of": ["spent", "fresh"]}
        *_others, found = look_up(images=[*alone, shared], concurrency=1, **given)["images"]
    assert found["state"] == "found"


def test_a_registry_that_is_slow_for_one_alone_gets_the_usual_time_for_what_both_ask():
    patience = {"one": Patience(10.0, 1, Record({"r.example": time.time()})), "other": Patience(10.0, 1, Record())}
    asked = job("r.example/app:t", "one", "other")
    seen = []

    def resolve(_query, _wanted, trace):
        seen.append((trace.seconds, trace.reduced))
        return Found("d", "")

    batch.run([asked], resolve, 1, 10.0, None, patience)
    assert seen == [(20.0, False)]


@pytest.mark.parametrize("author", [3, [3], {"namespace": "shop"}])
def test_an_author_that_is_no_text_is_refused_in_its_entry(author):
    with serving(GOOD) as server:
        image = f"{server.host}/app:t1"
        bad, good = look_up(images=[{"image": image, "on_behalf_of": author}, image])["images"]
    assert (bad["reason"], good["state"]) == ("invalid_reference", "found")
    assert "'on_behalf_of'" in bad["msg"]


def test_what_an_author_waited_for_is_never_more_than_its_own_look_ups_took():
    clock = [0.0]
    patience = Patience(10.0, 8, Record(), clock=lambda: clock[0], now=lambda: 1000.0)
    patience.ended("r.example", 9.0, answered=True)
    clock[0] = 90.0
    assert patience.record().spent == ((1000.0, 9.0),)

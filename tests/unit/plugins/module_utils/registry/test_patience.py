# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One author's slow registries do not take the time that belongs to all."""

from __future__ import annotations

import concurrent.futures
import json
import os
import stat
import threading
import time

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.registry import waits
from ansible_collections.kubesteward.core.plugins.module_utils.registry.patience import MEMORY, Patience, Record
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    look_up,
    manifest,
    serving,
)

GOOD = content(tags={f"t{n}": manifest(f"c{n}") for n in range(40)})


def redirects_then_fails(seconds):
    """A registry that answers each request late: five redirects, then 503."""

    def answer(asked):
        time.sleep(seconds)
        hop = int(asked.query.get("hop", ["0"])[0])
        return Reply(302, {"Location": f"{asked.path}?hop={hop + 1}"}) if hop < 5 else Reply(503)

    return answer


def asks_for_a_token_late(seconds):
    def answer(asked):
        time.sleep(seconds)
        if asked.path == "/token":
            return Reply(503)
        realm = f'Bearer realm="http://{asked.headers["host"]}/token"'
        return Reply(401, {"WWW-Authenticate": realm})

    return answer


def pauses(seconds):
    def answer(asked):
        time.sleep(seconds)
        return Reply(503, {"Retry-After": "1"})

    return answer


def lists_indexes_without_end(seconds):
    """Each request is answered in time, with one more index to read."""

    def answer(asked):
        time.sleep(seconds)
        return GOOD(asked) if asked.method == "HEAD" else Reply(301, {"Location": f"{asked.path}?again={time.time()}"})

    return answer


@pytest.mark.parametrize(
    "answer",
    [redirects_then_fails, asks_for_a_token_late, pauses, lists_indexes_without_end],
    ids=lambda it: it.__name__,
)
def test_redirects_retries_pauses_and_tokens_of_one_look_up_share_twice_the_timeout(answer):
    with serving(answer(0.3)) as server:
        entry = {"image": f"{server.host}/app:t1", "resolve": ["children"]}
        found = look_up(images=[entry], timeout=0.5, deadline=30)["images"][0]
    assert (found["reason"], found["elapsed"] < 1.7) == ("unreachable", True)
    assert "1 s that one look-up gets" in found["msg"]


def test_a_slow_mirror_leaves_the_registry_its_own_time():
    with serving(redirects_then_fails(0.3)) as slow, serving(GOOD) as server:
        registries = [{"prefix": server.host, "mirror": [{"location": slow.host}]}]
        found = look_up(images=[f"{server.host}/app:t1"], registries=registries, timeout=0.5)["images"][0]
    assert found["state"] == "found"


def test_many_images_of_a_slow_registry_take_little_longer_than_one():
    with serving(redirects_then_fails(0.3)) as server:
        images = [f"{server.host}/app:t{n}" for n in range(60)]
        result = look_up(images=images, timeout=0.5, deadline=60, concurrency=4)
    assert result["elapsed"] < 3
    texts = [entry["msg"] for entry in result["images"]]
    assert sum("one look-up gets" in text for text in texts) < 15
    assert "was not asked" in texts[-1]


def test_a_registry_that_failed_once_and_answers_again_is_asked_for_everything():
    count, lock = [0], threading.Lock()

    def slow_at_first(asked):
        with lock:
            count[0] += 1
            late = count[0] <= 2
        if late:
            time.sleep(1.4)
        return GOOD(asked)

    with serving(slow_at_first) as server:
        found = look_up(images=[f"{server.host}/app:t{n}" for n in range(30)], timeout=0.5, concurrency=2)["images"]
    assert [entry["state"] for entry in found].count("found") == 28


def test_the_next_pass_of_the_same_author_gives_a_slow_registry_up_early_and_others_do_not(tmp_path):
    given = {"timeout": 0.5, "cache_dir": str(tmp_path)}
    with serving(redirects_then_fails(0.3)) as server:
        images = [f"{server.host}/app:t1"]
        first = look_up(images=images, on_behalf_of="shop", **given)
        again = look_up(images=images, on_behalf_of="shop", **given)
        other = look_up(images=images, on_behalf_of="ops", **given)
    assert first["elapsed"] > 0.8
    assert again["elapsed"] < 0.5
    assert "slow a short while ago" in again["images"][0]["msg"]
    assert other["elapsed"] > 0.8


@pytest.mark.parametrize("status", [404, 401, 403, 429, 200])
def test_a_slow_refusal_is_remembered_like_no_answer(tmp_path, status):
    given = {"timeout": 0.5, "cache_dir": str(tmp_path), "on_behalf_of": "shop"}

    def answer(asked):
        time.sleep(0.4)
        return Reply(status, {"Retry-After": "0"}, b"<html>")

    with serving(answer) as server:
        first = look_up(images=[f"{server.host}/app:t1"], **given)
        again = look_up(images=[f"{server.host}/app:t1"], **given)
    assert {result["images"][0]["state"] for result in (first, again)} == {"unknown"}
    # one answer in time is one, whatever it says
    assert first["elapsed"] < 0.5 or again["elapsed"] < 0.4


def test_a_registry_that_was_slow_and_answers_again_is_forgotten(tmp_path):
    given = {"timeout": 0.5, "cache_dir": str(tmp_path), "on_behalf_of": "shop"}
    slow = [True]
    with serving(lambda asked: redirects_then_fails(0.3)(asked) if slow[0] else GOOD(asked)) as server:
        look_up(images=[f"{server.host}/app:t1"], **given)
        slow[0] = False
        assert look_up(images=[f"{server.host}/app:t1"], **given)["images"][0]["state"] == "found"
        kept = waits.Waits(str(tmp_path), "shop").read()
    assert kept.slow == {}


def test_a_pass_that_waits_for_nobody_writes_nothing(tmp_path):
    with serving(GOOD) as server:
        look_up(images=[f"{server.host}/app:t1"], on_behalf_of="shop", cache_dir=str(tmp_path))
    assert list((tmp_path / "waits").iterdir()) == []


def test_the_file_is_private_and_has_no_name_of_the_author(tmp_path):
    kept = waits.Waits(str(tmp_path), "../../shop")
    kept.write(Record(), Record({"r.example": time.time()}))
    (path,) = (tmp_path / "waits").iterdir()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "shop" not in path.name
    assert kept.read().slow.keys() == {"r.example"}


def test_what_two_calls_at_once_found_out_is_kept_of_both(tmp_path):
    now = time.time()
    kept = waits.Waits(str(tmp_path), "shop")
    before = Record({"mended.example": now - 9}, ((now - 9, 5.0),))
    kept.write(Record(), before)
    kept.write(before, Record({"mended.example": now - 9, "a.example": now}, (*before.spent, (now, 20.0))))
    kept.write(before, Record({"b.example": now}, (*before.spent, (now, 30.0))))
    found = kept.read()
    assert found.slow.keys() == {"a.example", "b.example"}
    assert [seconds for _when, seconds in found.spent] == [5.0, 20.0, 30.0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"slow": 5, "spent": []}',
        b'{"slow": {"a": "x"}, "spent": []}',
        b'{"slow": {"a": NaN}, "spent": []}',
        b'{"slow": {"a": 1e999}, "spent": []}',
        b'{"slow": {}, "spent": [[1]]}',
        b'{"slow": {}, "spent": [[1, -5]]}',
        b"[" * 50000,
    ],
)
def test_a_damaged_file_is_no_record(tmp_path, content):
    kept = waits.Waits(str(tmp_path), "shop")
    kept.write(Record(), Record({"r.example": time.time()}))
    (path,) = (tmp_path / "waits").iterdir()
    path.write_bytes(content)
    assert kept.read() == Record()


def test_a_folder_that_others_can_write_to_is_not_believed(tmp_path):
    kept = waits.Waits(str(tmp_path), "shop")
    kept.write(Record(), Record({"r.example": time.time()}))
    os.chmod(tmp_path / "waits", 0o777)
    assert kept.read() == Record()


def test_the_folder_of_the_cache_stays_usable_whatever_the_umask_is(tmp_path):
    folder, before = tmp_path / "kubesteward" / "manifests", os.umask(0)
    try:
        waits.Waits(str(folder), "shop").read()
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "waits")] == [0o700, 0o700]


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "waits").write_text("")
    kept = waits.Waits(str(tmp_path), "shop")
    kept.write(Record(), Record({"r.example": 1.0}))
    assert kept.read() == Record()


def test_files_of_authors_that_are_gone_are_removed(tmp_path):
    waits.Waits(str(tmp_path), "old").write(Record(), Record({"r.example": 1.0}))
    (old,) = (tmp_path / "waits").iterdir()
    os.utime(old, (1, 1))
    waits.Waits(str(tmp_path), "new").write(Record(), Record({"r.example": 1.0}))
    assert old not in set((tmp_path / "waits").iterdir())


def test_what_is_kept_of_an_author_with_many_registries_is_bounded(tmp_path):
    kept = waits.Waits(str(tmp_path), "shop")
    kept.write(Record(), Record({f"r{n}.example": float(n) for n in range(9999)}, ((1.0, 1.0),) * 9999))
    (path,) = (tmp_path / "waits").iterdir()
    assert len(json.loads(path.read_bytes())["slow"]) == waits.MAX_REGISTRIES
    assert path.stat().st_size < waits.MAX_FILE


@pytest.mark.parametrize(
    ("record", "seconds"),
    [
        (None, (20.0, False)),
        (Record(), (20.0, False)),
        (Record({"r.example": 1000.0}), (2.0, True)),
        (Record({"r.example": 1000.0 - MEMORY}), (20.0, False)),
        (Record({"r.example": 2000.0}), (20.0, False)),
        (Record({"other.example": 1000.0}), (20.0, False)),
    ],
    ids=["no author", "nothing known", "slow", "slow long ago", "slow in the future", "another one slow"],
)
def test_how_long_a_look_up_may_take(record, seconds):
    assert Patience(10.0, 8, record, now=lambda: 1000.0).seconds("r.example") == seconds


@pytest.mark.parametrize(
    ("ended", "seconds"),
    [
        ([(20.0, False)], (2.0, True)),
        ([(0.1, True)] + [(20.0, False)] * 7, (20.0, False)),
        ([(0.1, True)] + [(20.0, False)] * 8, (2.0, True)),
        ([(20.0, False)] * 11, None),
        ([(0.1, False)] * 50, (20.0, False)),
        ([(9.0, True)] * 50, (20.0, False)),
        ([(12.0, True)] * 50, (20.0, False)),
        ([(20.0, False)] * 10 + [(0.1, True)], (20.0, False)),
    ],
    ids=[
        "first",
        "some",
        "as many as at once",
        "more",
        "failing fast",
        "long answers",
        "longer ones",
        "one that answers",
    ],
)
def test_what_look_ups_took_decides_about_the_next(ended, seconds):
    patience = Patience(10.0, 8)
    for elapsed, answered in ended:
        patience.ended("r.example", elapsed, answered)
    assert patience.seconds("r.example") == seconds
    assert patience.seconds("other.example") == (20.0, False)


@pytest.mark.parametrize(
    ("spent", "ended", "at", "over"),
    [
        (0.0, [9.0] * 20, 59.0, False),
        (0.0, [9.0] * 20, 61.0, True),
        (55.0, [9.0] * 20, 9.0, False),
        (55.0, [9.0] * 20, 11.0, True),
        (0.0, [0.5] * 900, 110.0, False),
        (0.0, [], 110.0, False),
    ],
    ids=["within", "over in one call", "the first timeout", "over with those before", "many quick ones", "nothing yet"],
)
def test_what_one_author_may_wait_for_registries(spent, ended, at, over):
    clock = [0.0]
    record = Record(spent=((1000.0, spent),) if spent else ())
    patience = Patience(10.0, 8, record, clock=lambda: clock[0], now=lambda: 1000.0)
    for elapsed in ended:
        patience.ended("r.example", elapsed, True)
    clock[0] = at
    assert patience.is_spent() is over
    unlimited = Patience(10.0, 8, None, clock=lambda: clock[0])
    assert not unlimited.is_spent()


def test_an_author_with_many_slow_registries_ends_a_call_early_and_says_so(tmp_path):
    kept = waits.Waits(str(tmp_path), "shop")
    kept.write(Record(), Record(spent=((time.time(), 100.0),)))

    def late(asked):
        time.sleep(0.3)
        return GOOD(asked)

    with serving(late) as server:
        images = [f"{server.host}/app:t{n}" for n in range(40)]
        given = {"timeout": 0.5, "concurrency": 2, "cache_dir": str(tmp_path)}
        result = look_up(images=images, on_behalf_of="shop", **given)
    # all of them would take 6 s
    assert result["elapsed"] < 3
    states = [entry["state"] for entry in result["images"]]
    assert states.count("found") >= 2
    assert "all the time that these look-ups get" in next(e["msg"] for e in result["images"] if e["state"] != "found")


def test_where_time_ends_early_each_call_begins_with_others(tmp_path):
    waits.Waits(str(tmp_path), "shop").write(Record(), Record(spent=((time.time(), 100.0),)))
    with serving(GOOD) as server:
        images = [f"{server.host}/app:t{n}" for n in range(40)]
        result = look_up(images=images, concurrency=1, on_behalf_of="shop", timeout=1.0, cache_dir=str(tmp_path))
        lines = server.lines
    assert [entry["state"] for entry in result["images"]] == ["found"] * 40
    assert lines != sorted(lines, key=lambda line: int(line.rpartition("t")[2]))


def test_twelve_passes_of_one_author_leave_two_workers_to_others(tmp_path):
    """A twentieth of the time that it takes with the defaults: another author's pass begins within two periods."""
    given = {"timeout": 0.5, "deadline": 6.0, "cache_dir": str(tmp_path)}
    with serving(redirects_then_fails(0.3)) as slow, serving(GOOD) as server:
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as workers:
            for _number in range(12):
                workers.submit(look_up, images=[f"{slow.host}/app:t1"], on_behalf_of="shop", **given)
            last = workers.submit(look_up, images=[f"{server.host}/app:t1"], on_behalf_of="ops", **given)
            assert last.result()["images"][0]["state"] == "found"
            waited = time.monotonic() - started
    assert waited < 120 / 20 / 2

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import handover
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import batch
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Endpoint
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import parse
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Place, Query
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    OCI_MANIFEST,
    Reply,
    content,
    look_up,
    manifest,
    serving,
    sha256,
)

GOOD = content(tags={f"t{n}": manifest(f"c{n}") for n in range(45)})


@pytest.fixture
def silent():
    """A host that accepts connections and never says a word."""
    server = socket.create_server(("127.0.0.1", 0), backlog=50)
    yield f"127.0.0.1:{server.getsockname()[1]}"
    server.close()


@pytest.fixture
def deaf():
    """A host to which a connection never comes about: its queue is full, so the kernel drops what arrives."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


def job(image):
    reference = parse(image)
    place = Place(Endpoint(reference.registry, reference.repository))
    return batch.Job(Query(reference, (place,)), Wanted())


@pytest.mark.parametrize("kind", ["silent", "deaf"])
@pytest.mark.parametrize("insecure", [False, True])
@pytest.mark.parametrize(
    ("given", "limit"),
    [({"timeout": 3.0}, 4.0), ({"timeout": 30.0, "deadline": 2.0}, 3.0)],
    ids=["timeout", "deadline"],
)
def test_a_host_that_never_answers_delays_nobody_else(request, kind, insecure, given, limit):
    """The bounds are those that are promised; what is measured does not wait for anything, so load leaves room."""
    host = request.getfixturevalue(kind)
    with serving(GOOD) as server:
        images = [f"{host}/app:d{n}" for n in range(5)] + [f"{server.host}/app:t{n}" for n in range(45)]
        registries = [{"prefix": host, "insecure": insecure}]
        result = look_up(images=images, registries=registries, **given)
    dead, good = result["images"][:5], result["images"][5:]
    assert [entry["reason"] for entry in dead] == ["unreachable"] * 5
    assert [entry["state"] for entry in good] == ["found"] * 45
    assert max(entry["elapsed"] for entry in good) < 2
    assert result["elapsed"] < limit


def test_many_references_on_a_silent_host_end_soon_after_the_first(silent):
    started = time.monotonic()
    found = look_up(images=[f"{silent}/app:d{n}" for n in range(40)], timeout=1.0)
    # eight at a time would take 7 s and more
    assert time.monotonic() - started < 4
    assert {entry["reason"] for entry in found["images"]} == {"unreachable"}


def test_the_deadline_ends_the_call(silent):
    started = time.monotonic()
    found = look_up(images=[f"{silent}/app:d{n}" for n in range(20)], timeout=10.0, deadline=0.5)
    assert time.monotonic() - started < 5
    assert {entry["reason"] for entry in found["images"]} == {"unreachable"}
    assert "deadline" in found["images"][-1]["msg"]


def test_an_answer_that_trickles_is_given_up():
    release = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))

    def trickle():
        connection, _address = server.accept()
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not release.wait(0.1):
            connection.sendall(b"X: y\r\n")
        connection.close()

    thread = threading.Thread(target=trickle, daemon=True)
    thread.start()
    started = time.monotonic()
    found = look_up(images=[f"127.0.0.1:{server.getsockname()[1]}/app:t"], timeout=0.5)
    assert time.monotonic() - started < 1.5
    release.set()
    thread.join()
    server.close()
    assert found["images"][0]["reason"] == "unreachable"


def test_requests_to_one_host_at_a_time_are_bounded():
    under_way, most, lock = [0], [0], threading.Lock()

    def slow(asked):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.02)
        with lock:
            under_way[0] -= 1
        return GOOD(asked)

    with serving(slow) as server:
        look_up(images=[f"{server.host}/app:t{n}" for n in range(30)], concurrency=3)
    assert most[0] == 3


def test_results_keep_the_order_and_one_bad_entry_fails_nobody():
    with serving(lambda asked: Reply(500) if asked.path.endswith("t1") else GOOD(asked)) as server:
        images = [f"{server.host}/app:t0", "UPPER", f"{server.host}/app:t1", 5, f"{server.host}/app:t2"]
        found = look_up(images=images, retries=1)["images"]
    assert [entry["state"] for entry in found] == ["found", "unknown", "unknown", "unknown", "found"]
    assert [entry.get("reason") for entry in found] == [
        None,
        "invalid_reference",
        "unreachable",
        "invalid_reference",
        None,
    ]


def test_look_ups_behind_two_that_take_too_long_are_asked_all_the_same():
    """Headers in time and the rest late: one request took longer than it may."""
    server = socket.create_server(("127.0.0.1", 0), backlog=50)
    good = manifest("c")
    late, lock = [2], threading.Lock()

    def serve(connection):
        with connection, contextlib.suppress(OSError):
            asked = connection.recv(65536)
            with lock:
                late[0] -= 1
                slow = late[0] >= 0
            time.sleep(0.6 if slow else 0.0)
            length, digest = len(good), sha256(good)
            head = f"Content-Type: {OCI_MANIFEST}\r\nDocker-Content-Digest: {digest}\r\nContent-Length: {length}"
            connection.sendall(f"HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\n".encode())
            time.sleep(1.6 if slow else 0.0)
            connection.sendall(b"\r\n" + (b"" if asked.startswith(b"HEAD") else good))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _address = server.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    images = [f"127.0.0.1:{server.getsockname()[1]}/app:t{n}" for n in range(20)]
    found = look_up(images=images, timeout=1.0, concurrency=2)["images"]
    server.close()
    assert [entry["state"] for entry in found] == ["unknown"] * 2 + ["found"] * 18
    assert all("did not answer within 1 s" in entry["msg"] for entry in found[:2])


def test_a_body_that_takes_longer_than_one_request_may_is_late_like_a_header():
    def slowly(asked):
        return Reply(200, {"Content-Type": OCI_MANIFEST}, manifest("c"))

    with serving(slowly) as server:
        handler = server._server.RequestHandlerClass
        original = handler.do_GET

        def slow_get(self):
            real = self.wfile
            self.wfile = Slow(real)
            try:
                original(self)
            finally:
                self.wfile = real

        handler.do_GET = slow_get
        found = look_up(images=[f"{server.host}/app:t"], timeout=0.5)["images"][0]
    assert (found["reason"], found["elapsed"] < 1.5) == ("unreachable", True)
    assert "did not answer within 0.5 s" in found["msg"]


class Slow:
    """Writes a few bytes at a time, each of them well within the time-out."""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        for at in range(0, len(data), 30):
            self.file.write(data[at : at + 30])
            self.file.flush()
            time.sleep(0.2)
        return len(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_no_answer_is_said_only_of_what_was_asked(silent):
    found = look_up(images=[f"{silent}/app:d{n}" for n in range(40)], timeout=0.5, concurrency=4)["images"]
    for entry in found:
        assert ("not asked" in entry["msg"]) == (entry["requests_made"] == 0), entry["msg"]
    assert any(entry["requests_made"] == 0 for entry in found)


def test_more_hosts_than_threads_are_all_asked(monkeypatch):
    monkeypatch.setattr(batch, "MAX_THREADS", 2)
    jobs = [job(f"h{n}.example/app:t") for n in range(20)]
    batch.run(jobs, lambda query, wanted, trace: Found("d", ""), 8, 1.0)
    assert all(item.found for item in jobs)


@pytest.mark.parametrize("allowed", [0, 1, 5])
def test_a_machine_that_starts_no_more_threads_slows_a_call_down_and_ends_none(monkeypatch, allowed):
    alive, lock, start = [0], threading.Lock(), threading.Thread.start

    def limited(self):
        with lock:
            if alive[0] >= allowed:
                raise RuntimeError("can't start new thread")
            alive[0] += 1
        run = self.run

        def counted():
            try:
                run()
            finally:
                with lock:
                    alive[0] -= 1

        self.run = counted
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    jobs = [job(f"h{n}.example/app:{tag}") for n in range(6) for tag in "abc"]
    batch.run(jobs, lambda query, wanted, trace: Found("d", ""), 2, 1.0)
    if allowed:
        assert all(item.found for item in jobs)
    else:
        assert {str(item.error) for item in jobs[:3]} == {"h0.example: no thread could be started for it"}


def test_stuck_threads_of_one_host_fail_what_waits_for_them_only():
    release = threading.Event()

    def resolve(query, wanted, trace):
        if query.reference.domain == "stuck.example":
            release.wait(5)
            raise StewardError("late")
        return Found("d", "")

    jobs = [job(f"stuck.example/app:{n}") for n in range(6)] + [job("r.example/app:t")]
    batch.run(jobs, resolve, 2, 0.1)
    release.set()
    assert jobs[-1].found
    assert all(item.error.reason == "unreachable" for item in jobs[:-1])


def test_nothing_to_do_is_done():
    assert look_up(images=[])["images"] == []


def test_no_thread_is_left_behind():
    before = threading.active_count()
    with serving(GOOD) as server:
        look_up(images=[f"{server.host}/app:t{n}" for n in range(20)])
    end = time.monotonic() + 3
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.02)
    assert threading.active_count() <= before


def test_what_is_handed_on_as_text_is_looked_up_and_returned_the_same():
    with serving(GOOD) as server:
        images = [{"image": f"{server.host}/app:t{n}", "expect": []} for n in range(3)]
        listed = look_up(images=images)["images"]
        text = look_up(images=handover.write(images), as_text=True)["images"]
    assert handover.is_text(text)
    timeless = [[{**entry, "elapsed": 0} for entry in entries] for entries in (listed, handover.read(text))]
    assert timeless[0] == timeless[1]
    assert [entry["state"] for entry in listed] == ["found"] * 3


def test_references_may_still_be_one_line_with_commas_and_nothing_else():
    with serving(GOOD) as server:
        found = look_up(images=f"{server.host}/app:t0,{server.host}/app:t1")["images"]
    assert [entry["state"] for entry in found] == ["found"] * 2
    assert look_up(images="json:[]")["images"] == []
    for wrong in ({"image": "a"}, handover.write({"image": "a"})):
        with pytest.raises(StewardError, match="The option images must be a list"):
            look_up(images=wrong)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters reach the operator once, in turn, and nothing that is wrong with it holds a pass up for long."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import socket
import threading
import time

import pytest
from monitoring.fake_operator import FakeOperator

from ansible_collections.kubesteward.core.plugins.plugin_utils import posting
from ansible_collections.kubesteward.core.plugins.plugin_utils.counters import COUNTERS

KNOWN = {"a_total": "First.", "b_total": "Second."}


@pytest.fixture
def operator():
    with contextlib.closing(FakeOperator()) as server:
        yield server


@contextlib.contextmanager
def odd_server(behave):
    """A server that does `behave(connection)` with each connection."""
    listening = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve():
        while not stop.is_set():
            try:
                connection, _address = listening.accept()
            except OSError:
                return
            threading.Thread(target=_quietly, args=(behave, connection, stop), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/metrics"
    finally:
        stop.set()
        listening.close()


def _quietly(behave, connection, stop):
    with contextlib.suppress(OSError), connection:
        behave(connection, stop)


def test_every_counter_begins_at_zero_before_anything_is_added(operator, tmp_path):
    posting.post(operator.url, {}, KNOWN, tmp_path)
    assert operator.values == {"a_total": 0, "b_total": 0}
    posting.post(operator.url, {"a_total": 3}, KNOWN, tmp_path)
    assert operator.values == {"a_total": 3, "b_total": 0}
    assert operator.posts == [
        {"name": "a_total", "description": "First.", "counter": {"add": 0}},
        {"name": "b_total", "description": "Second.", "counter": {"add": 0}},
        {"name": "a_total", "description": "First.", "counter": {"add": 3}},
    ]


def test_where_nothing_is_to_be_added_nothing_is_posted(operator, tmp_path):
    posting.post(operator.url, {}, KNOWN, tmp_path)
    operator.posts.clear()
    posting.post(operator.url, {}, KNOWN, tmp_path)
    assert operator.posts == []


def test_an_operator_that_was_started_anew_gets_every_counter_again(operator, tmp_path):
    posting.post(operator.url, {"a_total": 1}, KNOWN, tmp_path)
    port = operator.server_address[1]
    operator.close()
    with contextlib.closing(_on_port(port)) as again:
        posting.post(again.url, {"b_total": 1}, KNOWN, tmp_path)
        assert again.values == {"a_total": 0, "b_total": 1}


def _on_port(port):
    class There(FakeOperator):
        def server_bind(self):
            self.server_address = ("127.0.0.1", port)
            super().server_bind()

    return There()


def test_where_nobody_can_tell_who_listens_every_counter_is_posted_each_time(operator, tmp_path, monkeypatch):
    monkeypatch.setattr(posting, "_listener", lambda port: "")
    for _ in range(2):
        posting.post(operator.url, {"a_total": 1}, KNOWN, tmp_path)
    assert operator.values == {"a_total": 2, "b_total": 0}
    assert len(operator.posts) == 4


def test_one_that_failed_half_way_is_begun_again(operator, tmp_path):
    operator.kinds["b_total"] = "gauge"
    with pytest.raises(posting.PostError, match=r"HTTP 400 .*b_total.*gauge"):
        posting.post(operator.url, {}, KNOWN, tmp_path)
    del operator.kinds["b_total"]
    posting.post(operator.url, {}, KNOWN, tmp_path)
    assert operator.values == {"a_total": 0, "b_total": 0}


def _passes(url, folder, times):
    for _ in range(times):
        posting.post(url, {"a_total": 1, "kubesteward_rolls_total": 1}, {**COUNTERS, **KNOWN}, folder)


def test_passes_of_many_processes_never_overlap(tmp_path, monkeypatch):
    # a busy machine would make one of them give up
    monkeypatch.setattr(posting, "SECONDS", 20)
    with contextlib.closing(FakeOperator(seconds=0.001)) as operator:
        context = multiprocessing.get_context("fork")
        passes = [context.Process(target=_passes, args=(operator.url, tmp_path, 5)) for _ in range(8)]
        for one in passes:
            one.start()
        for one in passes:
            one.join(30)
        assert [one.exitcode for one in passes] == [0] * 8
        assert operator.overlaps == 0
        assert operator.values["a_total"] == 40
        # begun by the first of them, and by no other
        assert sum(post["counter"]["add"] == 0 for post in operator.posts) == len(COUNTERS) + len(KNOWN) - 2


def refused(url, folder, known=KNOWN):
    """The message and the seconds of a post that fails."""
    began = time.monotonic()
    with pytest.raises(posting.PostError) as caught:
        posting.post(url, {"a_total": 1}, known, folder)
    return str(caught.value), time.monotonic() - began


def test_an_absent_operator_is_told_at_once(operator, tmp_path):
    url = operator.url
    operator.close()
    message, seconds = refused(url, tmp_path)
    assert url in message and "Connection refused" in message
    assert seconds < 0.5


def test_a_lock_that_is_not_given_up_is_waited_for_one_second(operator, tmp_path):
    with (tmp_path / posting.LOCK_NAME).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        message, seconds = refused(operator.url, tmp_path)
    assert "other passes were posting for 1 s" in message
    assert 0.9 < seconds < 1.5
    assert operator.posts == []


def test_a_folder_that_is_not_there_is_told(operator, tmp_path):
    message, _seconds = refused(operator.url, tmp_path / "gone")
    assert "No such file or directory" in message


def test_a_link_in_place_of_the_lock_is_not_followed(operator, tmp_path):
    (tmp_path / posting.LOCK_NAME).symlink_to(tmp_path / "elsewhere")
    refused(operator.url, tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def _silent(connection, stop):
    stop.wait(10)


def _dripping(connection, stop):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not stop.wait(0.2):
        connection.sendall(b".")


def _header_without_end(connection, stop):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while not stop.wait(0.2):
        connection.sendall(b".")


@pytest.mark.parametrize("behave", [_silent, _dripping, _header_without_end])
def test_a_slow_server_is_given_up_after_one_second_in_all(behave, tmp_path):
    with odd_server(behave) as url:
        _message, seconds = refused(url, tmp_path)
    assert 0.8 < seconds < 1.6


def _sends(answer):
    def behave(connection, stop):
        # headers and body come one by one; what is left unread would reset the connection
        asked = b""
        while not asked.endswith(b"}}") and (more := connection.recv(4096)):
            asked += more
        connection.sendall(answer)

    return behave


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"", "no HTTP (RemoteDisconnected)"),
        (b"SSH-2.0-OpenSSH\r\n", "no HTTP (BadStatusLine)"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found", "HTTP 404 not found"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://198.51.100.1/\r\nContent-Length: 0\r\n\r\n", "HTTP 302"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000, "HTTP 200"),
    ],
)
def test_an_odd_server_is_told(answer, expected, tmp_path):
    with odd_server(_sends(answer)) as url:
        message, seconds = refused(url, tmp_path)
    assert expected in message
    assert len(message) < 400
    assert seconds < 1


@pytest.mark.parametrize(
    "url",
    [
        "https://localhost:5050/metrics",
        "http://metrics.example.com/metrics",
        "http://127.0.0.1.example.com/metrics",
        "http://169.254.169.254/metrics",
        "http://10.0.0.1:5050/metrics",
        "http://user:secret@localhost:5050/metrics",
        "http://localhost@example.com/metrics",
        "localhost:5050",
        "unix:///run/metrics",
    ],
)
def test_nothing_is_posted_to_another_machine(url, tmp_path):
    message, _seconds = refused(url, tmp_path)
    assert message.startswith("KUBESTEWARD_METRICS_URL must be of this machine, for example http://localhost:5050")
    assert "secret" not in message
    assert not (tmp_path / posting.LOCK_NAME).exists()


@pytest.mark.parametrize("url", ["http://localhost:port/metrics", "http://[::1/metrics"])
def test_what_is_no_url_is_told(url, tmp_path):
    message, _seconds = refused(url, tmp_path)
    assert message.startswith("KUBESTEWARD_METRICS_URL is no URL: ")


def test_the_lock_is_nobody_elses_to_read(operator, tmp_path, monkeypatch):
    # a busy machine would make it give up
    monkeypatch.setattr(posting, "SECONDS", 20)
    posting.post(operator.url, {}, KNOWN, tmp_path)
    assert (tmp_path / posting.LOCK_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_two_listeners_of_one_port_are_told_apart(family):
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with socket.create_server((host, 0), family=family) as first:
        port = first.getsockname()[1]
        before = posting._listener(port)
    assert posting._listener(port) == ""
    with socket.create_server((host, port), family=family):
        assert before != posting._listener(port) != ""

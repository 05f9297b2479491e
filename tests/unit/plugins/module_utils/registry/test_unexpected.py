# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever goes wrong in one look-up stays with it, with its traceback; odd servers cost nobody else the answer."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import batch, lookup
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Endpoint
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import parse
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Place, Query
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    content,
    look_up,
    manifest,
    serving,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.test_batch import job

GOOD = content(tags={f"t{n}": manifest(f"c{n}") for n in range(3)})


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("a bug"),
        ValueError("negative"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        RecursionError("too deep"),
        KeyError("key"),
        OverflowError("too large"),
        AttributeError("none"),
        MemoryError(),
        AssertionError("never"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unexpected_error_stays_with_its_entry_and_keeps_its_traceback(error):
    def resolve_badly(query, wanted, trace):
        if query.reference.domain == "bad.example":
            raise error
        return Found("d", "")

    jobs = [job("bad.example/app:t"), job("r.example/app:t")]
    batch.run(jobs, resolve_badly, 8, 1.0)
    assert jobs[1].found
    text = str(jobs[0].error)
    assert jobs[0].error.reason == "unexpected"
    for part in ("bad.example", type(error).__name__, "Traceback", "resolve_badly", "test_unexpected.py"):
        assert part in text


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=["ctrl-c", "exit"])
def test_what_ends_the_program_ends_the_call(error):
    def resolve(query, wanted, trace):
        raise error

    with pytest.raises(type(error)):
        batch.run([job("r.example/app:t")], resolve, 8, 1.0)


@pytest.mark.parametrize("text", ["s3cr3t", "Basic dTpzM2NyM3Q=", "x" * 400 + "s3cr3t"])
def test_an_unexpected_error_that_quotes_a_credential_is_told_without(text):
    reference = parse("r.example/app:t")
    place = Place(Endpoint("r.example", "app"), (Credential("given", "u", "s3cr3t"),))
    wanted = batch.Job(Query(reference, (place,)), Wanted())

    def resolve(query, wanted, trace):
        raise ValueError(f"Invalid header value {text}")

    batch.run([wanted], resolve, 8, 1.0)
    assert "s3cr3t" not in str(wanted.error)
    assert "dTpzM2NyM3Q" not in str(wanted.error)
    assert "ValueError" in str(wanted.error)


class Raw:
    """A server that answers every connection with these bytes, once the request was read."""

    def __init__(self, answer):
        self.answer = answer
        self.server = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.host = f"127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self.server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(self.answer)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.server.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"zz\r\nhello\r\n",
        CHUNKED + b"\xff\xfe\r\n",
        CHUNKED + b"f" * 5000 + b"\r\n",
        CHUNKED + b"7fffffffffffffff\r\nx",
        CHUNKED + b"9" * 60 + b"\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nhello",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"HTTP/1.1 -200 OK\r\n\r\n",
        b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX" + b"y" * 100000 + b"\r\n\r\n",
        b"HTTP/1.1 307 Moved\r\nLocation: \xff\xfe\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 307 Moved\r\nLocation: http://\xe4.example/\r\nContent-Length: 0\r\n\r\n",
        b'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer realm="http://\xe4/"\r\nContent-Length: 0\r\n\r\n',
        b"\x00\x01\x02\x03",
        b"",
    ],
    ids=lambda answer: repr(answer[:40] + b" .. " + answer[-30:]),
)
def test_a_server_that_answers_nonsense_costs_nobody_else_the_answer(answer):
    with Raw(answer) as odd, serving(GOOD) as server:
        images = [f"{odd.host}/app:t", f"{odd.host}/app@sha256:{'0' * 64}", f"{server.host}/app:t1"]
        found = look_up(images=images, timeout=1.0, retries=1)["images"]
    assert [entry["state"] for entry in found] == ["unknown", "unknown", "found"]
    assert all(odd.host in entry["msg"] for entry in found[:2])


def test_a_chunk_size_below_zero_is_told_with_its_traceback_where_it_is_asked_for_alone():
    with Raw(CHUNKED + b"-5\r\nhello\r\n") as odd, pytest.raises(StewardError, match="Traceback") as caught:
        look_up(image=f"{odd.host}/app:t", timeout=5.0)
    assert "transport.py" in str(caught.value)


def test_an_error_while_a_result_is_put_into_words_stays_with_its_entry(monkeypatch):
    real = lookup._facts

    def odd(entry, *more):
        if entry.image.endswith("t1"):
            raise KeyError("odd")
        return real(entry, *more)

    monkeypatch.setattr(lookup, "_facts", odd)
    with serving(GOOD) as server:
        images = [{"image": f"{server.host}/app:t{n}", "resolve": ["children"]} for n in range(3)]
        found = look_up(images=images)["images"]
    assert [entry["state"] for entry in found] == ["found", "unknown", "found"]
    assert (found[1]["reason"], "Traceback" in found[1]["msg"]) == ("unexpected", True)


@pytest.mark.parametrize("where", ["parse", "endpoints"])
def test_an_error_while_an_entry_is_read_stays_with_it(monkeypatch, where):
    home = lookup if where == "parse" else lookup.hosts
    real = getattr(home, where)

    def odd(given, *more):
        if "t1" in str(given):
            raise OverflowError("odd")
        return real(given, *more)

    monkeypatch.setattr(home, where, odd)
    with serving(GOOD) as server:
        found = look_up(images=[f"{server.host}/app:t{n}" for n in range(3)])["images"]
    assert [entry["state"] for entry in found] == ["found", "unknown", "found"]
    assert (found[1]["reason"], "Traceback" in found[1]["msg"]) == ("unexpected", True)


def test_every_entry_that_is_unknown_has_a_reason():
    registries = [{"prefix": "r.example/team/app", "location": "s.example"}]
    found = look_up(images=["r.example/team/app:t", "UPPER", 5], registries=registries)["images"]
    assert [entry["reason"] for entry in found] == ["unreachable", "invalid_reference", "invalid_reference"]
    assert "needs its path as well" in found[0]["msg"]

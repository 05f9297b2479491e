# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS handshakes that end early are tried again; those that cannot succeed are not."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading

import pytest
import trustme

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    OCI_MANIFEST,
    manifest,
    one,
    sha256,
)

BODY = manifest()


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def close(connection):
    connection.recv(4096)


def reset(connection):
    connection.recv(4096)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def close_at_once(connection):
    return None


def alert_close(connection):
    """A warning that the connection is closed, where the server's part of the handshake should be."""
    connection.recv(4096)
    connection.sendall(b"\x15\x03\x03\x00\x02\x01\x00")


def half_a_record(connection):
    connection.recv(4096)
    connection.sendall(b"\x16\x03\x03\x01\x00half")


class Endings:
    """A registry over TLS whose first handshakes end as they are told to."""

    def __init__(self, authority, tmp_path, endings, names=("127.0.0.1",)):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*names).configure_cert(self.context)
        self.ca = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(self.ca)
        self.endings, self.connections = list(endings), 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self.server.accept()
                self.connections += 1
                with connection, contextlib.suppress(OSError):
                    if self.endings:
                        self.endings.pop(0)(connection)
                    else:
                        self._serve(connection)

    def _serve(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(65536)
            head = (
                f"Content-Type: {OCI_MANIFEST}\r\nDocker-Content-Digest: {sha256(BODY)}\r\nContent-Length: {len(BODY)}"
            )
            secure.sendall(f"HTTP/1.1 200 OK\r\nConnection: close\r\n{head}\r\n\r\n".encode())

    def ask(self, **given):
        registries = [{"prefix": self.host, "ca_cert": str(self.ca)}]
        return one(f"{self.host}/app:t", registries=given.pop("registries", registries), **given)


@pytest.mark.parametrize(
    "ending", [close, reset, close_at_once, half_a_record, alert_close], ids=lambda it: it.__name__
)
def test_a_handshake_that_ends_once_is_tried_again(authority, tmp_path, ending):
    server = Endings(authority, tmp_path, [ending])
    found = server.ask()
    server.server.close()
    assert found.get("digest") == sha256(BODY), found


@pytest.mark.parametrize("ending", [close, half_a_record], ids=lambda it: it.__name__)
def test_handshakes_that_always_end_are_given_up_after_the_retries_and_told(authority, tmp_path, ending):
    server = Endings(authority, tmp_path, [ending] * 9)
    found = server.ask(retries=2)
    server.server.close()
    assert (found["reason"], server.connections) == ("unreachable", 2)
    assert server.host in found["msg"]
    assert "TLS handshake" in found["msg"]


def handshake_failure(connection):
    connection.recv(4096)
    connection.sendall(b"\x15\x03\x03\x00\x02\x02\x28")


def plain_http(connection):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("ending", [handshake_failure, plain_http], ids=lambda it: it.__name__)
def test_what_another_try_does_not_change_is_told_at_once(authority, tmp_path, ending):
    server = Endings(authority, tmp_path, [ending] * 9)
    found = server.ask()
    server.server.close()
    assert (found["reason"], server.connections) == ("tls_error", 1)


@pytest.mark.parametrize("names", [("127.0.0.1",), ("other.example",)], ids=["unknown authority", "another name"])
def test_a_certificate_that_is_not_trusted_is_told_at_once(authority, tmp_path, names):
    server = Endings(authority, tmp_path, [], names)
    registries = [{"prefix": server.host, "validate_certs": True}]
    if names == ("other.example",):
        registries[0]["ca_cert"] = str(server.ca)
    found = server.ask(registries=registries)
    server.server.close()
    assert (found["reason"], server.connections) == ("tls_error", 1)
    assert "certificate verify failed" in found["msg"]

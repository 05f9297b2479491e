# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import socket

import pytest

from testbed import ports
from testbed.errors import TestbedError

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:4010 00000000:0000 01 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 0100007F:4010 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0 0 10 0
"""


def test_only_a_listening_socket_of_that_port_counts() -> None:
    assert ports.listening_inode(TABLE, 0x4010) == "222"
    assert ports.listening_inode(TABLE, 0x4011) is None


def test_a_taken_port_is_named_with_its_owner_and_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
        with pytest.raises(TestbedError) as caught:
            ports.check({"registry": port})
    message = str(caught.value)
    assert f"port {port} (registry)" in message
    assert f"(pid {os.getpid()})" in message
    assert "TESTBED_PORT_BASE=" in message


def test_free_ports_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ports.check({"registry": port})


def test_the_suggested_base_is_free(monkeypatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: port >= 16702)
    assert ports.suggestion({"a": 16400, "b": 16401}) == 16800

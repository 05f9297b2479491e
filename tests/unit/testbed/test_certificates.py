# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates that also a strict verifier takes, as Python 3.13 is one."""

from __future__ import annotations

import datetime
import ssl

from testbed.certificates import Authority


def test_a_strict_client_accepts_a_server_certificate(tmp_path):
    now = datetime.datetime.now(datetime.UTC)
    authority = Authority.create(now)
    certificate, key = authority.issue(now, "apiserver", names=("127.0.0.1",))
    (tmp_path / "server.pem").write_bytes(certificate + key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.pem")
    client = ssl.create_default_context(cadata=authority.pem().decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    right = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (left, right, left, right):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert left.getpeercert()["subject"] == ((("commonName", "apiserver"),),)

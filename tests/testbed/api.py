# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A very small client of the API server, for the testbed itself and for the marks in its audit log."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import tempfile
import typing as t
import urllib.parse
from pathlib import Path

import yaml

from testbed.errors import TestbedError

TIMEOUT = 10


class Api:
    """JSON requests with the client certificate of a kubeconfig that contains everything."""

    def __init__(self, kubeconfig: Path) -> None:
        try:
            data = yaml.safe_load(kubeconfig.read_text())
        except PermissionError as error:
            raise TestbedError(f"{kubeconfig} cannot be read: run this as root.") from error
        self.server: str = data["clusters"][0]["cluster"]["server"]
        self.context = _context(data["clusters"][0]["cluster"], data["users"][0]["user"])

    def request(
        self, method: str, path: str, body: t.Any = None, user_agent: str = "testbed"
    ) -> tuple[int, dict[str, t.Any]]:
        """Status and decoded body; OSError where the server cannot be reached."""
        text = None if body is None else json.dumps(body)
        headers = {"User-Agent": user_agent, "Content-Type": "application/json"}
        status, content = fetch(self.server + path, self.context, method, text, headers)
        if not content.startswith(b"{"):
            return status, {"message": content.decode(errors="replace")}
        return status, json.loads(content)


def fetch(
    url: str,
    context: ssl.SSLContext | None = None,
    method: str = "GET",
    body: str | None = None,
    headers: t.Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """One request past any proxy; OSError or HTTPException where it does not succeed."""
    parts = urllib.parse.urlsplit(url)
    assert parts.hostname is not None
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=TIMEOUT, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT)
    try:
        connection.request(
            method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, dict(headers or {})
        )
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _context(cluster: t.Mapping[str, str], user: t.Mapping[str, str]) -> ssl.SSLContext:
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    # ssl reads a client's certificate from a file only
    descriptor, name = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.b64decode(user["client-certificate-data"]))
            file.write(base64.b64decode(user["client-key-data"]))
        context.load_cert_chain(name)
    finally:
        os.unlink(name)
    return context

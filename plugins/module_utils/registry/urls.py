# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""URLs that registries name: read once, by one set of rules, so that what was checked is what is connected to. Pure."""

from __future__ import annotations

import dataclasses
import functools
import re
import urllib.parse

MAX_URL = 16 * 1024
# strict on purpose: where parsers differ (a backslash, a bracket in a name, escapes, spaces) it is no host
_ABSOLUTE = re.compile(
    r"(?P<scheme>https?)://(?:[^/?#@\\\[\]\s]*@)?"
    r"(?P<host>[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_.])?|\[[0-9a-f:.]{2,45}\])(?::(?P<port>[0-9]{0,5}))?"
    r"(?P<target>(?:[/?][^#\s]*)?)(?:#\S*)?",
    re.IGNORECASE | re.ASCII,
)
_PORTS = {"http": 80, "https": 443}


@dataclasses.dataclass(frozen=True)
class Url:
    """A URL of a host without user, password and fragment; all in lower case but for the target.

    :ivar host: a name, or an address, an IPv6 address in brackets
    :ivar target: path and query, beginning with a slash
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def address(self) -> str:
        """`host[:port]`, the port where it is not the scheme's own."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    @functools.cached_property
    def origin(self) -> str:
        return f"{self.scheme}://{self.address}"

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"


def read(text: str) -> Url | None:
    """The http or https URL that `text` is, None where it is none."""
    found = _ABSOLUTE.fullmatch(text) if len(text) <= MAX_URL else None
    if found is None:
        return None
    scheme = found["scheme"].lower()
    port = int(found["port"]) if found["port"] else _PORTS[scheme]
    target = found["target"]
    if port > 65535:
        return None
    return Url(scheme, found["host"].lower(), port, target if target.startswith("/") else f"/{target}")


def join(base: Url, text: str) -> Url | None:
    """The URL that `text`, absolute or relative, is at `base`; None where it is none."""
    try:
        return read(urllib.parse.urljoin(str(base), text))
    except ValueError:
        return None

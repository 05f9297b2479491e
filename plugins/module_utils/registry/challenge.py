# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a registry answers with 401 and what to ask the token server then. Pure."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import typing as t
import urllib.parse

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import urls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import (
    is_forbidden,
    is_here,
    is_loopback,
    split_host,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential

CLIENT_ID = "kubesteward"
DEFAULT_LIFETIME = 60.0
MAX_LIFETIME = 12 * 3600.0
MAX_HEADER = 8192

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_PARAMETER = re.compile(
    rf'(?P<name>{_TOKEN})\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"?|(?P<bare>[^\s,"]*))\s*(?:,|$|(?=\s))'
)
_BETWEEN = re.compile(r"[\s,]*")
_SCHEME = re.compile(rf"(?P<scheme>{_TOKEN})(?=[\s,]|$)")


@dataclasses.dataclass(frozen=True)
class Challenge:
    """One way to authenticate; the scheme and the names of parameters are in lower case."""

    scheme: str
    parameters: t.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def get(self, name: str) -> str:
        return self.parameters.get(name, "")


@dataclasses.dataclass(frozen=True)
class Token:
    """A bearer token and the seconds it is good for; the value is never printed.

    :ivar reused: it was fetched for an earlier request, so it may have ended since
    """

    value: str = dataclasses.field(repr=False)
    lifetime: float = DEFAULT_LIFETIME
    reused: bool = False


@dataclasses.dataclass(frozen=True)
class TokenRequest:
    """A request to a token server: GET with `authorization`, or a form POST where `form` is given."""

    url: str
    authorization: str | None = dataclasses.field(default=None, repr=False)
    form: str | None = dataclasses.field(default=None, repr=False)


def parse(header: str) -> tuple[Challenge, ...]:
    """All challenges of a `WWW-Authenticate` header, several headers joined by commas; nonsense gives none."""
    found: list[tuple[str, dict[str, str]]] = []
    position, header = 0, header[:MAX_HEADER]
    while True:
        # in one step: looking past them from each of their positions would take seconds for a hostile header
        position = t.cast("re.Match[str]", _BETWEEN.match(header, position)).end()
        if position == len(header):
            break
        parameter = _PARAMETER.match(header, position) if found else None
        if parameter:
            quoted = parameter["quoted"]
            value = parameter["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            found[-1][1].setdefault(parameter["name"].lower(), value)
            position = parameter.end()
            continue
        scheme = _SCHEME.match(header, position)
        if scheme:
            found.append((scheme["scheme"].lower(), {}))
            position = scheme.end()
        else:
            position += 1
    return tuple(Challenge(scheme, parameters) for scheme, parameters in found)


def choose(challenges: t.Iterable[Challenge]) -> Challenge | None:
    """The best challenge that we can answer: Bearer with a realm, then Basic, else None."""
    usable = [item for item in challenges if item.scheme == "basic" or (item.scheme == "bearer" and item.get("realm"))]
    return min(usable, key=lambda item: item.scheme != "bearer", default=None)


def check_realm(realm: str, registry_url: str) -> None:
    """Refuse a realm that could lead a credential, or a request, where it must not go.

    Allowed are https anywhere, and plain http on the registry's own host where the registry itself is plain http.

    :raises StewardError: reason `unauthorized`, naming the realm's host only
    """
    url, own = urls.read(realm), urls.read(registry_url)
    where = f"the token server named by {own.address if own else registry_url}"
    if url is None or own is None or _has_user(realm):
        raise StewardError(f"{where} is not a URL of a host", reason="unauthorized")
    name, own_name = split_host(url.host)[0], split_host(own.host)[0]
    if is_here(url.host) and not is_here(own.host):
        # a registry elsewhere has no business with what listens on this machine only
        raise StewardError(f"{where} is on this machine ({name}); nothing is sent there", reason="unauthorized")
    if is_forbidden(name):
        raise StewardError(
            f"{where} is a link-local or metadata address ({name}); nothing is sent there", reason="unauthorized"
        )
    same = name == own_name or (is_loopback(name) and is_loopback(own_name))
    if url.scheme != "https" and not (own.scheme == "http" and same):
        raise StewardError(
            f"{where} ({name}) is neither https nor the registry's own host; nothing is sent there",
            reason="unauthorized",
        )


def _has_user(url: str) -> bool:
    return "@" in re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]


def pull_scope(repository: str) -> str:
    return f"repository:{repository}:pull"


def token_requests(challenge: Challenge, scope: str, credential: Credential | None) -> tuple[TokenRequest, ...]:
    """What to ask for a token, best first; a later one only where the server does not know the earlier one (404, 405).

    The realm must have passed `check_realm`.
    """
    query = [(name, value) for name, value in (("service", challenge.get("service")), ("scope", scope)) if value]
    requests = []
    if credential and credential.identity_token:
        grant = ("grant_type", "refresh_token"), ("client_id", CLIENT_ID), ("refresh_token", credential.identity_token)
        form = urllib.parse.urlencode([*grant, *query])
        requests.append(TokenRequest(challenge.get("realm"), form=form))
        if not credential.password:
            return tuple(requests)
    address, _mark, own_query = challenge.get("realm").partition("#")[0].partition("?")
    joined = "&".join(part for part in (own_query, urllib.parse.urlencode(query, safe=":/,")) if part)
    authorization = f"Basic {credential.basic()}" if credential else None
    return (*requests, TokenRequest(f"{address}?{joined}" if joined else address, authorization))


def read_token(body: bytes) -> Token | None:
    """The token of a token server's answer, None where there is none in it."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    value = data.get("token") or data.get("access_token")
    if not isinstance(value, str) or not re.fullmatch(r"[\x21-\x7e]+", value):
        return None
    seconds = data.get("expires_in")
    # not math.isfinite, and no float yet: JSON has integers that are too long for one
    known = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and abs(seconds) < math.inf
    lifetime = min(max(t.cast(float, seconds), DEFAULT_LIFETIME), MAX_LIFETIME) if known else DEFAULT_LIFETIME
    return Token(value, float(lifetime))

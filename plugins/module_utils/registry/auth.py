# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How one request gets its authorization: anonymous first, then each credential, then anonymous again. Pure.

`authorized` is a generator. It yields `Wire` (send this, give me the `Response`) and `TokenAsk` (give me this token, or
the `Response` that refused it), and returns an `Outcome`.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import challenge as ch
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential
from ansible_collections.kubesteward.core.plugins.module_utils.registry.protocol import (
    Request,
    Response,
    is_refusal,
)

# scopes that one request is tried with; a hostile registry could name another one for ever
MAX_SCOPES = 4
PING = Request("GET", "/v2/", "*/*")


@dataclasses.dataclass(frozen=True)
class Wire:
    """A request with its authorization, to be sent to the registry itself."""

    request: Request
    authorization: str | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass(frozen=True)
class TokenAsk:
    """A token that is needed; `key` says which, `fresh` that a remembered one was refused."""

    key: tuple[t.Hashable, ...] = dataclasses.field(repr=False)
    requests: tuple[ch.TokenRequest, ...]
    fresh: bool = False


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The answer, the credential that got it (None: none) and those that were refused before."""

    response: Response
    credential: Credential | None = None
    refused: tuple[Credential, ...] = ()


@dataclasses.dataclass
class Memory:
    """What one call has learnt: by base URL the challenge, by base URL and repository the credential that works."""

    challenges: dict[str, ch.Challenge] = dataclasses.field(default_factory=dict)


Steps: t.TypeAlias = "t.Generator[Wire | TokenAsk, t.Any, Outcome]"
Sub: t.TypeAlias = "t.Generator[Wire | TokenAsk, t.Any, Response]"


def authorized(
    request: Request,
    base_url: str,
    repository: str,
    credentials: t.Sequence[Credential],
    memory: Memory,
    anonymous_fallback: bool = True,
) -> Steps:
    """Get an answer to `request` with the first of `credentials` that the registry takes.

    :param base_url: scheme and host of the registry
    :param anonymous_fallback: ask once without credentials where all are refused, as only a look-up may
    :raises StewardError: reason `unauthorized` where the registry's challenge cannot be answered
    """
    plain: Response | None = None
    challenge = memory.challenges.get(base_url)
    if challenge is None:
        plain = yield Wire(request)
        challenge = yield from _learn(plain, bool(credentials), base_url)
        if challenge is None:
            return Outcome(plain)
        memory.challenges[base_url] = challenge
    refused: list[Credential] = []
    last: Response | None = None
    # a registry may answer 404 to a credential that it knows but that may not see the repository
    hidden: Outcome | None = None
    for credential in credentials:
        last = yield from _attempt(request, challenge, base_url, repository, credential)
        if is_refusal(last):
            refused.append(credential)
        elif last.status != 404:
            return Outcome(last, credential, tuple(refused))
        else:
            hidden = Outcome(last, credential, tuple(refused))
    if hidden is not None:
        return hidden
    if last is not None and not anonymous_fallback:
        return Outcome(last, None, tuple(refused))
    anonymous = yield from _anonymous(request, challenge, base_url, repository, plain)
    return Outcome(anonymous, None, tuple(refused))


def anonymous(request: Request, base_url: str, repository: str, refused: Response) -> Sub:
    """Get an answer to `request` with a token that a host gives to everybody, where `refused` says that it does.

    :param base_url: scheme and host of where the registry redirected to, which gets no credential of the registry
    :raises StewardError: reason `unauthorized` for a token server that nothing is sent to
    """
    challenge = ch.choose(ch.parse(refused.get("www-authenticate"))) if is_refusal(refused) else None
    if challenge is None or challenge.scheme != "bearer":
        return refused
    return (yield from _with_token(request, challenge, base_url, repository, None))


def _learn(plain: Response, has_credentials: bool, base_url: str) -> t.Generator[Wire, Response, ch.Challenge | None]:
    """The challenge to answer, or None where `plain` is the final answer already."""
    header = plain.get("www-authenticate")
    denied = plain.status == 401 or (plain.status == 403 and bool(header))
    if not denied and not (plain.status in (403, 404) and has_credentials):
        return None
    found = ch.choose(ch.parse(header))
    if found is None and not ch.parse(header):
        # some registries tell how to authenticate only on their root
        ping = yield Wire(PING)
        header = ping.get("www-authenticate")
        found = ch.choose(ch.parse(header))
    # who was redirected to is no registry that could be authenticated with: what it answers is the answer
    elsewhere = bool(plain.url) and not plain.url.startswith(f"{base_url}/")
    if found is None and plain.status == 401 and not elsewhere:
        schemes = ", ".join(sorted({item.scheme for item in ch.parse(header)})) or "none"
        host = base_url.partition("://")[2]
        raise StewardError(
            f"{host} asks for authentication in no way known here (schemes offered: {schemes}; known: basic, bearer)",
            reason="unauthorized",
        )
    return found


def _anonymous(
    request: Request, challenge: ch.Challenge, base_url: str, repository: str, plain: Response | None
) -> Sub:
    if challenge.scheme == "basic":
        if plain is not None:
            return plain
        return (yield Wire(request))
    answer = yield from _attempt(request, challenge, base_url, repository, None)
    if is_refusal(answer) and plain is None:
        # learnt from another repository; this one may need no token at all
        return (yield Wire(request))
    return answer


def _attempt(
    request: Request, challenge: ch.Challenge, base_url: str, repository: str, credential: Credential | None
) -> Sub:
    if credential and credential.registry_token:
        return (yield Wire(request, f"Bearer {credential.registry_token}"))
    if challenge.scheme == "basic":
        return (yield Wire(request, f"Basic {credential.basic()}" if credential else None))
    return (yield from _with_token(request, challenge, base_url, repository, credential))


def _with_token(
    request: Request, challenge: ch.Challenge, base_url: str, repository: str, credential: Credential | None
) -> Sub:
    # Our own scope first: challenges exist without one, or with one that lacks the repository.
    scopes = [ch.pull_scope(repository), challenge.get("scope")]
    tried: list[str] = []
    answer: Response | None = None
    fresh = False
    while scopes:
        scope = scopes.pop(0)
        if (not scope and tried) or (scope in tried and not fresh):
            continue
        tried.append(scope)
        ch.check_realm(challenge.get("realm"), base_url)
        key = (base_url, challenge.get("realm"), challenge.get("service"), scope, credential)
        token = yield TokenAsk(key, ch.token_requests(challenge, scope, credential), fresh)
        if isinstance(token, Response):
            answer = answer or token
            continue
        answer = yield Wire(request, f"Bearer {token.value}")
        if not is_refusal(answer):
            return answer
        again = ch.choose(ch.parse(answer.get("www-authenticate")))
        other = again is not None and again.scheme == "bearer" and again.get("scope") not in ("", *tried)
        if again is not None and other and len(tried) < MAX_SCOPES:
            challenge, scopes = again, [again.get("scope")]
        elif not fresh and token.reused and answer.status != 403:
            fresh, scopes = True, [scope]
        else:
            scopes = []
    return t.cast(Response, answer)

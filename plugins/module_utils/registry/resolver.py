# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look-up from end to end: places and credentials in turn, the generators driven over the transport."""

from __future__ import annotations

import dataclasses
import threading
import time
import typing as t
import urllib.parse

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import (
    auth,
    challenge,
    comparison,
    facts,
    protocol,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import split_host
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential
from ansible_collections.kubesteward.core.plugins.module_utils.registry.helpers import HelperAsk, Helpers
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Endpoint, Tls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import SCHEMA_1
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import Reference

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client

MAX_TOKEN_BODY = 1024 * 1024
USER_AGENT = "kubesteward"
# Pulls that a registry still grants below which nothing optional is asked.
RATE_RESERVE = 5


@dataclasses.dataclass(frozen=True)
class Place:
    """One endpoint and the credentials meant for it, best first."""

    endpoint: Endpoint
    credentials: tuple[Credential | HelperAsk, ...] = ()


@dataclasses.dataclass(frozen=True)
class Query:
    """What to look up, apart from what is wanted beside the top-level digest; equal queries are one look-up."""

    reference: Reference
    places: tuple[Place, ...]
    anonymous_fallback: bool = True


@dataclasses.dataclass
class Trace:
    """What a look-up did, kept up to date while it runs."""

    requests: int = 0
    moved: float = 0.0
    host: str | None = None
    source: str | None = None
    refused: tuple[str, ...] = ()
    ratelimit_remaining: int | None = None
    warnings: list[str] = dataclasses.field(default_factory=list)

    def on_request(self) -> None:
        """A request begins."""
        self.requests += 1
        self.moved = time.monotonic()

    def on_wait(self, seconds: float) -> None:
        """Nothing is asked for at most `seconds`, and that is meant."""
        self.moved = max(self.moved, time.monotonic() + seconds)


class Resolver:
    """Answers queries; one for a call of the module, used by all its threads."""

    def __init__(self, client: Client, helpers: Helpers, cache: facts.FactStore) -> None:
        self.client, self.helpers, self.cache = client, helpers, cache
        self.memory = auth.Memory()
        self._schemes: dict[str, str] = {}
        self._tokens: dict[tuple[t.Hashable, ...], tuple[challenge.Token, float]] = {}
        self._locks: dict[tuple[t.Hashable, ...], threading.Lock] = {}
        self._guard = threading.Lock()

    def resolve(self, query: Query, wanted: Wanted, trace: Trace) -> Found:
        """Look `query` up at its places in turn, the registry itself last.

        :raises StewardError: with one of the documented reasons
        """
        for place in query.places[:-1]:
            try:
                return self._at(place, query, wanted, trace)
            except StewardError as exc:
                trace.warnings.append(f"mirror {place.endpoint.host}: {exc}")
        return self._at(query.places[-1], query, wanted, trace)

    def _at(self, place: Place, query: Query, wanted: Wanted, trace: Trace) -> Found:
        known = self._schemes.get(place.endpoint.host)
        schemes = (known,) if known in place.endpoint.schemes else place.endpoint.schemes
        for scheme in schemes[:-1]:
            began = self.client.clock()
            try:
                return self._over(scheme, place, query, wanted, trace)
            except StewardError as exc:
                # a host that says nothing for so long says nothing to another scheme
                timed_out = exc.reason == "unreachable" and self.client.clock() - began >= self.client.timeout
                # 400 is what Go's servers say to plain HTTP on a TLS port; another status came in the right scheme
                status = exc.context.get("status")
                other_scheme = status == 400 or (status is None and exc.reason in ("tls_error", "unreachable"))
                if timed_out or not other_scheme:
                    raise
        return self._over(schemes[-1], place, query, wanted, trace)

    def _over(self, scheme: str, place: Place, query: Query, wanted: Wanted, trace: Trace) -> Found:
        endpoint = place.endpoint
        trace.host, trace.source, trace.refused = endpoint.host, None, ()
        asking = _Asking(self, f"{scheme}://{endpoint.host}", place, query.anonymous_fallback, trace)
        try:
            head = asking.run(protocol.find(endpoint.repository, query.reference.identifier))
        except StewardError as exc:
            if exc.reason == "not_found" and wanted.compare and not endpoint.mirror:
                exc.context["gone"] = comparison.gone(
                    wanted.compare,
                    lambda digest: comparison.lacks(endpoint.repository, digest, asking.run, False),
                    query.reference.identifier if exc.context.get("code") == "MANIFEST_UNKNOWN" else "",
                )
            raise
        self._schemes[endpoint.host] = scheme
        if head.media_type == SCHEMA_1 or not head.digest:
            raise StewardError(
                f"{query.reference}: the tag names a schema 1 manifest, which runtimes no longer pull; rebuild it",
                reason="schema1",
                **({"digest": head.digest} if head.digest else {}),
                media_type=SCHEMA_1,
            )
        if head.digest in wanted.expect:
            return Found(head.digest, head.media_type)
        found = Found(head.digest, head.media_type)
        if wanted.verify:
            found = self._verified(found, scheme, place, trace)
        # what cannot be pulled cannot be read by its digest either
        if found.pullable is False or not (wanted.children or wanted.config):
            return found
        if trace.ratelimit_remaining is not None and trace.ratelimit_remaining < RATE_RESERVE:
            trace.warnings.append(
                f"{endpoint.host} grants {trace.ratelimit_remaining} more pulls; children and config were not read"
            )
            return dataclasses.replace(found, unread=True)
        return self._read(found, head, asking, query, wanted, trace)

    def _read(
        self, found: Found, head: protocol.Head, asking: _Asking, query: Query, wanted: Wanted, trace: Trace
    ) -> Found:
        endpoint = asking.place.endpoint
        read = asking.run(facts.gather(endpoint.repository, head, wanted.config, wanted.platforms, self.cache))
        if wanted.children:
            read = facts.with_platforms(read, head.digest, endpoint.repository, asking.run, self.cache)
        found = dataclasses.replace(found, media_type=read.media_type, facts=read)
        if read.unreadable and endpoint.mirror:
            # as runtimes do: what a mirror lacks the next one or the registry has
            raise StewardError(read.unreadable, reason="not_found")
        if wanted.verify and read.unreadable:
            found = dataclasses.replace(found, pullable=False, pullable_msg=read.unreadable)
        if not wanted.compare:
            return found
        compared = comparison.compare(
            wanted.compare - {head.digest},
            frozenset(child.digest for child in read.children or ()),
            endpoint.repository,
            asking.run,
            lambda digest: self._lacks(digest, asking, query, trace),
            self.cache,
        )
        return dataclasses.replace(found, compared=compared)

    def _lacks(self, digest: str, asking: _Asking, query: Query, trace: Trace) -> bool:
        """Whether the registry itself has no such digest: a mirror may lack what the registry has."""
        if not comparison.lacks(asking.place.endpoint.repository, digest, asking.run, True):
            return False
        own = query.places[-1]
        if asking.place is own:
            return True
        source = trace.source
        try:
            asking = self._asking(own, query, trace)
            return comparison.lacks(own.endpoint.repository, digest, asking.run, False)
        except StewardError:
            # behind a mirror nobody has to reach the registry
            return False
        finally:
            trace.source = source

    def _asking(self, place: Place, query: Query, trace: Trace) -> _Asking:
        scheme = self._schemes.get(place.endpoint.host, place.endpoint.schemes[0])
        return _Asking(self, f"{scheme}://{place.endpoint.host}", place, query.anonymous_fallback, trace)

    def _verified(self, found: Found, scheme: str, place: Place, trace: Trace) -> Found:
        """Ask for the digest itself as the kubelet would: with these credentials, not anonymously after a refusal."""
        asking = _Asking(self, f"{scheme}://{place.endpoint.host}", place, False, trace)
        try:
            asking.run(protocol.find(place.endpoint.repository, found.digest))
        except StewardError as exc:
            # a registry that does not answer now has not refused: the whole look-up is undecided
            if exc.reason in ("unreachable", "rate_limited", "tls_error"):
                raise
            return dataclasses.replace(found, pullable=False, pullable_msg=str(exc))
        return dataclasses.replace(found, pullable=True)

    def tags(self, query: Query, trace: Trace) -> list[str]:
        """All tags of the repository, asked of the registry itself: a mirror may lack some.

        :raises StewardError: with one of the documented reasons, where any page cannot be read
        """
        place = query.places[-1]
        return list(self._asking(place, query, trace).run(protocol.list_tags(place.endpoint.repository)))

    def token(
        self, ask: auth.TokenAsk, place: Place, base_url: str, trace: Trace
    ) -> challenge.Token | protocol.Response:
        """The token for `ask`, remembered or new; the answer of the token server where it refuses."""
        with self._guard:
            lock = self._locks.setdefault(ask.key, threading.Lock())
        trace.on_wait(self.client.timeout)
        if not lock.acquire(timeout=self.client.timeout * 2):
            raise StewardError(
                f"{base_url}: another look-up waits for its token server for too long", reason="unreachable"
            )
        try:
            kept = self._tokens.get(ask.key)
            if kept and not ask.fresh and kept[1] > self.client.clock():
                return dataclasses.replace(kept[0], reused=True)
            answer = self._fetch_token(ask, place, base_url, trace)
            if isinstance(answer, challenge.Token):
                # a little early, so that it does not end on its way
                self._tokens[ask.key] = answer, self.client.clock() + answer.lifetime - 10.0
            return answer
        finally:
            lock.release()

    def _fetch_token(
        self, ask: auth.TokenAsk, place: Place, base_url: str, trace: Trace
    ) -> challenge.Token | protocol.Response:
        answer: protocol.Response | None = None
        tls = _tls_for(ask.requests[0].url, place.endpoint)
        for request in ask.requests:
            headers = {"User-Agent": USER_AGENT, "Accept": "application/json", "Accept-Encoding": "identity"}
            if request.authorization:
                headers["Authorization"] = request.authorization
            if request.form is not None:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            answer = self.client.send(
                "GET" if request.form is None else "POST",
                request.url,
                headers,
                tls,
                MAX_TOKEN_BODY,
                request.form,
                check=lambda url: challenge.check_realm(url, base_url),
                progress=trace,
            )
            if answer.status not in (404, 405):
                break
        return _token_or_refusal(t.cast(protocol.Response, answer), base_url)


def _tls_for(url: str, endpoint: Endpoint) -> Tls:
    """The registry's own TLS settings on its own host; elsewhere only its CA holds."""
    own = urllib.parse.urlsplit(url).hostname == split_host(endpoint.host)[0]
    return endpoint.tls if own else Tls(ca_cert=endpoint.tls.ca_cert)


def _token_or_refusal(answer: protocol.Response, base_url: str) -> challenge.Token | protocol.Response:
    if answer.status == 200:
        token = challenge.read_token(answer.body)
        if token is None:
            raise StewardError(
                f"the token server of {base_url.partition('://')[2]} answers without a token", reason="unauthorized"
            )
        return token
    # what the token server refuses counts as refused by the registry, whatever 4xx it is
    return dataclasses.replace(answer, status=403 if answer.status == 403 else 401, headers={}, body=b"", url=base_url)


class _Asking:
    """One look-up at one place over one scheme: runs the generators of `protocol` through those of `auth`."""

    def __init__(self, resolver: Resolver, base_url: str, place: Place, anonymous_fallback: bool, trace: Trace) -> None:
        self.resolver, self.base_url, self.place, self.trace = resolver, base_url, place, trace
        self.anonymous_fallback = anonymous_fallback
        self._credentials: tuple[Credential, ...] | None = None

    def run(self, steps: t.Generator[protocol.Request, protocol.Response, t.Any]) -> t.Any:
        try:
            request = next(steps)
            while True:
                request = steps.send(self._answer(request))
        except StopIteration as stop:
            return stop.value
        finally:
            steps.close()

    def _candidates(self) -> tuple[Credential, ...]:
        if self._credentials is None:
            found: dict[Credential, None] = {}
            for item in self.place.credentials:
                self.trace.on_wait(self.resolver.helpers.timeout)
                credential = (
                    item if isinstance(item, Credential) else self.resolver.helpers.get(item, self.trace.warnings)
                )
                if credential is not None:
                    found[credential] = None
            self._credentials = tuple(found)
        return self._credentials

    def _answer(self, request: protocol.Request) -> protocol.Response:
        credentials = self._candidates()
        steps = auth.authorized(
            request,
            self.base_url,
            self.place.endpoint.repository,
            credentials,
            self.resolver.memory,
            self.anonymous_fallback,
        )
        outcome = self._drive(steps)
        trace = self.trace
        if outcome.credential:
            trace.source = outcome.credential.source
        trace.refused = tuple(dict.fromkeys((*trace.refused, *(item.source for item in outcome.refused))))
        remaining = outcome.response.get("ratelimit-remaining").partition(";")[0].strip()
        if remaining.isascii() and remaining.isdigit() and len(remaining) < 12:
            trace.ratelimit_remaining = int(remaining)
        if outcome.response.status in (401, 403):
            raise self._refusal(outcome, request)
        if outcome.refused:
            # what was refused once is not tried again within this look-up
            self._credentials = tuple(item for item in credentials if item not in outcome.refused)
        return outcome.response

    def _drive(self, steps: auth.Steps) -> auth.Outcome:
        try:
            step = next(steps)
            while True:
                if isinstance(step, auth.TokenAsk):
                    step = steps.send(self.resolver.token(step, self.place, self.base_url, self.trace))
                else:
                    step = steps.send(self._send(step))
        except StopIteration as stop:
            return t.cast(auth.Outcome, stop.value)
        finally:
            steps.close()

    def _send(self, wire: auth.Wire) -> protocol.Response:
        headers = {"User-Agent": USER_AGENT, "Accept": wire.request.accept, "Accept-Encoding": "identity"}
        if wire.authorization:
            headers["Authorization"] = wire.authorization
        answer = self.resolver.client.send(
            wire.request.method,
            self.base_url + wire.request.path,
            headers,
            self.place.endpoint.tls,
            wire.request.max_body,
            progress=self.trace,
        )
        if not answer.url.startswith(f"{self.base_url}/"):
            # whoever was redirected to must not name a token server: it would get the registry's credential
            return dataclasses.replace(answer, headers={**answer.headers, "www-authenticate": ""})
        return answer

    def _refusal(self, outcome: auth.Outcome, request: protocol.Request) -> StewardError:
        repository = self.place.endpoint.repository
        error = protocol.failure(outcome.response, repository, request.path.rpartition("/")[2].partition("?")[0])
        if not outcome.refused:
            return error
        names = ", ".join(self.trace.refused)
        return StewardError(f"{error}; refused: {names}", reason="credential_rejected", status=outcome.response.status)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look-up at one place over one scheme: runs the generators of `protocol` through those of `auth`."""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t
import urllib.parse

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import auth, protocol, urls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import is_here
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential
from ansible_collections.kubesteward.core.plugins.module_utils.registry.helpers import Helpers
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Tls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.tokens import USER_AGENT, Tokens

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Place, Trace
    from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client

_REPOSITORY = re.compile(r"/v2/([a-z0-9._/-]{1,255})/(?:manifests|blobs)/[^/]+")


class Session:
    """What all look-ups of one call share."""

    def __init__(self, client: Client, helpers: Helpers) -> None:
        self.client, self.helpers, self.tokens, self.memory = client, helpers, Tokens(client), auth.Memory()


class Asking:
    """Asks for one look-up, and keeps its trace up to date.

    :param anonymous_fallback: ask once without credentials where all are refused
    """

    def __init__(self, session: Session, base_url: str, place: Place, anonymous_fallback: bool, trace: Trace) -> None:
        self.session, self.base_url, self.place, self.trace = session, base_url, place, trace
        self.anonymous_fallback = anonymous_fallback
        self._origin, self._here = _host_of(base_url)
        self._credentials: tuple[Credential, ...] | None = None

    def run(self, steps: t.Generator[protocol.Request, protocol.Response, t.Any]) -> t.Any:
        """What `steps` return, each of their requests answered."""
        try:
            request = next(steps)
            while True:
                request = steps.send(self._answer(request))
        except StopIteration as stop:
            return stop.value
        except StewardError as exc:
            endpoint = self.place.endpoint
            if not str(exc).startswith(f"{endpoint.repository}:"):
                raise
            # what is said about an answer does not know whose it is
            raise StewardError(f"{endpoint.host}/{exc}", exc.reason, **exc.context) from exc
        finally:
            steps.close()

    def _candidates(self) -> tuple[Credential, ...]:
        if self._credentials is None:
            found: dict[Credential, None] = {}
            for item in self.place.credentials:
                self.trace.on_wait(self.session.helpers.timeout)
                credential = (
                    item if isinstance(item, Credential) else self.session.helpers.get(item, self.trace.warnings)
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
            self.session.memory,
            self.anonymous_fallback,
        )
        outcome = t.cast(auth.Outcome, self._drive(steps, self.base_url, self.place.endpoint.tls, self._send))
        trace = self.trace
        if outcome.credential:
            trace.source = outcome.credential.source
        trace.refused = tuple(dict.fromkeys((*trace.refused, *(item.source for item in outcome.refused))))
        remaining = outcome.response.get("ratelimit-remaining").partition(";")[0].strip()
        if remaining.isascii() and remaining.isdigit() and len(remaining) < 12:
            trace.ratelimit_remaining = int(remaining)
        if protocol.is_refusal(outcome.response):
            raise self._refusal(outcome, request)
        if outcome.refused:
            # what was refused once is not tried again within this look-up
            self._credentials = tuple(item for item in credentials if item not in outcome.refused)
        return outcome.response

    def _drive(
        self,
        steps: t.Generator[auth.Wire | auth.TokenAsk, t.Any, t.Any],
        base_url: str,
        tls: Tls,
        send: t.Callable[[auth.Wire], protocol.Response],
    ) -> t.Any:
        try:
            step = next(steps)
            while True:
                if isinstance(step, auth.TokenAsk):
                    step = steps.send(self.session.tokens.get(step, base_url, tls, self.trace))
                else:
                    step = steps.send(send(step))
        except StopIteration as stop:
            return stop.value
        finally:
            steps.close()

    def _send(self, wire: auth.Wire) -> protocol.Response:
        namespace = self.place.endpoint.namespace
        if namespace:
            # as containerd does, for mirrors that serve several registries
            path, mark = wire.request.path, "&" if "?" in wire.request.path else "?"
            path = f"{path}{mark}{urllib.parse.urlencode({'ns': namespace})}"
            wire = dataclasses.replace(wire, request=dataclasses.replace(wire.request, path=path))
        answer = self._over_the_wire(wire, self.base_url, self.place.endpoint.tls)
        url = self._foreign(answer)
        return answer if url is None else self._elsewhere(wire.request, answer, url)

    def _foreign(self, answer: protocol.Response) -> urls.Url | None:
        """Where an answer came from, if that is not the host that was asked."""
        return None if answer.url.startswith(f"{self._origin}/") else urls.read(answer.url)

    def _over_the_wire(self, wire: auth.Wire, base_url: str, tls: Tls) -> protocol.Response:
        headers = {"User-Agent": USER_AGENT, "Accept": wire.request.accept, "Accept-Encoding": "identity"}
        if wire.authorization:
            headers["Authorization"] = wire.authorization
        return self.session.client.send(
            wire.request.method,
            base_url + wire.request.path,
            headers,
            tls,
            wire.request.max_body,
            progress=self.trace,
            here=self._here,
            home=base_url == self.base_url,
        )

    def _elsewhere(self, request: protocol.Request, answer: protocol.Response, url: urls.Url) -> protocol.Response:
        """The answer of a host that the registry redirected to: it gets no credential, but a token of its own."""
        found = _REPOSITORY.fullmatch(url.target.partition("?")[0])
        tls = Tls(ca_cert=self.place.endpoint.tls.ca_cert)
        steps = auth.anonymous(
            dataclasses.replace(request, path=url.target),
            url.origin,
            found[1] if found else self.place.endpoint.repository,
            answer,
        )
        try:
            answer = self._drive(steps, url.origin, tls, lambda wire: self._over_the_wire(wire, url.origin, tls))
        except StewardError as exc:
            if exc.reason != "unauthorized":
                raise
            self.trace.warnings.append(str(exc))
        if request.method == "HEAD" and answer.status in (401, 403):
            # storage whose URLs are signed for GET: the same as a server that knows no HEAD
            answer = dataclasses.replace(answer, status=405)
        # whoever was redirected to must not name a token server to the registry: it would get the registry's credential
        return dataclasses.replace(answer, headers={**answer.headers, "www-authenticate": ""})

    def _refusal(self, outcome: auth.Outcome, request: protocol.Request) -> StewardError:
        repository = self.place.endpoint.repository
        error = protocol.failure(outcome.response, repository, request.path.rpartition("/")[2].partition("?")[0])
        text = str(error)
        if self._foreign(outcome.response):
            text += f"; {self.place.endpoint.host} redirects there"
        if not outcome.refused:
            return StewardError(text, reason=error.reason, **error.context)
        flaws = {item.source: item.flaw for item in outcome.refused}
        names = ", ".join(f"{source}{flaws.get(source, '')}" for source in self.trace.refused)
        return StewardError(f"{text}; refused: {names}", reason="credential_rejected", status=outcome.response.status)


@functools.lru_cache(maxsize=256)
def _host_of(base_url: str) -> tuple[str, bool]:
    """The origin, and whether it is on this machine's loopback; many look-ups go to one host."""
    url = urls.read(base_url)
    return (url.origin, is_here(url.address)) if url else (base_url, False)

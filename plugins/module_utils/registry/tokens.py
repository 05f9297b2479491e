# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bearer tokens of one call: each is fetched once, and remembered while it is good."""

from __future__ import annotations

import dataclasses
import threading
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import auth, challenge, protocol, urls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import is_here
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Tls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.progress import Progress

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client

MAX_TOKEN_BODY = 1024 * 1024
USER_AGENT = "kubesteward"


class Tokens:
    """Fetches tokens; safe to use from many threads."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._tokens: dict[tuple[t.Hashable, ...], tuple[challenge.Token, float]] = {}
        self._locks: dict[tuple[t.Hashable, ...], threading.Lock] = {}
        self._guard = threading.Lock()

    def get(
        self, ask: auth.TokenAsk, base_url: str, tls: Tls, progress: Progress
    ) -> challenge.Token | protocol.Response:
        """The token for `ask`, remembered or new; the answer of the token server where it refuses.

        :param base_url: scheme and host of the registry that asks for it
        :param tls: the registry's own settings
        :raises StewardError: with one of the documented reasons
        """
        with self._guard:
            lock = self._locks.setdefault(ask.key, threading.Lock())
        wait = min(self.client.timeout * 2, self.client.remaining(base_url, progress))
        progress.on_wait(wait)
        if not lock.acquire(timeout=wait):
            raise StewardError(
                f"{base_url}: another look-up waits for its token server for too long", reason="unreachable"
            )
        try:
            kept = self._tokens.get(ask.key)
            if kept and not ask.fresh and kept[1] > self.client.clock():
                return dataclasses.replace(kept[0], reused=True)
            answer = self._fetch(ask, base_url, tls, progress)
            if isinstance(answer, challenge.Token):
                # a little early, so that it does not end on its way
                self._tokens[ask.key] = answer, self.client.clock() + answer.lifetime - 10.0
            return answer
        finally:
            lock.release()

    def _fetch(
        self, ask: auth.TokenAsk, base_url: str, tls: Tls, progress: Progress
    ) -> challenge.Token | protocol.Response:
        answer: protocol.Response | None = None
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
                tls_for(request.url, base_url, tls),
                MAX_TOKEN_BODY,
                request.form,
                check=lambda url: challenge.check_realm(url, base_url),
                progress=progress,
                here=is_here(base_url.partition("://")[2]),
                home=is_home(request.url, base_url),
            )
            if answer.status not in (404, 405):
                break
        return _token_or_refusal(t.cast(protocol.Response, answer), base_url)


def is_home(url: str, base_url: str) -> bool:
    """True where `url` is on the very host and port of the registry."""
    there, own = urls.read(url), urls.read(base_url)
    return there is not None and own is not None and there.origin == own.origin


def tls_for(url: str, base_url: str, tls: Tls) -> Tls:
    """The registry's own TLS settings on its own host; elsewhere only its CA holds."""
    there, own = urls.read(url), urls.read(base_url)
    same = there is not None and own is not None and there.host == own.host
    return tls if same else Tls(ca_cert=tls.ca_cert)


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

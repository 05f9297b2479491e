# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only file that talks to registries: connections, proxies, TLS, redirects, retries, pauses. Import it lazily."""

from __future__ import annotations

import dataclasses
import os
import random
import threading
import time
import typing as t
import zlib

import requests.exceptions
import urllib3
import urllib3.exceptions

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import urls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.connections import (
    ForbiddenAddress,
    Leave,
    open_pool,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.failures import (
    causes,
    connection_text,
    is_timeout,
    is_tls_problem,
    tls_text,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Tls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.patience import TRIES
from ansible_collections.kubesteward.core.plugins.module_utils.registry.pauses import pause_asked
from ansible_collections.kubesteward.core.plugins.module_utils.registry.progress import Progress
from ansible_collections.kubesteward.core.plugins.module_utils.registry.protocol import Response
from ansible_collections.kubesteward.core.plugins.module_utils.registry.redirects import Sending, redirected

MAX_REDIRECTS = 5
MAX_PAUSE = 5.0
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclasses.dataclass
class Channel:
    """What all requests to one scheme and host share.

    :ivar unanswered: requests that timed out since the last answer
    :ivar dead: what it did instead of answering, where it is not asked any more
    """

    base: str
    pool: t.Any
    whole_urls: bool
    places: threading.BoundedSemaphore
    paused_until: float = 0.0
    answered: bool = False
    unanswered: int = 0
    dead: str | None = None


class Client:
    """Sends requests for one call of the module; safe to use from many threads.

    :param timeout: seconds for a connection and for each wait for data
    :param retries: tries for one request, the first included
    :param concurrency: requests under way to one host at most
    :param deadline: moment of `clock` at which everything ends, or None
    """

    def __init__(
        self,
        timeout: float = 10.0,
        retries: int = 3,
        concurrency: int = 8,
        deadline: float | None = None,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self.timeout, self.retries, self.concurrency, self.deadline = timeout, max(1, retries), concurrency, deadline
        self.clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._channels: dict[tuple[str, Tls, Leave], Channel] = {}
        self._closed = False
        self.requests_made = 0

    def close(self) -> None:
        """End everything: idle connections are closed, and look-ups that were given up ask nothing more."""
        with self._lock:
            self._closed = True
            for channel in self._channels.values():
                channel.pool.close()

    def channel(self, base: str, tls: Tls, leave: Leave = Leave.NEVER) -> Channel:
        """The channel to a base URL, made on first use; `leave` says whether it may be on this machine's loopback.

        :raises StewardError: reason `tls_error` for unreadable certificate files
        """
        key = base, tls, leave
        found = self._channels.get(key)
        if found is not None:
            return found
        with self._lock:
            if key not in self._channels:
                self._channels[key] = self._open(base, tls, leave)
            return self._channels[key]

    def _open(self, base: str, tls: Tls, leave: Leave) -> Channel:
        bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
        try:
            pool, whole_urls = open_pool(base, tls, bundle, self.concurrency, leave)
        except (requests.exceptions.RequestException, urllib3.exceptions.LocationValueError) as exc:
            what = f"{base} is no URL, or the proxy of the environment for it is none"
            raise StewardError(what, reason="unreachable") from exc
        except (OSError, ValueError) as exc:
            names = ", ".join(name for name in (tls.ca_cert, tls.client_cert, tls.client_key) if name)
            raise StewardError(
                f"certificate files for {base} cannot be read ({names or bundle}): {exc.__class__.__name__}",
                reason="tls_error",
            ) from exc
        return Channel(base, pool, whole_urls, threading.BoundedSemaphore(self.concurrency))

    def remaining(self, where: str, progress: Progress) -> float:
        """Seconds until the deadline, or until the look-up at `where` has taken all the time that one gets.

        :raises StewardError: reason `unreachable` where they are over
        """
        if self._closed:
            raise StewardError("the call is over", reason="unreachable")
        now = self.clock()
        left = float("inf") if self.deadline is None else self.deadline - now
        if left <= 0:
            raise StewardError(
                f"the deadline of the call was reached before {where} had answered", reason="unreachable"
            )
        if progress.until <= now:
            raise progress.out_of_time(where)
        return min(left, progress.until - now)

    def send(
        self,
        method: str,
        url: str,
        headers: t.Mapping[str, str],
        tls: Tls,
        max_body: int,
        body: str | None = None,
        check: t.Callable[[str], None] | None = None,
        progress: Progress | None = None,
        here: bool = False,
        home: bool = False,
    ) -> Response:
        """Send one request, again where that can help, and return its answer.

        :param url: http or https, with a host
        :param check: called with the URL of every hop; raises StewardError to refuse it
        :param progress: says how long all of it may take, is told of each request on the wire, and of each pause
        :param here: whether the registry is named as on this machine's loopback
        :param home: whether `url` is on the registry's own host
        :raises StewardError: reason `unreachable`, `tls_error`, `forbidden_registry` or `rate_limited` (key
            `retry_after`, seconds)
        """
        read = urls.read(url)
        if read is None:
            raise StewardError(f"{url[:200]!r} is not a URL of a host", reason="unreachable")
        own = read.origin if home else ""
        sending = Sending(method, read, headers, tls, max_body, body, check, progress or Progress(), here, own)
        channel = self._channel_for(sending)
        for attempt in range(self.retries):
            last = attempt == self.retries - 1
            self._await_turn(channel, sending.progress)
            try:
                answer = self._follow(channel, sending)
            except urllib3.exceptions.HTTPError as exc:
                self._judge(channel, sending.progress, exc, last)
            else:
                if answer.status not in _RETRIED:
                    return answer
                self._pause(channel, answer, attempt, last)
            self._nap(_backoff(attempt), channel, sending.progress)
        raise AssertionError("the last try either returns or raises")

    def _channel_for(self, sending: Sending) -> Channel:
        origin = sending.url.origin
        leave = Leave.ALWAYS if sending.here else Leave.ONE_WAY if origin == sending.home else Leave.NEVER
        return self.channel(origin, sending.tls, leave)

    def _await_turn(self, channel: Channel, progress: Progress) -> None:
        self.remaining(channel.base, progress)
        if channel.dead:
            raise StewardError(f"{channel.base} was not asked again: it {channel.dead} before", reason="unreachable")
        left = channel.paused_until - self.clock()
        if left > MAX_PAUSE:
            raise _rate_limited(channel.base, left)
        if left > 0:
            # not all at once when it ends
            self._nap(left * random.uniform(1.0, 1.1), channel, progress)

    def _nap(self, seconds: float, channel: Channel, progress: Progress) -> None:
        seconds = max(0.0, min(seconds, self.remaining(channel.base, progress)))
        progress.on_wait(seconds)
        self._sleep(seconds)

    def _pause(self, channel: Channel, answer: Response, attempt: int, last: bool) -> None:
        asked = pause_asked(answer, time.time())
        limited = answer.status == 429
        seconds = asked if asked is not None else _backoff(attempt + (1 if limited else 0))
        if limited or asked is not None:
            channel.paused_until = max(channel.paused_until, self.clock() + seconds)
        if seconds > MAX_PAUSE or (last and limited):
            raise _rate_limited(channel.base, seconds)
        if last:
            raise StewardError(
                f"{channel.base} cannot answer now (HTTP {answer.status})", reason="unreachable", status=answer.status
            )

    def _judge(self, channel: Channel, progress: Progress, exc: Exception, last: bool) -> None:
        """Raise what `exc` means, or return where another try can help."""
        found = causes(exc)
        forbidden = next((cause for cause in found if isinstance(cause, ForbiddenAddress)), None)
        if forbidden:
            raise StewardError(f"{channel.base}: {forbidden}", reason="forbidden_registry") from exc
        if is_tls_problem(found):
            raise StewardError(f"TLS with {channel.base} failed: {tls_text(found)}", reason="tls_error") from exc
        timed_out = any(is_timeout(cause) for cause in found)
        if timed_out:
            # as many as are under way at once may have met one bad moment, some more have not
            channel.unanswered += 1
            if channel.unanswered >= self.concurrency + TRIES:
                channel.dead = f"did not answer within {self.timeout:g} s"
            # it had less than a whole time-out where time is over now
            self.remaining(channel.base, progress)
        what = f"did not answer within {self.timeout:g} s" if timed_out else connection_text(found)
        if timed_out or last:
            if not channel.answered and not timed_out:
                channel.dead = what
            raise StewardError(f"{channel.base} {what}", reason="unreachable") from exc

    def _follow(self, channel: Channel, sending: Sending) -> Response:
        for _hop in range(MAX_REDIRECTS + 1):
            if sending.check:
                sending.check(str(sending.url))
            answer = self._once(channel, sending)
            location = answer.get("location") if answer.status in _REDIRECTS else ""
            if not location:
                return answer
            sending = redirected(sending, location)
            channel = self._channel_for(sending)
        raise StewardError(f"{channel.base} redirects more than {MAX_REDIRECTS} times", reason="unreachable")

    def _once(self, channel: Channel, sending: Sending) -> Response:
        wait = min(self.timeout * 2, self.remaining(channel.base, sending.progress))
        sending.progress.on_wait(wait)
        if not channel.places.acquire(timeout=wait):
            raise StewardError(f"{channel.base} is busy with earlier requests for too long", reason="unreachable")
        try:
            wait = min(self.timeout, self.remaining(channel.base, sending.progress))
            sending.progress.on_request()
            with self._lock:
                self.requests_made += 1
            end = self.clock() + wait
            answer = channel.pool.request(
                sending.method,
                str(sending.url) if channel.whole_urls else sending.url.target,
                body=sending.body,
                headers=sending.headers,
                retries=False,
                redirect=False,
                assert_same_host=False,
                timeout=urllib3.Timeout(total=wait, connect=wait, read=wait),
                preload_content=False,
                decode_content=False,
            )
            channel.answered, channel.unanswered = True, 0
            data = _read(answer, sending, lambda: self.clock() > end)
        finally:
            channel.places.release()
        # by name and not by items(): that would give only the last of several challenges
        lowered = {name.lower(): answer.headers[name] for name in answer.headers}
        return Response(
            answer.status, lowered, data[: sending.max_body], str(sending.url), len(data) > sending.max_body
        )


def _read(raw: t.Any, sending: Sending, is_late: t.Callable[[], bool]) -> bytes:
    """The body, at most one byte more than is wanted; the connection goes back to the pool or is closed."""
    parts, size, whole = [], 0, sending.method == "HEAD"
    try:
        while not whole and size <= sending.max_body:
            part = raw.read(min(65536, sending.max_body + 1 - size), decode_content=False)
            parts.append(part)
            size += len(part)
            whole = not part
            if is_late():
                raise urllib3.exceptions.TimeoutError("the body came too slowly")
    finally:
        if not whole:
            raw.close()
        raw.release_conn()
    return _decoded(b"".join(parts), raw.headers.get("content-encoding", ""), sending)


def _decoded(data: bytes, encoding: str, sending: Sending) -> bytes:
    """Unpack what was compressed though nobody asked for it: gzip only, and never more than is wanted (bombs)."""
    encoding = encoding.strip().lower()
    if not data or encoding in ("", "identity"):
        return data
    if encoding not in ("gzip", "x-gzip"):
        raise StewardError(
            f"{sending.url.origin} packs its answer in a way that was not asked for", reason="not_a_manifest"
        )
    unpacking = zlib.decompressobj(wbits=31)
    try:
        plain = unpacking.decompress(data, sending.max_body + 1)
    except zlib.error as exc:
        raise urllib3.exceptions.DecodeError("the packed body is damaged") from exc
    if not unpacking.eof and len(plain) <= sending.max_body:
        raise urllib3.exceptions.DecodeError("the packed body breaks off")
    return plain


def _rate_limited(base: str, seconds: float) -> StewardError:
    whole = max(1, round(seconds))
    return StewardError(
        f"{base} asks for a pause of {whole} s; try again after it", reason="rate_limited", retry_after=whole
    )


def _backoff(attempt: int) -> float:
    return min(2.0, 0.2 * 2**attempt) * random.uniform(0.75, 1.25)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the errors of a connection mean. Import it lazily."""

from __future__ import annotations

import ssl
import typing as t

import urllib3.exceptions


def causes(exc: BaseException) -> list[BaseException]:
    """`exc` and what it wraps, in requests' and urllib3's various places."""
    found: list[BaseException] = []
    queue: list[t.Any] = [exc]
    while queue and len(found) < 20:
        item = queue.pop(0)
        if isinstance(item, BaseException) and item not in found:
            found.append(item)
            queue += [item.__cause__, item.__context__, getattr(item, "reason", None), *item.args]
    return found


def is_timeout(cause: BaseException) -> bool:
    """True where something took longer than it may."""
    # a refused connection is a kind of connection time-out in urllib3's hierarchy
    if isinstance(cause, urllib3.exceptions.NewConnectionError):
        return False
    return isinstance(cause, (TimeoutError, urllib3.exceptions.TimeoutError))


def is_tls_problem(causes: t.Sequence[BaseException]) -> bool:
    """True where the two sides do not agree, which another try does not change; a connection that ends is none."""
    ended = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
    return any(isinstance(cause, urllib3.exceptions.SSLError) for cause in causes) and not any(
        isinstance(cause, ended) or "EOF occurred" in str(cause) for cause in causes if isinstance(cause, ssl.SSLError)
    )


def tls_text(causes: t.Iterable[BaseException]) -> str:
    """Why TLS failed, for people."""
    message = next((text for text in (getattr(cause, "verify_message", "") for cause in causes) if text), "")
    return f"certificate verify failed: {message}" if message else "no agreement (is this a plain HTTP registry?)"


def connection_text(causes: t.Iterable[BaseException]) -> str:
    """What the other side did instead of answering, for people."""
    found = list(causes)
    names = [type(cause).__name__ for cause in found]
    if "NameResolutionError" in names or "gaierror" in names:
        return "has a name that does not resolve"
    if "ConnectionRefusedError" in names:
        return "refuses the connection"
    if "ProxyError" in names:
        return "cannot be reached through the proxy of the environment"
    if any(isinstance(cause, urllib3.exceptions.SSLError) for cause in found):
        return "ends the connection in the TLS handshake (is this a plain HTTP registry?)"
    return "breaks the connection"

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One request on its way, and where a redirect takes it. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import urls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import (
    is_forbidden,
    is_here,
    split_host,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Tls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.progress import Progress


@dataclasses.dataclass(frozen=True)
class Sending:
    """One request on its way.

    :ivar check: sees the URL of every hop, and raises StewardError to refuse it
    :ivar progress: is told of each request
    :ivar here: True where the registry is named as on this machine's loopback, so that redirects may lead there
    :ivar home: origin of the registry itself, whose name may lead to loopback; empty where others are asked
    """

    method: str
    url: urls.Url
    headers: t.Mapping[str, str] = dataclasses.field(repr=False)
    tls: Tls
    max_body: int
    body: str | None = dataclasses.field(repr=False)
    check: t.Callable[[str], None] | None
    progress: Progress
    here: bool
    home: str = ""


def redirected(sending: Sending, location: str) -> Sending:
    """The next hop; another scheme, host or port gets no credential, no client certificate and full verification.

    :raises StewardError: for one that is not followed
    """
    url = urls.join(sending.url, location)
    if url is not None and url.origin == sending.url.origin:
        return dataclasses.replace(sending, url=url)
    url = _checked(sending, url)
    if sending.body is not None:
        raise StewardError(
            f"{sending.url.origin} sends a credential on to another host, which is not followed",
            reason="unauthorized",
        )
    headers = {name: value for name, value in sending.headers.items() if name.lower() != "authorization"}
    tls = dataclasses.replace(sending.tls, verify=True, client_cert=None, client_key=None)
    return dataclasses.replace(sending, url=url, headers=headers, tls=tls)


def _checked(sending: Sending, url: urls.Url | None) -> urls.Url:
    # by its name only: what a name leads to is checked on the open connection
    if url is None or (is_here(url.host) and not sending.here) or is_forbidden(split_host(url.host)[0]):
        raise StewardError(
            f"{sending.url.origin} redirects to where nothing is sent: {url.host if url else 'not a URL of a host'}",
            reason="forbidden_registry",
        )
    if sending.url.scheme == "https" and url.scheme == "http":
        raise StewardError(
            f"{sending.url.origin} redirects from https to plain http ({url.host}), which is not followed",
            reason="tls_error",
        )
    return url

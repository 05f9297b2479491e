# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections to one registry: TLS, proxies, addresses that are never connected to. Import it lazily."""

from __future__ import annotations

import enum
import ipaddress
import os
import threading
import typing as t
import urllib.parse

import requests.adapters
import requests.models
import requests.utils
import urllib3.connection
import urllib3.connectionpool
import urllib3.exceptions
import urllib3.util.ssl_

from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import is_forbidden, is_loopback
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Tls


class ForbiddenAddress(urllib3.exceptions.HTTPError):
    """A name led to an address that nothing is sent to."""


class Leave(enum.Enum):
    """Whether a host may turn out to be this machine's loopback.

    `ALWAYS` where the registry is named so. `ONE_WAY` for the registry's own host of any other name: it may be here or
    elsewhere, but not change from one to the other, as a name server may try. `NEVER` for whom a registry names.
    """

    ALWAYS = "always"
    ONE_WAY = "one way"
    NEVER = "never"


class Guard:
    """Tests the peer of each connection that is opened to one host."""

    def __init__(self, leave: Leave) -> None:
        self._leave, self._lock = leave, threading.Lock()
        self._first: bool | None = None

    def check(self, peer: str) -> None:
        """:raises ForbiddenAddress: where nothing is sent"""
        if is_forbidden(peer):
            raise ForbiddenAddress(f"{peer} is a link-local or metadata address; nothing is sent there")
        here = is_loopback(peer)
        if self._leave is Leave.ONE_WAY:
            with self._lock:
                self._first = here if self._first is None else self._first
            if here != self._first:
                raise ForbiddenAddress(
                    f"the name leads to this machine itself and elsewhere ({peer}); nothing is sent there"
                )
        elif here and self._leave is Leave.NEVER:
            raise ForbiddenAddress(f"the name leads to this machine itself ({peer}); nothing is sent there")


class _HttpConnection(urllib3.connection.HTTPConnection):
    guard: Guard

    def _new_conn(self) -> t.Any:
        return _guarded(super()._new_conn(), self.guard)


class _HttpsConnection(urllib3.connection.HTTPSConnection):
    guard: Guard

    def _new_conn(self) -> t.Any:
        return _guarded(super()._new_conn(), self.guard)


def _guarded(sock: t.Any, guard: Guard) -> t.Any:
    # Checked on the open connection, so no trick of the name server gets past it.
    try:
        guard.check(sock.getpeername()[0])
    except ForbiddenAddress:
        sock.close()
        raise
    return sock


class _HttpPool(urllib3.connectionpool.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(urllib3.connectionpool.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection

    def _validate_conn(self, conn: t.Any) -> None:
        # as the parent does, but for its warning on stderr: unverified TLS is what the administrator asked for
        urllib3.connectionpool.HTTPConnectionPool._validate_conn(self, conn)
        if conn.sock is None:
            conn.connect()


class Adapter(requests.adapters.HTTPAdapter):
    """An adapter for one host with its own TLS context; the registry's CA is trusted beside the system's.

    Connections to a proxy of the environment are not guarded: where it is, and where it leads, is the administrator's.
    """

    def __init__(self, tls: Tls, connections: int) -> None:
        self._tls = tls
        super().__init__(pool_connections=2, pool_maxsize=connections, max_retries=0)

    def _context(self) -> t.Any:
        if not (self._tls.ca_cert or self._tls.client_cert):
            return None
        context = urllib3.util.ssl_.create_urllib3_context()
        if self._tls.ca_cert:
            context.load_verify_locations(cafile=self._tls.ca_cert)
        if self._tls.client_cert:
            context.load_cert_chain(self._tls.client_cert, self._tls.client_key)
        return context

    def init_poolmanager(self, *args: t.Any, **kwargs: t.Any) -> None:
        context = self._context()
        if context is not None:
            kwargs["ssl_context"] = context
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def proxy_manager_for(self, proxy: str, **kwargs: t.Any) -> t.Any:
        context = self._context()
        if context is not None:
            kwargs["ssl_context"] = context
        return super().proxy_manager_for(proxy, **kwargs)


def open_pool(base: str, tls: Tls, bundle: str | bool, connections: int, leave: Leave) -> tuple[t.Any, bool]:
    """requests' own connection pool for one base URL, and whether its requests need whole URLs (plain HTTP by proxy).

    One pool for all requests to a host spares what requests does for each: finding it again, proxies, TLS settings.

    :param bundle: CA bundle of the system as requests' `verify`
    :param leave: whether the host may be this machine's loopback
    :raises OSError, ValueError: for certificate files that cannot be read
    :raises requests.exceptions.RequestException: for a proxy of the environment that is no URL
    """
    adapter, proxies = Adapter(tls, connections), environment_proxies(base)
    probe = requests.models.PreparedRequest()
    probe.prepare_method("HEAD")
    probe.prepare_url(base, None)
    probe.prepare_headers({})
    verify = bundle if tls.verify else False
    pool = adapter.get_connection_with_tls_context(probe, verify, proxies=proxies)
    adapter.cert_verify(pool, base, verify, None)
    if isinstance(pool, (_HttpPool, _HttpsPool)):
        guarded: t.Any = type("Guarded", (pool.ConnectionCls,), {"guard": Guard(leave)})
        pool.ConnectionCls = guarded
    return pool, adapter.request_url(probe, proxies).startswith("http:")


def environment_proxies(url: str) -> dict[str, str]:
    """Proxies of the environment for `url`; `NO_PROXY` knows names, suffixes, addresses and CIDR ranges."""
    host = urllib.parse.urlsplit(url).hostname or ""
    if is_loopback(host) or _in_ranges(host, os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""):
        return {}
    return requests.utils.get_environ_proxies(url)


def _in_ranges(host: str, no_proxy: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for item in no_proxy.split(","):
        try:
            if address in ipaddress.ip_network(item.strip().strip("[]"), strict=False):
                return True
        except ValueError:
            continue
    return False

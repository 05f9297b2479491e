# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts and addresses are special: loopback, link-local, the metadata services of clouds. Pure."""

from __future__ import annotations

import ipaddress
import re
import socket

#: addresses where clouds serve instance credentials outside of the link-local ranges.
METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
# whose last 32 bits are an IPv4 address: translated ones, everywhere and locally, and the oldest way to write one
_WITH_IPV4 = tuple(ipaddress.ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96"))
# what the C library takes for an IPv4 address as well: 2852039166, 0xa9fea9fe, 0251.0376.0251.0376, 169.254.43518
_LEGACY = re.compile(r"(?:0x[0-9a-f]{0,8}|[0-9]{1,11})(?:\.(?:0x[0-9a-f]{0,8}|[0-9]{1,11})){0,3}", re.IGNORECASE)
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"})


def split_host(host: str) -> tuple[str, str]:
    """`host[:port]` -> (name in lower case without brackets, port or an empty string)."""
    if host.startswith("["):
        name, _bracket, port = host[1:].partition("]")
        return name.lower(), port.lstrip(":")
    if host.count(":") > 1:
        return host.lower(), ""
    name, _colon, port = host.partition(":")
    return name.lower(), port


def as_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that `name` is, in any notation, an IPv4 address within IPv6 unwrapped; None for other names."""
    text = name.partition("%")[0].rstrip(".")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return _legacy_address(text)
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if not (address.is_loopback or address.is_unspecified) and any(address in network for network in _WITH_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _legacy_address(text: str) -> ipaddress.IPv4Address | None:
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text)) if _LEGACY.fullmatch(text) else None
    except OSError:
        return None


def is_loopback(host: str) -> bool:
    """True for localhost, 127.0.0.0/8 and ::1, with or without a port."""
    name = split_host(host)[0].rstrip(".")
    address = as_address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


def is_here(host: str) -> bool:
    """True for `is_loopback`, and for the names below `localhost`, which are reserved for it."""
    return is_loopback(host) or split_host(host)[0].rstrip(".").endswith(".localhost")


def is_forbidden(name: str) -> bool:
    """True where nothing is ever sent: link-local, multicast, unspecified addresses and metadata services."""
    address = as_address(name)
    if address is None:
        # an escaped name is another name to whoever unescapes it
        return "%" in name or name.lower().rstrip(".") in _METADATA_NAMES
    return address.is_link_local or address.is_multicast or address.is_unspecified or address in METADATA

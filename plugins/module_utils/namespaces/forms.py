# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms that the API server asks of names, labels, resources, and addresses. Pure.

It would refuse them in whatever object they stand, after others are written already: this is asked before the first
write.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import quantity

#: a label of the domain name system: names of Namespaces
LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]"
#: names that the API server gives to a prefix or an object that is no namespace
_MOST_OF_SUBDOMAIN = 253
#: what the annotations of an object may have together, keys included; of it our own take some
MOST_OF_ANNOTATIONS, ROOM_FOR_OURS = 256 * 1024, 32 * 1024

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTS = (
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)
_QUOTA = (
    *(f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _COMPUTE),
    "requests.storage",
    *_COUNTS,
)
_HUGE, _HUGE_REQUESTS = "hugepages-", "requests.hugepages-"
PROTOCOLS = ("TCP", "UDP", "SCTP")


def is_namespace(text: str) -> bool:
    """A name that a Namespace can have."""
    return bool(re.fullmatch(LABEL, text))


def is_subdomain(text: str) -> bool:
    """A name that most other objects can have, ServiceAccounts and Secrets among them."""
    return len(text) <= _MOST_OF_SUBDOMAIN and bool(re.fullmatch(_SUBDOMAIN, text))


def is_key(text: str) -> bool:
    """A key of a label or an annotation, or a resource: `name` or `subdomain/name`."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and bool(re.fullmatch(_QUALIFIED, name))


def is_value(text: str) -> bool:
    """A value of a label."""
    return not text or bool(re.fullmatch(_QUALIFIED, text))


def check_roles(names: t.Iterable[str]) -> None:
    """Names of ClusterRoles, which become part of the names of RoleBindings.

    :raises StewardError: one could be part of no name
    """
    for name in names:
        if not re.fullmatch(r"[-A-Za-z0-9._:]+", name):
            raise StewardError(
                f"allowed_roles: {name!r} is no name of a ClusterRole: letters, digits, -, _, . and : are"
            )


def check_quota(resource: str, amount: t.Any, where: str) -> None:
    """A line of a ResourceQuota.

    :raises StewardError: no quota has such a resource, or not that much of it
    """
    _check_name(resource, is_key(resource) and ("/" in resource or _is_standard(resource)), where, _QUOTA)
    number = check_amount(amount, f"{where}.{resource}")
    if _is_whole(resource) and number != int(number):
        raise StewardError(f"{where}.{resource} is {amount}; what is counted has whole numbers only")


def _is_standard(resource: str) -> bool:
    return resource in _QUOTA or resource.startswith((_HUGE, _HUGE_REQUESTS))


def _is_whole(resource: str) -> bool:
    return resource in _COUNTS or is_extended(resource)


def check_limit(resource: str, amount: t.Any, where: str) -> None:
    """A line of a LimitRange of containers.

    :raises StewardError: no container has such a resource, or not that much of it
    """
    is_native = resource in _COMPUTE or resource.startswith(_HUGE)
    is_qualified = "/" in resource and ("kubernetes.io/" in resource or is_extended(resource))
    _check_name(resource, is_key(resource) and (is_native or is_qualified), where, _COMPUTE)
    check_amount(amount, f"{where}.{resource}")


def is_extended(resource: str) -> bool:
    """A resource that somebody has added to the cluster, as `nvidia.com/gpu`."""
    is_native = "/" not in resource or "kubernetes.io/" in resource
    return not (is_native or resource.startswith("requests.")) and is_key(f"requests.{resource}")


def may_overcommit(resource: str) -> bool:
    """False for what a container must request as much of as its limit is."""
    return not (is_extended(resource) or resource.startswith(_HUGE))


def _check_name(resource: str, is_known: bool, where: str, known: t.Sequence[str]) -> None:
    if not is_known:
        near = difflib.get_close_matches(resource, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"{known[0]} or {known[-1]} for example"
        raise StewardError(f"{where}: {resource!r} is no name of a resource that it can have; {hint}")


def check_amount(amount: t.Any, where: str) -> t.Any:
    """The number of an amount.

    :raises StewardError: it is no quantity, or less than 0
    """
    try:
        number = quantity.parse(amount)
    except StewardError as exc:
        raise StewardError(f"{where}: {exc}") from None
    if number < 0:
        raise StewardError(f"{where} is {amount}; it cannot be less than 0")
    return number


def ports(given: t.Iterable[t.Mapping[str, t.Any]], where: str) -> tuple[dict[str, t.Any], ...]:
    """Ports of a NetworkPolicy, {`port`, `protocol`}.

    :raises StewardError: one is no port
    """
    found = []
    for entry in given:
        number, protocol = entry.get("port"), entry.get("protocol") or "TCP"
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 65535:
            raise StewardError(f"{where}: port {number!r} is none; ports are the numbers from 1 to 65535")
        if protocol not in PROTOCOLS:
            raise StewardError(f"{where}: protocol {protocol!r} of port {number} is none of {', '.join(PROTOCOLS)}")
        found.append({"port": number, "protocol": protocol})
    return tuple(found)


def cidr(text: t.Any, where: str) -> str:
    """A block of addresses, `10.1.0.0/16` or `2001:db8::/32`.

    :raises StewardError: it is none
    """
    address, slash, length = str(text).partition("/")
    try:
        one = ipaddress.ip_address(address)
    except ValueError:
        one = None
    if one is None or "%" in address or not re.fullmatch(r"/(0|[1-9][0-9]{0,2})", slash + length):
        hint = f"; a single address is written {address}/{one.max_prefixlen}" if one and not slash else ""
        raise StewardError(f"{where}: {text!r} is no block of addresses such as 10.1.0.0/16 or 192.0.2.7/32{hint}")
    if int(length) > one.max_prefixlen:
        raise StewardError(f"{where}: {text!r} has a length of more than {one.max_prefixlen}")
    block = ipaddress.ip_network(text, strict=False)
    if str(block.network_address) != str(one):
        raise StewardError(f"{where}: {text!r} begins within its block; write {block}, or {one}/{one.max_prefixlen}")
    return str(text)

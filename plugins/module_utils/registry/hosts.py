# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a reference is looked up: the administrator's registries, mirrors, TLS settings and allowed list. Pure."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import (
    is_forbidden,
    is_loopback,
    split_host,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import (
    HUB_ALIASES,
    Reference,
    api_host,
)

_LOCATION = re.compile(
    r"(?P<host>\[[0-9a-fA-F:]+\](?::[0-9]+)?|[A-Za-z0-9.-]+(?::[0-9]+)?)(?:/(?P<path>[a-z0-9._/-]+))?"
)


@dataclasses.dataclass(frozen=True)
class Tls:
    """How TLS to one registry is checked; paths of files, None where the system's own apply."""

    verify: bool = True
    ca_cert: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One place to ask for one repository.

    :ivar host: host and port of the API
    :ivar repository: the repository's path there
    :ivar schemes: what to try, in order: `https`, `http`
    :ivar mirror: True for a mirror, False for the registry itself
    :ivar namespace: what a mirror is told as `ns`, the registry that is meant
    """

    host: str
    repository: str
    schemes: tuple[str, ...] = ("https",)
    tls: Tls = Tls()
    mirror: bool = False
    namespace: str = ""


@dataclasses.dataclass(frozen=True)
class Mirror:
    location: str
    insecure: bool = False


@dataclasses.dataclass(frozen=True)
class RegistryRule:
    """One item of `registries`, checked."""

    prefix: str
    location: str | None
    insecure: bool
    mirrors: tuple[Mirror, ...]
    tls: Tls
    tls_given: bool


def read_rules(items: t.Sequence[t.Mapping[str, t.Any]] | None) -> tuple[RegistryRule, ...]:
    """Check the administrator's list.

    :raises StewardError: the message names the item by its index and what to write instead
    """
    return tuple(_read_rule(index, item) for index, item in enumerate(items or ()))


def _read_rule(index: int, item: t.Mapping[str, t.Any]) -> RegistryRule:
    where = f"registries[{index}]"
    prefix = item.get("prefix") or item.get("location")
    if not prefix:
        raise StewardError(
            f"{where}: needs 'prefix' (what references begin with) or 'location' (where to look them up)"
        )
    _check_location(f"{where}.prefix", prefix.removeprefix("*."))
    location = item.get("location")
    if location:
        _check_location(f"{where}.location", location)
    mirrors = []
    for number, mirror in enumerate(item.get("mirror") or ()):
        _check_location(f"{where}.mirror[{number}].location", mirror.get("location") or "")
        mirrors.append(Mirror(mirror["location"], bool(mirror.get("insecure"))))
    verify = item.get("validate_certs")
    tls = Tls(verify is not False, item.get("ca_cert"), item.get("client_cert"), item.get("client_key"))
    given = verify is not None or bool(tls.ca_cert or tls.client_cert)
    return RegistryRule(_canonical(prefix), location, bool(item.get("insecure")), tuple(mirrors), tls, given)


def _check_location(where: str, text: str) -> None:
    if "://" in text:
        raise StewardError(
            f"{where}: {text!r} has a URL scheme; write host[:port][/path], and 'insecure: true' for plain HTTP"
        )
    found = _LOCATION.fullmatch(text)
    if not found:
        raise StewardError(f"{where}: {text!r} is not host[:port][/path]")
    if is_forbidden(split_host(found["host"])[0]):
        raise StewardError(f"{where}: {text!r} is a link-local or metadata address, which is never a registry")


def _canonical(prefix: str) -> str:
    host, slash, path = prefix.partition("/")
    return f"{'docker.io' if host.lower() in HUB_ALIASES else host.lower()}{slash}{path}"


def _rest_after(rule: RegistryRule, name: str) -> str | None:
    """What of `name` follows the rule's prefix, or None where the rule is for others."""
    prefix = rule.prefix
    if prefix.startswith("*."):
        host, slash, path = name.partition("/")
        return slash + path if host.endswith(prefix[1:]) else None
    if name == prefix or name.startswith(f"{prefix}/"):
        return name[len(prefix) :]
    return None


def rule_for(reference: Reference, rules: t.Sequence[RegistryRule]) -> RegistryRule | None:
    """The rule with the longest matching prefix; a wildcard ranks by its length as well."""
    name = _canonical(reference.name)
    return max(
        (rule for rule in rules if _rest_after(rule, name) is not None), key=lambda rule: len(rule.prefix), default=None
    )


def endpoints(reference: Reference, rules: t.Sequence[RegistryRule]) -> tuple[Endpoint, ...]:
    """Places to ask, best first: the mirrors in order, then the registry itself.

    :raises StewardError: reason `forbidden_registry` for a link-local or metadata address
    """
    rule = rule_for(reference, rules)
    if rule is None:
        return (_endpoint(reference.registry, reference.repository, False, Tls(), False, False),)
    rest = t.cast(str, _rest_after(rule, _canonical(reference.name)))
    places = [
        # of the registry's own options a mirror gets its CA only: no client certificate, no leave to skip checks
        dataclasses.replace(
            _endpoint(host, path, mirror.insecure, Tls(ca_cert=rule.tls.ca_cert), False, True),
            namespace=reference.domain,
        )
        for mirror in rule.mirrors
        for host, path in [_at(mirror.location, rest, rule)]
    ]
    if rule.location:
        host, path = _at(rule.location, rest, rule)
        places.append(_endpoint(host, path, rule.insecure, rule.tls, rule.tls_given, False))
    else:
        places.append(
            _endpoint(reference.registry, reference.repository, rule.insecure, rule.tls, rule.tls_given, False)
        )
    return tuple(places)


def _at(location: str, rest: str, rule: RegistryRule) -> tuple[str, str]:
    """Host and repository of `location` with what follows the prefix."""
    host, _slash, path = f"{location}{rest}".partition("/")
    if not path:
        raise StewardError(
            f"registries: prefix {rule.prefix!r} names a whole repository, so {location!r} needs its path as well",
            reason="unreachable",
        )
    return api_host(host), path


def _endpoint(host: str, repository: str, insecure: bool, tls: Tls, tls_given: bool, mirror: bool) -> Endpoint:
    if is_forbidden(split_host(host)[0]):
        raise StewardError(f"{host} is a link-local or metadata address, never a registry", reason="forbidden_registry")
    if insecure:
        tls = dataclasses.replace(tls, verify=False)
        schemes: tuple[str, ...] = ("http", "https") if is_loopback(host) else ("https", "http")
    elif is_loopback(host) and not tls_given:
        schemes = ("http",)
    else:
        schemes = ("https",)
    return Endpoint(host, repository, schemes, tls, mirror)


def is_allowed(reference: Reference, patterns: t.Sequence[str] | None) -> bool:
    """True where a pattern fits the host, or the host and a leading part of the path; None allows all.

    A pattern is `host[:port][/path]`; `*` in the host stands for any text of one label, in the path for any text.
    """
    if patterns is None:
        return True
    host, path = _canonical(reference.domain), reference.repository
    return any(_allows(_canonical(pattern), host, path) for pattern in patterns)


def _allows(pattern: str, host: str, path: str) -> bool:
    if pattern == "*":
        return True
    want_host, _slash, want_path = pattern.partition("/")
    have, want = split_host(host), split_host(want_host)
    labels, wanted = have[0].split("."), want[0].split(".")
    if have[1] != want[1] or len(labels) != len(wanted):
        return False
    if not all(fnmatch.fnmatchcase(label, glob) for label, glob in zip(labels, wanted, strict=True)):
        return False
    want_path = want_path.rstrip("/")
    if not want_path:
        return True
    return fnmatch.fnmatchcase(path, want_path) or fnmatch.fnmatchcase(path, f"{want_path}/*")

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials for a registry, found as the kubelet finds them: docker configuration in, candidates out. Pure."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import fnmatch
import json
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import split_host
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import HUB, HUB_ALIASES, HUB_API

MAX_LISTED = 5
SECRET_KEYS = {"kubernetes.io/dockerconfigjson": ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}


@dataclasses.dataclass(frozen=True)
class Credential:
    """What one source offers for one registry; `source` is a name for people, the rest is secret and never printed."""

    source: str
    username: str = dataclasses.field(default="", repr=False)
    password: str = dataclasses.field(default="", repr=False)
    identity_token: str = dataclasses.field(default="", repr=False)
    registry_token: str = dataclasses.field(default="", repr=False)

    def basic(self) -> str:
        """Value of an `Authorization: Basic` header, without the scheme."""
        pair = f"{self.username}:{self.password}".encode("utf-8", "surrogatepass")
        return base64.b64encode(pair).decode("ascii")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be printed, in every form that is sent."""
        given = (self.password, self.identity_token, self.registry_token)
        return (*(text for text in given if text), *((self.basic(),) if self.password else ()))

    @property
    def flaw(self) -> str:
        """What may be the reason where it is refused, ` (...)` for people; empty where nothing strikes."""
        for name, text in (("password", self.password), ("user name", self.username), ("token", self.identity_token)):
            if text.endswith(("\n", "\r")):
                return f" (its {name} ends with a line break, as `echo` without -n writes; make it anew without)"
            if text != text.strip():
                return f" (its {name} begins or ends with a space)"
        return ""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One key of `auths`: for which hosts, ports and paths a credential is meant."""

    host: str
    port: str
    path: str
    credential: Credential


@dataclasses.dataclass(frozen=True)
class DockerConfig:
    """A docker configuration: what it says itself, and which helper programs it names.

    :ivar source: its name for people
    :ivar problems: what was unreadable, without any value
    """

    source: str
    entries: tuple[Entry, ...] = ()
    helpers: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    store: str | None = None
    problems: tuple[str, ...] = ()


def read_config(content: str | bytes | t.Mapping[str, t.Any], source: str, legacy: bool | None = None) -> DockerConfig:
    """Read a `config.json` or, with `legacy`, a `.dockercfg`; None tells them apart by the key `auths`.

    What cannot be read becomes a problem of the result that names the source and the key, never a value.
    """
    data: t.Any = content
    if isinstance(content, (str, bytes)):
        try:
            data = json.loads(content)
        except (ValueError, RecursionError):
            return DockerConfig(source, problems=(f"{source}: is not JSON",))
    if not isinstance(data, t.Mapping):
        return DockerConfig(source, problems=(f"{source}: is not a JSON object",))
    if legacy is None:
        legacy = not {"auths", "credHelpers", "credsStore"} & set(data)
    auths = data if legacy else data.get("auths") or {}
    if not isinstance(auths, t.Mapping):
        return DockerConfig(source, problems=(f"{source}: 'auths' is not a JSON object",))
    read = [_read_entry(str(key), value, source) for key, value in auths.items()]
    helpers = {} if legacy else data.get("credHelpers") or {}
    store = None if legacy else data.get("credsStore") or None
    problems = [entry for entry in read if isinstance(entry, str)]
    if not isinstance(helpers, t.Mapping) or not isinstance(store, (str, type(None))):
        problems.append(f"{source}: 'credHelpers' is not an object of names, or 'credsStore' is not a name")
        helpers, store = {}, None
    return DockerConfig(
        source,
        entries=tuple(entry for entry in read if isinstance(entry, Entry)),
        helpers={str(key): str(value) for key, value in helpers.items()},
        store=store,
        problems=tuple(problems),
    )


def read_secret(secret: t.Mapping[str, t.Any] | None, namespace: str, name: str) -> DockerConfig:
    """Read a Secret of type `kubernetes.io/dockerconfigjson` or `kubernetes.io/dockercfg`, None being a missing one.

    Helper programs that a Secret names are ignored, as the kubelet does: its author must not start programs here.
    """
    source = f"secret {namespace}/{name}"
    if secret is None:
        return DockerConfig(source, problems=(f"{source}: does not exist",))
    key = SECRET_KEYS.get(secret.get("type") or "")
    if key is None:
        return DockerConfig(source, problems=(f"{source}: is of another type than {' or '.join(SECRET_KEYS)}",))
    value = (secret.get("data") or {}).get(key)
    if not isinstance(value, str) or not value:
        return DockerConfig(source, problems=(f"{source}: has no data key {key}",))
    try:
        content = base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        return DockerConfig(source, problems=(f"{source}: data key {key} is not base64",))
    config = read_config(content, source, legacy=key == ".dockercfg")
    return dataclasses.replace(config, helpers={}, store=None)


def _read_entry(key: str, value: t.Any, source: str) -> Entry | str | None:
    if not isinstance(value, t.Mapping):
        return f"{source}: an entry of 'auths' is not a JSON object"
    fields = {
        name: value.get(name) or "" for name in ("username", "password", "auth", "identitytoken", "registrytoken")
    }
    if not all(is_text(text) for text in fields.values()):
        return f"{source}: a field of an entry of 'auths' is not text"
    if not re.fullmatch(r"[\x21-\x7e]*", fields["registrytoken"]):
        return f"{source}: 'registrytoken' of an entry of 'auths' has characters that no token has"
    username, password = fields["username"], fields["password"]
    if fields["auth"]:
        pair = _decode_auth(fields["auth"])
        if pair is None:
            return f"{source}: 'auth' of an entry of 'auths' is not base64 of user:password"
        username, password = pair
    if not (username or password or fields["identitytoken"] or fields["registrytoken"]):
        return None
    where = _split_key(key)
    if where is None:
        return f"{source}: a key of 'auths' is not host[:port][/path]"
    return Entry(*where, Credential(source, username, password, fields["identitytoken"], fields["registrytoken"]))


def is_text(value: t.Any) -> bool:
    """True for text that can be sent: JSON may hold halves of surrogate pairs, which have no bytes."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _decode_auth(text: str) -> tuple[str, str] | None:
    text = text.strip()
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (ValueError, binascii.Error):
        return None
    username, colon, password = decoded.partition(":")
    # docker writes some values with trailing zero bytes
    return (username, password.strip("\x00")) if colon else None


def _split_key(key: str) -> tuple[str, str, str] | None:
    text = key.split("://", 1)[1] if key.startswith(("http://", "https://")) else key
    address, slash, path = text.partition("/")
    host, port = split_host(address)
    if not host or (port and not port.isdigit()):
        return None
    path = slash + path
    # the API version in a key stands for the host itself: https://index.docker.io/v1/
    if path.startswith(("/v1/", "/v2/")):
        path = path[3:]
    elif path in ("/v1", "/v2"):
        path = ""
    return host, port, "" if path == "/" else path


def matching(configs: t.Iterable[DockerConfig], host: str, repository: str) -> tuple[Credential, ...]:
    """Every credential meant for `repository` on `host` (`host[:port]`), best first, each once.

    Sources keep their order; within one the longest path comes first, and a literal host before a pattern.
    """
    found: dict[Credential, None] = {}
    for config in configs:
        ranked = []
        for entry in config.entries:
            rank = _rank(entry, host, repository)
            if rank is not None:
                ranked.append((rank, entry.credential))
        found.update((credential, None) for _rank_of, credential in sorted(ranked, key=lambda pair: pair[0]))
    return tuple(found)


def lacking(config: DockerConfig, host: str, repository: str, asked_for: str = "") -> str:
    """Why `config` has nothing for `repository` on `host`, for people; empty where it has something, or was unreadable.

    :param asked_for: the host of the reference, where it is looked up elsewhere
    """
    if config.problems or helper_for(config, host) or matching([config], host, repository):
        return ""
    have = [f"{entry.host}{':' if entry.port else ''}{entry.port}{entry.path}" for entry in config.entries]
    # what is no host may be anything, a password perhaps
    shown = [text for text in dict.fromkeys(have) if re.fullmatch(r"[\w.*-]{1,253}(?::\d+)?(?:/[\w./-]{0,253})?", text)]
    listed = ", ".join(shown[:MAX_LISTED]) + (f" and {len(shown) - MAX_LISTED} more" if shown[MAX_LISTED:] else "")
    text = f"{config.source} has no entry for {host} (it has: {listed or 'none'})"
    if asked_for and matching([config], asked_for, repository):
        text += f"; credentials of {asked_for} are not sent to {host}, which is asked in its place"
    return text


def _rank(entry: Entry, host: str, repository: str) -> tuple[int, int, str] | None:
    for order, (name, port) in enumerate(_names(host)):
        if entry.port != port or not _host_matches(entry.host, name):
            continue
        if f"/{repository}".startswith(entry.path):
            return -len(entry.path), order + (10 if "*" in entry.host else 0), entry.host
    return None


def _names(host: str) -> list[tuple[str, str]]:
    name, port = split_host(host)
    if name in HUB_ALIASES and port in ("", "443"):
        return [(HUB, ""), ("index.docker.io", ""), (HUB_API, "")]
    return [(name, port)]


def _host_matches(pattern: str, name: str) -> bool:
    wanted, labels = pattern.split("."), name.split(".")
    return len(wanted) == len(labels) and all(
        fnmatch.fnmatchcase(label, glob) for label, glob in zip(labels, wanted, strict=True)
    )


def helper_for(config: DockerConfig, host: str) -> tuple[str, str] | None:
    """(helper's name, server to ask it for) where the configuration names a helper for `host`, else None."""
    for name, port in _names(host):
        full = f"{name}:{port}" if port else name
        for key, helper in config.helpers.items():
            if _split_key(key) == (name, port, ""):
                return helper, key
        if config.store and name in HUB_ALIASES:
            return config.store, "https://index.docker.io/v1/"
        if config.store:
            return config.store, full
    return None


def harmless_texts(content: t.Any) -> set[str]:
    """Texts of a docker configuration given as a dictionary that are no secrets: user names, helpers, mail addresses.

    They are often words that results need, e.g. a team's name, so they must not be hidden there.
    """
    if not isinstance(content, t.Mapping):
        return set()
    auths, helpers = content.get("auths"), content.get("credHelpers")
    entries = auths.values() if isinstance(auths, t.Mapping) else ()
    found = [entry.get(name) for entry in entries if isinstance(entry, t.Mapping) for name in ("username", "email")]
    found += [content.get("credsStore"), *(helpers.values() if isinstance(helpers, t.Mapping) else ())]
    secrets = {
        entry.get(name)
        for entry in entries
        if isinstance(entry, t.Mapping)
        for name in ("password", "auth", "identitytoken", "registrytoken")
        if isinstance(entry.get(name), str)
    }
    return {text for text in found if isinstance(text, str)} - secrets

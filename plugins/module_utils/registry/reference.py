# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references as the distribution grammar has them, and what they mean for a look-up. Pure."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.texts import cut

HUB = "docker.io"
HUB_API = "registry-1.docker.io"
HUB_ALIASES = frozenset({HUB, "index.docker.io", HUB_API})
DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
MAX_NAME = 255
#: of what is wrong as much is quoted
MAX_QUOTED = 200

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::(?P<port>[0-9]+))?")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_BARE_ID = re.compile(r"[a-f0-9]{64}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")


def _quoted(text: t.Any) -> str:
    return cut(repr(text), MAX_QUOTED)


def _invalid(text: str, part: str, why: str) -> StewardError:
    return StewardError(f"invalid image reference {_quoted(text)}: {part} {why}", reason="invalid_reference", part=part)


@dataclasses.dataclass(frozen=True)
class Reference:
    """One image reference with its defaults filled in.

    :ivar domain: host and port as references write them; `docker.io` for every form of Docker Hub
    :ivar repository: path below the host, e.g. `library/nginx`
    :ivar tag: `latest` where neither tag nor digest was given; None where only a digest was
    :ivar digest: the pinned digest, `algorithm:hex`, or None
    """

    domain: str
    repository: str
    tag: str | None
    digest: str | None

    @property
    def registry(self) -> str:
        """Host and port of the registry's API."""
        return api_host(self.domain)

    @property
    def name(self) -> str:
        """Host and repository, as a container runtime writes them."""
        return f"{self.domain}/{self.repository}"

    @property
    def identifier(self) -> str:
        """What is looked up: the tag where there is one, else the digest."""
        return self.tag or t.cast(str, self.digest)

    @property
    def pinned(self) -> bool:
        """True where nothing can be followed: a digest and no tag."""
        return self.tag is None

    def at(self, digest: str) -> str:
        """The name pinned to `digest`."""
        return f"{self.name}@{digest}"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.name}{tag}{digest}"


def api_host(domain: str) -> str:
    """Host to contact for `domain`: Docker Hub's API lives on a name of its own."""
    return HUB_API if domain.lower() in HUB_ALIASES else domain.lower()


def is_digest(text: str) -> bool:
    """True for `sha256:`, `sha384:` or `sha512:` and as many lower-case hex digits as the algorithm has."""
    algorithm, sep, value = text.partition(":")
    return bool(sep) and len(value) == DIGEST_LENGTHS.get(algorithm) and re.fullmatch(r"[0-9a-f]+", value) is not None


def parse(text: str) -> Reference:
    """Read a reference of any legal form.

    :raises StewardError: reason `invalid_reference`; the message and the key `part` name the part that is wrong
    """
    if not isinstance(text, str) or not text:
        raise _invalid(text, "reference", "is empty; give repository[:tag][@digest]")
    if _SCHEME.match(text):
        raise _invalid(text, "reference", "begins with a URL scheme; give host/repository[:tag] without it")
    if _BARE_ID.fullmatch(text):
        raise _invalid(text, "repository", "is 64 hex digits, which is an image ID and not a name")
    rest, at, digest = text.partition("@")
    if at:
        _check_digest(text, digest)
    domain, rest = _split_domain(rest)
    path, colon, tag = rest.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise _invalid(
            text, "tag", f"{_quoted(tag)} is not a letter, digit or _ followed by at most 127 of A-Z a-z 0-9 _ . -"
        )
    _check_domain(text, domain)
    if domain == HUB and "/" not in path:
        path = f"library/{path}"
    _check_path(text, path)
    return Reference(domain, path, tag or (None if at else "latest"), digest if at else None)


def _split_domain(text: str) -> tuple[str, str]:
    # The first part is a host only where it cannot be a path component: a dot, a port, localhost or a capital letter.
    first, slash, rest = text.partition("/")
    if not slash or not (set(first) & set(".:") or first == "localhost" or first != first.lower()):
        return HUB, text
    return (HUB if first.lower() in HUB_ALIASES else first), rest


def _check_domain(text: str, domain: str) -> None:
    found = _DOMAIN.fullmatch(domain)
    if not found:
        raise _invalid(text, "registry", f"{_quoted(domain)} is not host[:port]")
    if len(domain) > MAX_NAME:
        raise _invalid(text, "registry", f"has {len(domain)} characters; at most {MAX_NAME} are allowed")
    port = found["port"]
    if port is not None and not (len(port) <= 5 and 0 < int(port) < 65536):
        raise _invalid(text, "registry", f"has port {cut(port, MAX_QUOTED)}; ports are 1 to 65535")


def _check_path(text: str, path: str) -> None:
    if path != path.lower():
        raise _invalid(text, "repository", f"{_quoted(path)} must be lower case")
    if len(path) > MAX_NAME:
        raise _invalid(text, "repository", f"has {len(path)} characters; at most {MAX_NAME} are allowed")
    if not _PATH.fullmatch(path):
        raise _invalid(
            text,
            "repository",
            f"{_quoted(path)} must be a-z and 0-9, joined by one . or _, by __ or by -, and by / between parts",
        )


def _check_digest(text: str, digest: str) -> None:
    if is_digest(digest):
        return
    algorithm = digest.partition(":")[0]
    if not _DIGEST.fullmatch(digest):
        raise _invalid(text, "digest", f"{_quoted(digest)} is not algorithm:hex")
    if algorithm not in DIGEST_LENGTHS:
        raise _invalid(
            text, "digest", f"has algorithm {_quoted(algorithm)}; known are {', '.join(sorted(DIGEST_LENGTHS))}"
        )
    raise _invalid(text, "digest", f"{_quoted(digest)} must have {DIGEST_LENGTHS[algorithm]} lower-case hex digits")

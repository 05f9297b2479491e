# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The questions to a registry and what its answers mean: generators that yield requests and receive responses. Pure."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import typing as t
import urllib.parse

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import (
    MAX_MANIFEST,
    SCHEMA_1,
    Manifest,
    is_schema_1,
    read_manifest,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import is_digest

# containerd's set, with schema 1 before its "anything": without it old registries convert or deny what they have.
ACCEPT = ", ".join(
    (
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.v1+prettyjws",
        "*/*",
    )
)
MAX_CONFIG = 1024 * 1024
MAX_TAG_PAGES = 1000
MAX_LINK = 4096
MAX_TAG_PAGE = 8 * 1024 * 1024
# statuses after which a HEAD is asked again as GET: servers exist that know no HEAD, or deny it
_HEAD_UNSURE = frozenset({400, 404, 405, 406, 501})
_DENIED = frozenset({"DENIED", "UNAUTHORIZED"})
_MANIFEST_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9!#$&^_.+-]{0,122}(?:(?<=/)|\+)(?:json|prettyjws)")
_JSON_TYPES = ("application/json", "application/octet-stream", "text/plain", "binary/octet-stream", "")


@dataclasses.dataclass(frozen=True)
class Request:
    """A request to a registry's API.

    :ivar path: from the root of the host, e.g. `/v2/library/nginx/manifests/latest`
    :ivar max_body: bytes that are read of a body at most; one more makes the answer too large
    """

    method: str
    path: str
    accept: str = ACCEPT
    max_body: int = MAX_MANIFEST


@dataclasses.dataclass(frozen=True)
class Response:
    """An answer; header names are in lower case.

    :ivar url: what was asked, after redirects
    :ivar too_large: True where the body was longer than the request allows; it is cut then
    """

    status: int
    headers: t.Mapping[str, str]
    body: bytes = b""
    url: str = ""
    too_large: bool = False

    def get(self, name: str) -> str:
        return self.headers.get(name, "")


Steps = t.Generator[Request, Response, t.Any]


@dataclasses.dataclass(frozen=True)
class Head:
    """What a tag or digest names: `media_type` is empty where the registry did not say."""

    digest: str
    media_type: str
    manifest: Manifest | None = None


def manifest_path(repository: str, identifier: str) -> str:
    return f"/v2/{repository}/manifests/{identifier}"


def find(repository: str, identifier: str) -> t.Generator[Request, Response, Head]:
    """Ask what `identifier` (a tag or a digest) names: one HEAD, and a GET only where the HEAD leaves it open.

    :raises StewardError: with one of the documented reasons
    """
    path = manifest_path(repository, identifier)
    answer = yield Request("HEAD", path)
    if answer.status == 200:
        digest, media_type = answer.get("docker-content-digest"), _media_type(answer)
        check_size(answer, repository, identifier)
        if is_digest(digest) and _plausible(media_type):
            return _checked(Head(digest, SCHEMA_1 if is_schema_1(media_type) else media_type), identifier)
    elif answer.status not in _HEAD_UNSURE:
        raise failure(answer, repository, identifier)
    return (yield from fetch(repository, identifier))


def fetch(repository: str, identifier: str) -> t.Generator[Request, Response, Head]:
    """GET a manifest and compute its digest from the raw bytes; the digest header, where there is one, must agree.

    :raises StewardError: with one of the documented reasons
    """
    answer = yield Request("GET", manifest_path(repository, identifier))
    if answer.status != 200:
        raise failure(answer, repository, identifier)
    check_size(answer, repository, identifier)
    media_type, claimed = _media_type(answer), answer.get("docker-content-digest")
    where = f"{repository}:{identifier}"
    if not _plausible(media_type):
        raise StewardError(f"{where}: the answer is {media_type[:100]!r}, not a manifest", reason="not_a_manifest")
    manifest = read_manifest(answer.body, media_type, where)
    if manifest.media_type == SCHEMA_1:
        # the digest of a signed schema 1 manifest leaves the signatures out, so only the registry can tell it
        digest = claimed if is_digest(claimed) else ""
        return Head(digest, SCHEMA_1, manifest)
    wanted = identifier if is_digest(identifier) else claimed
    algorithm = wanted.partition(":")[0] if is_digest(wanted) else "sha256"
    digest = f"{algorithm}:{hashlib.new(algorithm, answer.body, usedforsecurity=False).hexdigest()}"
    for name, value in (
        ("header", claimed if is_digest(claimed) and claimed.startswith(f"{algorithm}:") else digest),
        ("reference", wanted or digest),
    ):
        if value != digest and is_digest(value):
            raise _mismatch(where, f"the {name} says {value}, the body is {digest}")
    return Head(digest, manifest.media_type, manifest)


def fetch_config(repository: str, digest: str) -> t.Generator[Request, Response, bytes]:
    """GET an image config, a blob; its bytes must have the digest.

    :raises StewardError: with one of the documented reasons
    """
    answer = yield Request("GET", f"/v2/{repository}/blobs/{digest}", "*/*", MAX_CONFIG)
    if answer.status != 200:
        raise failure(answer, repository, digest)
    if answer.too_large:
        raise StewardError(f"{repository}: the config {digest} is larger than {MAX_CONFIG} bytes", reason="too_large")
    found = hashlib.new(digest.partition(":")[0], answer.body, usedforsecurity=False).hexdigest()
    if found != digest.partition(":")[2]:
        raise _mismatch(f"{repository}: config {digest}", "the body has another digest")
    return answer.body


def _checked(head: Head, identifier: str) -> Head:
    if (
        is_digest(identifier)
        and head.digest != identifier
        and head.digest.partition(":")[0] == identifier.partition(":")[0]
    ):
        raise _mismatch(identifier, f"the registry answers with {head.digest}")
    return dataclasses.replace(head, digest=identifier) if is_digest(identifier) else head


def _mismatch(where: str, what: str) -> StewardError:
    return StewardError(
        f"{where}: {what}; something between here and the registry changes answers", reason="digest_mismatch"
    )


def _media_type(answer: Response) -> str:
    return answer.get("content-type").partition(";")[0].strip().lower()


def _plausible(media_type: str) -> bool:
    return media_type in _JSON_TYPES or bool(_MANIFEST_TYPE.fullmatch(media_type))


def check_size(answer: Response, repository: str, identifier: str) -> None:
    """:raises StewardError: reason `too_large` where the body is, or says it is, larger than containerd accepts"""
    length = answer.get("content-length")
    stated = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
    if answer.too_large or stated > MAX_MANIFEST:
        raise StewardError(
            f"{repository}:{identifier}: the manifest is larger than {MAX_MANIFEST} bytes, which no runtime accepts",
            reason="too_large",
        )


def is_refusal(answer: Response) -> bool:
    """True where the answer is about who asks: 401 and 403, and 400 where the registry says so in its words."""
    return answer.status in (401, 403) or (answer.status == 400 and _error_code(answer) in _DENIED)


def failure(answer: Response, repository: str, identifier: str) -> StewardError:
    """The error that an answer other than 200 stands for."""
    host, status = urllib.parse.urlsplit(answer.url).netloc.rpartition("@")[2], answer.status
    where, code = f"{host}/{repository}:{identifier}", _error_code(answer)
    if status in (404, 410):
        reason, text = "not_found", "missing or not permitted"
    elif is_refusal(answer):
        reason, text = "unauthorized", "missing or not permitted"
    elif status == 429:
        reason, text = "rate_limited", "the registry's rate limit is reached"
    elif status >= 500 or status in (408, 425):
        reason, text = "unreachable", "the registry cannot answer now"
    else:
        reason, text = "not_a_manifest", "an answer that no registry should give"
    wants = re.search(r'scope="([\w:/.,*-]{1,200})"', answer.get("www-authenticate"))
    asks = f"; the registry asks for {wants[1]}" if wants and reason == "unauthorized" else ""
    said = f", {code}" if code else ""
    known = {"code": code} if code else {}
    return StewardError(f"{where}: {text} (HTTP {status}{said}{asks})", reason=reason, status=status, **known)


def _error_code(answer: Response) -> str:
    # Only the code: a registry's message may repeat what was sent to it.
    try:
        code = json.loads(answer.body)["errors"][0]["code"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    return code if isinstance(code, str) and re.fullmatch(r"[A-Z_]{1,40}", code) else ""


def list_tags(repository: str) -> t.Generator[Request, Response, t.Iterator[str]]:
    """All tags, page after page, as far as the registry's `Link` headers lead on the same host.

    :returns: the tags in the registry's order, each once
    :raises StewardError: where any page cannot be read: a partial list is never returned
    """
    path: str | None = f"/v2/{repository}/tags/list?n=1000"
    tags: dict[str, None] = {}
    seen: set[str] = set()
    while path is not None:
        if path in seen or len(seen) >= MAX_TAG_PAGES:
            raise StewardError(f"{repository}: the list of tags does not end", reason="not_a_manifest")
        seen.add(path)
        answer = yield Request("GET", path, "application/json", MAX_TAG_PAGE)
        page = _tag_page(answer, repository)
        tags.update(dict.fromkeys(page))
        path = _next_page(answer, repository, page)
    return iter(tags)


def _tag_page(answer: Response, repository: str) -> list[str]:
    if answer.status != 200:
        raise failure(answer, repository, "tags")
    try:
        page = json.loads(answer.body)["tags"] or []
    except (ValueError, RecursionError, LookupError, TypeError):
        page = None
    if answer.too_large or not isinstance(page, list) or not all(isinstance(tag, str) for tag in page):
        raise StewardError(f"{repository}: the list of tags is not one", reason="not_a_manifest")
    return page


def _next_page(answer: Response, repository: str, page: list[str]) -> str | None:
    found = re.search(r'<([^>]*)>\s*;[^,]*\brel\s*=\s*"?next\b', answer.get("link")[:MAX_LINK], re.IGNORECASE)
    if not found:
        return None
    here = urllib.parse.urlsplit(answer.url)
    try:
        target = urllib.parse.urlsplit(urllib.parse.urljoin(answer.url, found[1]))
    except ValueError:
        target = urllib.parse.urlsplit("invalid://")
    if (target.scheme, target.netloc) != (here.scheme, here.netloc):
        raise StewardError(
            f"{repository}: the list of tags goes on at another host, which is not followed", reason="not_a_manifest"
        )
    own = f"/v2/{repository}/tags/list"
    if target.path == own:
        return urllib.parse.urlunsplit(("", "", target.path, target.query, ""))
    # Artifactory loses the prefix of the repository in its links
    last = urllib.parse.parse_qs(target.query).get("last") or page[-1:]
    if not last:
        return None
    return f"{own}?{urllib.parse.urlencode({'n': 1000, 'last': last[0]})}"

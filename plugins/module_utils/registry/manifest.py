# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests and indexes: what is in the bytes. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import artifacts
from ansible_collections.kubesteward.core.plugins.module_utils.registry.platforms import with_version
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import is_digest

# containerd's limit for what it resolves
MAX_MANIFEST = 4 * 1048 * 1048
MAX_CHILDREN = 1000
MAX_DEPTH = 3

DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
SCHEMA_1 = "application/vnd.docker.distribution.manifest.v1+prettyjws"
INDEXES = frozenset({DOCKER_LIST, OCI_INDEX})
_SCHEMA_1_TYPES = frozenset({SCHEMA_1, "application/vnd.docker.distribution.manifest.v1+json"})
_KNOWN = INDEXES | {DOCKER_MANIFEST, OCI_MANIFEST}

# results are printed, so whoever pushes an image must not choose what else is in them
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MEDIA_TYPE = artifacts.MEDIA_TYPE
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}")


@dataclasses.dataclass(frozen=True)
class Child:
    """One manifest of an index.

    :ivar platform: `os/arch[/variant]`, or empty where the index does not say
    :ivar os_version: Windows's, e.g. `10.0.20348.2340`; empty where it is not given
    :ivar os_features: what a node has to offer besides, comma-separated; Windows's win32k is nothing special
    :ivar artifact: media type of what it is instead of an image, where the index says so
    """

    digest: str
    media_type: str
    size: int | None
    platform: str
    os_version: str = ""
    os_features: str = ""
    artifact: str = ""

    @property
    def is_index(self) -> bool:
        return self.media_type in INDEXES

    @property
    def full_platform(self) -> str:
        """The platform with the version."""
        return with_version(self.platform, self.os_version)

    @property
    def may_be_taken(self) -> bool:
        """True for what a node may take as an image of the index."""
        return bool(self.platform) and not self.artifact and not self.os_features


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What was read: `children` for an index, the rest for the manifest of one image.

    :ivar artifact: what it is instead of an image or an index of images, e.g. `a Helm chart`
    :ivar platform: as its config says, empty where that does not; None as long as the config was not read
    """

    media_type: str
    children: tuple[Child, ...] = ()
    config_digest: str | None = None
    artifact: str = ""
    platform: str | None = None

    @property
    def is_index(self) -> bool:
        return self.media_type in INDEXES


def is_schema_1(media_type: str) -> bool:
    """True for schema 1, signed or not."""
    return media_type in _SCHEMA_1_TYPES


def read_manifest(body: bytes, content_type: str, where: str) -> Manifest:
    """Read the bytes of an index or manifest; the body tells its type where the content type does not.

    :param where: what was asked for, for messages
    :raises StewardError: reason `not_a_manifest`
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise StewardError(f"{where}: the answer is not JSON", reason="not_a_manifest") from None
    if not isinstance(data, dict):
        raise StewardError(f"{where}: the answer is not a JSON object", reason="not_a_manifest")
    media_type = _type_of(data, content_type)
    if media_type is None:
        raise StewardError(f"{where}: the answer is neither an index nor a manifest", reason="not_a_manifest")
    if media_type in INDEXES:
        return Manifest(media_type, _children(data.get("manifests"), where), artifact=artifacts.of_index(data))
    config = data.get("config")
    digest = config.get("digest") if isinstance(config, dict) else None
    known = digest if isinstance(digest, str) and is_digest(digest) else None
    return Manifest(media_type, config_digest=known, artifact=artifacts.of_manifest(data))


def read_platform(body: bytes) -> str | None:
    """The platform that an image config names, `os[(version)]/arch[/variant]`, or empty; None for what is no config."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    return with_version(_platform(data), _version(data)) if data.get("os") and data.get("architecture") else ""


def _type_of(data: dict[str, t.Any], content_type: str) -> str | None:
    stated = data["mediaType"] if isinstance(data.get("mediaType"), str) else ""
    if data.get("schemaVersion") == 1 or content_type in _SCHEMA_1_TYPES:
        return SCHEMA_1
    # the shape decides: what has a list of manifests is an index whatever it is called
    if isinstance(data.get("manifests"), list):
        return next((item for item in (stated, content_type) if item in INDEXES), OCI_INDEX)
    if isinstance(data.get("config"), dict) or isinstance(data.get("layers"), list):
        return next((item for item in (stated, content_type) if item in _KNOWN - INDEXES), OCI_MANIFEST)
    return None


def _children(items: t.Any, where: str) -> tuple[Child, ...]:
    if not isinstance(items, list) or len(items) > MAX_CHILDREN:
        raise StewardError(
            f"{where}: the index has no list of at most {MAX_CHILDREN} manifests", reason="not_a_manifest"
        )
    found = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("digest"), str) or not is_digest(item["digest"]):
            raise StewardError(f"{where}: the index lists something that has no valid digest", reason="not_a_manifest")
        if not artifacts.is_attestation(item):
            size, media_type = item.get("size"), item.get("mediaType")
            found.append(
                Child(
                    item["digest"],
                    media_type if isinstance(media_type, str) and _MEDIA_TYPE.fullmatch(media_type) else "",
                    size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
                    _platform(item.get("platform")),
                    _version(item.get("platform")),
                    _features(item.get("platform")),
                    artifacts.of_child(item, _KNOWN),
                )
            )
    return tuple(found)


def _platform(data: t.Any) -> str:
    if not isinstance(data, dict):
        return ""
    parts = [data.get("os"), data.get("architecture"), data.get("variant")]
    given = [part for part in parts if isinstance(part, str) and part]
    return "/".join(given) if all(_WORD.fullmatch(part) for part in given) else ""


def _version(data: t.Any) -> str:
    version = data.get("os.version") if isinstance(data, dict) else None
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else ""


def _features(data: t.Any) -> str:
    found = data.get("os.features") if isinstance(data, dict) else None
    names = [name for name in found if name != "win32k"] if isinstance(found, list) else []
    return ",".join(name if isinstance(name, str) and _WORD.fullmatch(name) else "unreadable" for name in names)

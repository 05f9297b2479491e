# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests and indexes: what is in the bytes, which child a platform gets. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
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
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")
_ATTESTATION = "vnd.docker.reference.type"


@dataclasses.dataclass(frozen=True)
class Child:
    """One manifest of an index; `platform` is `os/arch[/variant]`, or empty where the index does not say."""

    digest: str
    media_type: str
    size: int | None
    platform: str

    @property
    def is_index(self) -> bool:
        return self.media_type in INDEXES


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What was read: `children` for an index, `config_digest` for the manifest of one image."""

    media_type: str
    children: tuple[Child, ...] = ()
    config_digest: str | None = None

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
        return Manifest(media_type, _children(data.get("manifests"), where))
    config = data.get("config")
    digest = config.get("digest") if isinstance(config, dict) else None
    return Manifest(media_type, config_digest=digest if isinstance(digest, str) and is_digest(digest) else None)


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
        if not _is_attestation(item):
            size, media_type = item.get("size"), item.get("mediaType")
            found.append(
                Child(
                    item["digest"],
                    media_type if isinstance(media_type, str) and _MEDIA_TYPE.fullmatch(media_type) else "",
                    size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
                    _platform(item.get("platform")),
                )
            )
    return tuple(found)


def _is_attestation(item: dict[str, t.Any]) -> bool:
    annotations, platform = item.get("annotations"), item.get("platform")
    if isinstance(annotations, dict) and annotations.get(_ATTESTATION):
        return True
    return isinstance(platform, dict) and platform.get("os") == platform.get("architecture") == "unknown"


def _platform(data: t.Any) -> str:
    if not isinstance(data, dict):
        return ""
    parts = [data.get("os"), data.get("architecture"), data.get("variant")]
    given = [part for part in parts if isinstance(part, str) and part]
    return "/".join(given) if all(_WORD.fullmatch(part) for part in given) else ""


def parse_platform(text: str) -> str:
    """Check and normalise `os/arch[/variant]` as containerd does, e.g. `linux/aarch64` is `linux/arm64`.

    :raises StewardError: reason `invalid_reference`
    """
    parts = text.lower().split("/")
    if len(parts) not in (2, 3) or not all(part and part.replace("_", "").replace("-", "").isalnum() for part in parts):
        raise StewardError(
            f"platform {text!r} is not os/arch or os/arch/variant, e.g. linux/arm64", reason="invalid_reference"
        )
    return normal_platform("/".join(parts))


_ARCHITECTURES = {
    "x86_64": "amd64",
    "x86-64": "amd64",
    "aarch64": "arm64",
    "i386": "386",
    "armhf": "arm/v7",
    "armel": "arm/v6",
}


def normal_platform(text: str) -> str:
    """One spelling of a platform: other names of architectures replaced, default variants left out."""
    system, _slash, rest = text.partition("/")
    arch, _slash, variant = rest.partition("/")
    arch = _ARCHITECTURES.get(arch, arch)
    if "/" in arch:
        arch, _slash, default = arch.partition("/")
        variant = variant or default
    if variant.isdigit():
        variant = f"v{variant}"
    if (arch, variant) in (("arm64", "v8"), ("amd64", "v1")):
        variant = ""
    if arch == "arm" and not variant:
        variant = "v7"
    return "/".join(part for part in (system, arch, variant) if part)


def pick(children: t.Sequence[Child], platform: str) -> Child | None:
    """The child that a runtime on `platform` takes: the exact one, else the best older variant that runs there."""
    by_platform: dict[str, Child] = {}
    for child in children:
        by_platform.setdefault(normal_platform(child.platform), child)
    return next((by_platform[name] for name in _acceptable(normal_platform(platform)) if name in by_platform), None)


def _acceptable(platform: str) -> list[str]:
    system, _slash, rest = platform.partition("/")
    arch, _slash, variant = rest.partition("/")
    names = [platform]
    number = variant.removeprefix("v")
    if arch in ("arm", "amd64") and number.isdigit() and len(number) < 3:
        lowest = 5 if arch == "arm" else 1
        names += [normal_platform(f"{system}/{arch}/v{older}") for older in range(int(number) - 1, lowest - 1, -1)]
    if arch == "arm64":
        # no 32 bit children: containerd takes them on arm64 only on request
        names += [f"{system}/arm64"] if variant else []
    return names

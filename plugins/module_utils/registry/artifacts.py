# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a manifest or index is where it is no container image: charts, signatures, caches, other artifacts. Pure.

What decides is what a runtime needs to unpack it: a config that describes an image, and layers that are file systems.
"""

from __future__ import annotations

import re
import typing as t

Data = t.Mapping[str, t.Any]

MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")
#: besides the two that are right, what old registries and builders wrote, which Docker and containerd take
_IMAGE_CONFIGS = frozenset(
    {
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
        "application/octet-stream",
        "application/json",
        "text/html",
        "text/plain",
        "",
    }
)
_LAYERS = (
    "application/vnd.oci.image.layer.",
    "application/vnd.docker.image.rootfs.",
    "application/vnd.docker.container.image.rootfs.",
    "application/vnd.erofs",
    "application/octet-stream",
    "application/x-tar",
    "application/x-gzip",
    "application/gzip",
    "application/tar",
)
_NAMES = {
    "application/vnd.cncf.helm.config.v1+json": "a Helm chart",
    "application/vnd.buildkit.cacheconfig.v0": "a build cache",
    "application/vnd.docker.plugin.v1+json": "a Docker plugin",
    "application/vnd.in-toto+json": "an attestation",
    "application/vnd.dev.cosign.simplesigning.v1+json": "a signature",
    "application/vnd.dsse.envelope.v1+json": "an attestation",
    "application/vnd.cncf.notary.signature": "a signature",
    "application/vnd.dev.sigstore.bundle.v0.3+json": "a signature",
}
_EMPTY = "application/vnd.oci.empty.v1+json"


def of_manifest(data: Data) -> str:
    """What a manifest is instead of an image, e.g. `a Helm chart (application/...)`; empty for an image."""
    config = data.get("config")
    if not isinstance(config, dict) or not config.get("digest"):
        return "a manifest without a config"
    kind = _type(config.get("mediaType"))
    if kind not in _IMAGE_CONFIGS:
        stated = _type(data.get("artifactType"))
        return _named(stated if kind == _EMPTY and stated else kind)
    # signatures and attestations have the config of an image
    layers = data.get("layers")
    listed = layers if isinstance(layers, list) else []
    types = [_type(item.get("mediaType")) for item in listed if isinstance(item, dict)]
    return next((_named(item) for item in types if item and not item.startswith(_LAYERS)), "")


def of_index(data: Data) -> str:
    """What an index is where none of its parts is an image; empty where one may be."""
    items = [item for item in data.get("manifests") or () if isinstance(item, dict)]
    if not items:
        return "an empty index"
    if any(_type(item.get("mediaType")) == "application/vnd.buildkit.cacheconfig.v0" for item in items):
        return _named("application/vnd.buildkit.cacheconfig.v0")
    return "an index of attestations only" if all(map(is_attestation, items)) else ""


def is_attestation(item: Data) -> bool:
    """True for a part of an index that only says something about another one, as BuildKit adds them."""
    annotations, platform = item.get("annotations"), item.get("platform")
    if isinstance(annotations, dict) and annotations.get("vnd.docker.reference.type"):
        return True
    return isinstance(platform, dict) and platform.get("os") == platform.get("architecture") == "unknown"


def of_child(item: Data, manifests: t.Container[str]) -> str:
    """Media type of what a part of an index is instead of an image; empty for an image, or where the index is silent.

    :param manifests: media types of manifests and indexes
    """
    kind, stated = _type(item.get("mediaType")), _type(item.get("artifactType"))
    if kind and kind not in manifests and kind not in _IMAGE_CONFIGS:
        return kind
    # of an ordinary image this is its config's media type
    return "" if stated in _IMAGE_CONFIGS else stated


def _named(kind: str) -> str:
    name = _NAMES.get(kind)
    return f"{name} ({kind})" if name else f"an artifact of type {kind}"


def _type(value: t.Any) -> str:
    """A media type in lower case without parameters; whoever pushes must not choose what else is in a message."""
    if not isinstance(value, str) or not value:
        return ""
    text = value.partition(";")[0].strip().lower()
    return text if MEDIA_TYPE.fullmatch(text) else "unreadable/unreadable"

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images as plain data: manifests, blobs, digests. Equal inputs give equal digests; no IO but `write`."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
EMPTY_CONFIG = b"{}"
CREATED = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Layout:
    """One image or list: its bytes, and everything below it.

    `blobs`: config and layers by digest; `children`: the images of a list; `platform`: `os/arch[/variant]` of an image.
    """

    content: bytes
    media_type: str
    blobs: dict[str, bytes] = field(default_factory=dict)
    children: tuple[Layout, ...] = ()
    platform: str | None = None
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return digest_of(self.content)

    @property
    def config_digest(self) -> str | None:
        """Digest of an image's config; None for a list."""
        config = json.loads(self.content).get("config")
        return None if config is None else str(config["digest"])

    @property
    def docker(self) -> bool:
        return self.media_type in (DOCKER_MANIFEST, DOCKER_LIST)

    def manifests(self) -> t.Iterator[Layout]:
        """The manifests in the order in which a registry accepts them: children first."""
        for child in self.children:
            yield from child.manifests()
        yield self

    def all_blobs(self) -> dict[str, bytes]:
        """Config and layers of this and of every child, by digest."""
        return {digest: blob for manifest in self.manifests() for digest, blob in manifest.blobs.items()}


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer(files: t.Mapping[str, bytes | str], mode: int = 0o755) -> bytes:
    """A gzipped tar of files by path; a str is the target of a symbolic link. Order and times are fixed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in sorted({str(parent) for path in files for parent in Path(path).parents} - {"."}):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for path in sorted(files):
            content = files[path]
            entry = tarfile.TarInfo(path)
            if isinstance(content, str):
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, content, 0o777
                tar.addfile(entry)
            else:
                entry.size, entry.mode = len(content), mode
                tar.addfile(entry, io.BytesIO(content))
    # level 0 does not depend on the version of zlib
    return gzip.compress(buffer.getvalue(), compresslevel=0, mtime=0)


def image(
    layers: t.Sequence[bytes],
    config: t.Mapping[str, t.Any],
    platform: str,
    *,
    labels: t.Mapping[str, str] | None = None,
    annotations: t.Mapping[str, str] | None = None,
    docker: bool = False,
) -> Layout:
    """An image of gzipped layers; `config` has the keys of an image's `config` (Entrypoint, Cmd, User, ...)."""
    system, architecture, *variant = platform.split("/")
    document = {
        "created": CREATED,
        "os": system,
        "architecture": architecture,
        **({"variant": variant[0]} if variant else {}),
        "config": {**config, **({"Labels": dict(labels)} if labels else {})},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(gzip.decompress(content)) for content in layers]},
    }
    config_bytes = _json(document)
    manifest: dict[str, t.Any] = {
        "schemaVersion": 2,
        "mediaType": DOCKER_MANIFEST if docker else OCI_MANIFEST,
        "config": _descriptor(config_bytes, DOCKER_CONFIG if docker else OCI_CONFIG),
        "layers": [_descriptor(content, DOCKER_LAYER if docker else OCI_LAYER) for content in layers],
    }
    if annotations:
        manifest["annotations"] = dict(annotations)
    blobs = {digest_of(content): content for content in (config_bytes, *layers)}
    return Layout(_json(manifest), manifest["mediaType"], blobs, platform=platform)


def attestation(subject: Layout, text: str = "{}") -> Layout:
    """The companion that BuildKit adds to a list for an image: platform unknown/unknown, a statement as its layer."""
    config = _json({"architecture": "unknown", "os": "unknown", "config": {}, "rootfs": {"type": "layers"}})
    statement = text.encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": _descriptor(config, OCI_CONFIG),
        "layers": [_descriptor(statement, "application/vnd.in-toto+json")],
    }
    annotations = {
        "vnd.docker.reference.type": "attestation-manifest",
        "vnd.docker.reference.digest": subject.digest,
    }
    blobs = {digest_of(content): content for content in (config, statement)}
    return Layout(_json(manifest), OCI_MANIFEST, blobs, platform="unknown/unknown", annotations=annotations)


def index(children: t.Sequence[Layout], annotations: t.Mapping[str, str] | None = None) -> Layout:
    """An OCI index, or a Docker list where every child is a Docker image (which has no annotations)."""
    if not children:
        raise ValueError("an index needs at least one child")
    docker = all(child.docker for child in children)
    if docker and annotations:
        raise ValueError("a Docker manifest list has no annotations")
    document: dict[str, t.Any] = {
        "schemaVersion": 2,
        "mediaType": DOCKER_LIST if docker else OCI_INDEX,
        "manifests": [_child(child) for child in children],
    }
    if annotations:
        document["annotations"] = dict(annotations)
    return Layout(_json(document), document["mediaType"], children=tuple(children))


def write(layout: Layout, folder: Path) -> str:
    """Write for skopeo, verbatim, and return its name of the source: an OCI layout, or `dir:` for Docker's types."""
    if layout.docker:
        return _write_dir(layout, folder)
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for digest, content in layout.all_blobs().items():
        (blobs / digest.removeprefix("sha256:")).write_bytes(content)
    for manifest in layout.manifests():
        (blobs / manifest.digest.removeprefix("sha256:")).write_bytes(manifest.content)
    top = {
        **_descriptor(layout.content, layout.media_type),
        "annotations": {"org.opencontainers.image.ref.name": "top"},
    }
    (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (folder / "index.json").write_bytes(_json({"schemaVersion": 2, "manifests": [top]}))
    return f"oci:{folder}:top"


def _write_dir(layout: Layout, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "version").write_text("Directory Transport Version: 1.1\n")
    for digest, content in layout.all_blobs().items():
        (folder / digest.removeprefix("sha256:")).write_bytes(content)
    for child in layout.children:
        (folder / f"{child.digest.removeprefix('sha256:')}.manifest.json").write_bytes(child.content)
    (folder / "manifest.json").write_bytes(layout.content)
    return f"dir:{folder}"


def _child(child: Layout) -> dict[str, t.Any]:
    descriptor = _descriptor(child.content, child.media_type)
    if child.platform:
        system, architecture, *variant = child.platform.split("/")
        platform = {"os": system, "architecture": architecture, **({"variant": variant[0]} if variant else {})}
        descriptor["platform"] = platform
    if child.annotations:
        descriptor["annotations"] = dict(child.annotations)
    return descriptor


def _descriptor(content: bytes, media_type: str) -> dict[str, t.Any]:
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}


def _json(document: t.Any) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()

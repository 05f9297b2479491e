# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images as an OCI layout on disk: a single one, indexes, one with attestations, one rebuilt with equal children."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import pathlib
import tarfile
import typing as t

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
TAGS = ("single", "index", "attested", "rebuilt")


@dataclasses.dataclass(frozen=True)
class Images:
    """The layout's folder and, by name, digests that tests compare with."""

    folder: pathlib.Path
    digests: dict[str, str]


class _Layout:
    def __init__(self, folder: pathlib.Path) -> None:
        self.blobs = folder / "blobs" / "sha256"
        self.blobs.mkdir(parents=True)

    def put(self, body: bytes, media_type: str) -> dict[str, t.Any]:
        name = hashlib.sha256(body).hexdigest()
        (self.blobs / name).write_bytes(body)
        return {"mediaType": media_type, "digest": f"sha256:{name}", "size": len(body)}

    def put_json(self, data: dict[str, t.Any], media_type: str) -> dict[str, t.Any]:
        return self.put(json.dumps(data).encode(), media_type)


def build(folder: pathlib.Path) -> Images:
    """Write the layout; what is in it depends on nothing, so digests are the same in every run."""
    layout = _Layout(folder)
    amd, arm = (_image(layout, arch) for arch in ("amd64", "arm64"))
    note = {"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": amd["digest"]}
    proof = {**_image(layout, "unknown", "unknown"), "annotations": note}
    tops = {
        "single": {key: value for key, value in amd.items() if key != "platform"},
        "index": _index(layout, amd, arm),
        "attested": _index(layout, amd, proof),
        "rebuilt": _index(layout, arm, amd, annotations={"org.opencontainers.image.created": "2026-01-01T00:00:00Z"}),
    }
    named = [{**top, "annotations": {"org.opencontainers.image.ref.name": tag}} for tag, top in tops.items()]
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": named}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    configs = {f"config {name}": _config_of(layout, image) for name, image in (("amd64", amd), ("arm64", arm))}
    return Images(
        folder,
        {
            **{tag: top["digest"] for tag, top in tops.items()},
            "amd64": amd["digest"],
            "arm64": arm["digest"],
            **configs,
        },
    )


def _image(layout: _Layout, arch: str, system: str = "linux") -> dict[str, t.Any]:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        entry = tarfile.TarInfo("arch")
        entry.size = len(arch)
        archive.addfile(entry, io.BytesIO(arch.encode()))
    layer = layout.put(gzip.compress(plain.getvalue(), mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
    diff = f"sha256:{hashlib.sha256(plain.getvalue()).hexdigest()}"
    config = {
        "architecture": arch,
        "os": system,
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [diff]},
        "history": [{"created": "2026-01-01T00:00:00Z", "created_by": "test"}],
    }
    described = layout.put_json(config, "application/vnd.oci.image.config.v1+json")
    manifest = layout.put_json(
        {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": [layer]}, MANIFEST
    )
    return {**manifest, "platform": {"os": system, "architecture": arch}}


def _index(layout: _Layout, *children: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    return layout.put_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": list(children), **more}, INDEX)


def _config_of(layout: _Layout, image: dict[str, t.Any]) -> str:
    manifest = json.loads((layout.blobs / image["digest"].partition(":")[2]).read_bytes())
    return t.cast(str, manifest["config"]["digest"])

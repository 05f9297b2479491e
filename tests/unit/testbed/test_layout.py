# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile

import pytest

from testbed import layout as lay

BASE = lay.layer({"bin/tool": b"program", "bin/link": "tool"})


def web(text: str = "v1", platform: str = "linux/amd64", **options: object) -> lay.Layout:
    return lay.image([BASE, lay.layer({"www/index.html": text.encode()})], {"Cmd": ["x"]}, platform, **options)


def test_the_same_inputs_give_the_same_digest() -> None:
    assert web().digest == web().digest
    assert web().content == web().content


@pytest.mark.parametrize(
    "other",
    [
        web("v2"),
        web(platform="linux/arm64"),
        web(platform="linux/amd64/v3"),
        web(labels={"a": "b"}),
        web(annotations={"a": "b"}),
        web(docker=True),
    ],
    ids=["file", "architecture", "variant", "label", "annotation", "docker"],
)
def test_every_input_changes_the_digest(other: lay.Layout) -> None:
    assert other.digest != web().digest


def test_an_annotation_changes_the_manifest_but_not_the_config() -> None:
    assert web(annotations={"a": "b"}).config_digest == web().config_digest
    assert web(labels={"a": "b"}).config_digest != web().config_digest


def test_an_image_describes_its_blobs() -> None:
    image = web()
    manifest = json.loads(image.content)
    for descriptor in [manifest["config"], *manifest["layers"]]:
        blob = image.blobs[descriptor["digest"]]
        assert descriptor["size"] == len(blob)
        assert descriptor["digest"] == "sha256:" + hashlib.sha256(blob).hexdigest()
    config = json.loads(image.blobs[image.config_digest])
    layers = [image.blobs[descriptor["digest"]] for descriptor in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == [
        "sha256:" + hashlib.sha256(gzip.decompress(content)).hexdigest() for content in layers
    ]


def test_a_layer_has_folders_files_and_links_in_a_fixed_order() -> None:
    with tarfile.open(fileobj=io.BytesIO(BASE), mode="r:gz") as tar:
        entries = {entry.name: entry for entry in tar}
    assert list(entries) == ["bin", "bin/link", "bin/tool"]
    assert entries["bin"].isdir()
    assert entries["bin/link"].linkname == "tool"
    assert entries["bin/tool"].mode == 0o755
    assert {entry.mtime for entry in entries.values()} == {0}


def test_docker_media_types_are_used_throughout() -> None:
    manifest = json.loads(web(docker=True).content)
    assert manifest["mediaType"] == lay.DOCKER_MANIFEST
    assert manifest["config"]["mediaType"] == lay.DOCKER_CONFIG
    assert {layer["mediaType"] for layer in manifest["layers"]} == {lay.DOCKER_LAYER}


def test_an_index_lists_platforms_and_attestations() -> None:
    images = [web(platform="linux/amd64"), web(platform="linux/arm/v7")]
    index = lay.index([*images, lay.attestation(images[0])], {"note": "x"})
    document = json.loads(index.content)
    assert document["mediaType"] == lay.OCI_INDEX
    assert document["annotations"] == {"note": "x"}
    assert [entry["platform"] for entry in document["manifests"]] == [
        {"os": "linux", "architecture": "amd64"},
        {"os": "linux", "architecture": "arm", "variant": "v7"},
        {"os": "unknown", "architecture": "unknown"},
    ]
    assert document["manifests"][2]["annotations"]["vnd.docker.reference.digest"] == images[0].digest
    assert index.config_digest is None


def test_docker_children_give_a_docker_list() -> None:
    index = lay.index([web(docker=True), web(platform="linux/arm64", docker=True)])
    assert index.media_type == lay.DOCKER_LIST
    assert {entry["mediaType"] for entry in json.loads(index.content)["manifests"]} == {lay.DOCKER_MANIFEST}


def test_children_come_before_the_list() -> None:
    images = [web(platform="linux/amd64"), web(platform="linux/arm64")]
    index = lay.index(images)
    assert [manifest.digest for manifest in index.manifests()] == [images[0].digest, images[1].digest, index.digest]


@pytest.mark.parametrize(
    ("children", "annotations", "message"),
    [([], None, "at least one child"), ([web(docker=True)], {"a": "b"}, "no annotations")],
)
def test_impossible_lists_are_refused(children: list[lay.Layout], annotations: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lay.index(children, annotations)


def test_an_oci_layout_on_disk_is_complete(tmp_path) -> None:
    index = lay.index([web(platform="linux/amd64"), web(platform="linux/arm64")])
    assert lay.write(index, tmp_path / "x") == f"oci:{tmp_path}/x:top"
    blobs = tmp_path / "x" / "blobs" / "sha256"
    top = json.loads((tmp_path / "x" / "index.json").read_text())["manifests"][0]
    assert top["digest"] == index.digest
    for path in blobs.iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    expected = {*index.all_blobs(), *(manifest.digest for manifest in index.manifests())}
    assert {f"sha256:{path.name}" for path in blobs.iterdir()} == expected


def test_docker_types_are_written_verbatim_for_the_dir_transport(tmp_path) -> None:
    index = lay.index([web(docker=True), web(platform="linux/arm64", docker=True)])
    assert lay.write(index, tmp_path / "x") == f"dir:{tmp_path}/x"
    assert (tmp_path / "x" / "manifest.json").read_bytes() == index.content
    for child in index.children:
        name = child.digest.removeprefix("sha256:")
        assert (tmp_path / "x" / f"{name}.manifest.json").read_bytes() == child.content

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import struct

import pytest

from testbed import images, layout


@pytest.fixture(autouse=True)
def _busybox(monkeypatch) -> None:
    monkeypatch.setattr(images, "_busybox_layer", lambda: layout.layer({"bin/busybox": b"program"}))


def config(image: layout.Layout) -> dict:
    return json.loads(image.blobs[image.config_digest])["config"]


def test_a_web_image_serves_its_text() -> None:
    image = images.web_image("v1", labels={"a": "b"}, platform="linux/arm64")
    assert config(image)["Cmd"][:4] == ["httpd", "-f", "-p", "8080"]
    assert config(image)["Labels"] == {"a": "b"}
    assert image.platform == "linux/arm64"
    assert image.digest != images.web_image("v2", labels={"a": "b"}, platform="linux/arm64").digest


def test_an_exiting_image_passes_text_and_code_as_arguments() -> None:
    assert config(images.exiting_image('say "bye"', 3))["Cmd"][-2:] == ['say "bye"', "3"]


def test_a_dying_image_passes_text_seconds_and_code_as_arguments() -> None:
    assert config(images.dying_image('say "bye"', 0.5, 3))["Cmd"][-3:] == ['say "bye"', "0.5", "3"]


def test_images_end_at_once_and_run_as_nobody() -> None:
    assert config(images.web_image("v1"))["StopSignal"] == "SIGKILL"
    assert config(images.web_image("v1"))["User"] == "65534:65534"
    assert config(images.web_image("v1", stop_signal="SIGTERM"))["StopSignal"] == "SIGTERM"


def test_an_index_gets_one_attestation_an_image() -> None:
    children = [images.web_image("v1", platform=platform) for platform in ("linux/amd64", "linux/arm64")]
    index = images.index_image(children, attestations=True)
    assert [child.platform for child in index.children] == ["linux/amd64", "linux/arm64", *["unknown/unknown"] * 2]


def test_a_docker_list_takes_docker_images_only() -> None:
    with pytest.raises(ValueError, match="docker=True"):
        images.docker_list([images.web_image("v1")])
    assert images.docker_list([images.web_image("v1", docker=True)]).media_type == layout.DOCKER_LIST


@pytest.mark.parametrize(("kinds", "expected"), [([1, 1], False), ([1, 3], True), ([], False)])
def test_a_program_that_needs_a_loader_is_recognised(kinds: list[int], expected: bool) -> None:
    header = bytearray(64)
    struct.pack_into("<Q", header, 32, 64)
    struct.pack_into("<HH", header, 54, 56, len(kinds))
    program = bytes(header) + b"".join(struct.pack("<I", kind).ljust(56, b"\0") for kind in kinds)
    assert images.needs_loader(program) is expected

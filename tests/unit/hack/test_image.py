# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make image` builds from: checked files, one time, modes that everybody can read, and its arguments."""

from __future__ import annotations

import importlib.util
import json
import os
import sys

import pytest


@pytest.fixture
def image(pytestconfig, monkeypatch):
    spec = importlib.util.spec_from_file_location("hack_image", pytestconfig.rootpath / "hack/image.py")
    module = importlib.util.module_from_spec(spec)
    # dataclasses look it up
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def collection(image):
    """Files of a collection, and the pin that fits."""
    content = {"plugins/modules/k8s.py": b"code", "LICENSE": b"GPL", "docs/k8s.rst": b"text"}
    listed = [
        {"name": name, "ftype": "file", "chksum_sha256": image.sha256(data)} for name, data in content.items()
    ] + [{"name": "plugins", "ftype": "dir", "chksum_sha256": None}]
    listing = json.dumps({"files": listed}).encode()
    manifest = json.dumps({"collection_info": {"version": "6.2.0"}, "file_manifest_file": {"chksum_sha256": "?"}})
    files = {**content, "FILES.json": listing, "MANIFEST.json": manifest.encode()}
    return files, image.Pin("6.2.0", image.sha256(listing))


def test_pinned_collection_is_kept_without_what_does_not_run(image, collection):
    files, pin = collection
    assert image.pinned(files, pin) == {name: data for name, data in files.items() if name != "docs/k8s.rst"}


def test_sources_that_carry_less_beside_it_are_as_good(image, collection):
    files, pin = collection
    del files["docs/k8s.rst"]
    assert image.pinned(files, pin).keys() == files.keys()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"plugins/modules/k8s.py": b"other"}, r"not as it was published: plugins/modules/k8s\.py"),
        ({"plugins/extra.py": b""}, r"not as it was published: plugins/extra\.py"),
        ({"LICENSE": None}, "not as it was published: LICENSE"),
        ({"FILES.json": b"{}"}, r"is 6\.2\.0, and not the 6\.2\.0 that hack/image\.py pins"),
        ({"MANIFEST.json": b'{"collection_info": {"version": "6.9.0"}}'}, r"is 6\.9\.0, and not the 6\.2\.0"),
        ({"MANIFEST.json": None}, "not in .cache/collections: run make setup"),
    ],
)
def test_another_collection_is_refused_and_the_remedy_named(image, collection, change, said):
    files, pin = collection
    changed = {name: data for name, data in {**files, **change}.items() if data is not None}
    with pytest.raises(image.ImageError, match=said) as caught:
        image.pinned(changed, pin)
    assert "make setup" in str(caught.value)


def test_pin_is_what_setup_fetches(image, pytestconfig):
    assert (
        f'KUBERNETES_CORE_VERSION = "{image.KUBERNETES_CORE.version}"'
        in (pytestconfig.rootpath / "hack/setup.py").read_text()
    )
    assert image.pinned(image.read_tree(image.INSTALLED), image.KUBERNETES_CORE).keys() > {"LICENSE", "MANIFEST.json"}


def test_order_of_the_file_system_does_not_matter(image):
    def files(*names):
        listing = json.dumps({"files": [{"name": name} for name in names]}).encode()
        manifest = {"file_manifest_file": {"chksum_sha256": image.sha256(listing)}}
        return {"FILES.json": listing, "MANIFEST.json": json.dumps(manifest).encode()}

    first, second = image.sorted_manifest(files("b", "a")), image.sorted_manifest(files("a", "b"))
    assert first == second
    checksum = json.loads(first["MANIFEST.json"])["file_manifest_file"]["chksum_sha256"]
    assert checksum == image.sha256(first["FILES.json"])


def test_context_has_one_time_and_is_readable_whatever_the_umask(image, tmp_path):
    before = os.umask(0o077)
    try:
        image.write(tmp_path / "image", {"a/b.txt": b"text"}, 1000)
        (tmp_path / "image/old").touch()
        image.write(tmp_path / "image", {"a/b.txt": b"text"}, 1000)
    finally:
        os.umask(before)
    paths = [tmp_path / "image", tmp_path / "image/a", tmp_path / "image/a/b.txt"]
    assert [oct(path.stat().st_mode)[-3:] for path in paths] == ["755", "755", "644"]
    assert {path.stat().st_mtime for path in paths} == {1000}
    assert not (tmp_path / "image/old").exists()


@pytest.mark.parametrize(
    ("tool", "first"),
    [
        ("docker", ["--build-arg", "VERSION=1.2.3"]),
        ("/usr/bin/podman", ["--timestamp", "86400"]),
        ("buildah --root /x", ["--timestamp", "86400"]),
    ],
)
def test_every_tool_is_told_the_time_in_its_own_way(image, tool, first):
    arguments = image.build_arguments(tool, "1.2.3", "abc", 86400)
    assert arguments[:2] == first
    assert "CREATED=1970-01-02T00:00:00Z" in arguments
    assert ("SOURCE_DATE_EPOCH=86400" in arguments) == (tool == "docker")


def test_time_is_the_callers_then_the_commits(image):
    assert image.build_time({"SOURCE_DATE_EPOCH": "5"}, "7") == 5
    assert image.build_time({}, "7") == 7
    assert image.build_time({}, "") > 1_700_000_000
    with pytest.raises(image.ImageError, match="SOURCE_DATE_EPOCH is 'yesterday': give seconds"):
        image.build_time({"SOURCE_DATE_EPOCH": "yesterday"}, "")

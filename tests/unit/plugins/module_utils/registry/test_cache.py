# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import threading

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.registry import cache
from ansible_collections.kubesteward.core.plugins.module_utils.registry.cache import DiskStore
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import Child, Manifest
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    OCI_INDEX,
    OCI_MANIFEST,
)


def digest(number=0):
    return f"sha256:{number:064x}"


MANIFEST = Manifest(OCI_INDEX, (Child(digest(1), OCI_MANIFEST, 5, "linux/amd64"), Child(digest(2), "", None, "")), None)


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "cache")


def only_file(folder):
    (name,) = os.listdir(folder)
    return os.path.join(folder, name)


def test_what_was_put_is_got_again_by_another_store(folder):
    DiskStore(folder).put(digest(), MANIFEST)
    assert DiskStore(folder).get(digest()) == MANIFEST
    assert DiskStore(folder).get(digest(9)) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"version": 1}', b"[" * 100_000, b"\xff"])
def test_a_damaged_file_is_nothing_and_is_removed(folder, damage):
    store = DiskStore(folder)
    store.put(digest(), MANIFEST)
    with open(only_file(folder), "wb") as file:
        file.write(damage)
    assert store.get(digest()) is None
    assert os.listdir(folder) == []


def test_a_file_that_was_changed_is_nothing(folder):
    store = DiskStore(folder)
    store.put(digest(), MANIFEST)
    path = only_file(folder)
    with open(path, "rb") as file:
        data = json.load(file)
    data["manifest"]["children"][0][0] = digest(7)
    with open(path, "w") as file:
        json.dump(data, file)
    assert store.get(digest()) is None


def test_a_file_under_another_name_is_nothing(folder):
    store = DiskStore(folder)
    store.put(digest(), MANIFEST)
    os.rename(only_file(folder), store._path(digest(3)))
    assert store.get(digest(3)) is None


def test_the_number_of_files_is_bounded_and_the_oldest_go_first(folder, monkeypatch):
    monkeypatch.setattr(cache, "_SWEEP_EVERY", 2)
    store = DiskStore(folder, max_files=5)
    for number in range(40):
        store.put(digest(number), MANIFEST)
        os.utime(store._path(digest(number)), (number, number))
    assert len(os.listdir(folder)) <= 6
    assert store.get(digest(39)) == MANIFEST
    assert store.get(digest(0)) is None


def test_many_writers_leave_whole_files(folder):
    def write(first):
        store = DiskStore(folder)
        for number in range(50):
            store.put(digest(number % 5), MANIFEST)
            assert store.get(digest(number % 5)) == MANIFEST
        results.append(first)

    results: list[int] = []
    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 1, 2, 3]
    assert sorted(os.listdir(folder)) == sorted(f"sha256-{number:064x}.json" for number in range(5))


def test_a_folder_that_cannot_be_made_or_is_open_to_others_is_not_used(tmp_path):
    (tmp_path / "file").write_text("")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    for folder in (tmp_path / "file" / "x", open_to_all):
        store = DiskStore(str(folder))
        store.put(digest(), MANIFEST)
        assert store.get(digest()) is None
    assert list(open_to_all.iterdir()) == []


def test_a_folder_that_vanishes_is_no_error(folder):
    store = DiskStore(folder)
    store.put(digest(), MANIFEST)
    os.unlink(only_file(folder))
    os.rmdir(folder)
    store.put(digest(), MANIFEST)
    assert store.get(digest()) is None


def test_what_is_too_large_or_no_digest_is_not_kept(folder):
    store = DiskStore(folder)
    store.put(digest(), Manifest("x" * cache.MAX_FILE))
    store.put("../evil", MANIFEST)
    assert store.get("../evil") is None
    assert os.listdir(folder) == []


def test_the_default_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache.default_folder() == "/x/kubesteward/manifests"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/u")
    assert cache.default_folder() == "/home/u/.cache/kubesteward/manifests"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.default_folder() == ""

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python packages the image's build adds to a base image: those that are missing, and no others."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field

import pytest


@pytest.fixture
def packages(pytestconfig):
    spec = importlib.util.spec_from_file_location("image_packages", pytestconfig.rootpath / "image/packages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Installed:
    version: str
    requires: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    ("installed", "absent", "wrong"),
    [
        ({"web": Installed("2.1")}, [], []),
        ({"web": Installed("2.1", ["Some_Socket>=1"])}, ["some-socket"], []),
        ({"web": Installed("2.1", ["some.socket>=1"]), "some-socket": Installed("1.0")}, [], []),
        ({"web": Installed("2.1", ["socket>=1"]), "socket": Installed("0.9")}, [], ["socket is 0.9, needed is >=1"]),
        ({"web": Installed("1.9")}, [], ["web is 1.9, needed is >=2"]),
        ({"web": Installed("2.1rc1")}, [], []),
        ({"web": Installed("2.1", ["extra; extra == 'x'", "old; python_version < '3'"])}, [], []),
        ({"web": Installed("2.1", ["web>=2"])}, [], []),
        ({}, ["web"], []),
    ],
)
def test_what_is_missing_and_what_does_not_fit(packages, installed, absent, wrong):
    assert packages.walk(["web>=2"], installed.get) == (absent, wrong)


def test_lock_has_checksums_for_all_that_is_required(packages, pytestconfig):
    """Nothing of the lock is missing in it: each requirement of ours and of those is there, in a version that fits."""
    root = pytestconfig.rootpath
    entries = packages.entries((root / "image/requirements.txt").read_text())
    assert all("--hash=sha256:" in text for text in entries.values())
    versions = {name: text.partition("==")[2].split()[0] for name, text in entries.items()}
    here = packages.finder()

    def locked(name):
        # the requirements of a package are those of the version that is installed here, near enough to find a gap
        found = here(name)
        return Installed(versions[name], (found.requires or []) if found and found.version == versions[name] else [])

    assert packages.walk(packages.lines((root / "requirements.txt").read_text()), locked) == ([], [])


def test_entries_keep_their_lines_together(packages):
    lock = (
        "# head\na.b==1 \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\n    # via c\nc==2 \\\n    --hash=sha256:33\n"
    )
    entries = packages.entries(lock)
    assert entries.keys() == {"a-b", "c"}
    assert entries["a-b"].count("--hash") == 2
    assert entries["c"] == "c==2 \\\n    --hash=sha256:33\n"


def test_base_that_does_not_fit_stops_the_build_before_anything_is_installed(packages, tmp_path, monkeypatch):
    (tmp_path / "requirements.txt").write_text("pytest>=999\nnot-there\n")
    (tmp_path / "lock.txt").write_text("")
    monkeypatch.setattr(packages, "install", lambda *_: pytest.fail("installed"))
    with pytest.raises(SystemExit, match=r"does not fit: pytest is .*, needed is >=999\. Take another one: make image"):
        packages.main(tmp_path / "requirements.txt", tmp_path / "lock.txt", tmp_path / "packages")


def test_base_that_lacks_nothing_is_left_alone(packages, tmp_path, monkeypatch):
    (tmp_path / "requirements.txt").write_text("# all there\npytest\n")
    (tmp_path / "lock.txt").write_text("")
    monkeypatch.setattr(packages, "install", lambda *_: pytest.fail("installed"))
    packages.main(tmp_path / "requirements.txt", tmp_path / "lock.txt", tmp_path / "packages")
    assert list((tmp_path / "packages").iterdir()) == []


def test_gap_in_the_lock_is_named(packages, tmp_path, monkeypatch):
    (tmp_path / "requirements.txt").write_text("not-there\n")
    (tmp_path / "lock.txt").write_text("")
    monkeypatch.setattr(packages, "install", lambda *_: None)
    with pytest.raises(SystemExit, match=r"not-there is missing in lock\.txt"):
        packages.main(tmp_path / "requirements.txt", tmp_path / "lock.txt", tmp_path / "packages")

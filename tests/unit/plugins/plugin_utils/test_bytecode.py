# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our modules are loaded by the loader that keeps bytecode, everything else as before."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from ansible_collections.kubesteward.core.plugins.plugin_utils import bytecode

OURS = "ansible_collections.kubesteward.core.plugins.module_utils"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "single.py").write_text("VALUE = 1\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "folder").mkdir()
    return tmp_path


def test_bytecode_of_a_module_is_kept_and_renewed(folder, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    spec = bytecode.Finder().find_spec(f"{OURS}.single", [str(folder)])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.VALUE == 1
    assert [path.suffix for path in (folder / "__pycache__").iterdir()] == [".pyc"]
    (folder / "single.py").write_text("VALUE = 1234\n")
    spec.loader.exec_module(module)
    assert module.VALUE == 1234


@pytest.mark.parametrize("name", ["package", "folder", "missing"])
def test_packages_and_what_is_not_there_are_left_to_ansible(folder, name):
    assert bytecode.Finder().find_spec(f"{OURS}.{name}", [str(folder)]) is None


def test_other_collections_are_left_to_ansible(folder):
    name = "ansible_collections.other.core.plugins.module_utils.single"
    assert bytecode.Finder().find_spec(name, [str(folder)]) is None


def test_one_finder_serves_a_process(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    bytecode.keep()
    bytecode.keep()
    assert [isinstance(finder, bytecode.Finder) for finder in sys.meta_path].count(True) == 1
    assert isinstance(sys.meta_path[0], bytecode.Finder)

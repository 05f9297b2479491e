# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let Python keep the bytecode of what a task imports.

Ansible's loader of collections compiles a module at every import and keeps nothing, which a pass would pay once per
task. Python's own loader writes bytecode to `__pycache__` where it may, and finds it there the next time.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import typing as t

#: what our modules import; anything else is left to Ansible
PREFIXES = ("ansible_collections.kubesteward.core.plugins.", "ansible_collections.kubernetes.core.plugins.")
_LOADERS = (importlib.machinery.SourceFileLoader, importlib.machinery.SOURCE_SUFFIXES)


class Finder(importlib.abc.MetaPathFinder):
    """Finds single files below PREFIXES; folders and redirected names stay with Ansible's own finder."""

    def find_spec(
        self, fullname: str, path: t.Sequence[str] | None, target: t.Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(PREFIXES):
            return None
        for folder in path or ():
            spec = importlib.machinery.FileFinder(folder, _LOADERS).find_spec(fullname)
            # a folder has no loader, or the search locations of a package
            if spec and spec.loader and spec.submodule_search_locations is None:
                return spec
        return None


def keep() -> None:
    """From now on, in this process and in those it forks; once is enough."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())

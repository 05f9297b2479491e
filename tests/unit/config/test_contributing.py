# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CONTRIBUTING.md leads to files that are there, and what it promises of reasons is so."""

from __future__ import annotations

import ast
import re

import pytest

ROOM = "plugins/module_utils"


@pytest.fixture
def page(root) -> str:
    return (root / "CONTRIBUTING.md").read_text()


def reasons(text: str) -> set[str]:
    """Words that a file gives to a Verdict, or returns first of a reason and its message."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Verdict":
            given = node.args[1:2]
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            given = node.value.elts[:1]
        found |= {one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


def test_every_file_that_it_names_is_there(root, page):
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.(?:py|yml|yaml|md))`", page))
    assert len(named) > 25
    places = ("", f"{ROOM}/", "tests/unit/", "config/")
    assert [name for name in named if not any((root / f"{place}{name}").exists() for place in places)] == []


def test_every_reason_of_a_verdict_and_of_a_hold_is_on_the_page_of_verdicts(root):
    told = (root / "docs/verdicts.md").read_text()
    words = set().union(*(reasons((root / ROOM / f"images/{name}.py").read_text()) for name in ("verdict", "holds")))
    assert {"digest_equal", "quarantined", "suspended"} <= words
    assert [word for word in sorted(words) if f"`{word}`" not in told] == []

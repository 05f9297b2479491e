# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page on playbooks names what there is."""

from __future__ import annotations

import re

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.images import results
from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass


@pytest.fixture
def page(root) -> str:
    return (root / "docs/playbooks.md").read_text()


def test_every_variable_of_the_page_is_one_of_the_role(root, page):
    specs = yaml.safe_load((root / "roles/update/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    assert set(re.findall(r"\bupdate_[a-z_]+", page)) <= set(specs["options"])


def test_the_example_gives_the_role_what_it_takes(root, page):
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (play,) = yaml.safe_load(text)
    options = yaml.safe_load((root / "roles/update/meta/argument_specs.yml").read_text())["argument_specs"]["main"][
        "options"
    ]
    given = play["tasks"][0]["vars"]
    assert given.keys() <= options.keys()
    assert set(given["update_fail_on"]) <= set(options["update_fail_on"]["choices"])


def test_the_result_has_what_the_page_says(root, page):
    (listed,) = re.findall(r"there\s+is none: (.*?)\. It is", page, re.DOTALL)
    entry = {"namespace": "shop", "name": "web", "containers": [], "missing": [], "error": ""}
    (told,) = results.result([(entry, Pass())], False, False, [])["results"]
    assert set(re.findall(r"`(\w+)`", listed)) == set(told)


def test_where_a_call_fails_the_result_has_the_same(root):
    first, *_others = yaml.safe_load((root / "roles/update/tasks/main.yml").read_text())
    (failed,) = first["rescue"]
    entry = {"namespace": "shop", "name": "web", "containers": [], "missing": [], "error": ""}
    assert (
        failed["vars"]["_update_nothing"].keys()
        == results.result([(entry, Pass())], False, False, [])["results"][0].keys()
    )

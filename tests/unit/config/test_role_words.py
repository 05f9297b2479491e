# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles make of variables: text from a command line is no truth by itself, and an empty one is no wish."""

from __future__ import annotations

import typing as t

import jinja2.nativetypes
import pytest
import yaml
from ansible.plugins.filter.core import to_bool


class UnsetError(Exception):
    """What Ansible's `undef` makes of it."""


def undef(hint: str) -> t.NoReturn:
    raise UnsetError(hint)


def tasks(items: list[dict[str, t.Any]]) -> t.Iterator[dict[str, t.Any]]:
    """Those of blocks, too."""
    for item in items:
        yield from tasks(item["block"]) if "block" in item else [item]


def rendered(root, path: str, task: int, option: str, **variables: t.Any) -> t.Any:
    """An option of a task, as Ansible would template it."""
    found = list(tasks(yaml.safe_load((root / path).read_text())))[task]
    module = next(value for key, value in found.items() if key.startswith("kubesteward.core."))
    environment = jinja2.nativetypes.NativeEnvironment()
    environment.filters["bool"] = to_bool
    return environment.from_string(module[option]).render(undef=undef, **{**found.get("vars", {}), **variables})


@pytest.mark.parametrize(
    ("given", "waits"), [(True, True), ("true", True), ("yes", True), (False, False), ("false", False), ("no", False)]
)
def test_words_for_waiting_mean_what_they_say_and_the_operator_never_waits(root, given, waits):
    path = "roles/nspro/tasks/main.yml"
    assert rendered(root, path, 0, "wait", nspro_wait=given) is waits
    assert rendered(root, path, 0, "wait", nspro_wait=given, ansible_operator_meta={}) is False


RELEASED = {"update_state": "released", "update_name": "", "update_targets": [], "update_all": False}


@pytest.mark.parametrize("given", [False, "false", "no", "", "0"])
def test_nothing_is_released_because_variables_are_empty(root, given):
    with pytest.raises(UnsetError, match="update_all=true"):
        rendered(root, "roles/update/tasks/main.yml", 2, "state", **{**RELEASED, "update_all": given})


@pytest.mark.parametrize(
    "more",
    [{"update_name": "x"}, {"update_targets": [{}]}, {"update_all": True}, {"update_all": "yes"}],
    ids=["name", "targets", "all", "text"],
)
def test_what_is_named_is_released(root, more):
    assert rendered(root, "roles/update/tasks/main.yml", 2, "state", **{**RELEASED, **more}) == "released"


def test_what_runs_every_minute_needs_no_word(root):
    given = {**RELEASED, "update_state": "present"}
    assert rendered(root, "roles/update/tasks/main.yml", 2, "state", **given) == "present"

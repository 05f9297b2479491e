# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fixtures themselves: each has its one test, which fails where the outcome is another one."""

from __future__ import annotations

import collections
import copy
import dataclasses
import re
from pathlib import Path

import pytest

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases import checking, examples

FIXTURES = sorted(path.stem for path in examples.FOLDER.glob("*.yml"))
_UNIT_TESTS = Path(__file__).parents[5]
_TEST = re.compile(r"^def (test_([ABCJ]\d+)_\w+)\(.*?\):\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def named_tests():
    """(case, name of the test, its file, its body) of every test named after a case of these sections."""
    found = []
    for path in sorted(_UNIT_TESTS.rglob("test_*.py")):
        found += [(case, name, path, body) for name, case, body in _TEST.findall(path.read_text())]
    return found


def test_every_case_has_exactly_one_home():
    assert set(collections.Counter(case for case, *_rest in named_tests()).values()) == {1}
    assert {path.parent for _case, _name, path, _body in named_tests()} == {Path(__file__).parent}


@pytest.mark.parametrize("fixture", FIXTURES)
def test_a_fixture_belongs_to_the_test_of_its_case(fixture):
    users = [case for case, _name, _path, body in named_tests() if f'"{fixture}"' in body]
    assert users == [fixture.partition("_")[0]]


def turned(expect):
    """What is expected, said otherwise: as wrong a fixture as there may be."""
    expect = copy.deepcopy(expect)
    for reply in (expect.get("containers") or {"": expect}).values():
        if "verdict" in reply:
            reply["verdict"] = "unknown" if reply["verdict"] == "current" else "current"
    for name in expect.keys() & {"answer", "requests", "refused", "error"}:
        expect[name] = {"answer": {"digest": "another"}, "error": "another"}.get(name, ["another"])
    return expect


@pytest.mark.parametrize("fixture", FIXTURES)
def test_another_outcome_fails(fixture):
    example = examples.load(fixture)[0]
    steps = tuple({**step, "expect": turned(step["expect"])} for step in example.steps)
    wrong = dataclasses.replace(example, steps=steps, expect=turned(example.expect))
    with pytest.raises(AssertionError, match=fixture):
        checking.check_example(wrong)


SMALL = """
what: {what}
objects: [Deployment, ReplicaSet, {{kind: Pod, status: {{containerStatuses: [{{imageID: "web@<{name}>"}}]}}}}]
registry: [{{digest: <I2>, media_type: application/vnd.oci.image.manifest.v1+json, children: []}}]
expect: {expect}
"""


def small(folder, what="something", name="I1", expect="{}"):
    (folder / "small.yml").write_text(SMALL.format(what=what, name=name, expect=expect))
    return examples.load("small", folder)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"what": "''"}, "does not say"),
        ({"expect": "{}"}, "nothing is expected"),
        ({"name": "i1", "expect": "{verdict: current}"}, "no row gives <i1>"),
        ({"expect": "{verdict: current}\nobject: []"}, "unknown keys"),
    ],
)
def test_a_slip_in_a_fixture_is_an_error(tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        small(tmp_path, **given)


RIGHT = "verdict: stale, reason: digest_differs, written: registry.example/shop/web@<I2>"


@pytest.mark.parametrize(
    "expect",
    [
        "verdict: stale",
        "verdict: stale, reason: digest_differs",
        "verdict: stale, reason: digest_differs, written: registry.example/shop/web@<I1>",
        "verdict: stale, reason: mixed_replicas, written: registry.example/shop/web@<I2>",
        f"{RIGHT}, message: other",
        f"{RIGHT}, candidate: <I1>",
        f"{RIGHT}, seen: {{waiting: 1}}",
        f"{RIGHT}, seen: {{odd: 1}}",
        f"{RIGHT}, seen: {{running: []}}",
        f"{RIGHT}, requests: []",
        f"{RIGHT}, writes: []",
        f"{RIGHT}, says: x",
        f"{RIGHT}, after: {{Deployment/web: {{kind: x}}}}",
        "containers: {app: {verdict: stale, reason: digest_differs}}",
        f"containers: {{other: {{{RIGHT}}}}}",
    ],
)
def test_whatever_is_expected_counts(tmp_path, expect):
    (example,) = small(tmp_path, expect=f"{{{expect}}}")
    with pytest.raises(AssertionError, match="small"):
        checking.check_example(example)


def test_what_comes_out_passes(tmp_path):
    (example,) = small(
        tmp_path, expect="{verdict: stale, reason: digest_differs, written: registry.example/shop/web@<I2>}"
    )
    checking.check_example(example)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is handed on as a text is the same as what is handed on as a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils import handover
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(VALUES)
def test_what_was_written_is_read(value):
    text = handover.write(value)
    assert handover.is_text(text)
    assert handover.read(text) == value


@given(VALUES.filter(lambda value: not handover.is_text(value)))
def test_anything_else_is_left_alone(value):
    assert handover.read(value) is value


@pytest.mark.parametrize("value", [[{}], "", "True", {"a": "{{ b }}"}, []])
def test_no_template_takes_the_text_for_a_list_or_a_truth_value(value):
    assert handover.write(value)[0] not in "[{TF"


@pytest.mark.parametrize("broken", ["json:", "json:[{", "json:[{}] and more"])
def test_a_broken_text_is_refused(broken):
    with pytest.raises(StewardError, match="begins with json: is not as the module returned it"):
        handover.read(broken)


def test_an_option_holds_dictionaries_or_nothing():
    assert handover.dicts([{"a": 1}], "x") == handover.dicts(handover.write([{"a": 1}]), "x") == [{"a": 1}]
    assert handover.dicts(None, "x") == handover.dicts("", "x") == handover.dicts("json:[]", "x") == []
    assert handover.mapping({"a": 1}, "x") == handover.mapping(handover.write({"a": 1}), "x") == {"a": 1}
    assert handover.mapping(None, "x") is handover.mapping("", "x") is handover.mapping("json:{}", "x") is None


@pytest.mark.parametrize("wrong", ["web", {"a": 1}, [["a"]], [{}, "a"], handover.write({"a": 1}), handover.write([1])])
def test_an_option_that_holds_something_else_is_told_by_name(wrong):
    with pytest.raises(StewardError, match="The option running must be a list of dictionaries"):
        handover.dicts(wrong, "running")


@pytest.mark.parametrize("wrong", ["web", [{}], handover.write([{}])])
def test_a_dictionary_that_is_none_is_told_by_name(wrong):
    with pytest.raises(StewardError, match="The option update_resource must be a dictionary"):
        handover.mapping(wrong, "update_resource")

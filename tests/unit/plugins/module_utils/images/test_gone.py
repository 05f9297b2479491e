# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which running digests count as gone from their registry."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import judge
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    C1,
    I1,
    I2,
    REPOSITORY,
    published,
    running,
)


def gone(entry, *image_ids):
    (judged,) = judge.judge([running(*image_ids)], [entry], Policy())
    return judged[0]["gone"]


@pytest.mark.parametrize("prefix", ["", "docker-pullable://"])
def test_a_running_digest_that_its_registry_lacks(prefix):
    assert gone(published(I2, gone=[I1]), f"{prefix}{REPOSITORY}@{I1}") == [I1]
    assert gone(published(I2, gone=[]), f"{prefix}{REPOSITORY}@{I1}") == []
    assert gone(published(I2), f"{prefix}{REPOSITORY}@{I1}") == []


def test_what_another_workload_runs_is_not_its_own():
    assert gone(published(I2, gone=[I1]), f"{REPOSITORY}@{I2}") == []


@pytest.mark.parametrize("image_id", [f"quay.io/shop/other@{I1}", f"No Name@{I1}", C1, ""])
def test_what_a_runtime_names_by_another_repository_was_perhaps_never_in_this_one(image_id):
    assert gone(published(I2, gone=[I1]), image_id) == []


def test_a_tag_that_is_not_found_either():
    entry = {"state": "unknown", "reason": "not_found", "msg": "missing", "gone": [I1]}
    assert gone({"image": published()["image"], **entry}, f"{REPOSITORY}@{I1}") == [I1]

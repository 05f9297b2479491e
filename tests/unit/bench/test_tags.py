# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for a tag service answers for the one tag it knows."""

from __future__ import annotations

import pytest

from bench.article import tags

PATH = "/api/v1/repository/bench/web/tag/"


@pytest.mark.parametrize(
    ("target", "digests"),
    [
        (PATH, ["sha256:1"]),
        (f"{PATH}?specificTag=1&onlyActiveTags=true", ["sha256:1"]),
        (f"{PATH}?specificTag=2", []),
    ],
)
def test_known_repository(target, digests):
    answer = tags.answer("bench/web", "1", "sha256:1", target)
    assert [tag["manifest_digest"] for tag in answer["tags"]] == digests


def test_another_repository_is_not_found():
    assert tags.answer("bench/web", "1", "sha256:1", "/api/v1/repository/bench/other/tag/") is None

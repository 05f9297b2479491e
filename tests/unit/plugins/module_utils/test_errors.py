# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError


def test_context_and_reason_become_keys_of_the_result():
    error = StewardError("no such tag", reason="not_found", image="shop/web:1")
    assert error.as_result() == {"msg": "no such tag", "reason": "not_found", "image": "shop/web:1"}


def test_without_a_reason_there_is_no_such_key():
    assert StewardError("broken").as_result() == {"msg": "broken"}

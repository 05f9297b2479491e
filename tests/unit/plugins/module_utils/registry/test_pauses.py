# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.registry.pauses import LONGEST, pause_asked
from ansible_collections.kubesteward.core.plugins.module_utils.registry.protocol import Response

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("30", b"", 30),
        (" 1.5 ", b"", 1.5),
        ("Tue, 14 Nov 2023 22:13:50 GMT", b"", 30),
        ("Tue, 14 Nov 2023 22:00:00 GMT", b"", 0),
        ("1m30s", b"", 90),
        ("", b'{"retry_after": 12}', 12),
        ("", b'{"retryAfter": "2s"}', 2),
        (
            "",
            b'{"errors":[{"code":"TOOMANYREQUESTS","message":"retry-after: 374.233us, allowed: 44000/minute"}]}',
            0.000374233,
        ),
        ("", b"retry-after: 7.5ms", 0.0075),
        ("", b"Retry after 20 seconds", 20),
        ("soon", b"", None),
        ("", b"too many requests", None),
        ("", b"", None),
        ("999999999", b"", LONGEST),
        ("7", b'{"retry_after": 12}', 7),
    ],
)
def test_every_form_of_a_pause_is_understood(header, body, seconds):
    found = pause_asked(Response(429, {"retry-after": header} if header else {}, body), NOW)
    assert found == (seconds if seconds is None else pytest.approx(seconds))


@given(
    st.text(max_size=60) | st.text("0123456789.hmsuµn ", max_size=20),
    st.binary(max_size=80) | st.text(max_size=40).map(str.encode),
)
def test_any_answer_is_read_without_an_unexpected_exception(header, body):
    found = pause_asked(Response(429, {"retry-after": header}, body), NOW)
    assert found is None or 0 <= found <= LONGEST

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a registry asks us to wait, in every form it says so. Pure."""

from __future__ import annotations

import email.utils
import json
import math
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.registry.protocol import Response

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|μs|ns)")
_IN_TEXT = re.compile(r"retry[-_ ]?after\W{1,4}((?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|μs|ns)?)+)", re.IGNORECASE)
LONGEST = 7 * 24 * 3600.0


def pause_asked(response: Response, now: float) -> float | None:
    """Seconds that `response` asks to wait from `now` (a Unix time), None where it asks for none.

    Read from `Retry-After` as seconds or a date, then from the body (a field, or the words of a message).
    """
    seconds = _from_header(response.get("retry-after"), now)
    if seconds is None and response.body:
        seconds = _from_body(response.body[:65536].decode("utf-8", "replace"))
    return None if seconds is None else min(max(seconds, 0.0), LONGEST)


def _from_header(text: str, now: float) -> float | None:
    text = text.strip()
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _number(text: str) -> float | None:
    """Seconds of `30`, `1.5` or Go's `1m30s`."""
    if re.fullmatch(r"\d{1,12}(?:\.\d{1,9})?", text, re.ASCII):
        return float(text)
    parts = _DURATION.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        return seconds if math.isfinite(seconds) else None
    return None


def _from_body(text: str) -> float | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        for name in ("retry_after", "retryAfter", "retry-after"):
            value = data.get(name)
            if isinstance(value, (int, float, str)) and not isinstance(value, bool):
                return _number(str(value))
    found = _IN_TEXT.search(text)
    return _number(t.cast(str, found[1])) if found else None

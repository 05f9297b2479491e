# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one base of every failure that this collection expects."""

from __future__ import annotations

import typing as t


class StewardError(Exception):
    """A failure with a message for people; `context` becomes extra keys of the failed result.

    :param message: what is wrong, where, and what to do about it
    :param reason: one word of the documented reasons, e.g. `not_found`, or None where no verdict depends on it
    :param context: plain data (strings, numbers, lists, dicts), never a secret
    """

    def __init__(self, message: str, reason: str | None = None, **context: t.Any) -> None:
        super().__init__(message)
        self.reason = reason
        self.context = context

    def as_result(self) -> dict[str, t.Any]:
        """Keys for `fail_json`."""
        result: dict[str, t.Any] = {"msg": str(self), **self.context}
        if self.reason is not None:
            result["reason"] = self.reason
        return result

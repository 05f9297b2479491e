# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one base of every failure that this collection expects."""

from __future__ import annotations

import traceback
import typing as t

MAX_SAID = 300
MAX_FRAMES = 12


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


def unexpected(error: Exception, where: str, secrets: t.Iterable[str] | None = ()) -> StewardError:
    """What an error that nobody foresaw is where it must not end the rest: told with its traceback.

    The traceback is that of the code alone. What the error itself says may be somebody else's text, so it is cut, and
    left out where it has one of `secrets`, or where these are None: not known.
    """
    said = "".join(char if char.isprintable() else "?" for char in str(error)[:MAX_SAID])
    if secrets is None or any(secret and secret in str(error) for secret in secrets):
        said = "(what it says is not shown, as it may hold a credential)"
    frames = "".join(["Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__)[-MAX_FRAMES:]])
    return StewardError(
        f"{where}: an error that was not expected, please report it: {type(error).__name__}: {said}\n{frames}".rstrip(),
        reason="unexpected",
    )

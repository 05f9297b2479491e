# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions of a status, and the form of their times. Pure but for `now`."""

from __future__ import annotations

import datetime
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.texts import cut

#: the only form that the operator keeps, in the terms of strptime
TIME = "%Y-%m-%dT%H:%M:%SZ"


def now() -> str:
    """The present moment, `2006-01-02T15:04:05Z`."""
    return datetime.datetime.now(datetime.UTC).strftime(TIME)


def moment(text: str) -> datetime.datetime:
    """A time of that form.

    :raises ValueError: it is none
    """
    return datetime.datetime.strptime(text, TIME)


def later(text: str, seconds: int) -> str:
    """A time of that form so many seconds later.

    :raises ValueError: it is none
    """
    return (moment(text) + datetime.timedelta(seconds=seconds)).strftime(TIME)


def age(since: str, now: str) -> int | None:
    """Seconds from one time to another; None where `since`, which somebody else may have written, is none."""
    try:
        return int((moment(now) - moment(since)).total_seconds())
    except ValueError:
        return None


def stamped(
    before: t.Iterable[t.Mapping[str, t.Any]], values: t.Iterable[tuple[str, str, str, str]], at: str
) -> list[dict[str, str]]:
    """Conditions with the time since when each has its status.

    :param before: the conditions as they are now
    :param values: (type, status, reason, message) of each
    :param at: `2006-01-02T15:04:05Z`, for those whose status changed
    """
    known = {condition["type"]: condition for condition in before}
    conditions = []
    for kind, value, reason, message in values:
        last = known.get(kind) or {}
        since = last.get("lastTransitionTime") if last.get("status") == value else None
        conditions.append(
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": cut(message),
                "lastTransitionTime": since or at,
            }
        )
    return conditions

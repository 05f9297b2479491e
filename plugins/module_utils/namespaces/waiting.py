# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until a namespace is there, or gone: for playbooks whose next task needs it. An operator's pass never waits."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result

#: seconds between two looks
PAUSE = 2.0


class Patience:
    """The time that one call has for all of its namespaces together.

    :param seconds: how long to wait; None does not wait at all
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds, self._until = seconds, time.monotonic() + (seconds or 0)

    def until_done(self, look: t.Callable[[], Result]) -> Result:
        """Look again until nothing is to be waited for, or the time is over, which is an error.

        :param look: one attempt, writes included
        """
        result = look()
        while self._seconds is not None and not result.error and is_under_way(result):
            left = self._until - time.monotonic()
            if left <= 0:
                result.error = f"Namespace {result.name}: {result.msg} (still so after {self._seconds:g} s)"
                return result
            time.sleep(min(PAUSE, left))
            done, result = result.done, look()
            result.done = [*done, *result.done]
        return result


def is_under_way(result: Result) -> bool:
    """True where the cluster, and nobody else, is to do something yet."""
    if result.state == "held":
        return result.shrunk is not None and not result.shrunk.is_known
    return result.state == "terminating" or result.comes_by_itself

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alternating rounds: A B C, A B C, ... so that a change of the machine's load meets all alike."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping


def alternate(
    runs: Mapping[str, Callable[[], float]],
    repeats: int,
    told: Callable[[int], t.Any],
    most: Mapping[str, int] | None = None,
) -> dict[str, list[float]]:
    """Seconds of `repeats` runs of each, taken round by round.

    :param runs: by name, a function that carries out one run and returns its seconds
    :param told: is called with the number of rounds done, from 1
    :param most: by name, in how many of the first rounds it is run, where that is not in all
    """
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(1, repeats + 1):
        for name, run in runs.items():
            if number <= (most or {}).get(name, repeats):
                samples[name].append(run())
        told(number)
    return samples

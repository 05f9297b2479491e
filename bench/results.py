# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From seconds of single runs to lines of the table and entries of results.json. Pure."""

from __future__ import annotations

import statistics
import typing as t

from bench.catalog import Limit, Measure

Samples = t.Mapping[str, t.Sequence[float]]

HEADINGS = ("NAME", "VALUE", "UNIT", "RATIO", "AGAINST", "MIN", "MAX", "REPEATS", "REQUIRED", "MET")


def entry(measure: Measure, samples: Samples) -> dict[str, t.Any]:
    """One element of results.json.

    `value` is a median, of runs or, where `kind` is `difference`, the difference of two medians; `ratio` compares
    medians, of the rounds in which both were taken. For derived measures `min` and `max` are those of single rounds.

    :param samples: seconds (or a rate, ...) of each round, by measure; one that takes long has the first ones only
    """
    own = samples[measure.name if measure.taken else measure.of]
    other = samples[measure.against] if measure.against else None
    # the rounds of one play alone would be of another hour
    pairs = list(zip(own, other, strict=False)) if other else []
    left, right = (statistics.median(column) for column in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
    ratio = left / right if pairs else None
    if measure.taken or not pairs:
        value, rounds = statistics.median(own), list(own)
    elif measure.kind == "ratio":
        value, rounds = left / right, [one / two for one, two in pairs]
    else:
        value, rounds = left - right, [one - two for one, two in pairs]
    return {
        "name": measure.name,
        "value": round(value, 3),
        "unit": measure.unit,
        "against": measure.against,
        "ratio": None if ratio is None else round(ratio, 3),
        "repeats": len(rounds),
        "min": round(min(rounds), 3),
        "max": round(max(rounds), 3),
    }


def is_met(limit: Limit | None, result: t.Mapping[str, t.Any]) -> bool | None:
    """Whether a requirement holds; None where there is none."""
    if limit is None:
        return None
    found = result[limit.of]
    return (limit.most is None or found <= limit.most) and (limit.least is None or found >= limit.least)


def required(measure: Measure) -> str:
    """A requirement in words, e.g. `ratio <= 2`; empty where there is none."""
    if measure.limit is None:
        return ""
    unit = f" {measure.unit}" if measure.limit.of == "value" else ""
    bounds = (("<=", measure.limit.most), (">=", measure.limit.least))
    return " and ".join(f"{measure.limit.of} {sign} {bound:g}{unit}" for sign, bound in bounds if bound is not None)


def row(measure: Measure, result: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    """One line of the table, below HEADINGS."""
    met = is_met(measure.limit, result)
    return (
        measure.name,
        f"{result['value']:.3f}",
        result["unit"],
        "" if result["ratio"] is None else f"{result['ratio']:.2f}",
        result["against"] or "",
        f"{result['min']:.3f}",
        f"{result['max']:.3f}",
        str(result["repeats"]),
        required(measure),
        {None: "", True: "yes", False: "NO"}[met],
    )

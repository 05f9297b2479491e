# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be measured, what it is compared with, and what is required of it. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from bench.errors import BenchError


@dataclass(frozen=True)
class Limit:
    """`most`: the highest permitted `value` (in the measure's unit) or `ratio` (a plain number)."""

    of: t.Literal["value", "ratio"]
    most: float


@dataclass(frozen=True)
class Measure:
    """One line of the results.

    :ivar group: measures of one group are taken alternately, round by round, in the same surroundings
    :ivar kind: `timed` (seconds of a run), or derived from two timed ones: `ratio` (of / against) or `difference`
    :ivar of: for derived ones, the timed measure that is compared with `against`
    """

    name: str
    group: str
    kind: t.Literal["timed", "ratio", "difference"] = "timed"
    of: str = ""
    against: str | None = None
    limit: Limit | None = None

    @property
    def unit(self) -> str:
        return "ratio" if self.kind == "ratio" else "s"

    @property
    def needs(self) -> tuple[str, ...]:
        """The timed measures without which this one cannot be told."""
        own = self.name if self.kind == "timed" else self.of
        return (own, self.against) if self.against else (own,)


MEASURES = (
    Measure("empty_play", "pass"),
    Measure("update_unchanged", "pass", against="empty_play", limit=Limit("ratio", 2.0)),
    Measure("article_update_unchanged", "pass", against="empty_play"),
    Measure(
        "update_unchanged_vs_article",
        "pass",
        kind="ratio",
        of="update_unchanged",
        against="article_update_unchanged",
        limit=Limit("ratio", 0.3),
    ),
    Measure("update_1_image", "images"),
    Measure("update_200_images", "images", against="update_1_image"),
    Measure(
        "update_200_images_extra",
        "images",
        kind="difference",
        of="update_200_images",
        against="update_1_image",
        limit=Limit("value", 3.0),
    ),
)


def select(only: str, measures: t.Sequence[Measure] = MEASURES) -> list[Measure]:
    """The measures that `NAME,...` names and the timed ones that these need, in the catalog's order; "" means all.

    :raises BenchError: for a name that is not in the catalog
    """
    known = {measure.name: measure for measure in measures}
    names = [name.strip() for name in only.split(",") if name.strip()] or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BenchError(f"There is no measure {', '.join(unknown)}; these are known: {', '.join(known)}")
    wanted = set(names)
    while more := {need for name in wanted for need in known[name].needs} - wanted:
        wanted |= more
    return [measure for measure in measures if measure.name in wanted]


def groups(measures: t.Iterable[Measure]) -> dict[str, list[Measure]]:
    """Measures by group, both in order."""
    found: dict[str, list[Measure]] = {}
    for measure in measures:
        found.setdefault(measure.group, []).append(measure)
    return found

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
    """`most` and `least`: the bounds of a permitted `value` (in the measure's unit) or `ratio` (a plain number)."""

    of: t.Literal["value", "ratio"]
    most: float | None = None
    least: float | None = None


@dataclass(frozen=True)
class Measure:
    """One line of the results.

    :ivar group: measures of one group are taken alternately, round by round, in the same surroundings
    :ivar kind: taken: `timed` (seconds of a run), `each` (seconds per namespace), `rate` (references per second),
        `pace` (passes per minute), `memory` (MB) or `writes` (mutating requests); or derived from two that are taken:
        `ratio` (of / against) or `difference`
    :ivar beside: for what another measure's runs tell, too, that measure
    :ivar of: for derived ones, the measure that is compared with `against`
    :ivar rounds: how often it is taken at most, in the first rounds, where a run takes long; 0: in all of them
    """

    name: str
    group: str
    kind: t.Literal["timed", "each", "rate", "pace", "memory", "writes", "ratio", "difference"] = "timed"
    of: str = ""
    beside: str = ""
    against: str | None = None
    limit: Limit | None = None
    rounds: int = 0

    @property
    def unit(self) -> str:
        units = {"ratio": "ratio", "rate": "1/s", "memory": "MB", "each": "s/namespace", "writes": "requests"}
        return {**units, "pace": "1/min"}.get(self.kind, "s")

    @property
    def taken(self) -> bool:
        """Whether it is measured itself, not derived."""
        return self.kind not in ("ratio", "difference")

    @property
    def needs(self) -> tuple[str, ...]:
        """The measures that have to be taken to tell this one."""
        own = self.name if self.taken else self.of
        return tuple(name for name in (own, self.against, self.beside) if name)


def _against(who: str, theirs: str, least: float) -> Measure:
    """Our rate divided by another tool's."""
    limit = Limit("ratio", least=least)
    name = f"registry_1000_vs_{who}"
    return Measure(name, "registry", kind="ratio", of="registry_1000", against=theirs, limit=limit)


def _operator(name: str, peak: float, tmp: float, rounds: int = 0) -> tuple[Measure, ...]:
    """Passes as the operator makes them; `peak` and `tmp` are the most MB that they may take of memory and of /tmp.

    The limits of config/manager follow from these bounds.
    """
    memory, folder = Limit("value", peak), Limit("value", tmp)
    return (
        Measure(name, "operator", rounds=rounds),
        Measure(f"{name}_peak_mb", "operator", kind="memory", beside=name, limit=memory, rounds=rounds),
        Measure(f"{name}_cpu_s", "operator", beside=name, rounds=rounds),
        Measure(f"{name}_tmp_mb", "operator", kind="memory", beside=name, limit=folder, rounds=rounds),
    )


MEASURES = (
    Measure("empty_play", "pass"),
    Measure("update_unchanged", "pass", against="empty_play", limit=Limit("ratio", 1.8)),
    Measure("article_update_unchanged", "pass", against="empty_play"),
    Measure(
        "update_unchanged_vs_article",
        "pass",
        kind="ratio",
        of="update_unchanged",
        against="article_update_unchanged",
        limit=Limit("ratio", 0.3),
    ),
    Measure("update_500_workloads", "pass", against="empty_play", limit=Limit("ratio", 6.0)),
    Measure(
        "update_500_workloads_rss_mb",
        "pass",
        kind="memory",
        beside="update_500_workloads",
        limit=Limit("value", 300.0),
    ),
    Measure("update_30_updates", "pass", against="empty_play", limit=Limit("ratio", 2.5)),
    Measure("update_1000_updates", "pass", against="empty_play", limit=Limit("ratio", 15.0), rounds=3),
    Measure(
        "update_1000_updates_peak_mb",
        "pass",
        kind="memory",
        beside="update_1000_updates",
        limit=Limit("value", 400.0),
        rounds=3,
    ),
    Measure(
        "update_1000_updates_requests",
        "pass",
        kind="writes",
        beside="update_1000_updates",
        limit=Limit("value", 300),
        rounds=1,
    ),
    Measure("ns_20_unchanged", "pass", against="empty_play", limit=Limit("ratio", 2.0)),
    Measure("ns_20_unchanged_k8s_module", "pass", against="empty_play", rounds=3),
    Measure("ns_unchanged_writes", "pass", kind="writes", beside="ns_20_unchanged", limit=Limit("value", 0)),
    Measure(
        "ns_20_unchanged_vs_k8s_module",
        "pass",
        kind="ratio",
        of="ns_20_unchanged",
        against="ns_20_unchanged_k8s_module",
        limit=Limit("ratio", 0.1),
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
    Measure("registry_1000", "registry", kind="rate"),
    Measure("registry_1000_startup", "registry", beside="registry_1000"),
    Measure("crane_1000", "registry", kind="rate"),
    Measure("skopeo_200", "registry", kind="rate"),
    Measure("wrk_manifests", "registry", kind="rate"),
    _against("crane", "crane_1000", 4.0),
    _against("skopeo", "skopeo_200", 10.0),
    _against("wrk", "wrk_manifests", 0.5),
    Measure("ns_200_create", "creation", kind="each"),
    Measure("ns_10_create_k8s_module", "creation", kind="each"),
    Measure("ns_create_writes", "creation", kind="writes", beside="ns_200_create", limit=Limit("value", 7)),
    Measure(
        "ns_200_create_vs_k8s_module",
        "creation",
        kind="ratio",
        of="ns_200_create",
        against="ns_10_create_k8s_module",
        limit=Limit("ratio", 0.1),
    ),
    *_operator("operator_pass", peak=120.0, tmp=0.7),
    *_operator("operator_pass_500", peak=170.0, tmp=6.0),
    *_operator("operator_start", peak=120.0, tmp=0.7),
    *_operator("operator_nspro", peak=120.0, tmp=0.7),
    *_operator("operator_100_updates", peak=450.0, tmp=70.0, rounds=1),
    Measure("operator_100_updates_per_minute", "operator", kind="pace", beside="operator_100_updates", rounds=1),
)


def select(only: str, measures: t.Sequence[Measure] = MEASURES) -> list[Measure]:
    """The measures that `NAME,...` names and those that these need, in the catalog's order; "" means all.

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

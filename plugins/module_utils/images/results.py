# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a call over many Updates says: the result of each, and one table. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import report
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import place
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import CURRENT

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.images.several import Done

Object = dict[str, t.Any]

#: lists of a single result that a call over many has too, each entry with its namespace
_LISTS = ("rolled", "rolled_back", "settled", "freed", "released")
#: rows of a table for people; of more, those that are current are only counted
_ROWS = 200


def result(
    done: Done, with_diff: bool, is_check: bool, fail_on: t.Collection[str], before: t.Sequence[Object] = ()
) -> Object:
    """The documented result of image_rollout with `updates`.

    :param fail_on: words of `report.FAIL_ON`
    :param before: the `results` of the call that rolled what this one waited for
    """
    earlier = {(entry["namespace"], entry["name"]): entry for entry in before}
    singles = [report.result(own, with_diff, not entry["containers"], is_check) for entry, own in done]
    found: Object = {
        "changed": any(single["changed"] for single in singles),
        "results": [],
        **{name: [] for name in (*_LISTS, "starts")},
        "errors": [],
        "table": _table(done, singles, is_check),
    }
    for (entry, own), single in zip(done, singles, strict=True):
        failures = [] if entry["error"] else report.failures(own, entry["missing"], fail_on)
        one = _one(entry, {**single, "errors": [*single["errors"], *failures]}, earlier.pop(_key(entry), None))
        found["results"].append(one)
        for name in (*_LISTS, "starts"):
            found[name] += [{"namespace": entry["namespace"], **item} for item in single[name]]
    found["results"] = _in_order(before, found["results"])
    found["errors"] = errors(found["results"])
    if with_diff:
        found["diff"] = [change for single in singles for change in single["diff"]]
    return found


def _key(entry: t.Mapping[str, t.Any]) -> tuple[str, str]:
    return entry["namespace"], entry["name"]


def _one(entry: Object, single: Object, before: Object | None) -> Object:
    told: Object = {
        "namespace": entry["namespace"],
        "name": entry["name"],
        **{name: single[name] for name in ("counts", "verdicts", "rolled", "rolled_back", "held")},
        "pending": [],
        "errors": single["errors"],
    }
    if before:
        for name in ("rolled", "rolled_back", "errors"):
            told[name] = [*before[name], *told[name]]
    return told


def _in_order(before: t.Sequence[Object], results: list[Object]) -> list[Object]:
    """With what was not waited for, where it was."""
    now = {_key(entry): entry for entry in results}
    return [now.get(_key(entry), entry) for entry in before] or results


def errors(results: t.Sequence[Object]) -> list[str]:
    """What went wrong, with the Update's name where there are several."""
    if len(results) == 1:
        return list(results[0]["errors"])
    return [f"{name_of(entry)}: {error}" for entry in results for error in entry["errors"]]


def name_of(entry: t.Mapping[str, t.Any]) -> str:
    """`namespace/name`, or the namespace alone where it has no Update."""
    return f"{entry['namespace']}/{entry['name']}" if entry["name"] else str(entry["namespace"])


def _table(done: Done, singles: t.Sequence[Object], is_check: bool) -> list[str]:
    """One table of all, with the Updates' names where there are several, and their notes below it."""
    if len(done) == 1:
        return list(singles[0]["table"])
    lines: list[tuple[str, ...]] = []
    notes: list[str] = []
    for entry, own in done:
        patched = {place(roll) for roll in own.rolled}
        lines += [(name_of(entry), *row) for row in report.rows(own, patched, is_check)]
        notes += [f"{name_of(entry)}: {note}" for note in report.notes(own, patched, is_check)]
    shown = lines
    if len(lines) > _ROWS:
        shown = [line for line in lines if line[1 + report.VERDICT] != CURRENT]
        notes.append(f"{len(lines) - len(shown)} containers are {CURRENT}")
    return [*report.aligned([("UPDATE", *report.COLUMNS), *shown]), *notes]

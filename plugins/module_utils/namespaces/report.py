# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of ns_provision for machines and for people. Pure."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import marks
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.desired import SOURCE
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.plan import Operation
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result

_COLUMNS = ("NAMESPACE", "STATE", "WRITES", "MESSAGE")


def result(results: t.Sequence[Result], statuses: t.Mapping[str, t.Any], with_diff: bool) -> dict[str, t.Any]:
    """The documented result.

    :param statuses: those of Nspros that are new
    """
    found: dict[str, t.Any] = {
        "changed": bool(statuses) or any(item.done for item in results),
        "namespaces": [_entry(item) for item in results],
        "writes": sum(len(item.done) for item in results),
        "statuses": dict(statuses),
        "table": table(results),
    }
    if with_diff:
        found["diff"] = [_change(item.name, operation) for item in results for operation in item.done]
    return found


def _entry(item: Result) -> dict[str, t.Any]:
    return {
        "name": item.name,
        "state": item.state,
        "reason": item.reason,
        "msg": item.msg,
        "operations": [{"action": x.action, "kind": x.kind, "name": x.name} for x in item.done],
        "warnings": item.warnings,
        "foreign_policies": item.foreign_policies,
    }


def table(results: t.Sequence[Result]) -> list[str]:
    """One aligned line per namespace."""
    rows = [_COLUMNS, *((item.name, item.state, str(len(item.done)), item.msg) for item in results)]
    widths = [max(len(row[index]) for row in rows) for index in range(3)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()
        for row in rows
    ]


def _change(namespace: str, operation: Operation) -> dict[str, str]:
    header = f"{operation.kind}/{operation.name}"
    if operation.kind != "Namespace":
        header = f"{namespace} {header}"
    texts = {"before": as_text(operation.before), "after": as_text(operation.after)}
    if operation.kind == "ServiceAccount":
        entries = next(x["value"] for x in operation.operations if x["op"] in ("add", "replace"))
        texts = {"before": "", "after": "".join(f"imagePullSecrets: {entry['name']}\n" for entry in entries)}
    return {"before_header": header, "after_header": header, **texts}


def as_text(value: t.Mapping[str, t.Any] | None) -> str:
    """An object for a diff: without what the API server keeps for itself, and without a Secret's content."""
    if value is None:
        return ""
    meta = {key: dict(value["metadata"][key]) for key in marks.FIELDS if value["metadata"].get(key)}
    # tools keep the whole object there, a Secret's content with it
    meta.get("annotations", {}).pop("kubectl.kubernetes.io/last-applied-configuration", None)
    if value.get("kind") == "Secret" and "annotations" in meta:
        meta["annotations"] = {key: text for key, text in meta["annotations"].items() if key == SOURCE}
    body = {key: value[key] for key in ("spec", "roleRef", "subjects", "type") if key in value}
    return json.dumps({"metadata": meta, **body}, indent=2, sort_keys=True) + "\n"


def aggregated(errors: t.Sequence[str]) -> str:
    """One message for everything that went wrong; the rest was done."""
    if len(errors) == 1:
        return errors[0]
    return f"{len(errors)} namespaces are not as they should be, the others are: " + "; ".join(errors)


def problems(results: t.Sequence[Result], wanted: str = "present") -> list[str]:
    """Sentences on namespaces that are not as they should be, and warnings on the others.

    :param wanted: the state that was asked for
    """
    found = []
    for item in results:
        if is_wrong(item, wanted) and not item.error:
            found.append(f"Namespace {item.name}: {item.state}: {item.msg}")
        found += [f"Namespace {item.name}: {text}" for text in item.warnings]
        if item.unasked:
            names = ", ".join(f"{x.kind}/{x.name}" for x in item.unasked)
            why = "they stand on what check mode does not write"
            found.append(f"Namespace {item.name}: the API server was not asked about {names}: {why}")
    return found


def is_wrong(item: Result, wanted: str) -> bool:
    """True for a state that nobody asked for; one that is being deleted is wrong where it is to be there."""
    if item.state == "terminating":
        return wanted == "present" and item.reason in ("terminating", "namespace_terminating")
    return item.state in ("conflict", "invalid", "reserved", "held", "pending")


def failures(results: t.Sequence[Result], fail_on: t.Container[str], is_single: bool) -> list[str]:
    """Messages of namespaces that fail the run.

    :param fail_on: states that do
    :param is_single: one was named, so that what stands in its way fails too
    """
    found = []
    for item in results:
        if item.error:
            found.append(item.error)
        elif item.state in fail_on:
            found.append(f"Namespace {item.name}: {item.state}: {item.msg}")
        elif is_single and item.state in ("conflict", "invalid", "reserved"):
            found.append(item.msg)
    return found

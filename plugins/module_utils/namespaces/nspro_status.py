# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a Nspro, and what is told of a change. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result
from ansible_collections.kubesteward.core.plugins.module_utils.texts import cut

Object = dict[str, t.Any]

_PHASES = {
    "ready": "Ready",
    "pending": "Pending",
    "terminating": "Terminating",
    "conflict": "Conflict",
    "invalid": "Invalid",
    "reserved": "Reserved",
    "held": "Held",
    "absent": "Absent",
    "released": "Released",
}
_OURS = ("phase", "observedGeneration", "namespace", "quota", "cpu", "memory", "warnings", "foreignPolicies")
_TYPES = ("Ready", "QuotaApplied", "NetworkPolicyApplied", "ShrinkBlocked", "Conflict")


def following(nspro: t.Mapping[str, t.Any], result: Result, now: str) -> Object:
    """The status after a pass.

    :param now: `2006-01-02T15:04:05Z`
    """
    before = (nspro.get("status") or {}).get("conditions") or ()
    found: Object = {
        "phase": _PHASES[result.state],
        "observedGeneration": nspro["metadata"].get("generation", 0),
        "namespace": result.name,
        "conditions": conditions.stamped(before, _conditions(result), now),
    }
    status = (result.quota or {}).get("status") or {}
    if status.get("hard"):
        hard, used = dict(status["hard"]), dict(status.get("used") or {})
        found["quota"] = {"hard": hard, "used": used}
        for key in ("cpu", "memory"):
            name = f"limits.{key}"
            if name in hard:
                found[key] = f"{used.get(name, '?')}/{hard[name]}"
    if result.warnings:
        found["warnings"] = [cut(text) for text in result.warnings]
    if result.foreign_policies:
        found["foreignPolicies"] = result.foreign_policies[:100]
    return found


def _conditions(result: Result) -> list[tuple[str, str, str, str]]:
    word = _word(result.reason or result.state)
    done = "; ".join(filter(None, ("everything is written", result.msg)))
    ready = ("True", "Provisioned", done) if result.state == "ready" else None
    held, figures = result.held, result.shrunk.message if result.shrunk else ""
    shrink = ("True", "InUse" if result.shrunk and result.shrunk.is_known else "UsageUnknown", figures)
    conflict = ("True", word, result.msg)
    return [
        ("Ready", *(ready or ("False", word, result.msg or result.state))),
        ("QuotaApplied", *(("False", "ShrinkBlocked", figures) if held else result.of("ResourceQuota"))),
        # whether the network enforces it nobody tells us
        ("NetworkPolicyApplied", *result.of("NetworkPolicy")),
        ("ShrinkBlocked", *(shrink if held else ("False", "NotHeld", "no smaller quota waits"))),
        (
            "Conflict",
            *(conflict if result.state in ("conflict", "reserved") else ("False", "NoConflict", "nobody else has it")),
        ),
    ]


def _word(reason: str) -> str:
    return "".join(part.capitalize() for part in reason.split("_"))


def is_news(before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> bool:
    """Does `after` say anything that `before` does not?"""
    if any((before.get(key) or None) != (after.get(key) or None) for key in _OURS):
        return True
    return _told(before) != _told(after)


def _told(status: t.Mapping[str, t.Any]) -> dict[str, tuple[t.Any, ...]]:
    return {
        item["type"]: (item.get("status"), item.get("reason"), item.get("message"))
        for item in status.get("conditions") or ()
        if item["type"] in _TYPES
    }


def events(nspro: t.Mapping[str, t.Any], result: Result, after: t.Mapping[str, t.Any]) -> list[Object]:
    """What is new: writes that were made, and a phase that changed; {`reason`, `type`, `message`}."""
    found = []
    for operation in result.done:
        if operation.kind == "Namespace" and operation.action in ("create", "delete"):
            reason = "NamespaceCreated" if operation.action == "create" else "NamespaceDeleted"
            found.append({"reason": reason, "type": "Normal", "message": f"Namespace {operation.name}"})
    changed = [
        f"{item.kind}/{item.name}" for item in result.done if item.action != "create" and item.kind != "Namespace"
    ]
    if changed and not any(item.action == "create" for item in result.done):
        found.append({"reason": "Changed", "type": "Normal", "message": f"wrote {', '.join(changed[:10])}"})
    if result.shrunk and not result.held and any(item.kind == "ResourceQuota" for item in result.done):
        message = f"the quota is less than what is used: {result.shrunk.message}"
        found.append({"reason": "ShrinkApplied", "type": "Warning", "message": message})
    before = (nspro.get("status") or {}).get("phase")
    if before != after["phase"] and result.state not in ("ready", "terminating"):
        message = result.msg or result.state
        found.append({"reason": after["phase"], "type": "Warning", "message": f"Namespace {result.name}: {message}"})
    elif before != after["phase"]:
        found.append({"reason": after["phase"], "type": "Normal", "message": f"Namespace {result.name}"})
    return found

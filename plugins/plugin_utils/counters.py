# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the result of a module adds to which counter. Pure.

ansible-operator's counters have no labels, so the reason of a failed look-up stands in the name;
config/prometheus makes a label of it again.
"""

from __future__ import annotations

import collections
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubesteward.core.plugins.module_utils import handover

#: why a look-up fails; any other word is counted as `other`
REASONS = (
    *("not_found", "unauthorized", "credential_rejected", "rate_limited", "unreachable", "tls_error"),
    *("forbidden_registry", "digest_mismatch", "not_a_manifest", "too_large", "schema1", "nested_index"),
    *("invalid_reference", "other"),
)
_FAILURES = "kubesteward_registry_lookup_failures_{}_total"

#: every counter with its description
COUNTERS: dict[str, str] = {
    "kubesteward_registry_requests_total": "Requests to registries and to their token servers.",
    "kubesteward_registry_lookups_total": "References that were looked up in a registry.",
    **{_FAILURES.format(word): f"Look-ups that failed with the reason {word}." for word in REASONS},
    "kubesteward_rolls_total": "Containers whose owner was patched to a new digest.",
    "kubesteward_rolls_settled_total": "Containers whose last roll has proven itself.",
    "kubesteward_rollbacks_total": "Containers whose last roll failed and was taken back.",
    "kubesteward_pods_freed_total": "Broken Pods that were deleted since an ordered rollout waited for them.",
    "kubesteward_references_released_total": "Objects whose tags were put back in place of digests.",
    "kubesteward_starts_applied_total": "Deployments of Starts that were written.",
    "kubesteward_namespaces_created_total": "Namespaces that were created.",
    "kubesteward_namespaces_deleted_total": "Namespaces that were deleted.",
    "kubesteward_namespaces_released_total": "Namespaces that were let go without being deleted.",
    "kubesteward_namespace_writes_total": "Mutating requests for Namespaces and what is in them.",
    "kubesteward_module_failures_total": "Calls of modules of kubesteward.core that failed.",
}

Result = t.Mapping[str, t.Any]
Counts = t.Counter[str]


def of_result(module: str, result: Result, arguments: t.Mapping[str, t.Any], check_mode: bool) -> dict[str, int]:
    """What a call adds to counters: names of COUNTERS, only those that something is added to.

    :param module: its fully qualified name
    :param result: as the module returned it, also where it failed
    :param arguments: the task's, as they were given
    :param check_mode: then what was only predicted is not counted
    :raises StewardError: the result is not as the module returns it
    """
    counts: Counts = collections.Counter()
    if result.get("failed"):
        counts["kubesteward_module_failures_total"] += 1
    name = module.rpartition(".")[2]
    if name == "registry_digest":
        _look_ups(counts, result)
    elif not check_mode and name in _WRITERS:
        _WRITERS[name](counts, result, arguments)
    return {counter: count for counter, count in counts.items() if count}


def _look_ups(counts: Counts, result: Result) -> None:
    """A look-up asks its registry in check mode too."""
    counts["kubesteward_registry_requests_total"] += result.get("requests_made") or 0
    # one that fails for wrong options has looked up nothing, and has no reason
    single = [result] if _is_look_up(result) else []
    images = handover.dicts(result["images"], "images") if "images" in result else single
    counts["kubesteward_registry_lookups_total"] += len(images)
    for image in images:
        reason = image.get("reason")
        if reason:
            counts[_FAILURES.format(reason if reason in REASONS else "other")] += 1


def _is_look_up(result: Result) -> bool:
    return bool(result.get("digest") or result.get("reason"))


def _rolls(counts: Counts, result: Result, arguments: t.Mapping[str, t.Any]) -> None:
    counts["kubesteward_rolls_total"] += len(result.get("rolled") or ())
    counts["kubesteward_rolls_settled_total"] += len(result.get("settled") or ())
    counts["kubesteward_rollbacks_total"] += len(result.get("rolled_back") or ())
    counts["kubesteward_pods_freed_total"] += len(result.get("freed") or ())
    # elsewhere a dry run holds what it would write, and so returns none of it
    if not boolean(arguments.get("dry_run") or False, strict=False):
        counts["kubesteward_references_released_total"] += len(result.get("released") or ())


def _starts(counts: Counts, result: Result, _arguments: t.Mapping[str, t.Any]) -> None:
    states = [start["state"] for start in result.get("starts") or ()]
    counts["kubesteward_starts_applied_total"] += states.count("applied")


def _namespaces(counts: Counts, result: Result, _arguments: t.Mapping[str, t.Any]) -> None:
    counts["kubesteward_namespace_writes_total"] += result.get("writes") or 0
    for namespace in result.get("namespaces") or ():
        counts["kubesteward_namespaces_released_total"] += namespace["state"] == "released"
        for operation in namespace["operations"]:
            if operation["kind"] == "Namespace":
                counts["kubesteward_namespaces_created_total"] += operation["action"] == "create"
                counts["kubesteward_namespaces_deleted_total"] += operation["action"] == "delete"


_WRITERS: dict[str, t.Callable[[Counts, Result, t.Mapping[str, t.Any]], None]] = {
    "image_rollout": _rolls,
    "start_apply": _starts,
    "ns_provision": _namespaces,
}

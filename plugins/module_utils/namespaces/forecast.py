# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a change would hit: for check mode, and for what others' policies undo."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.plan import Live, Plan, is_ours

#: names in one sentence
_MOST = 10


def hits(cluster: Cluster, namespace: str, planned: Plan) -> list[str]:
    """Sentences on Pods that a smaller quota leaves above it, and on Services that a closed policy cuts off.

    :raises ApiError: the cluster refuses or does not answer
    """
    found = []
    if planned.shrunk and not planned.held:
        pods = cluster.find("v1", "Pod", namespace)
        names = sorted(pod["metadata"]["name"] for pod in pods if _counts(pod))
        found.append(f"above the new quota ({planned.shrunk.message}): Pods {_some(names)}")
    if any(_closes(operation) for operation in planned.operations):
        services = cluster.find("v1", "Service", namespace)
        names = sorted(item["metadata"]["name"] for item in services)
        if names:
            found.append(f"reached only from namespaces that the policy names: Services {_some(names)}")
    return found


def _counts(pod: t.Mapping[str, t.Any]) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _closes(operation: t.Any) -> bool:
    if operation.kind != "NetworkPolicy" or operation.action != "apply" or not operation.before:
        return False
    return _is_open(operation.before) and not _is_open(operation.body)


def _is_open(policy: t.Mapping[str, t.Any]) -> bool:
    return {} in (policy["spec"].get("ingress") or ())


def opening(live: Live) -> list[str]:
    """Policies of others that let traffic in: policies add up, so one that opens undoes one that closes."""
    return sorted(
        name
        for (kind, name), item in live.objects.items()
        if kind == "NetworkPolicy" and not is_ours(item) and (item["spec"].get("ingress") or ())
    )


def _some(names: t.Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more

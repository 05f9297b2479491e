# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a change would hit: for check mode, and for what others' policies undo."""

from __future__ import annotations

import threading
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import usage
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.plan import Live, Plan, has_mark, is_ours
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import Request
from ansible_collections.kubesteward.core.plugins.module_utils.telling import some_of

#: names in one sentence
_MOST = 10
#: the label of the network that OpenShift's routers are in, which is no Pod network
ROUTERS = "policy-group.network.openshift.io/ingress"
ADMISSION = "admissionregistration.k8s.io/v1"
WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


class Webhooks:
    """Which namespaces have Services that the API server calls; it is asked once, and only where it matters."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._lock = cluster, threading.Lock()
        self._known: frozenset[str] | None = None

    def homes(self) -> frozenset[str]:
        """Names of namespaces; none where we may not look.

        :raises ApiError: unreachable, ...
        """
        with self._lock:
            if self._known is None:
                self._known = frozenset(self._find())
            return self._known

    def _find(self) -> t.Iterator[str]:
        for kind in WEBHOOKS:
            try:
                found = self._cluster.find(ADMISSION, kind, None)
            except ApiError as exc:
                if exc.status != 403:
                    raise
                continue
            for webhook in (entry for item in found for entry in item.get("webhooks") or ()):
                yield (webhook["clientConfig"].get("service") or {}).get("namespace") or ""


def cut_off(request: Request, openshift: bool, webhooks: t.Callable[[], t.Container[str]]) -> list[str]:
    """Sentences on callers outside the Pod network that a closed policy keeps out."""
    if not request.managed:
        return []
    found = []
    if openshift and not any(ROUTERS in labels for labels in request.network.peers):
        found.append(f'routes do not reach its Pods; name {ROUTERS}: "" among the namespaces that may come in')
    if not request.network.ports and request.name in webhooks():
        found.append("the API server does not reach the webhook in it; open the webhook's port in the network policy")
    return found


def hits(cluster: Cluster, namespace: str, planned: Plan) -> list[str]:
    """Sentences on Pods that a smaller quota leaves above it, and on Services that a closed policy cuts off.

    :raises ApiError: the cluster refuses or does not answer
    """
    found = []
    if planned.shrunk and not planned.held:
        pods = cluster.find("v1", "Pod", namespace)
        names = sorted(pod["metadata"]["name"] for pod in pods if usage.is_alive(pod))
        found.append(f"above the new quota ({planned.shrunk.message}): Pods {some_of(names, _MOST)}")
    if any(_closes(operation) for operation in planned.operations):
        services = cluster.find("v1", "Service", namespace)
        names = sorted(item["metadata"]["name"] for item in services)
        if names:
            found.append(f"reached only from namespaces that the policy names: Services {some_of(names, _MOST)}")
    return found


#: what people miss, with what is to be said of it
_MISSED = {
    "Pod": "Pods:",
    "PersistentVolumeClaim": "PersistentVolumeClaims with their data, unless the reclaim policy is Retain:",
}


def going(cluster: Cluster, namespace: str) -> list[str]:
    """Sentences on what goes with a Namespace that is deleted.

    :raises ApiError: the cluster does not answer
    """
    found = []
    for kind, what in _MISSED.items():
        try:
            names = sorted(item["metadata"]["name"] for item in cluster.find("v1", kind, namespace, metadata_only=True))
        except ApiError as exc:
            if exc.status != 403:
                raise
            found.append(f"whether {kind}s go with it is not known ({exc})")
            continue
        if names:
            found.append(f"with it go {len(names)} {what} {some_of(names, _MOST)}")
    return found


def _closes(operation: t.Any) -> bool:
    if operation.kind != "NetworkPolicy" or operation.action != "apply" or not operation.before:
        return False
    return _is_open(operation.before) and not _is_open(operation.body)


def _is_open(policy: t.Mapping[str, t.Any]) -> bool:
    return {} in (policy["spec"].get("ingress") or ())


def opening(live: Live, ingress: bool, egress: bool) -> list[str]:
    """Policies of others that let traffic through: policies add up, so one that opens undoes one that closes.

    :param ingress: we close what comes in
    :param egress: we close what goes out
    """
    closed = [name for name, is_closed in (("ingress", ingress), ("egress", egress)) if is_closed]
    return sorted(
        name
        for (kind, name), item in live.objects.items()
        if kind == "NetworkPolicy" and not _is_ours(name, item) and any(item["spec"].get(rules) for rules in closed)
    )


def _is_ours(name: str, policy: t.Mapping[str, t.Any]) -> bool:
    """Anybody may write under our name as a manager, so that alone hides no policy but the one that we make."""
    return is_ours(policy) and (has_mark(policy) or name == f"{policy['metadata']['namespace']}-np")

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What should exist in a namespace, and how the Namespace itself should look. Pure.

No object has an owner: a Namespace outlives the resource that asked for it, and an owner in another namespace counts as
absent for the garbage collector, which then deletes. What is ours carries the label `app.kubernetes.io/managed-by`.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import limits
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import Access, Network, Request
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.sizes import Size

Object = dict[str, t.Any]

MANAGED_BY, OURS = "app.kubernetes.io/managed-by", "kubesteward"
SOURCE = "kubesteward.io/source"
SHAREABLE = "kubesteward.io/shareable"
SECRET_TYPES = ("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg")
#: annotations of a Namespace that admission reads
NODES, NODES_OF_OPENSHIFT = "scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector"
RBAC = "rbac.authorization.k8s.io"


@dataclasses.dataclass(frozen=True)
class Desired:
    """One namespace as it should be.

    :ivar labels: of the Namespace; the size first
    :ivar annotations: of the Namespace, without the claim
    :ivar objects: in the order of their creation: what guards comes before what opens
    :ivar links: Secret -> the ServiceAccounts that use it
    """

    labels: t.Mapping[str, str]
    annotations: t.Mapping[str, str]
    objects: tuple[Object, ...]
    links: t.Mapping[str, tuple[str, ...]]

    @property
    def hard(self) -> t.Mapping[str, str]:
        """The quota."""
        return next(item["spec"]["hard"] for item in self.objects if item["kind"] == "ResourceQuota")


def desired(
    request: Request, size: Size, secrets: t.Mapping[str, Object] | None = None, openshift: bool = False
) -> Desired:
    """Everything a request gives.

    :param secrets: the sources of the pull secrets by name, as far as they may be shared
    :param openshift: the cluster is one, which reads another annotation for the nodes
    """
    hard = {**size.quota, **request.quota}
    objects = [_quota(request, hard), _policy(request)]
    of_containers = None if request.limit_range is None else limits.fill(hard, size.limit_range, request.limit_range)
    if of_containers:
        objects.append(_limit_range(request, of_containers))
    found = secrets or {}
    objects += [_secret(request, found[item.name]) for item in request.pull_secrets if item.name in found]
    objects += bindings(request.name, request.access)
    labels = {"size": request.size, "managed": str(request.managed).lower()}
    return Desired(
        {**labels, **request.pod_security, **request.labels},
        {**_nodes(size, openshift), **request.annotations},
        tuple(objects),
        {item.name: item.service_accounts for item in request.pull_secrets if item.name in found},
    )


def _object(request: Request, api_version: str, kind: str, name: str, **more: t.Any) -> Object:
    meta = {"name": name, "namespace": request.name, "labels": {MANAGED_BY: OURS}}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **more}


def _quota(request: Request, hard: t.Mapping[str, str]) -> Object:
    return _object(request, "v1", "ResourceQuota", f"{request.name}-quota", spec={"hard": dict(hard)})


def _nodes(size: Size, openshift: bool) -> dict[str, str]:
    """The annotation by which admission puts Pods on the nodes of a size."""
    text = ",".join(f"{key}={value}" for key, value in sorted(size.node_selector.items()))
    return {NODES_OF_OPENSHIFT if openshift else NODES: text} if text else {}


def _limit_range(request: Request, of_containers: limits.Limits) -> Object:
    names = {"default": "default", "default_request": "defaultRequest", "max": "max", "min": "min"}
    item = {"type": "Container", **{names[key]: dict(value) for key, value in of_containers.items()}}
    return _object(request, "v1", "LimitRange", f"{request.name}-limits", spec={"limits": [item]})


def filled_in(objects: t.Iterable[t.Mapping[str, t.Any]], name: str = "") -> dict[str, t.Mapping[str, str]]:
    """What a LimitRange, the one of that name or any, fills in: {`default`, `default_request`}; empty without one."""
    for item in objects:
        if item["kind"] == "LimitRange" and name in ("", item["metadata"]["name"]):
            for entry in (item.get("spec") or {}).get("limits") or ():
                if entry.get("type") == "Container":
                    return {"default": entry.get("default") or {}, "default_request": entry.get("defaultRequest") or {}}
    return {}


def _policy(request: Request) -> Object:
    spec: Object = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": _ingress(request)}
    if request.network.restrict_egress:
        spec["policyTypes"] = ["Ingress", "Egress"]
        spec["egress"] = _egress(request.network)
    return _object(request, "networking.k8s.io/v1", "NetworkPolicy", f"{request.name}-np", spec=spec)


def _ingress(request: Request) -> list[Object]:
    if not request.managed:
        # an empty rule lets in everything; an empty namespaceSelector would keep out what comes from outside
        return [{}]
    network = request.network
    peers = [_namespaces({"app": "infra"}), *(_namespaces(labels) for labels in network.peers)]
    if network.same_namespace:
        peers.append({"podSelector": {}})
    rules: list[Object] = [{"from": peers}]
    if network.ports:
        rules.append({"ports": [dict(port) for port in network.ports]})
    return rules


def _egress(network: Network) -> list[Object]:
    rules: list[Object] = [{"to": [{"podSelector": {}}, *(_namespaces(labels) for labels in network.egress_peers)]}]
    for block in network.blocks:
        rule: Object = {"to": [{"ipBlock": {"cidr": block["cidr"]}}]}
        rules.append({**rule, "ports": [dict(port) for port in block["ports"]]} if block["ports"] else rule)
    if network.dns:
        # 5353 is where OpenShift's DNS Pods listen
        ports = [{"port": port, "protocol": protocol} for port in (53, 5353) for protocol in ("UDP", "TCP")]
        rules.append({"ports": ports})
    return rules


def _namespaces(labels: t.Mapping[str, str]) -> Object:
    return {"namespaceSelector": {"matchLabels": dict(labels)}}


def bindings(namespace: str, access: t.Iterable[Access]) -> list[Object]:
    """One RoleBinding per ClusterRole, named after it: a changed role is another binding."""
    subjects: dict[str, list[Object]] = {}
    for item in access:
        found = subjects.setdefault(item.role, [])
        found += [{"kind": "User", "name": name, "apiGroup": RBAC} for name in item.users]
        found += [{"kind": "Group", "name": name, "apiGroup": RBAC} for name in item.groups]
        for account in item.service_accounts:
            where, slash, name = account.rpartition("/")
            found.append({"kind": "ServiceAccount", "name": name, "namespace": where if slash else namespace})
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"kubesteward-{role}", "namespace": namespace, "labels": {MANAGED_BY: OURS}},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": list({tuple(item.items()): item for item in found}.values()),
        }
        for role, found in subjects.items()
    ]


def _secret(request: Request, source: t.Mapping[str, t.Any]) -> Object:
    meta = source["metadata"]
    found = _object(request, "v1", "Secret", meta["name"], type=source["type"], data=dict(source.get("data") or {}))
    found["metadata"]["annotations"] = {SOURCE: f"{meta['namespace']}/{meta['name']}"}
    return found


def unshareable(source: t.Mapping[str, t.Any] | None, name: str, namespace: str | None) -> str | None:
    """Why a Secret is not copied, or None; its content is never told."""
    where = f"Secret {name} in namespace {namespace}"
    if source is None:
        return f"there is no {where}"
    if source.get("type") not in SECRET_TYPES:
        return f"{where} is of type {source.get('type')}; only pull secrets are copied ({', '.join(SECRET_TYPES)})"
    if (source["metadata"].get("labels") or {}).get(SHAREABLE) != "true":
        return f"{where} is not labelled {SHAREABLE}=true by those who have it"
    return None

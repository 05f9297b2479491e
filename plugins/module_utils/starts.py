# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Start and its Deployment: what should exist, whose it is, what the status says. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images.inventory import seniority
from ansible_collections.kubesteward.core.plugins.module_utils.images.running import controller_of
from ansible_collections.kubesteward.core.plugins.module_utils.images.snapshot import deployment_name
from ansible_collections.kubesteward.core.plugins.module_utils.kube import FIELD_MANAGER, INSTALL_GROUP
from ansible_collections.kubesteward.core.plugins.module_utils.texts import NAME, cut

Object = dict[str, t.Any]

MIN_READY_SECONDS = 5
#: the word of whoever has a Deployment, annotated on it: the name of the Start that may have it, or `playbook`
ADOPT = "kubesteward.io/adopt"


def desired(start: t.Mapping[str, t.Any], namespace: str) -> Object:
    """The Deployment of a Start; only fields that the Start decides, so that those of others survive an apply.

    :param start: the resource, or `{"metadata": {}, "spec": {...}}` where there is none
    """
    spec = start["spec"]
    name = deployment_name(start)
    labels = {"app": f"{spec['name']}-app"}
    pod: Object = {"containers": [_container(spec, name)]}
    if spec.get("imagePullSecrets"):
        pod["imagePullSecrets"] = [{"name": item["name"]} for item in spec["imagePullSecrets"]]
    meta: Object = {"name": name, "namespace": namespace}
    if "uid" in start["metadata"]:
        meta["ownerReferences"] = [_owner(start)]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {
            "replicas": spec.get("replicas", 1),
            "minReadySeconds": MIN_READY_SECONDS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _container(spec: t.Mapping[str, t.Any], name: str) -> Object:
    port = spec.get("port", 8080)
    container: Object = {
        "name": name,
        "image": spec["image"],
        "ports": [{"containerPort": port, "protocol": "TCP"}],
    }
    if spec.get("resources"):
        container["resources"] = spec["resources"]
    if spec.get("readiness", "tcp") == "tcp":
        container["readinessProbe"] = {"tcpSocket": {"port": port}}
    return container


def _owner(start: t.Mapping[str, t.Any]) -> Object:
    meta = start["metadata"]
    return {
        "apiVersion": INSTALL_GROUP,
        "kind": "Start",
        "name": meta["name"],
        "uid": meta["uid"],
        # no blockOwnerDeletion: where the API server checks owners, as OpenShift's does, it needs a further right
        "controller": True,
    }


def conflict(start: t.Mapping[str, t.Any], starts: t.Iterable[Object], live: Object | None) -> str | None:
    """Why this Start may not have its Deployment, or None.

    An older Start has the name, another controller has the Deployment, or it was there before and nobody gave it to us.
    """
    name = deployment_name(start)
    if "uid" in start["metadata"]:
        holders = sorted((other for other in starts if deployment_name(other) == name), key=seniority)
        if holders and holders[0]["metadata"]["uid"] != start["metadata"]["uid"]:
            holder = holders[0]["metadata"]["name"]
            return f"Start {holder} has the name {start['spec']['name']} already; give this one another spec.name"
    owner = controller_of(live) if live else None
    if owner and owner["uid"] != start["metadata"].get("uid"):
        return f"Deployment {name} belongs to {owner['kind']} {owner['name']}; it is left alone"
    return _untaken(start, live) if live and not owner else None


def _untaken(start: t.Mapping[str, t.Any], live: Object) -> str | None:
    """Why a Deployment that no controller has is not taken: it would change at once, and go with the Start."""
    name, meta = live["metadata"]["name"], start["metadata"]
    ours = meta.get("name") or "playbook"
    owners = live["metadata"].get("ownerReferences") or ()
    if any(owner.get("uid") == meta.get("uid") for owner in owners):
        # an operator that is not ours marks what it makes for a Start so, without saying that it controls it
        return None
    if (live["metadata"].get("annotations") or {}).get(ADOPT) == ours or (not meta.get("name") and _is_applied(live)):
        return None
    whose = ", ".join(f"{owner.get('kind')} {owner.get('name')}" for owner in owners) or "nobody"
    goes = ", and goes with it later" if meta.get("name") else ""
    where = f" -n {live['metadata']['namespace']}" if live["metadata"].get("namespace") else ""
    return (
        f"Deployment {name} is there already and belongs to {whose}; it is left alone. Use another"
        f" {'spec.name' if meta.get('name') else 'start_name'}, or, where it may be changed to what is wanted{goes}:"
        f" kubectl annotate deployment {name}{where} {ADOPT}={ours}"
    )


def _is_applied(live: Object) -> bool:
    """True for what an earlier run without a Start has made: only an apply of ours leaves our name so."""
    return any(
        item.get("manager") == FIELD_MANAGER and item.get("operation") == "Apply" and not item.get("subresource")
        for item in live["metadata"].get("managedFields") or ()
    )


def differs(live: Object | None, applied: Object) -> bool:
    """Would the apply change anything? `applied` is the server's answer to a dry run of it."""
    if live is None:
        return True
    mine, theirs = applied["metadata"], live["metadata"]
    return applied["spec"] != live["spec"] or any(
        mine.get(key) != theirs.get(key) for key in ("labels", "annotations", "ownerReferences")
    )


def status(
    start: t.Mapping[str, t.Any], deployment: Object | None, digest: str | None, problem: str | None, now: str
) -> Object:
    """The status of a Start.

    :param deployment: its Deployment as the apply left it
    :param digest: what its Pods run
    :param problem: the conflict, or what went wrong
    :param now: `2006-01-02T15:04:05Z`
    """
    ready = ((deployment or {}).get("status") or {}).get("readyReplicas", 0)
    wanted = start["spec"].get("replicas", 1)
    if problem:
        value, reason, message = "False", "NotApplied", problem
    elif ready >= wanted:
        value, reason, message = "True", "Available", f"{ready} of {wanted} Pods are ready"
    else:
        value, reason, message = "False", "Progressing", f"{ready} of {wanted} Pods are ready"
    before = (start.get("status") or {}).get("conditions") or ()
    found: Object = {
        "readyReplicas": ready,
        "observedGeneration": start["metadata"].get("generation", 0),
        "conditions": conditions.stamped(before, [("Ready", value, reason, message)], now),
    }
    if not problem:
        found["image"] = cut(start["spec"]["image"], NAME)
    if digest:
        found["digest"] = digest
    return found


def is_news(before: Object, after: Object) -> bool:
    """Does `after` say anything that `before` does not?"""
    keys = ("image", "digest", "readyReplicas", "observedGeneration")
    if any(before.get(key) != after.get(key) for key in keys):
        return True
    mine = {x["type"]: (x["status"], x["reason"], x["message"]) for x in after["conditions"]}
    theirs = {x["type"]: (x["status"], x.get("reason"), x.get("message")) for x in before.get("conditions") or ()}
    return any(theirs.get(kind) != value for kind, value in mine.items())

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of an object: its status, and Events about it."""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster, Reference
from ansible_collections.kubesteward.core.plugins.module_utils.texts import cut

Object = dict[str, t.Any]

_COMPONENT = "kubesteward"


def some_of(names: t.Sequence[str], most: int = 5) -> str:
    """The first of many names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def apply_status(cluster: Cluster, obj: t.Mapping[str, t.Any], status: t.Mapping[str, t.Any]) -> None:
    """Server-side apply of our fields of a status: the operator's own conditions and keys stay.

    :raises ApiError: it was refused; 404 where the object is gone, also where there is another one of its name
    """
    _check_identity(cluster, obj)
    meta = {key: obj["metadata"][key] for key in ("name", "namespace")}
    body = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta, "status": dict(status)}
    cluster.apply(body, subresource="status")


def _check_identity(cluster: Cluster, obj: t.Mapping[str, t.Any]) -> None:
    """An apply to a status passes over a uid, and a read may come from a cache: a patch that only tests does not."""
    target, uid = Reference.of(obj), obj["metadata"].get("uid")
    if not uid:
        return
    test = {"op": "test", "path": "/metadata/uid", "value": uid}
    try:
        cluster.json_patch(target, [test], dry_run=True, subresource="status")
    except ApiError as exc:
        if exc.status != 422:
            raise
        # 422 may be said of the object itself: then it is said without the test, too
        cluster.json_patch(target, [], dry_run=True, subresource="status")
        raise ApiError(f"{target} was deleted and made anew meanwhile; its next pass tells", 404) from exc


def post_events(cluster: Cluster, namespace: str, found: t.Iterable[Object], now: str) -> list[str]:
    """Create the Events; returns the messages of those that could not be, which is no reason to fail a pass."""
    problems = []
    for event in found:
        about = event["about"]
        involved = {
            "apiVersion": about["api_version"],
            "kind": about["kind"],
            "name": about["name"],
            "namespace": namespace,
        }
        if "uid" in about:
            involved["uid"] = about["uid"]
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{about['name'][:200].rstrip('-.')}.", "namespace": namespace},
            "involvedObject": involved,
            "reason": event["reason"],
            "type": event["type"],
            "message": cut(event["message"]),
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
        try:
            cluster.create(body)
        except ApiError as exc:
            problems.append(str(exc))
    return problems

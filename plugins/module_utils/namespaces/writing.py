# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what is planned, or ask the API server whether it would let us: the same requests, as dry runs.

`cluster` is `kube.Cluster` or anything with its methods.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster, Reference
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.plan import Operation
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result

API = {
    "Namespace": "v1",
    "ResourceQuota": "v1",
    "LimitRange": "v1",
    "Secret": "v1",
    "ServiceAccount": "v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
}
GUARDS = ("ResourceQuota", "LimitRange", "NetworkPolicy")


def carry_out_all(cluster: Cluster, operations: t.Sequence[Operation], result: Result, dry_run: bool = False) -> bool:
    """Write what is planned; one object that is refused stops only what relies on it, and is told in the result.

    :param dry_run: ask only; what cannot be asked is taken for done, and named in `result.unasked`
    :returns: False where somebody else wrote meanwhile, so that it has to be planned anew
    :raises ApiError: nothing more can be written
    """
    failed: list[Operation] = []
    errors = []
    if dry_run:
        # nothing of an attempt before this one was done
        result.done, result.unasked = [], list(_not_to_be_asked(operations))
    for operation in operations:
        if _relies_on(operation, failed):
            continue
        try:
            if operation not in result.unasked:
                carry_out(cluster, result.name, operation, dry_run)
        except ApiError as exc:
            result.msg = str(exc)
            if _is_stale(operation, exc):
                return False
            if operation.kind == "Namespace" or _stops(exc):
                raise
            failed.append(operation)
            errors.append(str(exc))
            result.failures[operation.kind] = str(exc)
            result.reason = reason_of(exc)
        else:
            result.done.append(operation)
    result.error = "; ".join(errors)
    return True


def _not_to_be_asked(operations: t.Sequence[Operation]) -> t.Iterator[Operation]:
    """What stands on a write before it, which a dry run does not leave behind."""
    seen: dict[tuple[str, str], Operation] = {}
    for operation in operations:
        key = (operation.kind, operation.name)
        is_inside_new = operation.kind != "Namespace" and any(item.action == "create" for item in seen.values())
        if key in seen or is_inside_new:
            yield operation
        seen.setdefault(key, operation)


def reason_of(exc: ApiError) -> str:
    """One word for an answer of the API server that was in the way."""
    return {0: "unreachable", 403: "forbidden"}.get(exc.status, "api_error")


def _is_stale(operation: Operation, exc: ApiError) -> bool:
    """The plan was made from what is no longer so."""
    return exc.status in (404, 409) or (exc.status == 422 and operation.action == "patch")


def _stops(exc: ApiError) -> bool:
    """It is not about this object: the next one would get the same answer, or none."""
    return exc.status in (0, 401, 429) or exc.status >= 500 or "NamespaceTerminating" in exc.causes


def _relies_on(operation: Operation, failed: t.Sequence[Operation]) -> bool:
    """Access is opened after the guards are there, and taken away last; old things go once the new ones are there."""
    if operation.kind == "Namespace":
        # the claim must know of what is not taken away yet
        return bool(failed)
    if operation.action == "delete":
        return any(item.action == "apply" or operation.kind == "RoleBinding" != item.kind for item in failed)
    return operation.kind == "RoleBinding" and any(item.kind in GUARDS for item in failed)


def carry_out(cluster: Cluster, namespace: str, operation: Operation, dry_run: bool = False) -> None:
    """One write.

    :raises ApiError: it was refused
    """
    kind, name = operation.kind, operation.name
    target = Reference(API[kind], kind, None if kind == "Namespace" else namespace, name)
    if operation.action == "create":
        cluster.create(dict(t.cast(t.Mapping[str, t.Any], operation.body)), dry_run=dry_run)
    elif operation.action == "apply":
        # what is not there is not taken over from somebody who was faster
        body = t.cast(t.Mapping[str, t.Any], operation.body)
        cluster.apply(body, force=operation.before is not None, dry_run=dry_run)
    elif operation.action == "patch":
        cluster.json_patch(target, list(operation.operations), dry_run=dry_run)
    else:
        # a Namespace goes only as it was read: a guard or another claim may have come since, and a cache may be old
        before = operation.before if kind == "Namespace" else None
        version = before["metadata"]["resourceVersion"] if before else None
        cluster.delete(target, operation.uid, version, dry_run=dry_run)

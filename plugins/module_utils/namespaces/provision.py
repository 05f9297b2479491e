# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make namespaces what they should be: read, plan, write; many at once, each by itself.

`cluster` is `kube.Cluster` or anything with its methods. One namespace that goes wrong stops no other.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster, Reference
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import desired, forecast, marks, plan, shrink
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import Answer
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.plan import Live, Operation, Plan
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import Request
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.sizes import Size

Object = dict[str, t.Any]

#: times a namespace is planned anew when somebody else edits it meanwhile
ATTEMPTS = 3
#: namespaces that are worked on at the same time
WORKERS = 8
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
_LISTED = ("ResourceQuota", "LimitRange", "NetworkPolicy", "RoleBinding")
#: annotations of ansible-operator, and what the second one says of our resource
_PRIMARY = ("operator-sdk/primary-resource", "operator-sdk/primary-resource-type")
_NSPRO = "Nspro.nspro.example.com"
#: the annotation without which OpenShift admits no Pod
_UID_RANGE = "openshift.io/sa.scc.uid-range"


@dataclasses.dataclass(frozen=True)
class Options:
    """What the administrator says for all namespaces.

    :ivar reserved: patterns of names that nobody gets
    :ivar openshift: wait for what OpenShift adds to a new Namespace
    :ivar details: in check mode, say what a smaller quota or a closed policy would hit
    :ivar webhooks: tells the namespaces whose Services the API server itself calls
    """

    sizes: t.Mapping[str, Size]
    reserved: t.Sequence[str] = claims.RESERVED
    openshift: bool = False
    check_mode: bool = False
    details: bool = False
    now: str = ""
    webhooks: t.Callable[[], t.Container[str]] = tuple


@dataclasses.dataclass
class Result:
    """What became of one namespace.

    :ivar state: one of the documented states
    :ivar reason: one word, where it is not `ready`, `absent` or `released`
    :ivar done: the operations carried out, or predicted in check mode
    :ivar error: an answer of the API server that was in the way
    """

    name: str
    state: str = "pending"
    reason: str = ""
    msg: str = ""
    done: list[Operation] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    foreign_policies: list[str] = dataclasses.field(default_factory=list)
    shrunk: shrink.Shrink | None = None
    held: bool = False
    quota: t.Mapping[str, t.Any] | None = None
    error: str = ""

    def says(self, state: str, reason: str = "", msg: str = "") -> Result:
        """The same with another state."""
        self.state, self.reason, self.msg = state, reason, msg
        return self


def provide(cluster: Cluster, request: Request, options: Options) -> Result:
    """Make one namespace what it should be."""
    result = Result(request.name)
    try:
        for _attempt in range(ATTEMPTS):
            if _provide_once(cluster, request, options, result):
                return result
        return result.says("pending", "conflict", f"{result.msg}; the next pass looks again")
    except ApiError as exc:
        return failed(result, exc)


def failed(result: Result, exc: ApiError) -> Result:
    """The result of a namespace that an answer of the API server was in the way of."""
    if "NamespaceTerminating" in exc.causes:
        # no failure: it is looked at again, and made anew once it is gone
        return result.says("terminating", "namespace_terminating", str(exc))
    result.error = str(exc)
    return result.says("pending", _reason(exc), str(exc))


def _reason(exc: ApiError) -> str:
    return {0: "unreachable", 403: "forbidden"}.get(exc.status, "api_error")


def _provide_once(cluster: Cluster, request: Request, options: Options, result: Result) -> bool:
    """One attempt; False where somebody else wrote meanwhile."""
    live_namespace = cluster.get("v1", "Namespace", None, request.name)
    home = [request.source_namespace] if request.source_namespace else []
    answer = claims.ask(request.name, request.claimant, request.adoption, live_namespace, [*options.reserved, *home])
    if not answer.granted:
        result.says(answer.state, answer.state, answer.message)
        return True
    secrets, problems = _sources(cluster, request)
    wanted = desired.desired(request, options.sizes[request.size], secrets)
    live = read(
        cluster, live_namespace, {*wanted.links, *(answer.claim.links if answer.claim else ())}, wanted.links, answer
    )
    planned = plan.plan(request, wanted, answer, live, options.now)
    _describe(result, request, wanted, live, planned)
    result.warnings += [*problems, *forecast.cut_off(request, options.openshift, options.webhooks)]
    if options.check_mode:
        result.done = planned.operations
        if options.details:
            result.warnings += forecast.hits(cluster, request.name, planned)
    elif not carry_out_all(cluster, planned.operations, result):
        return False
    if result.error:
        result.says("pending", result.reason, "; ".join([result.error, *planned.conflicts]))
    else:
        _conclude(result, planned, problems, live, options)
    return True


def _sources(cluster: Cluster, request: Request) -> tuple[dict[str, Object], list[str]]:
    """The pull secrets that may be copied, and why others may not."""
    found, problems = {}, []
    for item in request.pull_secrets:
        source = cluster.get("v1", "Secret", request.source_namespace, item.name)
        problem = desired.unshareable(source, item.name, request.source_namespace)
        if problem:
            problems.append(problem)
        else:
            found[item.name] = t.cast(Object, source)
    return found, problems


def read(
    cluster: Cluster,
    namespace: t.Mapping[str, t.Any] | None,
    secrets: t.Iterable[str],
    links: t.Mapping[str, t.Iterable[str]],
    answer: Answer,
) -> Live:
    """What is there. A namespace that is not there yet has nothing in it."""
    if namespace is None:
        return Live(None)
    name = namespace["metadata"]["name"]
    objects = {
        (kind, item["metadata"]["name"]): item for kind in _LISTED for item in cluster.find(API[kind], kind, name)
    }
    for secret in secrets:
        there = cluster.get("v1", "Secret", name, secret)
        if there:
            objects[("Secret", secret)] = there
    known = answer.claim.links if answer.claim else {}
    accounts = {account for entry in (links, known) for names in entry.values() for account in names}
    found = {account: cluster.get("v1", "ServiceAccount", name, account) for account in sorted(accounts)}
    return Live(namespace, objects, {account: item for account, item in found.items() if item})


def carry_out_all(cluster: Cluster, operations: t.Sequence[Operation], result: Result) -> bool:
    """Write what is planned; one object that is refused stops only what relies on it, and is told in the result.

    :returns: False where somebody else wrote meanwhile, so that it has to be planned anew
    :raises ApiError: nothing more can be written
    """
    failed: list[Operation] = []
    errors = []
    for operation in operations:
        if _relies_on(operation, failed):
            continue
        try:
            carry_out(cluster, result.name, operation)
        except ApiError as exc:
            result.msg = str(exc)
            if _is_stale(operation, exc):
                return False
            if operation.kind == "Namespace" or _stops(exc):
                raise
            failed.append(operation)
            errors.append(str(exc))
            result.reason = _reason(exc)
        else:
            result.done.append(operation)
    result.error = "; ".join(errors)
    return True


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


def carry_out(cluster: Cluster, namespace: str, operation: Operation) -> None:
    """One write.

    :raises ApiError: it was refused
    """
    kind, name = operation.kind, operation.name
    target = Reference(API[kind], kind, None if kind == "Namespace" else namespace, name)
    if operation.action == "create":
        cluster.create(dict(t.cast(t.Mapping[str, t.Any], operation.body)))
    elif operation.action == "apply":
        # what is not there is not taken over from somebody who was faster
        cluster.apply(t.cast(t.Mapping[str, t.Any], operation.body), force=operation.before is not None)
    elif operation.action == "patch":
        cluster.json_patch(target, list(operation.operations))
    else:
        # a Namespace goes only as it was read: a guard or another claim may have come since, and a cache may be old
        before = operation.before if kind == "Namespace" else None
        cluster.delete(target, operation.uid, before["metadata"]["resourceVersion"] if before else None)


def _describe(result: Result, request: Request, wanted: desired.Desired, live: Live, planned: Plan) -> None:
    result.warnings = []
    result.shrunk, result.held = planned.shrunk, planned.held
    result.quota = live.objects.get(("ResourceQuota", f"{request.name}-quota"))
    limits = next((item["spec"]["limits"][0] for item in wanted.objects if item["kind"] == "LimitRange"), None)
    if limits is None and any(name.startswith("limits.") for name in wanted.hard):
        result.warnings.append("there is no LimitRange: Pods without limits of their own are refused by the quota")
    tight = shrink.headroom(result.quota, (limits or {}).get("default") or {})
    if tight:
        result.warnings.append(tight)
    result.foreign_policies = forecast.opening(live, request.managed, request.network.restrict_egress)
    if marks.of(live.namespace, "labels").get("app") == "infra":
        result.warnings.append("the Namespace is labelled app=infra, which opens every managed namespace to its Pods")


def _conclude(result: Result, planned: Plan, problems: list[str], live: Live, options: Options) -> None:
    if planned.conflicts:
        result.says("conflict", "conflict", "; ".join(planned.conflicts))
    elif planned.held and planned.shrunk:
        result.says("held", "shrink_blocked", f"the size stays as it is: {planned.shrunk.message}")
    elif planned.pending or problems:
        result.says("pending", "pull_secrets", "; ".join([*planned.pending, *problems]))
    elif options.openshift and _UID_RANGE not in marks.of(live.namespace, "annotations"):
        result.says("pending", "openshift", f"the Namespace has no annotation {_UID_RANGE} yet")
    else:
        result.says("ready", msg=_on_links(planned))


def _on_links(planned: Plan) -> str:
    accounts = sorted({account for names in planned.linked.values() for account in names})
    if not accounts:
        return ""
    # admission copies the list into a Pod when that is made
    return f"ServiceAccounts with pull secrets: {', '.join(accounts)}; Pods get them when they are made, not later"


def let_go(cluster: Cluster, name: str, claimant: str, keep_because: t.Callable[[], str], options: Options) -> Result:
    """Delete or release a namespace, as its claim says.

    :param keep_because: tells why nothing may be deleted, or an empty text; asked only where something would be
    """
    result = Result(name)
    try:
        for _attempt in range(ATTEMPTS):
            if _let_go_once(cluster, name, claimant, keep_because, options, result):
                return result
        # a failure, since there is no next pass where a finalizer is removed after one that succeeds
        result.error = f"{result.msg}; it was tried {ATTEMPTS} times, the next pass looks again"
        return result.says("pending", "conflict", result.error)
    except ApiError as exc:
        return failed(result, exc)


def _let_go_once(
    cluster: Cluster, name: str, claimant: str, keep_because: t.Callable[[], str], options: Options, result: Result
) -> bool:
    namespace = cluster.get("v1", "Namespace", None, name)
    what, message = claims.farewell(namespace, claimant)
    if what == "delete":
        reserved = claims.reserved_by(name, [*options.reserved, *claimant.split("/")[:-1]])
        because = f"its name is reserved ({reserved})" if reserved else keep_because()
        what, message = claims.farewell(namespace, claimant, because)
    if what in ("gone", "foreign", "terminating"):
        result.says("terminating" if what == "terminating" else "absent", what, message)
        return True
    there = t.cast(Object, namespace)
    claim = t.cast(claims.Claim, claims.read(there))
    claim = dataclasses.replace(claim, annotations=(*claim.annotations, *_of_the_operator(there)))
    if what == "delete":
        operations = [Operation("delete", "Namespace", name, uid=there["metadata"]["uid"], before=there)]
    else:
        live = read(cluster, there, claim.links, {}, Answer("ours", claim=claim))
        operations = plan.leave(live, claim)
    if options.check_mode:
        result.done = operations
    elif not carry_out_all(cluster, operations, result):
        return False
    if result.error:
        result.says("pending", result.reason, result.error)
    else:
        result.says("terminating" if what == "delete" else "released", what, message)
    return True


def _of_the_operator(namespace: t.Mapping[str, t.Any]) -> t.Iterable[str]:
    """Annotations with which ansible-operator finds the Nspro of a Namespace that it created."""
    return _PRIMARY if marks.of(namespace, "annotations").get(_PRIMARY[1]) == _NSPRO else ()


def refused(name: str, exc: StewardError) -> Result:
    """The result for a request that is none."""
    return Result(name).says("invalid", "invalid", str(exc))

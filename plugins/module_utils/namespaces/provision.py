# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make namespaces what they should be: read, plan, write; many at once, each by itself.

`cluster` is `kube.Cluster` or anything with its methods. One namespace that goes wrong stops no other.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster, Reference
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import desired, forecast, plan, shrink
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
    """

    sizes: t.Mapping[str, Size]
    reserved: t.Sequence[str] = claims.RESERVED
    openshift: bool = False
    check_mode: bool = False
    details: bool = False
    now: str = ""


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
    claim: claims.Claim | None = None
    error: str = ""

    def says(self, state: str, reason: str = "", msg: str = "") -> Result:
        """The same with another state."""
        self.state, self.reason, self.msg = state, reason, msg
        return self


def together(work: t.Callable[[t.Any], Result], items: t.Sequence[t.Any]) -> list[Result]:
    """`work` on every item, several at the same time, results in order; an unexpected error is raised at the end."""
    if len(items) <= 1:
        return [work(item) for item in items]
    with concurrent.futures.ThreadPoolExecutor(min(WORKERS, len(items))) as pool:
        return list(pool.map(work, items))


def provide(cluster: Cluster, request: Request, options: Options) -> Result:
    """Make one namespace what it should be."""
    result = Result(request.name)
    try:
        for _attempt in range(ATTEMPTS):
            if _provide_once(cluster, request, options, result):
                return result
        return result.says("pending", "conflict", f"{result.msg}; the next pass looks again")
    except ApiError as exc:
        return _failed(result, exc)


def _failed(result: Result, exc: ApiError) -> Result:
    if "NamespaceTerminating" in exc.causes:
        # no failure: it is looked at again, and made anew once it is gone
        return result.says("terminating", "namespace_terminating", str(exc))
    result.error = str(exc)
    reason = "forbidden" if exc.status == 403 else "unreachable" if exc.status == 0 else "api_error"
    return result.says("pending", reason, str(exc))


def _provide_once(cluster: Cluster, request: Request, options: Options, result: Result) -> bool:
    """One attempt; False where somebody else wrote meanwhile."""
    live_namespace = cluster.get("v1", "Namespace", None, request.name)
    home = [request.source_namespace] if request.source_namespace else []
    answer = claims.ask(request.name, request.claimant, request.adoption, live_namespace, [*options.reserved, *home])
    if not answer.granted:
        result.says("conflict" if answer.state == "conflict" else answer.state, answer.state, answer.message)
        return True
    secrets, problems = _sources(cluster, request)
    wanted = desired.desired(request, options.sizes[request.size], secrets)
    live = read(
        cluster, live_namespace, {*wanted.links, *(answer.claim.links if answer.claim else ())}, wanted.links, answer
    )
    planned = plan.plan(request, wanted, answer, live, options.now)
    _describe(result, request, wanted, live, planned)
    result.warnings += problems
    if options.check_mode:
        result.done = planned.operations
        if options.details:
            result.warnings += forecast.hits(cluster, request.name, planned)
    else:
        for operation in planned.operations:
            try:
                carry_out(cluster, request.name, operation)
            except ApiError as exc:
                if not exc.changed_meanwhile or (exc.status == 422 and operation.action != "patch"):
                    raise
                result.msg = str(exc)
                return False
            result.done.append(operation)
    _conclude(result, request, planned, problems, live, options)
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
        cluster.delete(target, operation.uid)


def _describe(result: Result, request: Request, wanted: desired.Desired, live: Live, planned: Plan) -> None:
    result.warnings = []
    result.shrunk, result.held = planned.shrunk, planned.held
    result.quota = live.objects.get(("ResourceQuota", f"{request.name}-quota"))
    limits = next((item["spec"]["limits"][0] for item in wanted.objects if item["kind"] == "LimitRange"), None)
    if limits is None and any(name.startswith("limits.") for name in _hard(wanted)):
        result.warnings.append("there is no LimitRange: Pods without limits of their own are refused by the quota")
    tight = shrink.headroom(result.quota, (limits or {}).get("default") or {})
    if tight:
        result.warnings.append(tight)
    if request.managed:
        result.foreign_policies = forecast.opening(live)
    if ((live.namespace or {"metadata": {}})["metadata"].get("labels") or {}).get("app") == "infra":
        result.warnings.append("the Namespace is labelled app=infra, which opens every managed namespace to its Pods")


def _hard(wanted: desired.Desired) -> t.Mapping[str, str]:
    return next(item["spec"]["hard"] for item in wanted.objects if item["kind"] == "ResourceQuota")


def _conclude(
    result: Result, request: Request, planned: Plan, problems: list[str], live: Live, options: Options
) -> None:
    annotations = ((live.namespace or {"metadata": {}})["metadata"].get("annotations")) or {}
    if planned.conflicts:
        result.says("conflict", "conflict", "; ".join(planned.conflicts))
    elif planned.held:
        result.says("held", "shrink_blocked", f"the size stays as it is: {planned.shrunk.message}")
    elif planned.pending or problems:
        result.says("pending", "pull_secrets", "; ".join([*planned.pending, *problems]))
    elif options.openshift and _UID_RANGE not in annotations:
        result.says("pending", "openshift", f"the Namespace has no annotation {_UID_RANGE} yet")
    else:
        result.says("ready")


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
        return _failed(result, exc)


def _let_go_once(
    cluster: Cluster, name: str, claimant: str, keep_because: t.Callable[[], str], options: Options, result: Result
) -> bool:
    namespace = cluster.get("v1", "Namespace", None, name)
    what, message = claims.farewell(namespace, claimant)
    if what == "delete":
        what, message = claims.farewell(namespace, claimant, keep_because())
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
    else:
        for operation in operations:
            try:
                carry_out(cluster, name, operation)
            except ApiError as exc:
                if not exc.changed_meanwhile:
                    raise
                result.msg = str(exc)
                return False
            result.done.append(operation)
    result.says("terminating" if what == "delete" else "released", what, message)
    return True


def _of_the_operator(namespace: t.Mapping[str, t.Any]) -> t.Iterable[str]:
    """Annotations with which ansible-operator finds the Nspro of a Namespace that it created."""
    annotations = namespace["metadata"].get("annotations") or {}
    return _PRIMARY if annotations.get(_PRIMARY[1]) == _NSPRO else ()


def refused(name: str, exc: StewardError) -> Result:
    """The result for a request that is none."""
    return Result(name).says("invalid", "invalid", str(exc))

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make namespaces what they should be: read, plan, write; many at once, each by itself.

`cluster` is `kube.Cluster` or anything with its methods. One namespace that goes wrong stops no other.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import (
    desired,
    forecast,
    limits,
    marks,
    plan,
    shrink,
    usage,
    writing,
)
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import Answer
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.plan import Live, Operation, Plan
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import Request
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.rivals import Rivals
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.sizes import Size
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.waiting import Patience

Object = dict[str, t.Any]

#: times a namespace is planned anew when somebody else edits it meanwhile
ATTEMPTS = 3
#: namespaces that are worked on at the same time
WORKERS = 8
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
    :ivar roles: ClusterRoles that may be given
    :ivar openshift: wait for what OpenShift adds to a new Namespace
    :ivar details: in check mode, say what a smaller quota or a closed policy would hit
    :ivar rivals: tells which Nspro of one name is older
    :ivar webhooks: tells the namespaces whose Services the API server itself calls
    :ivar patience: how long to wait for what the cluster does
    """

    sizes: t.Mapping[str, Size]
    reserved: t.Sequence[str] = claims.RESERVED
    roles: t.Collection[str] = ("admin", "edit", "view")
    openshift: bool = False
    check_mode: bool = False
    details: bool = False
    now: str = ""
    rivals: Rivals | None = None
    webhooks: t.Callable[[], t.Container[str]] = tuple
    patience: Patience = dataclasses.field(default_factory=Patience)


@dataclasses.dataclass(frozen=True)
class Farewell:
    """What is asked before a namespace is let go; both tell a reason, or an empty text, and only when it matters.

    :ivar untouched_because: why nothing at all is done to it
    :ivar kept_because: why nothing may be deleted, whatever its claim says
    """

    untouched_because: t.Callable[[], str] = str
    kept_because: t.Callable[[], str] = str


def provide(cluster: Cluster, request: Request, options: Options) -> Result:
    """Make one namespace what it should be."""
    return options.patience.until_done(lambda: _provide(cluster, request, options))


def _provide(cluster: Cluster, request: Request, options: Options) -> Result:
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
    return result.says("pending", writing.reason_of(exc), str(exc))


def _provide_once(cluster: Cluster, request: Request, options: Options, result: Result) -> bool:
    """One attempt; False where somebody else wrote meanwhile."""
    result.failures, result.blocked = {}, {}
    live_namespace = cluster.get("v1", "Namespace", None, request.name)
    answer = _ask(request, options, live_namespace)
    if not answer.granted:
        result.says(answer.state, answer.state, answer.message)
        return True
    secrets, problems = _sources(cluster, request)
    wanted = desired.desired(request, options.sizes[request.size], secrets, options.openshift)
    live = read(
        cluster, live_namespace, {*wanted.links, *(answer.claim.links if answer.claim else ())}, wanted.links, answer
    )
    planned = plan.plan(request, wanted, answer, live, options.now, _count(cluster, request, wanted, answer, live))
    _describe(result, request, wanted, live, planned)
    result.warnings += [*problems, *forecast.cut_off(request, options.openshift, options.webhooks)]
    result.blocked = planned.blocked
    if options.check_mode and options.details:
        result.warnings += forecast.hits(cluster, request.name, planned)
    if not writing.carry_out_all(cluster, planned.operations, result, options.check_mode):
        return False
    result.planned = frozenset() if planned.is_refused else frozenset(writing.GUARDS)
    if result.error:
        result.says("pending", result.reason, "; ".join([result.error, *planned.conflicts]))
    else:
        _conclude(result, planned, problems, live, options)
    return True


def _ask(request: Request, options: Options, namespace: Object | None) -> Answer:
    home = [request.source_namespace] if request.source_namespace else []
    answer = claims.ask(request.name, request.claimant, request.adoption, namespace, [*options.reserved, *home])
    if answer.state != "free":
        return answer
    older = options.rivals.older(request.name, request.claimant) if options.rivals else ""
    return Answer("conflict", older) if older else answer


def _count(
    cluster: Cluster, request: Request, wanted: desired.Desired, answer: Answer, live: Live
) -> shrink.Counted | None:
    """What Pods use of what the quota does not count yet; asked only where the size waits for it.

    A quota of a Namespace that we made, and that somebody took away, comes back at once: it was there before.
    """
    quota = live.objects.get(("ResourceQuota", f"{request.name}-quota"))
    is_adopted = answer.state == "adopt" or (answer.claim is not None and answer.claim.origin == claims.ADOPTED)
    is_identical = answer.state == "adopt" and request.adoption == "IfIdentical"
    names = usage.countable(shrink.uncounted(wanted.hard, quota))
    if request.shrink != "Hold" or is_identical or not names or not (quota or is_adopted) or live.namespace is None:
        return None
    try:
        pods = cluster.find("v1", "Pod", request.name)
    except ApiError as exc:
        if exc.status != 403:
            raise
        return shrink.Counted(problem=f"what is used is not known ({exc}); allow it, or ask for shrink: Apply")
    return shrink.Counted(usage.count(pods, names))


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
        (kind, item["metadata"]["name"]): item
        for kind in _LISTED
        for item in cluster.find(writing.API[kind], kind, name)
    }
    for secret in secrets:
        there = cluster.get("v1", "Secret", name, secret)
        if there:
            objects[("Secret", secret)] = there
    known = answer.claim.links if answer.claim else {}
    accounts = {account for entry in (links, known) for names in entry.values() for account in names}
    found = {account: cluster.get("v1", "ServiceAccount", name, account) for account in sorted(accounts)}
    return Live(namespace, objects, {account: item for account, item in found.items() if item})


def _describe(result: Result, request: Request, wanted: desired.Desired, live: Live, planned: Plan) -> None:
    result.warnings = request.idle
    result.shrunk, result.held = planned.shrunk, planned.held
    result.quota = live.objects.get(("ResourceQuota", f"{request.name}-quota"))
    hard, filled = wanted.hard, desired.filled_in(wanted.objects)
    if planned.held:
        hard, filled = shrink.hard_of(result.quota), desired.filled_in(live.objects.values(), f"{request.name}-limits")
    missing = limits.uncovered(hard, filled)
    if missing:
        result.warnings.append(missing)
    tight = shrink.headroom(result.quota, hard, filled)
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
        # ServiceAccounts come by themselves a moment after their Namespace
        result.comes_by_itself = not problems
    elif options.openshift and _UID_RANGE not in marks.of(live.namespace, "annotations"):
        result.says("pending", "openshift", f"the Namespace has no annotation {_UID_RANGE} yet")
        result.comes_by_itself = True
    else:
        result.says("ready", msg=_on_links(planned))


def _on_links(planned: Plan) -> str:
    accounts = sorted({account for names in planned.linked.values() for account in names})
    if not accounts:
        return ""
    # admission copies the list into a Pod when that is made
    return f"ServiceAccounts with pull secrets: {', '.join(accounts)}; Pods get them when they are made, not later"


def let_go(cluster: Cluster, name: str, claimant: str, farewell: Farewell, options: Options) -> Result:
    """Delete or release a namespace, as its claim says."""
    return options.patience.until_done(lambda: _let_go(cluster, name, claimant, farewell, options))


def _let_go(cluster: Cluster, name: str, claimant: str, farewell: Farewell, options: Options) -> Result:
    result = Result(name)
    try:
        for _attempt in range(ATTEMPTS):
            if _let_go_once(cluster, name, claimant, farewell, options, result):
                return result
        # a failure, since there is no next pass where a finalizer is removed after one that succeeds
        result.error = f"{result.msg}; it was tried {ATTEMPTS} times, the next pass looks again"
        return result.says("pending", "conflict", result.error)
    except ApiError as exc:
        return failed(result, exc)


def _let_go_once(
    cluster: Cluster, name: str, claimant: str, farewell: Farewell, options: Options, result: Result
) -> bool:
    namespace = cluster.get("v1", "Namespace", None, name)
    what, message = claims.farewell(namespace, claimant)
    untouched = farewell.untouched_because() if what in ("delete", "release") else ""
    if untouched:
        result.says("pending", "in_doubt", f"Namespace {name} stays as it is, with its claim: {untouched}")
        return True
    if what == "delete":
        reserved = claims.reserved_by(name, [*options.reserved, *claimant.split("/")[:-1]])
        because = f"its name is reserved ({reserved})" if reserved else farewell.kept_because()
        what, message = claims.farewell(namespace, claimant, because)
    if what in ("gone", "foreign", "terminating"):
        result.says("terminating" if what == "terminating" else "absent", what, message)
        return True
    there = t.cast(Object, namespace)
    claim = t.cast(claims.Claim, claims.read(there))
    claim = dataclasses.replace(claim, annotations=(*claim.annotations, *_of_the_operator(there)))
    if what == "delete":
        operations = [Operation("delete", "Namespace", name, uid=there["metadata"]["uid"], before=there)]
        result.warnings = forecast.going(cluster, name) if options.check_mode else []
    else:
        live = read(cluster, there, claim.links, {}, Answer("ours", claim=claim))
        operations = plan.leave(live, claim)
    if not writing.carry_out_all(cluster, operations, result, options.check_mode):
        return False
    if result.error:
        result.says("pending", result.reason, result.error)
    else:
        result.says("terminating" if what == "delete" else "released", what, message)
    return True


def _of_the_operator(namespace: t.Mapping[str, t.Any]) -> t.Iterable[str]:
    """Annotations with which ansible-operator finds the Nspro of a Namespace that it created."""
    return _PRIMARY if marks.of(namespace, "annotations").get(_PRIMARY[1]) == _NSPRO else ()

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is there and what is wanted to what is to be done. Pure; a plan of an applied plan is empty."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import (
    contest,
    differences,
    links,
    marks,
    shrink,
)
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import Answer, Claim
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.desired import (
    MANAGED_BY,
    NODES,
    NODES_OF_OPENSHIFT,
    OURS,
    Desired,
)
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import Request

Object = dict[str, t.Any]
Key = tuple[str, str]

#: kinds that we make in a namespace, in the order in which they go: access last, so that people can see it through
KINDS = ("NetworkPolicy", "LimitRange", "ResourceQuota", "Secret", "RoleBinding")


@dataclasses.dataclass(frozen=True)
class Operation:
    """One write.

    :ivar action: `create`, `apply`, `patch` or `delete`
    :ivar body: the object to create or apply
    :ivar operations: the JSON patch
    :ivar uid: what is deleted must be that object
    :ivar before: the object as it is, for a diff
    :ivar after: the object as it will be, for a diff
    """

    action: str
    kind: str
    name: str
    body: t.Mapping[str, t.Any] | None = None
    operations: tuple[Object, ...] = ()
    uid: str = ""
    before: t.Mapping[str, t.Any] | None = None
    after: t.Mapping[str, t.Any] | None = None


@dataclasses.dataclass(frozen=True)
class Live:
    """What is there: the Namespace, objects of our kinds in it, and the ServiceAccounts by name."""

    namespace: t.Mapping[str, t.Any] | None
    objects: t.Mapping[Key, t.Mapping[str, t.Any]] = dataclasses.field(default_factory=dict)
    accounts: t.Mapping[str, t.Mapping[str, t.Any]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Plan:
    """What is to be done, and what is not.

    :ivar conflicts: objects that are somebody else's, or that another manager puts back; left alone
    :ivar blocked: kind -> the conflict about its object
    :ivar is_refused: nothing is done, since adoption would change something
    :ivar pending: what is waited for
    :ivar shrunk: what a smaller quota cuts off
    :ivar held: the quota stays as it is because of that
    :ivar linked: Secret -> the ServiceAccounts that pull with it because of us
    """

    operations: list[Operation] = dataclasses.field(default_factory=list)
    conflicts: list[str] = dataclasses.field(default_factory=list)
    blocked: dict[str, str] = dataclasses.field(default_factory=dict)
    is_refused: bool = False
    pending: list[str] = dataclasses.field(default_factory=list)
    shrunk: shrink.Shrink | None = None
    held: bool = False
    linked: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def leave(self, kind: str, message: str) -> None:
        """An object is left to somebody else."""
        self.conflicts.append(message)
        self.blocked[kind] = message


def plan(
    request: Request, wanted: Desired, answer: Answer, live: Live, now: str, counted: shrink.Counted | None = None
) -> Plan:
    """The writes that make `live` what is wanted, in the order in which they are to be done.

    :param answer: the claim, which was granted
    :param now: `2006-01-02T15:04:05Z`
    :param counted: what Pods use of resources that no quota of ours counts yet
    """
    found = Plan()
    quota = live.objects.get(("ResourceQuota", f"{request.name}-quota"))
    found.shrunk = shrink.check(wanted.hard, quota, counted)
    # held, the quota would pass for identical
    is_measured = answer.state == "adopt" and request.adoption == "IfIdentical"
    if found.shrunk and not is_measured and (request.shrink == "Hold" or not found.shrunk.is_known):
        found.held = True
        wanted = _as_it_is(wanted, request, live)
    repairs = contest.read(live.namespace, now)
    wanted = _without_foreign(wanted, answer.claim, live, found)
    operations, kept = _objects(request, wanted, answer, live, repairs, found)
    before = answer.claim
    linked = links.plan(wanted.links, before.links if before else {}, live.accounts)
    found.pending += linked.pending
    origin = before.origin if before else claims.ADOPTED if answer.state == "adopt" else claims.CREATED
    final = Claim(
        request.claimant,
        origin,
        claims.policy(origin, request.deletion),
        labels=tuple(wanted.labels),
        annotations=tuple(wanted.annotations),
        kept=tuple({*kept, *_still_kept(wanted, live, before)}),
        # one that no ServiceAccount uses yet is remembered too: it was copied
        links={**dict.fromkeys(wanted.links, ()), **linked.links},
    )
    found.linked = final.links
    claim = dataclasses.replace(final, links=links.either(before.links if before else {}, final.links))
    found.operations = [
        *_namespace(request, wanted, claim, before, live, repairs, found),
        *operations,
        *(Operation("patch", "ServiceAccount", name, operations=tuple(patch)) for name, patch in linked.patches),
        *_surplus(wanted, claim, live),
        *_closing(request, claim, final),
    ]
    if is_measured:
        _only_if_identical(request, found)
    return found


def _as_it_is(wanted: Desired, request: Request, live: Live) -> Desired:
    """The size stays: label, nodes, quota and LimitRange are wanted as they are, or not at all."""
    objects = []
    for item in wanted.objects:
        there = live.objects.get((item["kind"], item["metadata"]["name"]))
        if item["kind"] in ("ResourceQuota", "LimitRange"):
            if there:
                objects.append({**item, "spec": there["spec"]})
        else:
            objects.append(item)
    return dataclasses.replace(
        wanted,
        labels=_kept_as_is(wanted.labels, ("size",), marks.of(live.namespace, "labels")),
        annotations=_kept_as_is(
            wanted.annotations, (NODES, NODES_OF_OPENSHIFT), marks.of(live.namespace, "annotations")
        ),
        objects=tuple(objects),
    )


def _kept_as_is(wanted: t.Mapping[str, str], keys: t.Iterable[str], there: t.Mapping[str, str]) -> dict[str, str]:
    other = {key: value for key, value in wanted.items() if key not in keys}
    return {**{key: there[key] for key in keys if key in there}, **other}


def _without_foreign(wanted: Desired, before: Claim | None, live: Live, found: Plan) -> Desired:
    """A label that an administrator set, a Pod Security level for example, is not overwritten by a later wish."""
    ours = {"labels": dict(wanted.labels), "annotations": dict(wanted.annotations)}
    for field, key in marks.foreign(live.namespace, ours, before):
        there = t.cast(t.Mapping[str, t.Any], live.namespace)
        managers = differences.authors(there, [("metadata", field, key)])
        if managers == [contest.SYNCER]:
            continue
        whose = f"set by {managers[0]}" if managers else "not ours"
        value = marks.of(there, field)[key]
        found.conflicts.append(f"the {field[:-1]} {key}={value} of the Namespace is {whose}; it is left alone")
        del ours[field][key]
    return dataclasses.replace(wanted, labels=ours["labels"], annotations=ours["annotations"])


def _objects(
    request: Request, wanted: Desired, answer: Answer, live: Live, repairs: contest.Repairs, found: Plan
) -> tuple[list[Operation], list[str]]:
    operations, kept = [], []
    for item in wanted.objects:
        kind, name = item["kind"], item["metadata"]["name"]
        there = live.objects.get((kind, name))
        if there is None:
            operations.append(Operation("apply", kind, name, body=item, after=item))
            continue
        if answer.state == "adopt":
            # also what was ours once: our name among its managers outlives a release
            kept.append(f"{kind}/{name}")
        elif not (is_ours(there) or _is_kept(item, answer.claim)):
            found.leave(kind, f"{kind} {name} exists and is not ours (no label {MANAGED_BY}={OURS})")
            continue
        paths = differences.differences(item, there)
        if any(_is_immutable(kind, path) for path in paths):
            operations += _replaced(item, there, answer, found)
        elif paths and not _is_contested(f"{kind}/{name}", there, paths, repairs, found):
            operations.append(Operation("apply", kind, name, body=item, before=there, after=item))
    return operations, kept


def _still_kept(wanted: Desired, live: Live, before: Claim | None) -> list[str]:
    """What the claim knows to be there before us, but for objects that went since and are made by us now."""
    made = {f"{item['kind']}/{item['metadata']['name']}" for item in wanted.objects}
    made -= {f"{kind}/{name}" for kind, name in live.objects}
    objects = [key for key in (before.kept if before else ()) if key[0].isupper() and key not in made]
    ours = {"labels": wanted.labels, "annotations": wanted.annotations}
    return [*objects, *marks.kept(live.namespace, ours, before)]


def _is_kept(item: Object, claim: Claim | None) -> bool:
    """True for what was adopted, perhaps by a pass that did not come to mark it."""
    return claim is not None and f"{item['kind']}/{item['metadata']['name']}" in claim.kept


def _is_immutable(kind: str, path: differences.Path) -> bool:
    return (kind, path[0]) in (("RoleBinding", "roleRef"), ("Secret", "type"))


def _replaced(item: Object, there: t.Mapping[str, t.Any], answer: Answer, found: Plan) -> list[Operation]:
    """Delete and make anew what the API server does not let be changed."""
    kind, name = item["kind"], item["metadata"]["name"]
    if answer.state == "adopt" or _is_kept(item, answer.claim):
        found.leave(kind, f"{kind} {name} exists with another role or type, which nobody can change")
        return []
    gone = Operation("delete", kind, name, uid=there["metadata"]["uid"], before=there)
    return [gone, Operation("apply", kind, name, body=item, after=item)]


def _is_contested(
    key: str, there: t.Mapping[str, t.Any], paths: t.Sequence[differences.Path], repairs: contest.Repairs, found: Plan
) -> bool:
    writers = {path: _writers(key, there, path) for path in paths}
    # field by field: whoever edits one after the other by hand is no manager who insists
    names = {path: f"{key} {'.'.join(path)}" for path in paths}
    rivals = {path: repairs.rival(names[path], managers) for path, managers in writers.items()}
    contested = [path for path, rival in rivals.items() if rival]
    if contested:
        rival, fields = rivals[contested[0]], ", ".join(".".join(path) for path in contested[:3])
        message = f"{key}: {rival} puts {fields} back again and again; it is left as {rival} wants it"
        found.leave(key.partition("/")[0], message)
        return True
    if is_ours(there):
        for path, managers in writers.items():
            if managers:
                repairs.note(names[path], managers[0])
    return False


def _writers(key: str, there: t.Mapping[str, t.Any], path: differences.Path) -> list[str]:
    managers = differences.authors(there, [path])
    if key.startswith("Namespace/") and differences.value_at(there, path) is None:
        # our claim says that it was there, and a removal leaves no name
        managers.append(contest.NOBODY)
    return managers


def is_ours(there: t.Mapping[str, t.Any]) -> bool:
    """True for what we made, even where somebody took our label away."""
    return has_mark(there) or bool(differences.owned(there))


def _namespace(
    request: Request,
    wanted: Desired,
    claim: Claim,
    before: Claim | None,
    live: Live,
    repairs: contest.Repairs,
    found: Plan,
) -> list[Operation]:
    ours = {"labels": dict(wanted.labels), "annotations": dict(wanted.annotations)}
    text = {claims.CLAIM: claim.render()}
    if live.namespace is None:
        meta = {"name": request.name, "labels": ours["labels"], "annotations": {**ours["annotations"], **text}}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        return [Operation("create", "Namespace", request.name, body=body, after=body)]
    paths = marks.drifted(live.namespace, ours, before)
    if paths and _is_contested(f"Namespace/{request.name}", live.namespace, paths, repairs, found):
        # they stay as the other manager wants them
        for _meta, field, key in paths:
            there = marks.of(live.namespace, field).get(key)
            ours[field] = {**ours[field], key: there} if there is not None else _without(ours[field], key)
    ours["annotations"].update(text)
    if repairs.changed:
        ours["annotations"][claims.REPAIRS] = repairs.render()
    return _patched(live.namespace, ours, before)


def _without(values: dict[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if name != key}


def _patched(live: t.Mapping[str, t.Any], wanted: marks.Marks, before: Claim | None) -> list[Operation]:
    operations, after = marks.patch(live, wanted, before)
    if not operations:
        return []
    name = live["metadata"]["name"]
    return [Operation("patch", "Namespace", name, operations=tuple(operations), before=live, after=after)]


def _closing(request: Request, claim: Claim, final: Claim) -> list[Operation]:
    if claim.render() == final.render():
        return []
    before, after = (
        {"metadata": {"name": request.name, "annotations": {claims.CLAIM: item.render()}}} for item in (claim, final)
    )
    operations = tuple(marks.closing(claim, final))
    return [Operation("patch", "Namespace", request.name, operations=operations, before=before, after=after)]


def _surplus(wanted: Desired, claim: Claim, live: Live) -> list[Operation]:
    """What is ours and no longer wanted; a binding goes after the one that comes in its place."""
    keep = {(item["kind"], item["metadata"]["name"]) for item in wanted.objects}
    return [
        Operation("delete", kind, name, uid=there["metadata"]["uid"], before=there)
        for kind, name, there in _marked(live, claim)
        if (kind, name) not in keep and f"{kind}/{name}" not in claim.kept
    ]


def _marked(live: Live, claim: Claim) -> list[tuple[str, str, t.Mapping[str, t.Any]]]:
    """Objects that we made, in the order in which they go.

    In a namespace that was there before us only our label tells: our name among managers may be of an earlier claim.
    Of the Secrets the claim itself tells: a credential must not stay because somebody took the label off.
    """
    copies = {("Secret", name) for name in claim.links if f"Secret/{name}" not in claim.kept}
    found = [
        (kind, name, there)
        for (kind, name), there in live.objects.items()
        if kind in KINDS
        and (has_mark(there) or (is_ours(there) and (claim.origin == claims.CREATED or (kind, name) in copies)))
    ]
    return sorted(found, key=lambda item: (KINDS.index(item[0]), item[1]))


def has_mark(there: t.Mapping[str, t.Any]) -> bool:
    """True for what carries our label."""
    return (there["metadata"].get("labels") or {}).get(MANAGED_BY) == OURS


def _only_if_identical(request: Request, found: Plan) -> None:
    marked = [
        f"{field[:-1]} {key}"
        for operation in found.operations
        if operation.kind == "Namespace"
        for field in marks.FIELDS
        for key in _changed_keys(operation, field)
    ]
    inside = [item for item in found.operations if item.kind != "Namespace"]
    others = [f"{item.kind} {item.name}" for item in inside if not _only_marks(item)]
    if marked or others:
        what = ", ".join([*others, *marked])
        found.conflicts = [f"Namespace {request.name} differs from what is wanted ({what}); adoption is IfIdentical"]
        found.operations, found.shrunk, found.is_refused = [], None, True


def _changed_keys(operation: Operation, field: str) -> list[str]:
    before, after = marks.of(operation.before, field), marks.of(operation.after, field)
    return sorted(key for key in {*before, *after} - {*claims.OURS} if before.get(key) != after.get(key))


def _only_marks(operation: Operation) -> bool:
    """True where an apply adds only our label."""
    if not operation.before or not operation.body:
        return False
    meta = {key: value for key, value in operation.body["metadata"].items() if key != "labels"}
    body = {**operation.body, "metadata": meta}
    return not differences.differences(body, operation.before)


def leave(live: Live, claim: Claim) -> list[Operation]:
    """The writes that take what is ours out of a namespace that stays."""
    namespace = t.cast(t.Mapping[str, t.Any], live.namespace)
    unlinked = links.plan({}, claim.links, live.accounts)
    operations = [
        Operation("patch", "ServiceAccount", name, operations=tuple(patch)) for name, patch in unlinked.patches
    ]
    for kind, name, there in _marked(live, claim):
        if f"{kind}/{name}" in claim.kept:
            body = [{"op": "remove", "path": f"/metadata/labels/{marks.escaped(MANAGED_BY)}"}]
            operations.append(
                Operation("patch", kind, name, operations=tuple(body), before=there, after=_unmarked(there))
            )
        else:
            operations.append(Operation("delete", kind, name, uid=there["metadata"]["uid"], before=there))
    everything = dataclasses.replace(claim, annotations=(*claim.annotations, *claims.OURS))
    return [*operations, *_patched(namespace, {"labels": {}, "annotations": {}}, everything)]


def _unmarked(there: t.Mapping[str, t.Any]) -> Object:
    labels = _without(there["metadata"]["labels"], MANAGED_BY)
    return {**there, "metadata": {**there["metadata"], "labels": labels}}

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is there and what is wanted to what is to be done. Pure; a plan of an applied plan is empty."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import contest, differences, links, shrink
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import Answer, Claim
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.desired import MANAGED_BY, OURS, Desired
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import Request

Object = dict[str, t.Any]
Key = tuple[str, str]

#: kinds that we make in a namespace, in the order in which they go: access last, so that people can see it through
KINDS = ("NetworkPolicy", "LimitRange", "ResourceQuota", "Secret", "RoleBinding")
#: what the API server lets nobody change: such an object is made anew
_FIXED = {"RoleBinding": "roleRef", "Secret": "type"}


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
    :ivar pending: what is waited for
    :ivar shrunk: what a smaller quota cuts off
    :ivar held: the quota stays as it is because of that
    """

    operations: list[Operation] = dataclasses.field(default_factory=list)
    conflicts: list[str] = dataclasses.field(default_factory=list)
    pending: list[str] = dataclasses.field(default_factory=list)
    shrunk: shrink.Shrink | None = None
    held: bool = False


def plan(request: Request, wanted: Desired, answer: Answer, live: Live, now: str) -> Plan:
    """The writes that make `live` what is wanted, in the order in which they are to be done.

    :param answer: the claim, which was granted
    :param now: `2006-01-02T15:04:05Z`
    """
    found = Plan()
    quota = live.objects.get(("ResourceQuota", f"{request.name}-quota"))
    found.shrunk = shrink.check(_hard(wanted), quota)
    # held, the quota would pass for identical
    is_measured = answer.state == "adopt" and request.adoption == "IfIdentical"
    if found.shrunk and not is_measured and (request.shrink == "Hold" or not found.shrunk.is_known):
        found.held = True
        wanted = _as_it_is(wanted, request, live)
    repairs = contest.read(live.namespace, now)
    operations, kept = _objects(request, wanted, answer, live, repairs, found)
    before = answer.claim
    linked = links.plan(wanted.links, before.links if before else {}, live.accounts)
    found.pending += linked.pending
    origin = before.origin if before else claims.ADOPTED if answer.state == "adopt" else claims.CREATED
    claim = Claim(
        request.claimant,
        origin,
        claims.policy(origin, request.deletion),
        labels=tuple(wanted.labels),
        annotations=tuple(wanted.annotations),
        kept=tuple({*(before.kept if before else ()), *kept}),
        # one that no ServiceAccount uses yet is remembered too: it was copied
        links={**dict.fromkeys(wanted.links, ()), **linked.links},
    )
    found.operations = [
        *_namespace(request, wanted, claim, live, repairs, found),
        *operations,
        *(Operation("patch", "ServiceAccount", name, operations=tuple(patch)) for name, patch in linked.patches),
        *_surplus(wanted, claim, live),
    ]
    if is_measured:
        _only_if_identical(request, found)
    return found


def _hard(wanted: Desired) -> t.Mapping[str, str]:
    return next(item["spec"]["hard"] for item in wanted.objects if item["kind"] == "ResourceQuota")


def _as_it_is(wanted: Desired, request: Request, live: Live) -> Desired:
    """The size stays: label, quota and LimitRange are wanted as they are."""
    size = ((live.namespace or {})["metadata"].get("labels") or {}).get("size")
    objects = []
    for item in wanted.objects:
        there = live.objects.get((item["kind"], item["metadata"]["name"]))
        if item["kind"] in ("ResourceQuota", "LimitRange") and there:
            item = {**item, "spec": there["spec"]}
        objects.append(item)
    labels = {**wanted.labels, "size": size} if size else wanted.labels
    return dataclasses.replace(wanted, labels=labels, objects=tuple(objects))


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
        if not is_ours(there):
            if answer.state != "adopt":
                found.conflicts.append(f"{kind} {name} exists and is not ours (no label {MANAGED_BY}={OURS})")
                continue
            if _is_made_anew(item, there):
                found.conflicts.append(f"{kind} {name} is not ours and has another {_FIXED[kind]}")
                continue
            kept.append(f"{kind}/{name}")
        paths = differences.differences(item, there)
        if paths and not _is_contested(f"{kind}/{name}", there, paths, repairs, found):
            operations += _repair(item, there)
    return operations, kept


def _is_made_anew(item: Object, there: t.Mapping[str, t.Any]) -> bool:
    fixed = _FIXED.get(item["kind"])
    return fixed is not None and item[fixed] != there.get(fixed)


def _repair(item: Object, there: t.Mapping[str, t.Any]) -> list[Operation]:
    kind, name = item["kind"], item["metadata"]["name"]
    if not _is_made_anew(item, there):
        return [Operation("apply", kind, name, body=item, before=there, after=item)]
    gone = Operation("delete", kind, name, uid=there["metadata"]["uid"], before=there)
    return [gone, Operation("apply", kind, name, body=item, after=item)]


def _is_contested(
    key: str, there: t.Mapping[str, t.Any], paths: t.Sequence[differences.Path], repairs: contest.Repairs, found: Plan
) -> bool:
    managers = differences.authors(there, paths)
    rival = repairs.rival(key, managers)
    if rival:
        fields = ", ".join(".".join(path) for path in paths[:3])
        found.conflicts.append(f"{key}: {rival} puts {fields} back again and again; it is left as {rival} wants it")
        return True
    if managers and is_ours(there):
        repairs.note(key, managers[0])
    return False


def is_ours(there: t.Mapping[str, t.Any]) -> bool:
    """True for what we made, even where somebody took our label away."""
    labels = there["metadata"].get("labels") or {}
    return labels.get(MANAGED_BY) == OURS or bool(differences.owned(there))


def _namespace(
    request: Request, wanted: Desired, claim: Claim, live: Live, repairs: contest.Repairs, found: Plan
) -> list[Operation]:
    annotations = {**wanted.annotations, claims.CLAIM: claim.render()}
    if live.namespace is None:
        meta = {"name": request.name, "labels": dict(wanted.labels), "annotations": annotations}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        return [Operation("create", "Namespace", request.name, body=body, after=body)]
    before = claims.read(live.namespace)
    labels = _settled(request, dict(wanted.labels), live, before, repairs, found)
    if repairs.changed:
        annotations[claims.REPAIRS] = repairs.render()
    return patch_namespace(live.namespace, labels, annotations, before or Claim("", "", ""))


def _settled(
    request: Request,
    labels: dict[str, str],
    live: Live,
    before: Claim | None,
    repairs: contest.Repairs,
    found: Plan,
) -> dict[str, str]:
    """The labels that are to be set: without those that another manager insists on."""
    there = t.cast(t.Mapping[str, t.Any], live.namespace)
    now = there["metadata"].get("labels") or {}
    drifted = [key for key, value in labels.items() if now.get(key) != value and before and key in before.labels]
    paths = [("metadata", "labels", key) for key in drifted]
    if paths and _is_contested(f"Namespace/{request.name}", there, paths, repairs, found):
        return {key: now.get(key, value) if key in drifted else value for key, value in labels.items()}
    return labels


def patch_namespace(
    live: t.Mapping[str, t.Any], labels: t.Mapping[str, str], annotations: t.Mapping[str, str], before: Claim
) -> list[Operation]:
    """A JSON patch that sets ours, removes what was ours and is no longer wanted, and leaves the rest alone."""
    meta = live["metadata"]
    operations = []
    for field, wanted, known in (
        ("labels", labels, before.labels),
        ("annotations", annotations, before.annotations),
    ):
        operations += _map_patch(field, meta.get(field), wanted, known)
    if not operations:
        return []
    # nobody may have written meanwhile: a test of a key that is absent is not possible
    operations.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]})
    gone = {key for key in (*before.labels, *before.annotations) if key not in labels and key not in annotations}
    after = {
        **live,
        "metadata": {
            **meta,
            "labels": {**{k: v for k, v in (meta.get("labels") or {}).items() if k not in gone}, **labels},
            "annotations": {
                **{k: v for k, v in (meta.get("annotations") or {}).items() if k not in gone},
                **annotations,
            },
        },
    }
    return [Operation("patch", "Namespace", meta["name"], operations=tuple(operations), before=live, after=after)]


def _map_patch(
    field: str, live: t.Mapping[str, str] | None, wanted: t.Mapping[str, str], known: t.Iterable[str]
) -> list[Object]:
    there = live or {}
    changes: list[Object] = [
        {"op": "add", "path": f"/metadata/{field}/{_escaped(key)}", "value": value}
        for key, value in wanted.items()
        if there.get(key) != value
    ]
    if changes and live is None:
        changes = [{"op": "add", "path": f"/metadata/{field}", "value": dict(wanted)}]
    gone = [key for key in known if key in there and key not in wanted]
    return changes + [{"op": "remove", "path": f"/metadata/{field}/{_escaped(key)}"} for key in gone]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _surplus(wanted: Desired, claim: Claim, live: Live) -> list[Operation]:
    """What is ours and no longer wanted; a binding goes after the one that comes in its place."""
    keep = {(item["kind"], item["metadata"]["name"]) for item in wanted.objects}
    return [
        Operation("delete", kind, name, uid=there["metadata"]["uid"], before=there)
        for kind, name, there in _marked(live)
        if (kind, name) not in keep and f"{kind}/{name}" not in claim.kept
    ]


def _marked(live: Live) -> list[tuple[str, str, t.Mapping[str, t.Any]]]:
    """Objects with our label, in the order in which they go."""
    found = [
        (kind, name, there)
        for (kind, name), there in live.objects.items()
        if (there["metadata"].get("labels") or {}).get(MANAGED_BY) == OURS and kind in KINDS
    ]
    return sorted(found, key=lambda item: (KINDS.index(item[0]), item[1]))


def _only_if_identical(request: Request, found: Plan) -> None:
    labels = [
        change["path"]
        for operation in found.operations
        for change in operation.operations
        if change["path"].startswith("/metadata/labels/")
    ]
    others = [
        f"{item.kind} {item.name}" for item in found.operations if item.kind != "Namespace" and not _only_marks(item)
    ]
    if labels or others:
        what = ", ".join([*others, *(f"label {path.rpartition('/')[2]}" for path in labels)])
        found.conflicts = [f"Namespace {request.name} differs from what is wanted ({what}); adoption is IfIdentical"]
        found.operations = []


def _only_marks(operation: Operation) -> bool:
    """True where an apply adds only our label."""
    if not operation.before or not operation.body:
        return False
    # without the key: an empty map is wanted too, and one without any labels would differ from it
    body = {**operation.body, "metadata": {k: v for k, v in operation.body["metadata"].items() if k != "labels"}}
    return not differences.differences(body, operation.before)


def leave(live: Live, claim: Claim) -> list[Operation]:
    """The writes that take what is ours out of a namespace that stays."""
    namespace = t.cast(t.Mapping[str, t.Any], live.namespace)
    unlinked = links.plan({}, claim.links, live.accounts)
    operations = [
        Operation("patch", "ServiceAccount", name, operations=tuple(patch)) for name, patch in unlinked.patches
    ]
    for kind, name, there in _marked(live):
        if f"{kind}/{name}" in claim.kept:
            body = [{"op": "remove", "path": f"/metadata/labels/{_escaped(MANAGED_BY)}"}]
            operations.append(Operation("patch", kind, name, operations=tuple(body), before=there))
        else:
            operations.append(Operation("delete", kind, name, uid=there["metadata"]["uid"], before=there))
    everything = dataclasses.replace(claim, annotations=(*claim.annotations, *claims.OURS))
    return [*operations, *patch_namespace(namespace, {}, {}, everything)]


def as_text(value: t.Mapping[str, t.Any] | None) -> str:
    """An object for a diff: without what the API server keeps for itself, and without a Secret's content."""
    if value is None:
        return ""
    meta = {key: value["metadata"][key] for key in ("labels", "annotations") if value["metadata"].get(key)}
    body = {key: value[key] for key in ("spec", "roleRef", "subjects", "type") if key in value}
    return json.dumps({"metadata": meta, **body}, indent=2, sort_keys=True) + "\n"

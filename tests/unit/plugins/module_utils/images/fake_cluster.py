# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory with the semantics that the update path relies on, and the three modules run against it."""

from __future__ import annotations

import copy
import functools
import typing as t
from pathlib import Path

import jsonpatch
import jsonpointer
import jsonschema
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.images import execution
from ansible_collections.kubesteward.core.plugins.module_utils.images.slim import SlimReader
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Reference
from ansible_collections.kubesteward.core.plugins.modules import pod_image_id
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import builders

Object = dict[str, t.Any]
Key = tuple[str, str | None, str]

_CRD = Path(__file__).parents[5] / "config/crd/bases/install.sios.nginx.testing_updates.yaml"


def _closed(schema: Object) -> Object:
    """A key that the schema does not name is an error: the API server would drop it."""
    result = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if "properties" in schema:
        result["properties"] = {name: _closed(child) for name, child in schema["properties"].items()}
        result["additionalProperties"] = False
    if "items" in schema:
        result["items"] = _closed(schema["items"])
    return result


@functools.cache
def status_schema() -> Object:
    """The closed schema of an Update's status."""
    crd = yaml.safe_load(_CRD.read_text())
    return _closed(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"])


class FakeCluster:
    """Objects by kind and name.

    :ivar writes: what really changed something, as `verb Kind/name`
    :ivar requests: every call in order, dry runs included
    :ivar before_write: called with verb and target before a write; may edit the cluster or raise an ApiError
    """

    def __init__(self, *objects: Object) -> None:
        self.objects: dict[Key, Object] = {}
        self.writes: list[str] = []
        self.requests: list[str] = []
        self.events: list[Object] = []
        self.before_write: t.Callable[[str, Reference], None] = lambda verb, target: None
        self._status = jsonschema.Draft202012Validator(status_schema())
        self._ours: dict[Key, set[str]] = {}
        self._version = 10_000
        self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": builders.NAMESPACE}})
        for item in objects:
            self.put(item)

    def begin(self) -> None:
        self.requests.append("begin")

    def put(self, item: Object) -> None:
        """Create or replace an object, as somebody else would."""
        self._version += 1
        stored = copy.deepcopy(item)
        stored["metadata"]["resourceVersion"] = str(self._version)
        key = (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"])
        before = self.objects.get(key)
        if before and before.get("spec") != stored.get("spec"):
            stored["metadata"]["generation"] = before["metadata"].get("generation", 1) + 1
        self.objects[key] = stored

    def edit(self, kind: str, name: str, change: t.Callable[[Object], t.Any]) -> None:
        """Change an object in place, as somebody else would."""
        item = copy.deepcopy(self.objects[(kind, builders.NAMESPACE, name)])
        change(item)
        self.put(item)

    def read(self, kind: str, name: str) -> Object:
        return copy.deepcopy(self.objects[(kind, builders.NAMESPACE, name)])

    def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> Object | None:
        self.requests.append(f"get {kind}/{name}")
        return copy.deepcopy(self.objects.get((kind, namespace, name)))

    def find(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        selector: str | None = None,
        metadata_only: bool = False,
        keep: t.Callable[[Object], Object] | None = None,
    ) -> list[Object]:
        self.requests.append(f"list {kind}")
        wanted = dict(part.split("=") for part in selector.split(",")) if selector else {}
        found = []
        for (its_kind, its_namespace, _name), item in self.objects.items():
            labels = item["metadata"].get("labels") or {}
            if its_kind == kind and namespace in (None, its_namespace) and wanted.items() <= labels.items():
                keys = ("apiVersion", "kind", "metadata") if metadata_only else item
                listed = copy.deepcopy({key: item[key] for key in keys})
                found.append(keep(listed) if keep else listed)
        return found

    def json_patch(
        self, target: Reference, operations: list[Object], dry_run: bool = False, subresource: str = ""
    ) -> Object:
        before = self._begin(subresource or "patch", target, dry_run)
        try:
            after = jsonpatch.apply_patch(before, operations)
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as exc:
            raise ApiError(f"Could not patch {target}: the server rejected our request ({exc})", 422) from exc
        return self._store("patch", target, before, after, dry_run)

    def apply(self, obj: Object, subresource: str = "", dry_run: bool = False, force: bool = True) -> Object:
        target = Reference.of(obj)
        key = (target.kind, target.namespace, target.name)
        if subresource == "status":
            before = self._begin("status", target, dry_run)
            after = {**before, "status": self._merged(key, before.get("status") or {}, obj["status"])}
            if target.kind == "Update":
                problems = [
                    f"{error.json_path}: {error.message}" for error in self._status.iter_errors(after["status"])
                ]
                if problems:
                    raise ApiError(f"Update {target.name} is invalid: {problems}", 422)
            return self._store("status", target, before, after, dry_run)
        self.before_write("apply", target)
        self.requests.append(f"apply {target.kind}/{target.name}")
        before = copy.deepcopy(self.objects.get(key) or {"metadata": {**obj["metadata"], "uid": f"uid-{target.name}"}})
        after = {**before, **obj, "metadata": {**before["metadata"], **obj["metadata"]}}
        after["spec"] = {**(before.get("spec") or {}), **obj["spec"]}
        after["metadata"]["managedFields"] = [{"manager": "kubesteward", "operation": "Apply"}]
        return self._store("apply", target, before if key in self.objects else {}, after, dry_run)

    def create(self, obj: Object) -> Object:
        target = Reference(obj["apiVersion"], obj["kind"], obj["metadata"]["namespace"], "new")
        self.before_write("create", target)
        self.requests.append(f"create {obj['kind']}")
        self.events.append(copy.deepcopy(obj))
        self.writes.append(f"create {obj['kind']}")
        return obj

    def delete(self, target: Reference, uid: str) -> None:
        self.before_write("delete", target)
        self.requests.append(f"delete {target.kind}/{target.name}")
        key = (target.kind, target.namespace, target.name)
        if key in self.objects and self.objects[key]["metadata"]["uid"] == uid:
            del self.objects[key]
            self.writes.append(f"delete {target.kind}/{target.name}")

    def _begin(self, verb: str, target: Reference, dry_run: bool) -> Object:
        self.before_write(verb, target)
        self.requests.append(f"{verb} {target.kind}/{target.name}{' (dry run)' if dry_run else ''}")
        found = self.objects.get((target.kind, target.namespace, target.name))
        if found is None:
            raise ApiError(f"Could not {verb} {target}: not found", 404)
        return copy.deepcopy(found)

    def _store(self, verb: str, target: Reference, before: Object, after: Object, dry_run: bool) -> Object:
        if not dry_run and after != before:
            self.put(after)
            self.writes.append(f"{verb} {target.kind}/{target.name}")
        return copy.deepcopy(after if dry_run else self.objects[(target.kind, target.namespace, target.name)])

    def _merged(self, key: Key, before: Object, ours: Object) -> Object:
        """Server-side apply: what we set before and do not set now goes, what others set stays, conditions by type."""
        after = {name: value for name, value in before.items() if name not in self._ours.get(key, set())}
        after.update(copy.deepcopy(ours))
        mine = {item["type"] for item in ours.get("conditions") or ()}
        theirs = [item for item in before.get("conditions") or () if item["type"] not in mine]
        after["conditions"] = [*theirs, *(ours.get("conditions") or ())]
        self._ours[key] = set(ours) - {"conditions"}
        return after


Registry = t.Mapping[str, Object]


def _answer(entry: Object, lookup: Object) -> Object:
    """What the registry says beside its digest, of one whose digests `has` lists: what is asked for, there or gone."""
    entry = dict(entry)
    has = entry.pop("has", None)
    if has is None or entry.get("digest") in lookup["expect"]:
        return entry
    asked = set(lookup["compare"]) - {entry.get("digest")}
    there = {digest: [digest] for digest in sorted(asked & set(has))}
    return {**entry, "gone": sorted(asked - set(has)), **({"compared": there} if entry["state"] == "found" else {})}


def answers(registry: Registry, lookups: t.Iterable[Object]) -> list[Object]:
    """What registry_digest returns for these look-ups."""
    nothing = {"state": "unknown", "reason": "not_found", "msg": "no such tag"}
    found = [(_answer(registry.get(lookup["image"], nothing), lookup), lookup) for lookup in lookups]
    return [{**entry, "image": asked["image"], "pull_secrets": asked["pull_secrets"]} for entry, asked in found]


def one_pass(
    cluster: FakeCluster,
    registry: Registry,
    update: str | None = None,
    check_mode: bool = False,
    now: str = builders.NOW,
    **params: t.Any,
) -> execution.Pass:
    """What the role does: see what runs, look up what is published, reconcile.

    :param registry: what each reference names now, an entry of registry_digest; any other is `not_found`; with the
        key `has` it answers for digests too
    :param params: options of pod_image_id and image_rollout
    """
    looking = {"namespace": builders.NAMESPACE, "update": update, "update_must_exist": True, **params}
    seen = pod_image_id.run(looking, SlimReader(cluster))
    options = {
        "update": None,
        "update_resource": seen["update_resource"],
        "running": seen["containers"],
        "published": answers(registry, seen["lookups"]),
        "missing": seen["missing"],
    }
    options.update(dry_run=params.get("dry_run", False), delete_flag=params.get("delete_flag"))
    options["rollback"] = params.get("rollback")
    options.update((name, params[name]) for name in ("verification_seconds",) if name in params)
    return execution.reconcile(cluster, builders.NAMESPACE, options, check_mode, now)

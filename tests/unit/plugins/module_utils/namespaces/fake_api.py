# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server in memory: server-side apply with several managers, defaults, terminating namespaces.

It has the methods of `kube.Cluster`. What it fills in, and who owns what, was compared with a real one.
"""

from __future__ import annotations

import contextlib
import copy
import json
import threading
import typing as t

import jsonpatch
import jsonpointer

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Reference
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import fake_schema

Object = dict[str, t.Any]
Key = tuple[str, str | None, str]
Path = tuple[str, ...]
Owners = dict[tuple[str, str], set[Path]]

US = "kubesteward"
CLUSTERED = ("Namespace", "CustomResourceDefinition", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def refused(status: int, message: str, cause: str = "") -> ApiError:
    """An answer of the API server that is no success."""
    return ApiError(message, status, [cause] if cause else [])


class FakeApi:
    """Objects by kind, namespace and name.

    :ivar writes: what really changed something, as `verb Kind/namespace/name`
    :ivar asked: what dry runs would have changed, in the same form
    :ivar requests: every call in order
    :ivar before: called with verb and target before a request; may change the cluster or raise an ApiError
    :ivar used: what the quota controller counts, by Namespace and resource; None while it does not come to it
    :ivar accounts: names of the ServiceAccounts that every new Namespace gets at once
    """

    def __init__(self, accounts: t.Sequence[str] = ("default",)) -> None:
        self.objects: dict[Key, Object] = {}
        self.owners: dict[Key, Owners] = {}
        self.writes: list[str] = []
        self.asked: list[str] = []
        self.requests: list[str] = []
        self.events: list[Object] = []
        self.accounts = accounts
        self.used: dict[str, Object] | None = {}
        self.before: t.Callable[[str, Reference], None] = lambda verb, target: None
        self._version = 10_000
        self._lock = threading.RLock()

    # what kube.Cluster offers

    def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> Object | None:
        with self._lock:
            self._begin("get", Reference(api_version, kind, namespace, name))
            return self.read(kind, namespace, name)

    def find(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        selector: str | None = None,
        metadata_only: bool = False,
    ) -> list[Object]:
        assert selector is None
        with self._lock:
            self._begin("list", Reference(api_version, kind, namespace, ""))
            keys = [key for key in self.objects if key[0] == kind and namespace in (None, key[1])]
            found = [t.cast(Object, self.read(*key)) for key in sorted(keys, key=str)]
        parts = ("apiVersion", "kind", "metadata")
        return [{key: item[key] for key in parts} for item in found] if metadata_only else found

    def create(self, obj: Object, dry_run: bool = False) -> Object:
        with self._lock, self._only_asked(dry_run):
            if obj["kind"] == "Event":
                self._begin("create", Reference("v1", "Event", obj["metadata"]["namespace"], ""))
                self.events.append(copy.deepcopy(obj))
                return obj
            target = Reference.of(obj)
            self._begin("create", target)
            if _key(target) in self.objects:
                raise refused(409, f"Could not create {target}: it already exists", "AlreadyExists")
            self.put(obj, US)
            self.writes.append(_line("create", target))
            return t.cast(Object, self.read(*_key(target)))

    def apply(self, obj: Object, subresource: str = "", dry_run: bool = False, force: bool = True) -> Object:
        with self._lock, self._only_asked(dry_run):
            target = Reference.of(obj)
            self._begin("status" if subresource else "apply", target)
            key = _key(target)
            if subresource:
                return self._apply_status(target, obj["status"])
            before = self.objects.get(key)
            if before is None:
                self._admit(target)
            owners = copy.deepcopy(self.owners.get(key) or {})
            after, owners = self._merge(target, before, obj, owners, force)
            self._store("apply", target, before, after, owners)
            return t.cast(Object, self.read(*key))

    def json_patch(
        self, target: Reference, operations: list[Object], dry_run: bool = False, subresource: str = ""
    ) -> Object:
        with self._lock, self._only_asked(dry_run):
            self._begin(subresource or "patch", target)
            key = _key(target)
            before = self.objects.get(key)
            if before is None:
                raise refused(404, f"Could not patch {target}: not found")
            try:
                after = jsonpatch.apply_patch(copy.deepcopy(before), copy.deepcopy(operations))
            except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as exc:
                raise refused(422, f"Could not patch {target}: {exc}") from exc
            self._store("patch", target, before, after, self._updated(key, before, after, US))
            return t.cast(Object, self.read(*key))

    def delete(self, target: Reference, uid: str, version: str | None = None, dry_run: bool = False) -> None:
        with self._lock, self._only_asked(dry_run):
            self._begin("delete", target)
            there = self.objects.get(_key(target))
            # kube.Cluster lets pass what is gone, or another one
            if there is None or there["metadata"]["uid"] != uid:
                return
            if version not in (None, there["metadata"]["resourceVersion"]):
                raise refused(409, f"Could not delete {target}: it has changed")
            self.writes.append(_line("delete", target))
            self.remove(target.kind, target.namespace, target.name)

    @contextlib.contextmanager
    def _only_asked(self, dry_run: bool) -> t.Iterator[None]:
        """Everything is as it was, if it was a dry run."""
        before = (self.objects, self.owners, self.writes, self.events)
        if dry_run:
            self.objects, self.owners, self.writes, self.events = copy.deepcopy(before)
        try:
            yield
        finally:
            if dry_run:
                self.asked += self.writes[len(before[2]) :]
                self.objects, self.owners, self.writes, self.events = before

    # what others do

    def read(self, kind: str, namespace: str | None, name: str) -> Object | None:
        """The object as a client sees it."""
        found = copy.deepcopy(self.objects.get((kind, namespace, name)))
        if found:
            owners = self.owners.get((kind, namespace, name)) or {}
            found["metadata"]["managedFields"] = [
                {
                    "manager": manager,
                    "operation": operation,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": fake_schema.fields(paths),
                }
                for (manager, operation), paths in owners.items()
                if paths
            ]
        return found

    def put(self, obj: Object, manager: str = "kubectl", uid: str = "") -> None:
        """Create or replace an object; a Namespace gets what every new one gets."""
        target = Reference.of(obj)
        key = _key(target)
        before = self.objects.get(key)
        if before is None:
            self._admit(target)
        after = copy.deepcopy(obj)
        if before and "status" in before:
            # who writes a spec leaves it alone
            after.setdefault("status", before["status"])
        if target.kind == "Namespace":
            after["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = target.name
            after.setdefault("status", {"phase": "Active"})
        after["metadata"]["uid"] = uid or (before or {"metadata": {}})["metadata"].get("uid") or self._uid(target)
        self._store("", target, before, after, self._updated(key, before, after, manager))
        if target.kind == "Namespace" and before is None:
            for name in self.accounts:
                self.put_account(target.name, name)

    def put_account(self, namespace: str, name: str, secrets: t.Iterable[str] = ()) -> None:
        """A ServiceAccount, as the platform makes it."""
        meta = {"name": name, "namespace": namespace}
        body: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
        if secrets:
            body["imagePullSecrets"] = [{"name": item} for item in secrets]
        self.put(body, "kube-controller-manager")

    def edit(
        self, kind: str, namespace: str | None, name: str, change: t.Callable[[Object], t.Any], manager: str = "kubectl"
    ) -> None:
        """Change an object in place, as somebody else would."""
        obj = copy.deepcopy(self.objects[(kind, namespace, name)])
        change(obj)
        self.put(obj, manager)

    def remove(self, kind: str, namespace: str | None, name: str) -> None:
        """Delete an object; a Namespace only begins to go, see `finish`."""
        if kind == "Namespace":
            there = self.objects[(kind, namespace, name)]
            there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            there["status"] = {"phase": "Terminating"}
            self._bump(there)
            return
        self.objects.pop((kind, namespace, name))
        self.owners.pop((kind, namespace, name), None)

    def finish(self, namespace: str) -> None:
        """A Namespace that was being deleted is gone, with all that was in it."""
        gone = [key for key in self.objects if key[1] == namespace or key == ("Namespace", None, namespace)]
        for key in gone:
            self.objects.pop(key)
            self.owners.pop(key, None)

    def count(self, namespace: str, **used: str) -> None:
        """What the quota controller does; resources are written `limits_cpu`."""
        if self.used is not None:
            self.used[namespace] = {name.replace("_", "."): amount for name, amount in used.items()}
        for (kind, where, _name), obj in self.objects.items():
            if kind == "ResourceQuota" and where == namespace:
                self._count(obj)

    def _count(self, quota: Object) -> None:
        if self.used is None:
            return
        hard, used = quota["spec"]["hard"], self.used.get(quota["metadata"]["namespace"]) or {}
        quota["status"] = {"hard": dict(hard), "used": {name: used.get(name, "0") for name in hard}}

    def dump(self, *without: str) -> str:
        """Everything but what is in these Namespaces, and they themselves, as one text."""
        found = {
            "/".join(map(str, key)): [obj, str(sorted(self.owners.get(key, {}).items()))]
            for key, obj in self.objects.items()
            if key[1] not in without and key not in [("Namespace", None, name) for name in without]
        }
        return json.dumps(found, sort_keys=True)

    # how it does it

    def _begin(self, verb: str, target: Reference) -> None:
        self.requests.append(_line(verb, target))
        self.before(verb, target)

    def _uid(self, target: Reference) -> str:
        return f"uid-{target.kind}-{target.name}-{self._version}"

    def _bump(self, obj: Object) -> None:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)

    def _admit(self, target: Reference) -> None:
        if target.kind in CLUSTERED:
            return
        home = self.objects.get(("Namespace", None, str(target.namespace)))
        if home is None:
            raise refused(404, f'namespaces "{target.namespace}" not found')
        if home["metadata"].get("deletionTimestamp"):
            message = f"{target} is forbidden: unable to create new content because it is being terminated"
            raise refused(403, message, "NamespaceTerminating")

    def _merge(
        self, target: Reference, before: Object | None, obj: Object, owners: Owners, force: bool
    ) -> tuple[Object, Owners]:
        """Server-side apply."""
        ours, wanted = (US, "Apply"), fake_schema.leaves(obj)
        after = copy.deepcopy(before) if before else {"metadata": {"uid": self._uid(target)}}
        canonical = fake_schema.canonical(obj)
        for path in wanted:
            others = [who for who, paths in owners.items() if who != ours and path in paths]
            if before and fake_schema.at(before, path) != fake_schema.at(canonical, path):
                if others and not force:
                    raise refused(
                        409, f"Could not apply {target}: conflict with {others[0][0]}", "FieldManagerConflict"
                    )
                for who in others:
                    owners[who].discard(path)
            fake_schema.put_at(after, path, fake_schema.at(obj, path))
        others_have = set().union(*(paths for who, paths in owners.items() if who != ours))
        for path in owners.get(ours, set()) - wanted - others_have:
            fake_schema.drop_at(after, path)
        owners[ours] = wanted
        identity = {key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]}
        return {**after, **_kind(obj), "metadata": {**after["metadata"], **identity}}, owners

    def _updated(self, key: Key, before: Object | None, after: Object, manager: str) -> Owners:
        """Who owns what after a write that is no apply: changed fields are the writer's alone."""
        owners = copy.deepcopy(self.owners.get(key) or {})
        known, found = before or {"metadata": {}}, fake_schema.canonical(after)
        paths = fake_schema.leaves(found) | fake_schema.leaves(known)
        changed = {path for path in paths if fake_schema.at(known, path) != fake_schema.at(found, path)}
        for theirs in owners.values():
            theirs -= changed
        mine = {path for path in changed if fake_schema.at(found, path) is not None}
        owners[(manager, "Update")] = owners.get((manager, "Update"), set()) | mine
        return owners

    def _store(self, verb: str, target: Reference, before: Object | None, after: Object, owners: Owners) -> None:
        found = fake_schema.defaulted(fake_schema.canonical(after))
        problem = fake_schema.problem(before, found)
        if problem:
            raise refused(422, f"Could not write {target}: {problem}", "Invalid")
        if target.kind == "ResourceQuota":
            self._count(found)
        if found == before and owners == self.owners.get(_key(target)):
            return
        self._bump(found)
        self.objects[_key(target)], self.owners[_key(target)] = found, owners
        if verb:
            self.writes.append(_line(verb, target))

    def _apply_status(self, target: Reference, status: Object) -> Object:
        there = self.objects.get(_key(target))
        if there is None:
            raise refused(404, f"Could not apply {target}: not found")
        mine = {item["type"] for item in status.get("conditions") or ()}
        theirs = [x for x in (there.get("status") or {}).get("conditions") or () if x["type"] not in mine]
        there["status"] = {**copy.deepcopy(status), "conditions": [*theirs, *(status.get("conditions") or ())]}
        self.writes.append(_line("status", target))
        return copy.deepcopy(there)


def _kind(obj: Object) -> Object:
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}


def _key(target: Reference) -> Key:
    return target.kind, target.namespace, target.name


def _line(verb: str, target: Reference) -> str:
    return f"{verb} " + "/".join(filter(None, (target.kind, target.namespace, target.name)))

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass keeps of the objects that it lists. Pure.

Authors choose how large these are, and all passes share the memory of one process.
Whatever is read of a listed workload, revision, Pod or Start must be among what is kept here.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images.running import REVISION, REVISION_HASH
from ansible_collections.kubesteward.core.plugins.module_utils.images.snapshot import WORKLOADS
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster

Object = dict[str, t.Any]

#: what a controller makes of a workload
_OWNED = frozenset({*(revision for _api, revision in WORKLOADS.values() if revision), "Pod"})
_KINDS = frozenset({*WORKLOADS, *_OWNED, "Start"})
_OURS = "kubesteward.io/"
_LEFT_OUT = ("managedFields", "annotations", "labels")
#: of a workload's or revision's spec and of a revision itself
_BULKY = ("template", "jobTemplate", "volumeClaimTemplates")
_CONTAINER = ("name", "image", "imagePullPolicy", "restartPolicy", "terminationMessagePolicy")
_LISTS = ("containers", "initContainers")


class SlimReader:
    """Reads as a `kube.Cluster` does, and keeps of what it lists only what finding out what runs looks at."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def begin(self) -> None:
        """What is listed from now on is bounded by itself."""
        self._cluster.begin()

    def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> Object | None:
        return self._cluster.get(api_version, kind, namespace, name)

    def find(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        selector: str | None = None,
        metadata_only: bool = False,
    ) -> list[Object]:
        keep = kept if kind in _KINDS else None
        return self._cluster.find(api_version, kind, namespace, selector, metadata_only, keep=keep)


class SharedReader:
    """Lists each kind of a namespace once for all Updates that look at it; where that is refused, each reads its own.

    Of Pods and revisions all are given, whatever the selector: whose they are is told by their controllers.
    """

    def __init__(self, reader: SlimReader) -> None:
        self._reader = reader
        self._lists: dict[tuple[t.Any, ...], list[Object] | ApiError] = {}
        self._names: dict[tuple[t.Any, ...], dict[str, Object]] = {}

    def begin(self) -> None:
        self._reader.begin()

    def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> Object | None:
        if kind not in _KINDS:
            return self._reader.get(api_version, kind, namespace, name)
        key = (kind, namespace)
        if key not in self._names:
            found = self._list(api_version, kind, namespace, None, False)
            if isinstance(found, ApiError):
                return self._reader.get(api_version, kind, namespace, name)
            self._names[key] = {item["metadata"]["name"]: item for item in found}
        return self._names[key].get(name)

    def find(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        selector: str | None = None,
        metadata_only: bool = False,
    ) -> list[Object]:
        is_owned = kind in _OWNED
        found = self._list(api_version, kind, namespace, None if is_owned else selector, metadata_only)
        if isinstance(found, ApiError) and is_owned and selector:
            found = self._list(api_version, kind, namespace, selector, metadata_only)
        if isinstance(found, ApiError):
            raise found
        return found

    def _list(
        self, api_version: str, kind: str, namespace: str | None, selector: str | None, metadata_only: bool
    ) -> list[Object] | ApiError:
        key = (kind, namespace, selector, metadata_only)
        if key not in self._lists:
            try:
                self._lists[key] = self._reader.find(api_version, kind, namespace, selector, metadata_only)
            except ApiError as exc:
                self._lists[key] = exc
                self.begin()
        return self._lists[key]


def kept(obj: Object) -> Object:
    """The object without environments, volumes, other people's annotations and all that no pass looks at."""
    found = {key: value for key, value in obj.items() if key not in ("metadata", "spec", "data")}
    found["metadata"] = _metadata(obj["metadata"])
    if "spec" in obj:
        found["spec"] = _pod_spec(obj["spec"] or {}) if obj["kind"] == "Pod" else _spec(obj["spec"] or {})
    return found


def _metadata(meta: Object) -> Object:
    found = {key: value for key, value in meta.items() if key not in _LEFT_OUT}
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    found["annotations"] = {
        key: value for key, value in annotations.items() if key.startswith(_OURS) or key == REVISION
    }
    found["labels"] = {key: value for key, value in labels.items() if key == REVISION_HASH}
    fields = [_managed(entry) for entry in meta.get("managedFields") or () if "f:spec" in (entry.get("fieldsV1") or {})]
    if fields:
        found["managedFields"] = fields
    return found


def _managed(entry: Object) -> Object:
    """Who has which image, and anything of the template at all."""
    spec: Object = {key: {} for key in entry["fieldsV1"]["f:spec"]}
    given = entry["fieldsV1"]["f:spec"]
    if "f:template" in given:
        spec["f:template"] = _managed_template(given["f:template"])
    elif "f:jobTemplate" in given:
        template = ((given["f:jobTemplate"] or {}).get("f:spec") or {}).get("f:template") or {}
        spec["f:jobTemplate"] = {"f:spec": {"f:template": _managed_template(template)}}
    found: Object = {key: entry[key] for key in ("manager", "operation", "time") if key in entry}
    return {**found, "fieldsV1": {"f:spec": spec}}


def _managed_template(template: Object) -> Object:
    if "f:spec" not in template:
        return {}
    given = template["f:spec"] or {}
    lists = {field: given[field] or {} for field in ("f:containers", "f:initContainers") if field in given}
    images: Object = {
        field: {key: {"f:image": {}} for key, owned in entries.items() if "f:image" in (owned or {})}
        for field, entries in lists.items()
    }
    return {"f:spec": images}


def _spec(spec: Object) -> Object:
    found = {key: value for key, value in spec.items() if key not in _BULKY}
    if "template" in spec:
        found["template"] = _template(spec["template"])
    if "jobTemplate" in spec:
        inner = (spec["jobTemplate"] or {}).get("spec") or {}
        found["jobTemplate"] = {"spec": _spec(inner)}
    return found


def _template(template: Object) -> Object:
    return {"spec": _pod_spec((template or {}).get("spec") or {})}


def _pod_spec(spec: Object) -> Object:
    found: Object = {key: spec[key] for key in ("nodeName", "imagePullSecrets") if key in spec}
    for field in _LISTS:
        if field in spec:
            found[field] = [{key: item[key] for key in _CONTAINER if key in item} for item in spec[field] or ()]
    images = [{"name": item["name"], "image": item["image"]} for item in spec.get("volumes") or () if item.get("image")]
    if images:
        found["volumes"] = images
    return found

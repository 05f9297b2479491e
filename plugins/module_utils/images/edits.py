# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who edited a workload, from its managed fields: read once for all of its containers. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.kube import FIELD_MANAGER

Object = t.Mapping[str, t.Any]

#: stands for the one image of a Start
_ANY = ""


@dataclasses.dataclass(frozen=True)
class Edits:
    """Who wrote what of a workload or a Start; the API server dates every manager's last change.

    :ivar images: the newest (time, manager, operation) of others that wrote a container's image, by name
    :ivar ours: the newest time when we did, by name
    :ivar template: the newest (time, manager) of others that wrote something of the Pod template
    """

    images: t.Mapping[str, tuple[str, str, str]]
    ours: t.Mapping[str, str]
    template: tuple[str, str]

    @classmethod
    def of(cls, source: Object) -> Edits:
        images: dict[str, tuple[str, str, str]] = {}
        ours: dict[str, str] = {}
        template = ("", "")
        for entry in source["metadata"].get("managedFields") or ():
            fields, manager, time = entry.get("fieldsV1") or {}, entry.get("manager", ""), entry.get("time", "")
            for name in _images_in(fields):
                if manager == FIELD_MANAGER:
                    ours[name] = max(ours.get(name, ""), time)
                else:
                    images[name] = max(images.get(name, ("", "", "")), (time, manager, entry.get("operation", "")))
            if manager != FIELD_MANAGER and time > template[0] and _owns_template(source["kind"], fields):
                template = time, manager
        return cls(images, ours, template)

    def by(self, name: str) -> tuple[str, str]:
        """Manager and operation that wrote the image of a container, or of a Start, last; empty where nobody tells."""
        return max(self.images.get(name, ("", "", "")), self.images.get(_ANY, ("", "", "")))[1:]

    def since(self, name: str) -> str:
        """Manager that edited the Pod template, or a Start's, after we wrote a container's image, or none."""
        rolled = max(self.ours.get(name, ""), self.ours.get(_ANY, ""))
        return self.template[1] if rolled and self.template[0] > rolled else ""


def _owns_template(kind: str, fields: Object) -> bool:
    """A restart, which annotates the template, or a scale is no edit."""
    spec = fields.get("f:spec") or {}
    if kind == "Start":
        return bool(set(spec) - {"f:image", "f:replicas"})
    return "f:spec" in (spec.get("f:template") or {})


def _images_in(fields: Object) -> t.Iterator[str]:
    """Names of the containers whose image a manager owns; `_ANY` where it owns that of a Start."""
    spec = fields.get("f:spec") or {}
    if "f:image" in spec:
        yield _ANY
    spec = ((spec.get("f:jobTemplate") or {}).get("f:spec") or spec).get("f:template") or {}
    pod = spec.get("f:spec") or {}
    for field in ("f:containers", "f:initContainers"):
        for key, owned in (pod.get(field) or {}).items():
            if "f:image" in (owned or {}):
                yield key.removeprefix('k:{"name":"').removesuffix('"}')

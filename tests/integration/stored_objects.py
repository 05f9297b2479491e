# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as earlier versions stored them, given the names of a test.

`stored/VERSION/` holds the CRDs of a version, and what the API server returned of objects that the version's operator
had worked on: KIND.json with each kind's List. `recorded.json` says what of it is not the same in another cluster:
`namespace`, `mark` (what the names of namespaces end with), `repository`, and `digests` by the text of the image.
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).parent / "stored"
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
#: what a new object cannot bring along
SERVERS = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp")
#: conditions that ansible-operator writes
OPERATORS = ("Running", "Successful", "Failure")
Object = dict[str, t.Any]


@dataclass(frozen=True)
class Stored:
    """What one version left behind.

    :ivar renamed: text that is replaced, by what
    """

    version: str
    renamed: t.Mapping[str, str]

    @property
    def recorded(self) -> Object:
        return json.loads((FOLDER / self.version / "recorded.json").read_text())

    def items(self, kind: str) -> list[Object]:
        """All objects of a kind (`updates`, `starts`, `nspros`, `deployments`, `namespaces`), as they are stored."""
        text = (FOLDER / self.version / f"{kind}.json").read_text()
        for old, new in self.renamed.items():
            text = text.replace(old, new)
        return json.loads(text)["items"]


def crds(version: str) -> list[Object]:
    """The CustomResourceDefinitions of a version."""
    return [yaml.safe_load(path.read_text()) for path in sorted((FOLDER / version / "crds").glob("*.yaml"))]


def new(stored: Object) -> Object:
    """The object to create; who owns which field stays, what it belongs to is not there yet."""
    meta = {key: value for key, value in stored["metadata"].items() if key not in (*SERVERS, "ownerReferences")}
    return {**{key: value for key, value in stored.items() if key != "status"}, "metadata": meta}


def statuses(stored: Object) -> dict[str, Object]:
    """Field manager -> the part of a resource's status that it wrote, to be applied on the server's side."""
    status = dict(stored["status"])
    conditions = status.pop("conditions", [])
    theirs = [condition for condition in conditions if condition["type"] in OPERATORS]
    ours = [condition for condition in conditions if condition["type"] not in OPERATORS]
    parts = {"kubesteward": {**status, "conditions": ours}, "ansible-operator": {"conditions": theirs}}
    meta = {key: stored["metadata"][key] for key in ("name", "namespace")}
    head = {"apiVersion": stored["apiVersion"], "kind": stored["kind"], "metadata": meta}
    return {
        manager: {**head, "status": part} for manager, part in parts.items() if part.get("conditions") or len(part) > 1
    }


def plain(resource: Object) -> Object:
    """What a resource says, in an order of conditions that does not depend on who wrote them when."""
    status = dict(resource.get("status") or {})
    if "conditions" in status:
        status["conditions"] = sorted(status["conditions"], key=lambda condition: condition["type"])
    return {"spec": resource.get("spec"), "status": status}


def listed(resources: t.Iterable[Object]) -> Object:
    """As one object, for one call of kubectl."""
    return {"apiVersion": "v1", "kind": "List", "items": list(resources)}


def write_statuses(kubectl: t.Callable[..., t.Any], stored: t.Iterable[Object]) -> None:
    """As those wrote them who did."""
    written: dict[str, list[Object]] = {}
    for resource in stored:
        for manager, part in statuses(resource).items():
            written.setdefault(manager, []).append(part)
    for manager, parts in written.items():
        given = ("--server-side", "--force-conflicts", "--subresource=status", f"--field-manager={manager}")
        # kubectl would miss what only a whole resource has
        kubectl("apply", *given, "--validate=false", "-f", "-", stdin=listed(parts))

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ClusterServiceVersion of the OLM bundle, made of what config/ says. Functions over plain data."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Object = dict[str, Any]
UI = "urn:alm:descriptor:com.tectonic.ui"
# Where OLM writes the namespaces of the OperatorGroup; empty means all.
TARGETS = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}


class BundleError(Exception):
    """What in config/ does not fit together, and where."""


def version_of(
    base: Object,
    *,
    version: str,
    created: str,
    image: str,
    icon: bytes,
    samples: Sequence[Object],
    crds: Sequence[Object],
    manager: Object,
    rights: Mapping[str, Sequence[Object]],
) -> Object:
    """The whole ClusterServiceVersion.

    `created` is a date (YYYY-MM-DD), `rights` the rules for `permissions` and for `clusterPermissions`.
    """
    csv = copy.deepcopy(base)
    annotations = csv["metadata"]["annotations"]
    annotations["alm-examples"] = json.dumps(list(samples), indent=2)
    annotations["containerImage"] = image
    annotations["createdAt"] = f"{created}T00:00:00Z"
    csv["metadata"]["annotations"] = dict(sorted(annotations.items()))
    csv["metadata"]["name"] = f"kubesteward.v{version}"
    csv["metadata"]["labels"] = {
        "operatorframework.io/arch.amd64": "supported",
        "operatorframework.io/os.linux": "supported",
    }
    account = manager["spec"]["template"]["spec"]["serviceAccountName"]
    csv["spec"] |= {
        "version": version,
        "icon": [{"base64data": base64.b64encode(icon).decode(), "mediatype": "image/svg+xml"}],
        "customresourcedefinitions": {"owned": [owned(crd) for crd in crds]},
        "install": {
            "strategy": "deployment",
            "spec": {
                **{name: [{"serviceAccountName": account, "rules": list(rules)}] for name, rules in rights.items()},
                "deployments": [deployment(manager, image)],
            },
        },
    }
    return csv


def rights_of(
    roles: Iterable[Object], namespaced: Iterable[Object], bindings: Iterable[Object]
) -> dict[str, list[Object]]:
    """The rules of every bound role, by where OLM shall give them.

    A role that a RoleBinding of the single-namespace overlay names is enough in the watched namespaces (`permissions`).
    The other ones are needed in the whole cluster (`clusterPermissions`). BundleError for a role that is not there.
    """
    by_name = {role["metadata"]["name"]: role for role in roles}
    local = {binding["roleRef"]["name"] for binding in namespaced}
    found: dict[str, list[Object]] = {"permissions": [], "clusterPermissions": []}
    for binding in bindings:
        name = binding["roleRef"]["name"]
        if name not in by_name:
            raise BundleError(f"{binding['metadata']['name']} binds {name}, which is not in config/rbac.")
        everywhere = by_name[name]["kind"] == "ClusterRole" and name not in local
        found["clusterPermissions" if everywhere else "permissions"] += by_name[name]["rules"]
    return {where: distinct(rules) for where, rules in found.items()}


def distinct(rules: Iterable[Object]) -> list[Object]:
    """Without a rule that is there already, in their order."""
    seen: list[Object] = []
    for rule in rules:
        if rule not in seen:
            seen.append(rule)
    return seen


def deployment(manager: Object, image: str) -> Object:
    """The manager's Deployment as OLM takes it: OLM says what is watched, and the settings may be absent."""
    spec = copy.deepcopy(manager["spec"])
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    container["image"] = image
    watched = [entry for entry in container["env"] if entry["name"] == "WATCH_NAMESPACE"]
    if len(watched) != 1:
        raise BundleError("config/manager: the container has to have WATCH_NAMESPACE once.")
    watched[0].pop("value", None)
    watched[0]["valueFrom"] = TARGETS
    (settings,) = [volume for volume in pod["volumes"] if volume["name"] == "settings"]
    sources = settings["projected"]["sources"]
    (own,) = [source for source in sources if "configMap" in source]
    # An upgrade writes what is in the bundle anew, so that has the defaults; what the administrator made wins.
    own["configMap"]["optional"] = True
    sources.insert(0, {"configMap": {"name": defaults_name(own["configMap"]["name"])}})
    return {"name": manager["metadata"]["name"], "label": manager["metadata"].get("labels", {}), "spec": spec}


def defaults_name(name: str) -> str:
    return f"{name}-defaults"


def owned(crd: Object) -> Object:
    """The entry of a kind, with a description of every first-level field as consoles show it."""
    names, (version,) = crd["spec"]["names"], crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    parts = schema["properties"]
    return {
        "name": crd["metadata"]["name"],
        "kind": names["kind"],
        "version": version["name"],
        "displayName": names["kind"],
        "description": first_sentence(schema["description"]),
        "specDescriptors": [field(path, part, entered(path, part)) for path, part in properties(parts["spec"])],
        "statusDescriptors": [field(path, part, seen(path)) for path, part in properties(parts["status"])],
    }


def properties(schema: Object) -> Iterable[tuple[str, Object]]:
    return schema.get("properties", {}).items()


def field(path: str, schema: Object, shown: Sequence[str]) -> Object:
    """A descriptor; `shown` are names of what consoles have to enter or to show it with."""
    entry = {"path": path, "displayName": title(path), "description": first_sentence(schema.get("description", ""))}
    return {**entry, "x-descriptors": list(shown)} if shown else entry


def entered(path: str, schema: Object) -> list[str]:
    """How a console lets people enter a field of a spec."""
    by_name = {"replicas": "podCount", "resources": "resourceRequirements"}
    if path in by_name:
        return [f"{UI}:{by_name[path]}"]
    if "enum" in schema:
        return [f"{UI}:select:{value}" for value in schema["enum"]]
    by_type = {"boolean": "booleanSwitch", "integer": "number", "string": "text"}
    return [f"{UI}:{by_type[schema['type']]}"] if schema.get("type") in by_type else []


def seen(path: str) -> list[str]:
    """How a console shows a field of a status."""
    return ["urn:alm:descriptor:io.kubernetes.conditions"] if path == "conditions" else []


def title(path: str) -> str:
    """`stableForSeconds` and `delete_flag` as words."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", path).replace("_", " ").split()
    return " ".join(words).capitalize()


def first_sentence(text: str) -> str:
    flat = " ".join(text.split())
    return re.split(r"(?<=[.;])\s", flat, maxsplit=1)[0].rstrip(";")

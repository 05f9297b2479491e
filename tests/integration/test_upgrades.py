# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Definitions of this version over those of an earlier one: what is stored is admitted and kept, there and back.

They have a group of their own here: the cluster's are in use.
"""

from __future__ import annotations

import copy
import json
import typing as t
import uuid

import pytest
import yaml
from integration import stored_objects
from integration.stored_objects import Object, Stored, listed, new, plain, write_statuses

KINDS = ("updates", "starts", "nspros")


class Group:
    """CRDs under another name, so that older ones can be applied beside those of the checkout."""

    def __init__(self, kubectl: t.Callable[..., t.Any]) -> None:
        self.kubectl, self.suffix = kubectl, f".upgrade-{uuid.uuid4().hex[:8]}.test"
        self.names: list[str] = []

    def apply(self, crds: t.Iterable[Object]) -> None:
        renamed = [self.renamed(crd) for crd in crds]
        self.kubectl("apply", "--server-side", "-f", "-", stdin=listed(renamed))
        self.names = [crd["metadata"]["name"] for crd in renamed]
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", *(f"crd/{name}" for name in self.names))

    def renamed(self, crd: Object) -> Object:
        found = copy.deepcopy(crd)
        found["metadata"]["name"] += self.suffix
        found["spec"]["group"] += self.suffix
        # nobody has to guess which one a short name means
        found["spec"]["names"].pop("shortNames", None)
        return found

    def of(self, resource: Object) -> Object:
        """A resource in this group."""
        group, _slash, version = resource["apiVersion"].partition("/")
        return {**copy.deepcopy(resource), "apiVersion": f"{group}{self.suffix}/{version}"}

    def create(self, resources: t.Sequence[Object]) -> None:
        """With their statuses."""
        made = listed(self.of(unfinalized(new(resource))) for resource in resources)
        self.kubectl("create", "--validate=strict", "-f", "-", stdin=made)
        write_statuses(self.kubectl, map(self.of, resources))

    def replace_statuses(self, resources: t.Sequence[Object]) -> None:
        """In one piece."""
        pairs = zip(self.read(resources), resources, strict=True)
        made = listed({**found, "status": resource["status"]} for found, resource in pairs)
        self.kubectl("replace", "--subresource=status", "-f", "-", stdin=made)

    def read(self, resources: t.Iterable[Object]) -> list[Object]:
        """What there is of these, in their order."""
        found: dict[tuple[str, str], Object] = {}
        wanted = [(resource["kind"], resource["metadata"]["name"]) for resource in resources]
        namespace = resources[0]["metadata"]["namespace"]
        for name in self.names:
            items = json.loads(self.kubectl("get", name, "-n", namespace, "-o", "json").stdout)["items"]
            found |= {(item["kind"], item["metadata"]["name"]): item for item in items}
        return [found[key] for key in wanted]

    def write_anew(self, resources: t.Sequence[Object]) -> None:
        """Any write validates the whole resource."""
        for subresource in ((), ("--subresource=status",)):
            items = self.read(resources)
            for item in items:
                meta = item["metadata"]
                meta["annotations"] = {**meta.get("annotations", {}), "example.com/seen": "true"}
            self.kubectl("replace", "--validate=strict", *subresource, "-f", "-", stdin=listed(items))

    def remove(self) -> None:
        self.kubectl("delete", "crd", *self.names, "--wait=false", "--ignore-not-found")


@pytest.fixture
def group(kubectl):
    found = Group(kubectl)
    yield found
    found.remove()


def current_crds() -> list[Object]:
    folder = stored_objects.FOLDER.parents[2] / "config/crd/bases"
    return [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]


@pytest.mark.parametrize("version", stored_objects.VERSIONS)
def test_definitions_of_this_version_keep_what_is_stored_and_go_back(kubectl, namespace, group, version):
    recorded = Stored(version, {})
    stored = Stored(version, {recorded.recorded["namespace"]: namespace})
    group.apply(stored_objects.crds(version))
    resources = [item for kind in KINDS for item in stored.items(kind)]
    group.create(resources)
    # the new ones, and back again
    for crds in (current_crds(), stored_objects.crds(version)):
        group.apply(crds)
        assert list(map(plain, group.read(resources))) == list(map(plain, resources))
        group.write_anew(resources)
        assert list(map(plain, group.read(resources))) == list(map(plain, resources))


def unfinalized(resource: Object) -> Object:
    """Without what would keep it until an operator comes."""
    meta = {key: value for key, value in resource["metadata"].items() if key != "finalizers"}
    return {**resource, "metadata": meta}


LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
THEIRS = {"type": "object", "properties": {"spec": LOOSE, "status": LOOSE}}
DONE = {
    "ansibleResult": {"changed": 0, "completion": "2026-01-02T03:04:05.678901", "failures": 0, "ok": 7, "skipped": 2},
    "lastTransitionTime": "2026-01-02T03:04:05Z",
    "message": "Awaiting next reconciliation",
    "reason": "Successful",
    "status": "True",
    "type": "Running",
}
ARTICLES = {
    "Start": ({"name": "nginx", "image": "quay.io/k_nakajima/nginx-sample:latest"}, {}),
    "Update": (
        {"delete_flag": False},
        {"run_name": "quay.io/x:1", "run_id": "sha256:a", "registory_id": "b", "check_id": True, "update": True},
    ),
    "Nspro": ({"nssize": "large", "managed": True}, {}),
}


def test_definitions_of_this_version_keep_what_the_articles_operators_stored(kubectl, namespace, group):
    loose = copy.deepcopy(current_crds())
    for crd in loose:
        (version,) = crd["spec"]["versions"]
        version["schema"]["openAPIV3Schema"] = copy.deepcopy(THEIRS)
    group.apply(loose)
    resources = []
    for crd in loose:
        kind, api = crd["spec"]["names"]["kind"], f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}"
        spec, status = ARTICLES[kind]
        head = {"apiVersion": api, "kind": kind, "metadata": {"name": "sample", "namespace": namespace}}
        resources.append({**head, "spec": spec, "status": {**status, "conditions": [DONE]}})
    group.create(resources)
    group.replace_statuses(resources)
    group.apply(current_crds())
    for resource, found in zip(resources, group.read(resources), strict=True):
        # read with the defaults of what they could not say
        for part in ("spec", "status"):
            assert {key: found[part].get(key) for key in resource[part]} == resource[part]
    group.write_anew(resources)

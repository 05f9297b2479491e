# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes of this version over what an earlier one stored: it is read as it was meant, and nothing is written anew."""

from __future__ import annotations

import json
import time
import typing as t
import uuid
from dataclasses import dataclass, field

import pytest
from integration import stored_objects
from integration.nspro_story import pull_secret
from integration.passes import Shop, writes
from integration.stored_objects import Object, Stored, listed, new, plain, write_statuses

import testbed
from testbed import images
from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")

FOLLOW, CLAIM = "kubesteward.io/follow", "kubesteward.io/claim"
KINDS = ("starts", "updates", "nspros")
#: text of an image -> repository's ending, in the order in which they are pushed
BEFORE = {"v1": "", "v2": "", "web1": "-web", "broken1": "-broken"}
AFTER = {"web2": "-web", "broken2": "-broken"}
SECONDS = 60


def push(shop: Shop, repository: str, texts: t.Mapping[str, str]) -> dict[str, str]:
    """Digests by text."""
    return {text: images.push(_image(text, repository), f"{repository}{end}:latest") for text, end in texts.items()}


def _image(text: str, repository: str) -> t.Any:
    # a node names an image by the repository that it first had it from, so no run has those of another
    said = f"stored {text} in {repository}"
    return images.exiting_image(said) if text == "broken2" else images.web_image(said)


@dataclass
class Restored:
    """A namespace that is as an earlier version left it, and what passes of every kind make of it.

    :ivar written: our writes of the last passes
    """

    shop: Shop
    stored: Stored
    written: list[str] = field(default_factory=list)

    def create(self) -> None:
        for namespace in self.stored.items("namespaces"):
            self._namespace(namespace)
        resources = [item for kind in KINDS for item in self.stored.items(kind)]
        self._make([pull_secret(self.shop.namespace, "registry-login"), *map(new, resources)])
        write_statuses(self.shop.kubectl, resources)
        starts = {item["metadata"]["name"]: item["metadata"]["uid"] for item in self.shop.list("starts")}
        self._make(owned(item, starts) for item in self.stored.items("deployments"))
        for deployment in self.stored.items("deployments"):
            name = deployment["metadata"]["name"]
            self.shop.kubectl("rollout", "status", f"deployment/{name}", "-n", self.shop.namespace, "--timeout=120s")

    def _namespace(self, stored: Object) -> None:
        """With the claim of the one who wrote it: another's would be the copy of a backup."""
        made = new(stored)
        claim = made["metadata"]["annotations"].pop(CLAIM)
        self._make([made])
        name = made["metadata"]["name"]
        self.shop.kubectl("annotate", "namespace", name, f"{CLAIM}={claim}", "--field-manager=kubesteward")

    def _make(self, objects: t.Iterable[Object]) -> None:
        self.shop.kubectl("create", "--validate=strict", "-f", "-", stdin=listed(objects))

    def read(self, resource: Object) -> Object:
        meta = resource["metadata"]
        place = ("-n", meta["namespace"]) if "namespace" in meta else ()
        return json.loads(self.shop.kubectl("get", resource["kind"], meta["name"], *place, "-o", "json").stdout)

    def one(self, kind: str, name: str) -> Object:
        """A stored object of the namespace."""
        return next(item for item in self.stored.items(kind) if item["metadata"]["name"] == name)

    def passes(self) -> None:
        # the namespaces are new, so their quotas are; what they count is known to the next pass
        self.shop.run("nspro")
        self._counted()
        audit = AuditLog.of(self.shop.testbed)
        mark = 0
        for _twice in range(2):
            mark = audit.mark()
            for playbook in ("start", "update", "nspro"):
                self.shop.run(playbook)
        ours = {self.shop.namespace, *(item["metadata"]["name"] for item in self.stored.items("namespaces"))}
        self.written = writes(event for event in audit.since(mark) if {event.namespace, event.name} & ours)

    def _counted(self) -> None:
        """Until quotas are counted, which a pass reports."""
        names = [item["metadata"]["name"] for item in self.stored.items("namespaces")]
        deadline = time.monotonic() + SECONDS
        while not all(self._quota(name).get("status", {}).get("used") for name in names):
            assert time.monotonic() < deadline, "a quota is not counted"
            time.sleep(0.5)

    def _quota(self, name: str) -> Object:
        return json.loads(self.shop.kubectl("get", "resourcequota", f"{name}-quota", "-n", name, "-o", "json").stdout)

    def remove(self) -> None:
        for item in self.stored.items("nspros"):
            gone = ("--type=merge", "-p", '{"metadata": {"finalizers": null}}')
            self.shop.kubectl("patch", "nspro", item["metadata"]["name"], "-n", self.shop.namespace, *gone, check=False)
        names = [self.shop.namespace, *(item["metadata"]["name"] for item in self.stored.items("namespaces"))]
        self.shop.kubectl("delete", "namespace", *names, "--wait=false", "--ignore-not-found")


def owned(stored: Object, starts: t.Mapping[str, str]) -> Object:
    """A Deployment that belongs to the new self of its Start, if it has one."""
    made = new(stored)
    refs = stored["metadata"].get("ownerReferences", ())
    return {
        **made,
        "metadata": {**made["metadata"], "ownerReferences": [{**x, "uid": starts[x["name"]]} for x in refs]},
    }


@pytest.fixture(scope="module", params=stored_objects.VERSIONS)
def restored(request, kubectl) -> t.Iterator[Restored]:
    mark = uuid.uuid4().hex[:8]
    recorded = Stored(request.param, {}).recorded
    shop = Shop(testbed.connect(), kubectl, recorded["namespace"].replace(recorded["mark"], f"-{mark}"))
    repository = f"tests/{mark}"
    digests = push(shop, repository, BEFORE)
    # their digests are known before anybody's tag moves to them
    later = {text: images.push(_image(text, repository), f"{repository}{end}:later") for text, end in AFTER.items()}
    renamed = {recorded["digests"][text]: digest for text, digest in {**digests, **later}.items()}
    renamed |= {recorded["repository"]: shop.testbed.image_name(repository), recorded["mark"]: f"-{mark}"}
    found = Restored(shop, Stored(request.param, renamed))
    kubectl("create", "namespace", shop.namespace)
    try:
        found.create()
        push(shop, repository, AFTER)
        found.passes()
        yield found
    finally:
        found.remove()


def without_generation(resource: Object) -> Object:
    """What a resource says; its generation begins anew in another cluster."""
    said = plain(resource)
    said["status"].pop("observedGeneration", None)
    return said


@pytest.mark.parametrize("kind", KINDS)
def test_statuses_stay_as_they_were_stored(restored, kind):
    """What is followed, quarantined and waited for is part of them, and is told anew by every pass."""
    stored = restored.stored.items(kind)
    found = {item["metadata"]["name"]: item for item in restored.shop.list(kind)}
    for item in stored:
        assert without_generation(found[item["metadata"]["name"]]) == without_generation(item)


def test_what_is_followed_is_remembered_as_it_was_stored(restored):
    followed = [item for kind in ("starts", "deployments") for item in restored.stored.items(kind)]
    remembered = {item["metadata"]["name"]: item["metadata"]["annotations"].get(FOLLOW) for item in followed}
    assert len([text for text in remembered.values() if text]) >= 3
    for item in followed:
        found = restored.read(item)
        assert found["metadata"]["annotations"].get(FOLLOW) == item["metadata"]["annotations"].get(FOLLOW)
        assert found["spec"].get("image") == item["spec"].get("image")


def test_claims_are_ours_and_stay_as_they_were_stored(restored):
    for item in restored.stored.items("namespaces"):
        found = restored.read(item)["metadata"]
        assert found["annotations"] == item["metadata"]["annotations"]
        assert found["labels"] == item["metadata"]["labels"]


def test_a_pass_over_it_writes_nothing(restored):
    assert restored.written == []


def test_namespaces_are_let_go_as_their_stored_claims_say(restored):
    restored.shop.run("nspro", nspro_state="absent", nspro_all=True)
    left = {}
    for item in restored.stored.items("namespaces"):
        deletion = json.loads(item["metadata"]["annotations"][CLAIM])["deletion"]
        name = item["metadata"]["name"]
        answer = restored.shop.kubectl("get", "namespace", name, "--ignore-not-found", "-o", "json").stdout
        left[name] = json.loads(answer)["metadata"] if answer else {"deletionTimestamp": "gone"}
        assert ("deletionTimestamp" in left[name]) == (deletion == "Delete")
        if deletion == "Keep":
            assert CLAIM not in left[name].get("annotations", {})
    assert len(left) == 4

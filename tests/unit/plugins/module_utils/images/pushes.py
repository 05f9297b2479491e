# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images and other things that a tag may name, with their configs, and what a pass makes of them on some nodes."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, judge, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy, Verdict
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    NOW,
    REPOSITORY,
    container,
    inspect,
    pod_of,
    state,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry import fakeserver
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    OCI_INDEX,
    OCI_MANIFEST,
    sha256,
)

Object = dict[str, t.Any]

CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclasses.dataclass(frozen=True)
class Pushed:
    """Raw bytes of a manifest or index, and everything below it: `manifests` and `blobs`."""

    body: bytes
    manifests: tuple[bytes, ...] = ()
    blobs: tuple[bytes, ...] = ()
    platform: str = ""

    @property
    def digest(self) -> str:
        return sha256(self.body)


def encoded(data: Object) -> bytes:
    return json.dumps(data).encode()


def described(kind: str | None, body: bytes, **more: t.Any) -> Object:
    return {**({"mediaType": kind} if kind is not None else {}), "digest": sha256(body), "size": len(body), **more}


def platform_of(text: str) -> Object:
    """The platform of an index or config: `os[(version)]/arch[/variant]`."""
    system, architecture, *variant = text.split("/")
    system, _bracket, version = system.rstrip(")").partition("(")
    found = {"os": system, "architecture": architecture, "variant": "".join(variant), "os.version": version}
    return {key: value for key, value in found.items() if value}


def pushed(config: bytes, kind: str | None = CONFIG, layers: t.Sequence[str] = (LAYER,), **more: t.Any) -> Pushed:
    """A manifest with this config and layers of these types."""
    listed = [described(item, b"layer %d" % number) for number, item in enumerate(layers)]
    head = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described(kind, config), "layers": listed}
    return Pushed(encoded({**head, **more}), blobs=(config,))


def image(platform: str = "linux/amd64", note: str = "1", **more: t.Any) -> Pushed:
    """An image for one platform; two with the same arguments are one."""
    config = encoded({**(platform_of(platform) if platform else {}), "note": note})
    return dataclasses.replace(pushed(config, **more), platform=platform)


def index(*children: Pushed | tuple[Pushed, Object], **more: t.Any) -> Pushed:
    """An index; a child may come with keys of its descriptor, of which a platform of None leaves that out."""
    pairs = [item if isinstance(item, tuple) else (item, {}) for item in children]
    listed = []
    for child, given in pairs:
        own = {"platform": platform_of(child.platform)} if child.platform else {}
        entry = described(json.loads(child.body).get("mediaType", OCI_MANIFEST), child.body, **{**own, **given})
        listed.append({key: value for key, value in entry.items() if value is not None})
    body = encoded({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": listed, **more})
    manifests = tuple(x for child, _given in pairs for x in (child.body, *child.manifests))
    return Pushed(body, manifests, tuple(x for child, _given in pairs for x in child.blobs))


def serving(tag: Pushed, *others: Pushed) -> fakeserver.Answer:
    """A registry with all of that, the first one as tag 1."""
    everything = [x for item in (tag, *others) for x in (item.body, *item.manifests)]
    manifests = fakeserver.content(*everything, tags={"1": tag.body})
    blobs = {sha256(blob): blob for item in (tag, *others) for blob in item.blobs}

    def answer(asked: fakeserver.Asked) -> fakeserver.Reply:
        if "/blobs/" not in asked.path:
            return manifests(asked)
        blob = blobs.get(asked.path.rpartition("/")[2])
        if blob is None:
            return fakeserver.Reply(404, {"Content-Type": "application/json"}, b'{"errors":[{"code":"BLOB_UNKNOWN"}]}')
        return fakeserver.Reply(200, {"Content-Type": "application/octet-stream"}, blob)

    return answer


def nodes_of(*platforms: str) -> list[Object]:
    found = []
    for number, text in enumerate(platforms, 1):
        platform = platform_of(text)
        labels = {"kubernetes.io/os": platform["os"], "kubernetes.io/arch": platform["architecture"]}
        if "os.version" in platform:
            labels["node.kubernetes.io/windows-build"] = platform["os.version"]
        found.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}", "labels": labels}})
    return found


def deployed(runs: str, nodes: int = 1, ready: bool = True, pull_policy: str = "IfNotPresent") -> list[Object]:
    """pod_image_id's `containers`: a Deployment with a Pod that runs a digest on each of some nodes."""
    owner = workload(containers=[container(imagePullPolicy=pull_policy)], replicas=nodes)
    found: list[Object] = [owner]
    for number in range(1, nodes + 1):
        status = state(f"{REPOSITORY}@{runs}", ready=ready)
        one, between = pod_of(owner, [status], name=f"pod-{number}", node=f"node-{number}")
        found += [one, *(between if number == 1 else ())]
    return inspect(*found)


def decided(
    now: Pushed,
    before: Pushed | None = None,
    platforms: t.Sequence[str] = ("linux/amd64",),
    answer: fakeserver.Answer | None = None,
    cache_dir: str = "",
    **how: t.Any,
) -> tuple[Verdict, list[str]]:
    """The verdict where Pods run `before` and the tag names `now`, and the requests of the look-up.

    :param platforms: of the nodes, each with a Pod; none where Nodes may not be read
    :param how: see `deployed`
    """
    before = before or image(note="before")
    containers = deployed(before.digest, len(platforms) or 1, **how)
    with fakeserver.serving(answer or serving(now, before)) as server:
        rules = [{"prefix": "registry.example", "location": server.host, "insecure": True}]
        lookups = inventory.lookups(containers)
        entries = fakeserver.look_up(images=lookups, registries=rules, cache_dir=cache_dir)["images"]
        asked = [line.replace("/v2/shop/web", "") for line in server.lines]
    nodes = snapshot.read_platforms(FakeCluster(*nodes_of(*platforms))) if platforms else None
    ((_container, verdict),) = judge.judge(containers, entries, Policy(), {}, NOW, lambda: nodes)
    return verdict, asked

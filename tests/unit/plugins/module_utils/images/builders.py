# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as the API server returns them, and what registry_digest returns about their images."""

from __future__ import annotations

import hashlib
import itertools
import json
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, snapshot, verdict

Object = dict[str, t.Any]

NAMESPACE = "shop"
NOW = "2026-03-01T10:00:00Z"
INSTALL = "install.sios.nginx.testing/v1"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"

_API = {"CronJob": "batch/v1", "Job": "batch/v1", "Pod": "v1"}
_numbers = itertools.count(1)


def sha(name: str) -> str:
    """A digest that is the same for the same name."""
    return f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"


#: an index, its manifests for amd64 and arm64, and the first one's config; then the next push of the same tag
I1, P1, P2, C1 = sha("index 1"), sha("amd64 1"), sha("arm64 1"), sha("config 1")
I2, Q1, Q2, C2 = sha("index 2"), sha("amd64 2"), sha("arm64 2"), sha("config 2")
REPOSITORY = "registry.example/shop/web"
IMAGE = f"{REPOSITORY}:1"


def meta(kind: str, name: str, **more: t.Any) -> Object:
    created = more.pop("created", "2026-01-01T00:00:00Z")
    found = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{kind}-{name}", "resourceVersion": str(next(_numbers))}
    return {**found, "generation": 1, "creationTimestamp": created, **more}


def owned_by(owner: Object) -> list[Object]:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return [{**reference, "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}]


def container(name: str = "app", image: str = IMAGE, **more: t.Any) -> Object:
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", **more}


def workload(
    kind: str = "Deployment",
    name: str = "web",
    containers: t.Sequence[Object] | None = None,
    init: t.Sequence[Object] = (),
    replicas: int = 1,
    **metadata: t.Any,
) -> Object:
    """A workload whose rollout is complete."""
    pod_spec: Object = {"containers": list(containers or [container()]), "serviceAccountName": "default"}
    if init:
        pod_spec["initContainers"] = list(init)
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec}
    spec: Object = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    status: Object = {"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas}
    status["availableReplicas"] = replicas
    if kind == "CronJob":
        spec, status = {"schedule": "@hourly", "jobTemplate": {"spec": {"template": template}}}, {}
    elif kind == "DaemonSet":
        del spec["replicas"]
        numbers = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        status = {"observedGeneration": 1, **dict.fromkeys(numbers, replicas)}
    elif kind == "StatefulSet":
        status["updateRevision"] = f"{name}-now"
    return {
        "apiVersion": _API.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": meta(kind, name, **metadata),
        "spec": spec,
        "status": status,
    }


def revision(owner: Object, number: int = 1) -> Object:
    """A ReplicaSet of a Deployment, a ControllerRevision of a DaemonSet or a Job of a CronJob."""
    kind = {"Deployment": "ReplicaSet", "DaemonSet": "ControllerRevision", "CronJob": "Job"}[owner["kind"]]
    name = f"{owner['metadata']['name']}-{number}"
    found = {"apiVersion": _API.get(kind, "apps/v1"), "kind": kind, "metadata": meta(kind, name)}
    found["metadata"]["ownerReferences"] = owned_by(owner)
    found["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{number:02}Z"
    found["metadata"]["labels"] = {"app": owner["metadata"]["name"]}
    if kind == "ReplicaSet":
        found["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(number)}
    elif kind == "ControllerRevision":
        found["metadata"]["labels"]["controller-revision-hash"] = name
        found["revision"] = number
    return found


def state(image_id: str, name: str = "app", waiting: str = "", ready: bool = True, **more: t.Any) -> Object:
    """A container's status; `waiting` is the reason it waits for."""
    now: Object = {"waiting": {"reason": waiting}} if waiting else {"running": {"startedAt": NOW}}
    found = {"name": name, "imageID": image_id, "ready": ready and not waiting, "restartCount": 0, "state": now}
    return {**found, "image": IMAGE, **more}


def pod(
    owner: Object | None,
    statuses: str | t.Sequence[Object] = (),
    name: str = "",
    labels: t.Mapping[str, str] | None = None,
    init: t.Sequence[Object] = (),
    **more: t.Any,
) -> Object:
    """A Pod; `statuses` is the image ID of the container `app`, or the containers' statuses.

    :param more: `ready` (the condition's status), `phase`, `node`, `secrets`, `deleted`, `revision_hash`
    """
    metadata = meta("Pod", name or f"pod-{next(_numbers)}", labels={**(labels or {"app": "web"})})
    if owner:
        metadata["ownerReferences"] = owned_by(owner)
    if "revision_hash" in more:
        metadata["labels"]["controller-revision-hash"] = more["revision_hash"]
    if more.get("deleted"):
        metadata["deletionTimestamp"] = NOW
    spec: Object = {"containers": [container()], "nodeName": more.get("node", "node-1")}
    if more.get("secrets"):
        spec["imagePullSecrets"] = [{"name": item} for item in more["secrets"]]
    status: Object = {
        "phase": more.get("phase", "Running"),
        "conditions": [{"type": "Ready", "status": more.get("ready", "True")}],
        "containerStatuses": [state(statuses)] if isinstance(statuses, str) else list(statuses),
    }
    if init:
        status["initContainerStatuses"] = list(init)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def pod_of(owner: Object, statuses: str | t.Sequence[Object] = (), **more: t.Any) -> tuple[Object, list[Object]]:
    """A Pod of the current revision of a workload, and the revisions that it needs."""
    name = owner["metadata"]["name"]
    more.setdefault("labels", {"app": name})
    if owner["kind"] == "StatefulSet":
        return pod(owner, statuses, revision_hash=f"{name}-now", **more), []
    between = revision(owner)
    if owner["kind"] == "DaemonSet":
        return pod(owner, statuses, revision_hash=f"{name}-1", **more), [between]
    return pod(between, statuses, **more), [between]


def start(name: str = "start-sample", image: str = IMAGE, workload_name: str = "nginx", **metadata: t.Any) -> Object:
    spec = {"name": workload_name, "image": image, "replicas": 1, "port": 8080, "readiness": "tcp"}
    return {"apiVersion": INSTALL, "kind": "Start", "metadata": meta("Start", name, **metadata), "spec": spec}


def start_deployment(of: Object, image: str = IMAGE, extra: t.Sequence[Object] = ()) -> Object:
    """The Deployment that a Start gives."""
    name = f"{of['spec']['name']}-sample"
    return workload("Deployment", name, containers=[container(name, image), *extra], ownerReferences=owned_by(of))


def update(name: str = "update-sample", status: Object | None = None, **spec: t.Any) -> Object:
    body = {"check_id": False, "update": False, **(status or {})}
    return {
        "apiVersion": INSTALL,
        "kind": "Update",
        "metadata": meta("Update", name),
        "spec": {"delete_flag": False, **spec},
        "status": body,
    }


def annotation(**entries: Object) -> dict[str, str]:
    """The metadata.annotations with the memory of earlier rolls."""
    return {"kubesteward.io/follow": json.dumps(entries)}


def followed(
    digest: str, reference: str = IMAGE, origin: str = IMAGE, at: str = "2026-02-01T00:00:00Z", **more: t.Any
) -> Object:
    return {"reference": reference, "digest": digest, "from": origin, "at": at, **more}


def inspect(*objects: Object, missing: t.Sequence[snapshot.Target] = (), **policy: t.Any) -> list[Object]:
    """pod_image_id's `containers` for these objects."""
    kinds = {"Start": "starts", "Pod": "pods", "ReplicaSet": "revisions", "ControllerRevision": "revisions"}
    sorted_in: dict[str, list[Object]] = {"starts": [], "workloads": [], "pods": [], "revisions": []}
    for item in objects:
        sorted_in[{**kinds, "Job": "revisions"}.get(item["kind"], "workloads")].append(item)
    seen = snapshot.Snapshot(**{key: tuple(value) for key, value in sorted_in.items()}, missing=tuple(missing))
    found = inventory.containers(seen, policy, NAMESPACE)
    inventory.add_platforms(found, dict, ["linux/amd64"])
    return found


def running(*image_ids: str, kind: str = "Deployment", image: str = IMAGE, **more: t.Any) -> Object:
    """The one container of a workload with one Pod for each image ID."""
    owner = workload(kind, containers=[container(image=image)], replicas=len(image_ids) or 1, **more)
    pods = [pod_of(owner, image_id) for image_id in image_ids]
    found = inspect(owner, *(item for item, _between in pods), *(pods[0][1] if pods else ()))
    return found[0]


def published(
    digest: str = I1, image: str = IMAGE, children: t.Sequence[str] | None = (P1, P2), **more: t.Any
) -> Object:
    """registry_digest's entry: an index with these children, a plain manifest where they are empty, None: not read."""
    found: Object = {"image": image, "state": "found", "digest": digest, "pullable": True}
    found["media_type"] = OCI_MANIFEST if children is not None and not children else OCI_INDEX
    if children is not None:
        arches = ("linux/amd64", "linux/arm64")
        found["children"] = [{"platform": x, "digest": y} for x, y in zip(arches, children, strict=False)]
    return {**found, **more}


def judged(found: Object, entry: Object | None, policy: verdict.Policy | None = None) -> tuple[str, str]:
    """Verdict and reason."""
    result = verdict.decide(found, entry, policy or verdict.Policy())
    return result.verdict, result.reason

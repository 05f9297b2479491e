# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs: image IDs of the live Pods of a workload's current revision, by container of its template.

Pure functions over objects as the API returns them.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
import typing as t

Object = t.Mapping[str, t.Any]

#: annotation of a ReplicaSet with its number
REVISION = "deployment.kubernetes.io/revision"
#: label of a Pod of a StatefulSet or DaemonSet, and of a ControllerRevision
REVISION_HASH = "controller-revision-hash"
_DIGEST = re.compile(r"^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$")
#: the number as the Deployment's controller writes it
_NUMBER = re.compile(r"[0-9]{1,18}")
_BARE_HEX = re.compile(r"^[0-9a-f]{64}$")
#: waiting for one of these means that the image named now has not run: an imageID beside it is a left-over
_NOT_PULLED = frozenset(
    {
        "ContainerCreating",
        "PodInitializing",
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "ImageInspectError",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
#: reasons of a waiting or ended container that say "it does not work", as opposed to "not yet"
FAILING = (_NOT_PULLED - {"ContainerCreating", "PodInitializing"}) | {
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
}
#: failing containers that are named
_MOST_FAILING = 20


class IndexedPod(dict[str, t.Any]):
    """A Pod that is asked for the status of each of its containers: none of them goes through all the others."""

    @functools.cached_property
    def by_name(self) -> t.Mapping[str, list[Object]]:
        """Statuses by the container's name."""
        return _statuses_by_name(self)

    @functools.cached_property
    def spec_by_name(self) -> t.Mapping[str, list[Object]]:
        """Containers of the spec by name."""
        return _containers_by_name(self)


def _containers_by_name(pod: Object) -> dict[str, list[Object]]:
    spec, found = pod.get("spec") or {}, collections.defaultdict(list)
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        found[container.get("name", "")].append(container)
    return found


def containers_named(pod: Object, name: str) -> t.Sequence[Object]:
    """The containers and init containers of a Pod's spec that have a name."""
    return (pod.spec_by_name if isinstance(pod, IndexedPod) else _containers_by_name(pod)).get(name, ())


def _statuses_by_name(pod: Object) -> dict[str, list[Object]]:
    status, found = pod.get("status") or {}, collections.defaultdict(list)
    for field in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(field) or ():
            found[entry["name"]].append(entry)
    return found


@dataclasses.dataclass(frozen=True)
class ImageId:
    """What a runtime reported.

    :ivar kind: `manifest` (a digest the registry knows), `config` (a local image ID) or `none`
    """

    kind: str
    digest: str = ""
    repository: str = ""


def parse_image_id(text: str) -> ImageId | None:
    """Read `containerStatuses[].imageID`; None for a form no runtime is known to write.

    Docker writes `docker-pullable://repo@sha256:..` (manifest) or `docker://sha256:..` (image ID, the config's digest),
    containerd and CRI-O `repo@sha256:..` or a bare `sha256:..`, OpenShift 4.15's CRI-O 64 hex digits alone.
    """
    text = text.strip()
    if not text:
        return ImageId("none")
    body = text.rpartition("://")[2]
    repository, at, digest = body.rpartition("@")
    if at:
        return ImageId("manifest", digest, repository) if repository and _DIGEST.match(digest) else None
    if _DIGEST.match(body):
        return ImageId("config", body)
    if _BARE_HEX.match(body):
        return ImageId("config", f"sha256:{body}")
    return None


def controller_of(obj: Object) -> Object | None:
    """The ownerReference that controls an object, or None."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return owner
    return None


def pod_template(workload: Object) -> Object:
    """The Pod template of a workload; a bare Pod is its own."""
    if workload["kind"] == "Pod":
        return workload
    spec = workload["spec"]
    if workload["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec["template"]


@dataclasses.dataclass(frozen=True)
class Family:
    """The Pods of one workload: `live` ones of its current revision, and how many were left out, by reason.

    :ivar old: those of an earlier revision, and those on their way out
    """

    live: tuple[Object, ...]
    excluded: t.Mapping[str, int]
    old: tuple[Object, ...] = ()


def family(workload: Object, pods: t.Iterable[Object], revisions: t.Iterable[Object]) -> Family:
    """Sort the Pods of a workload.

    :param pods: Pods of the namespace; those of other workloads are passed over
    :param revisions: the ReplicaSets, ControllerRevisions or Jobs of the namespace, where the kind has them
    """
    is_own, is_current = _membership(workload, list(revisions))
    live: list[Object] = []
    old: list[Object] = []
    excluded: collections.Counter[str] = collections.Counter()
    for pod in pods:
        if not is_own(pod):
            continue
        reason = _exclusion(pod, is_current(pod), finished_counts=workload["kind"] in ("CronJob", "Pod"))
        if reason:
            excluded[reason] += 1
        else:
            live.append(pod)
        if not is_current(pod) or pod["metadata"].get("deletionTimestamp"):
            old.append(pod)
    return Family(tuple(live), dict(excluded), tuple(old))


_Test = t.Callable[[Object], bool]


def _membership(workload: Object, revisions: list[Object]) -> tuple[_Test, _Test]:
    """Two tests on a Pod: is it the workload's, and is it of the current revision?"""
    uid = workload["metadata"]["uid"]
    kind = workload["kind"]
    if kind == "Pod":
        return (lambda pod: pod["metadata"]["uid"] == uid), _always
    if kind in ("Deployment", "CronJob"):
        own = [x for x in revisions if (controller_of(x) or {}).get("uid") == uid and is_ranked(x)]
        uids = {revision["metadata"]["uid"] for revision in own}
        rank = _replica_set_rank if kind == "Deployment" else _job_rank
        newest = max(own, key=rank)["metadata"]["uid"] if own else None
        return (
            lambda pod: (controller_of(pod) or {}).get("uid") in uids,
            lambda pod: (controller_of(pod) or {})["uid"] == newest,
        )
    current = _current_revision_hash(workload, revisions)
    return (
        lambda pod: (controller_of(pod) or {}).get("uid") == uid,
        _always if current is None else lambda pod: revision_hash(pod) == current,
    )


def _always(_pod: Object) -> bool:
    return True


def _replica_set_rank(replica_set: Object) -> int:
    return int(_revision_text(replica_set))


def _revision_text(replica_set: Object) -> str:
    # one that was just made has none yet
    return (replica_set["metadata"].get("annotations") or {}).get(REVISION, "0")


def is_ranked(revision: Object) -> bool:
    """False for a ReplicaSet whose number no Deployment controller wrote: anybody may write annotations."""
    return revision["kind"] != "ReplicaSet" or _NUMBER.fullmatch(_revision_text(revision)) is not None


def _job_rank(job: Object) -> tuple[str, str]:
    return job["metadata"].get("creationTimestamp", ""), job["metadata"]["name"]


def revision_hash(obj: Object) -> str | None:
    """Label that says of which revision a Pod or ControllerRevision is."""
    return (obj["metadata"].get("labels") or {}).get(REVISION_HASH)


def _current_revision_hash(workload: Object, revisions: list[Object]) -> str | None:
    if workload["kind"] == "StatefulSet":
        return (workload.get("status") or {}).get("updateRevision")
    uid = workload["metadata"]["uid"]
    own = [revision for revision in revisions if (controller_of(revision) or {}).get("uid") == uid]
    return revision_hash(max(own, key=lambda revision: revision.get("revision", 0))) if own else None


def _exclusion(pod: Object, is_current: bool, finished_counts: bool) -> str | None:
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return "terminating"
    if _is_on_lost_node(status):
        return "lost_node"
    if not is_current:
        return "old_revision"
    if status.get("phase") in ("Succeeded", "Failed") and not finished_counts:
        return "finished"
    return None


def _is_on_lost_node(status: Object) -> bool:
    """The node controller sets Ready to Unknown or False with NodeLost; the container's own `ready` stays true."""
    if status.get("reason") == "NodeLost":
        return True
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return condition.get("status") == "Unknown" or condition.get("reason") == "NodeLost"
    return False


def template_containers(template: Object) -> list[dict[str, t.Any]]:
    """`{name, image, pull_policy, type, path}` of every container of a Pod template; `path` is below the Pod's spec."""
    found = []
    for field in ("containers", "initContainers"):
        for index, container in enumerate(template["spec"].get(field) or ()):
            if field == "containers":
                kind = "container"
            else:
                kind = "sidecar" if container.get("restartPolicy") == "Always" else "init"
            path = f"/{field}/{index}"
            own = {"name": container["name"], "image": container.get("image", ""), "type": kind, "path": path}
            found.append({**own, "pull_policy": container.get("imagePullPolicy")})
    return found


def all_statuses(pod: Object) -> list[Object]:
    """The statuses of all containers of a Pod, those of init containers first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def container_statuses(pod: Object, name: str) -> t.Iterator[Object]:
    """The status of a container or init container, where the Pod has one."""
    known = pod.by_name if isinstance(pod, IndexedPod) else _statuses_by_name(pod)
    yield from known.get(name, ())


def gather(live: t.Iterable[Object], name: str) -> dict[str, t.Any]:
    """What one container of the live Pods runs.

    :returns: `running` [{`image_id`, `digest`, `id_kind`, `pods`, `ready`}] in order of Pod count, `waiting` (Pods
        without an image ID that counts), `waiting_reasons` {reason: Pods}
    """
    groups: dict[str, dict[str, t.Any]] = {}
    waiting: collections.Counter[str] = collections.Counter()
    for pod in live:
        entry = next(container_statuses(pod, name), None) or {}
        why = ((entry.get("state") or {}).get("waiting") or {}).get("reason", "")
        image_id = entry.get("imageID") or ""
        if not image_id or why in _NOT_PULLED:
            waiting[why or "NotStarted"] += 1
            continue
        parsed = parse_image_id(image_id) or ImageId("none")
        group = groups.setdefault(
            image_id,
            {
                "image_id": image_id,
                "digest": parsed.digest,
                "id_kind": parsed.kind,
                "pods": 0,
                "ready": 0,
            },
        )
        group["pods"] += 1
        group["ready"] += 1 if entry.get("ready") else 0
    running = sorted(groups.values(), key=lambda group: (-group["pods"], group["image_id"]))
    return {"running": running, "waiting": sum(waiting.values()), "waiting_reasons": dict(sorted(waiting.items()))}


def first_updated(workload: Object) -> int:
    """Ordinal from which on a StatefulSet makes Pods of the new revision."""
    spec = workload["spec"]
    partition = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0
    return partition + ((spec.get("ordinals") or {}).get("start") or 0)


def ordinal(pod: Object) -> int:
    """Number of a StatefulSet's Pod."""
    number = pod["metadata"]["name"].rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _outdated(workload: Object, count: int, old: t.Iterable[Object]) -> int:
    """Of `count` Pods of an earlier revision, those that the controller replaces by itself, and whose node answers."""
    if ((workload.get("spec") or {}).get("updateStrategy") or {}).get("type") == "OnDelete":
        return 0
    keeps = first_updated(workload) if workload["kind"] == "StatefulSet" else 0
    stay = sum(ordinal(pod) < keeps or _is_on_lost_node(pod.get("status") or {}) for pod in old)
    return max(0, count - stay)


def rollout_state(workload: Object, group: Family) -> dict[str, t.Any]:
    """How far the workload's own rollout is.

    :returns: counts `generation`, `observed`, `desired`, `updated`, `available`, `replicas`, `restarts`, `outdated`
        (Pods of an earlier revision that the controller is to replace yet, those on lost nodes aside); `complete`,
        `deadline_exceeded` and `paused` as booleans; `failing` [{`pod`, `container`, `reason`}]
    """
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    if workload["kind"] == "DaemonSet":
        desired = replicas = status.get("desiredNumberScheduled", 0)
        updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    else:
        desired, replicas = spec.get("replicas", 1), status.get("replicas", 0)
        updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    generation = workload["metadata"].get("generation", 0)
    observed = status.get("observedGeneration", 0)
    has_rollout = workload["kind"] in ("Deployment", "StatefulSet", "DaemonSet")
    progressing = {x.get("reason") for x in status.get("conditions") or () if x.get("type") == "Progressing"}
    # a Pod that became unready since does not take the end of the rollout back
    ended = available >= desired or "NewReplicaSetAvailable" in progressing
    return {
        "generation": generation,
        "observed": observed,
        "desired": desired,
        "updated": updated,
        "available": available,
        "replicas": replicas,
        "outdated": _outdated(workload, replicas - updated, group.old),
        "paused": bool(spec.get("paused")),
        "deadline_exceeded": "ProgressDeadlineExceeded" in progressing,
        "complete": not has_rollout or (observed >= generation and updated == replicas == desired and ended),
        **_pod_trouble(group.live),
    }


def _pod_trouble(live: t.Iterable[Object]) -> dict[str, t.Any]:
    restarts, failing = 0, []
    for pod in live:
        for entry in all_statuses(pod):
            restarts += entry.get("restartCount", 0)
            reason = ((entry.get("state") or {}).get("waiting") or {}).get("reason", "")
            if reason in FAILING:
                failing.append({"pod": pod["metadata"]["name"], "container": entry["name"], "reason": reason})
    return {"restarts": restarts, "failing": failing[:_MOST_FAILING]}

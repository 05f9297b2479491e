# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a snapshot to the containers to judge, and the look-ups their verdicts need. Pure."""

from __future__ import annotations

import collections
import dataclasses
import functools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import follow as follows
from ansible_collections.kubesteward.core.plugins.module_utils.images import running, trial, wayback
from ansible_collections.kubesteward.core.plugins.module_utils.images.edits import Edits
from ansible_collections.kubesteward.core.plugins.module_utils.images.snapshot import Snapshot, deployment_name
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references
from ansible_collections.kubesteward.core.plugins.module_utils.texts import NAME, cut

Object = t.Mapping[str, t.Any]

#: pull secrets of a Pod that are tried: every container has its own list of them
_MOST_SECRETS = 50


def containers(snapshot: Snapshot, policy: t.Mapping[str, t.Any], namespace: str) -> list[dict[str, t.Any]]:
    """Every container of every workload of the snapshot that the policy does not leave out.

    Only containers of the workload's own template are seen, so what a webhook injects into Pods is left alone.

    :param policy: `spec.containers`: `follow` and `ignore`, lists of container names
    :returns: the entries documented as `containers` of pod_image_id
    """
    owners = _start_owners(snapshot)
    wanted, ignored = set(policy.get("follow") or ()), set(policy.get("ignore") or ())
    pods = _by_controller(map(running.IndexedPod, snapshot.pods))
    revisions = _by_controller(filter(running.is_ranked, snapshot.revisions))
    found = []
    for workload in snapshot.workloads:
        owner = owners.get(workload["metadata"]["name"]) if workload["kind"] == "Deployment" else None
        uid = workload["metadata"]["uid"]
        parents = [uid, *(revision["metadata"]["uid"] for revision in revisions[uid])]
        own: list[Object] = [pod for parent in parents for pod in pods[parent]]
        if workload["kind"] == "Pod":
            own = [running.IndexedPod(workload)]
        group = _Group.of(workload, own, revisions[uid], namespace)
        for container in running.template_containers(running.pod_template(workload)):
            if container["name"] in ignored or (wanted and container["name"] not in wanted):
                continue
            found.append(_describe(workload, owner, group, container))
    return found


@dataclasses.dataclass(frozen=True)
class _Group:
    """What all containers of a workload have in common, found out once.

    :ivar live: live Pods of the current revision
    :ivar entries: what the workload remembers, by container
    :ivar copies: the same of each of its revisions
    :ivar others: see `trial.others`
    :ivar stuck: `trial.stuck_pods` for digests that were left, and the one that failed
    """

    live: t.Sequence[Object]
    excluded: t.Mapping[str, int]
    rollout: t.Mapping[str, t.Any]
    nodes: t.Sequence[str]
    secrets: t.Sequence[t.Mapping[str, str]]
    entries: t.Mapping[str, follows.Follow]
    edits: Edits
    copies: t.Sequence[t.Mapping[str, follows.Follow]]
    others: t.Sequence[Object]
    stuck: t.Callable[[tuple[str, ...], str | None], list[Object]]

    @classmethod
    def of(cls, workload: Object, pods: t.Sequence[Object], revisions: t.Sequence[Object], namespace: str) -> _Group:
        family = running.family(workload, pods, revisions)
        return cls(
            live=family.live,
            excluded=family.excluded,
            rollout=running.rollout_state(workload, family),
            nodes=sorted({pod["spec"]["nodeName"] for pod in family.live if pod["spec"].get("nodeName")}),
            secrets=_pull_secrets(family.live, workload, namespace)[:_MOST_SECRETS],
            entries=follows.read(workload),
            edits=Edits.of(workload),
            copies=[follows.read(revision) for revision in revisions],
            others=trial.others(family.live),
            stuck=functools.cache(functools.partial(trial.stuck_pods, workload, pods)),
        )


def _by_controller(objects: t.Iterable[Object]) -> dict[str | None, list[Object]]:
    """Objects by the uid of what controls them: many workloads must not each go through all Pods of a namespace."""
    grouped: dict[str | None, list[Object]] = collections.defaultdict(list)
    for obj in objects:
        grouped[(running.controller_of(obj) or {}).get("uid")].append(obj)
    return grouped


def _start_owners(snapshot: Snapshot) -> dict[str, Object]:
    """Deployment name -> the Start that gives it; of two Starts of one name the older holds it."""
    held: dict[str, Object] = {}
    for start in sorted(snapshot.starts, key=seniority):
        held.setdefault(deployment_name(start), start)
    return held


def seniority(obj: Object) -> tuple[str, str]:
    """Sorts the oldest first; names decide between objects of one second."""
    return obj["metadata"].get("creationTimestamp", ""), obj["metadata"]["name"]


def _describe(
    workload: Object,
    start: Object | None,
    group: _Group,
    container: dict[str, t.Any],
) -> dict[str, t.Any]:
    controller, given_by = _foreign_controller(workload, start), start
    if container["name"] != workload["metadata"]["name"]:
        # a Start gives one container, of the Deployment's name: what others add beside it is the Deployment's own
        start = None
    source = start or workload
    spec_image = (start.get("spec") or {}).get("image") or "" if start else container["image"]
    entries, copies = (follows.read(start), ()) if start else (group.entries, group.copies)
    edits = Edits.of(start) if start else group.edits
    entry, undone = _memory(edits, container["name"], spec_image, entries, copies)
    tag = entry.reference if entry else undone["reference"] if undone else spec_image
    return {
        "workload": {
            **_name(workload),
            "uid": workload["metadata"]["uid"],
            "owner": {**_name(start), "digest": (start.get("status") or {}).get("digest")} if start else None,
        },
        "start": given_by["metadata"]["name"] if given_by else None,
        "container": container["name"],
        "type": container["type"],
        "path": _spec_path(workload, start, container),
        "image": container["image"],
        "pull_policy": container["pull_policy"],
        "spec_image": spec_image,
        **_identity(tag),
        "follow": entry.as_dict() if entry else None,
        "undone": undone,
        "retry": (source["metadata"].get("annotations") or {}).get(follows.RETRY),
        **running.gather(group.live, container["name"]),
        "excluded": dict(group.excluded),
        "nodes": list(group.nodes),
        "platforms": [],
        "pull_secrets": list(group.secrets),
        "rollout": dict(group.rollout),
        "unwell": trial.unwell(group.live, container["name"], container["type"]),
        "trial": {
            **trial.facts(workload, group.live, container["name"], container["type"], group.others),
            "edited": edits.since(container["name"]),
        }
        # a Job ends: there is nothing to watch
        if entry and entry.trial and workload["kind"] != "CronJob"
        else None,
        "stuck": _stuck(group, entry),
        "controller": controller,
        "image_volumes": _image_volumes(workload),
    }


def _image_volumes(workload: Object) -> list[dict[str, str]]:
    """Volumes whose image has a tag that may move, {`name`, `image`}: no Pod tells which digest of it is mounted."""
    found = []
    for volume in running.pod_template(workload)["spec"].get("volumes") or ():
        image = (volume.get("image") or {}).get("reference")
        if image and _digest_in(image) is None:
            found.append({"name": volume["name"], "image": image})
    return found


def _digest_in(text: str) -> str | None:
    try:
        return references.parse(text).digest
    except StewardError:
        return None


def _memory(
    edits: Edits,
    name: str,
    image: str,
    entries: t.Mapping[str, follows.Follow],
    remembered: t.Iterable[t.Mapping[str, follows.Follow]],
) -> tuple[follows.Follow | None, dict[str, t.Any] | None]:
    """What we remember of a container: the roll that its spec still carries, and the one that somebody undid.

    A Deployment's ReplicaSets keep a copy of our annotation, so that even `kubectl rollout undo`, which puts the
    annotations of the old revision back, does not make us forget.
    """
    entry = entries.get(name)
    copies = [older[name] for older in remembered if name in older]
    newest = max(copies, key=lambda copy: copy.at, default=None)
    manager, operation = edits.by(name)
    is_undo = newest is not None and (entry is None or newest.at > entry.at)
    last = newest if is_undo else entry
    undone = None
    if last and not last.holds_for(image):
        # kubectl's undo names no manager of its own
        undone = follows.put_back(last, image, is_undo or (manager, operation) == ("kubectl", "Update"))
    found = {**undone.entry.as_dict(), "how": undone.how, "manager": manager} if undone else None
    return (entry if entry and entry.holds_for(image) else None), found


def _stuck(group: _Group, entry: follows.Follow | None) -> list[Object]:
    if not entry:
        return []
    return list(group.stuck(tuple(entry.left), entry.quarantine.digest if entry.quarantine else None))


def _name(obj: Object) -> dict[str, str]:
    return {"kind": obj["kind"], "name": obj["metadata"]["name"], "api_version": obj["apiVersion"]}


def _identity(text: str) -> dict[str, t.Any]:
    """What to look up for a reference: nothing where it is pinned or cannot be read."""
    try:
        parsed = references.parse(text)
    except StewardError as exc:
        return {"reference": text, "pinned": None, "invalid": str(exc)}
    return {"reference": text, "pinned": parsed.digest if parsed.pinned else None, "invalid": None}


def _spec_path(workload: Object, start: Object | None, container: Object) -> str:
    """JSON pointer of the container in the object that a roll patches; a Start has its one image in its spec."""
    if start:
        return "/spec"
    if workload["kind"] == "Pod":
        return f"/spec{container['path']}"
    prefix = "/spec/jobTemplate/spec" if workload["kind"] == "CronJob" else "/spec"
    return f"{prefix}/template/spec{container['path']}"


def _pull_secrets(live: t.Sequence[Object], workload: Object, namespace: str) -> list[dict[str, str]]:
    """Of a live Pod, to which admission has added the ServiceAccount's; of the template where no Pod lives."""
    spec = live[0]["spec"] if live else running.pod_template(workload)["spec"]
    # the kubelet passes over those without a name
    names = [item.get("name") for item in spec.get("imagePullSecrets") or ()]
    return distinct_secrets({"namespace": namespace, "name": name} for name in names if name)


def distinct_secrets(secrets: t.Iterable[t.Mapping[str, str]] | None) -> list[dict[str, str]]:
    """Names of pull secrets in their order, each once: what is proven with some holds for just these."""
    found = {(item["namespace"], item["name"]): dict(item) for item in secrets or ()}
    return list(found.values())


def _foreign_controller(workload: Object, start: Object | None) -> str | None:
    """Name of a controller that would undo a patch of this workload; a Start we patch instead is none."""
    owner = running.controller_of(workload)
    if owner is None or (start and owner["uid"] == start["metadata"]["uid"]):
        return None
    return cut(f"{owner['kind']} {owner['name']}", NAME)


def add_platforms(
    found: t.Iterable[dict[str, t.Any]], read: t.Callable[[], t.Mapping[str, str] | None], fallback: t.Sequence[str]
) -> None:
    """Fill `platforms`, but only where an image ID is a local one: elsewhere the digests say it all.

    :param read: gives node name -> platform, or None where Nodes may not be read; called at most once
    :param fallback: platforms to assume where Nodes may not be read
    """
    read = functools.cache(read)
    for container in found:
        if any(item["id_kind"] == "config" for item in container["running"]):
            container["platforms"] = platforms_of(container, read(), fallback)


def platforms_of(container: Object, nodes: t.Mapping[str, str] | None, fallback: t.Sequence[str]) -> list[str]:
    """Platforms of the nodes that a container's Pods run on, as far as they are known."""
    on = container.get("nodes") or ()
    return sorted({nodes[name] for name in on if nodes and name in nodes}) or list(fallback)


def first(found: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, str | None]:
    """The flat fields of the first container, as first published."""
    container = found[0] if found else {}
    most = (container.get("running") or [{}])[0]
    return {"image": container.get("image"), "image_id": most.get("image_id"), "digest": most.get("digest")}


def has_quarantine(found: t.Iterable[t.Mapping[str, t.Any]]) -> bool:
    """Whether a digest that failed is remembered of a container."""
    memories = (container[key] for container in found for key in ("follow", "undone"))
    return any(memory and memory.get("quarantine") for memory in memories)


def lookups(found: t.Iterable[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """The `images` of registry_digest: one entry per distinct reference and pull secrets.

    Of a pinned digest only whether the registry still has it is asked. Of the others `expect` is the one digest that
    every Pod runs, if there is one: where the registry answers it, nothing more has to be read. Where Pods run
    several, the index has to show whether these are its own children.
    """
    entries: dict[t.Any, dict[str, t.Any]] = {}
    for container in found:
        if not is_looked_up(container):
            continue
        written = follows.digest_of_next(container)
        lives = container["running"] or container["waiting"]
        secrets = distinct_secrets(container["pull_secrets"])
        key = lookup_key(container["reference"], secrets)
        if container["pinned"]:
            entries[key] = _presence(container, secrets)
            continue
        entry = entries.setdefault(
            key,
            {
                "image": container["reference"],
                "pull_secrets": secrets,
                "expect": set(),
                "resolve": {"children"},
                "verify": True,
                "compare": set(),
            },
        )
        entry["compare"] |= _to_be_asked_for(container)
        if _may_go_back(container):
            # what would go back is asked for only where the tag's digest alone does not answer it all
            entry["expect"].add("")
        if container["follow"] and not container["running"]:
            # a newer one is to be read, although another workload runs it
            entry["expect"].add(container["follow"]["digest"])
        if not lives:
            entry["expect"].add(written)
            entry["compare"].add(written)
        _add_running(entry, container)
        if "config" in entry["resolve"] and container["platforms"]:
            entry["platform"] = container["platforms"][0]
    return [
        {
            **entry,
            "expect": sorted(entry["expect"]) if len(entry["expect"]) == 1 and "" not in entry["expect"] else [],
            "resolve": sorted(entry["resolve"]),
            "compare": sorted(entry["compare"]),
        }
        for entry in entries.values()
    ]


def is_looked_up(container: t.Mapping[str, t.Any]) -> bool:
    """Whether there is anything to compare: something runs, is to start, or stands in the spec by our hand."""
    lives = container["running"] or container["waiting"]
    return not container["invalid"] and bool(lives or follows.digest_of_next(container))


def _add_running(entry: dict[str, t.Any], container: t.Mapping[str, t.Any]) -> None:
    for item in container["running"]:
        entry["expect"].add(item["digest"] if item["id_kind"] == "manifest" else "")
        if item["id_kind"] == "manifest":
            entry["compare"].add(item["digest"])
        if item["id_kind"] == "config":
            entry["resolve"].add("config")
            if container["follow"]:
                entry["compare"].add(container["follow"]["digest"])


def _presence(container: t.Mapping[str, t.Any], secrets: t.Sequence[t.Mapping[str, str]]) -> dict[str, t.Any]:
    digest = {container["pinned"]}
    return {
        "image": container["reference"],
        "pull_secrets": secrets,
        "expect": digest,
        "resolve": set(),
        "verify": False,
        "compare": digest,
    }


def _may_go_back(container: t.Mapping[str, t.Any]) -> bool:
    return bool(container["trial"]) and bool(container["trial"]["troubled"])


def _to_be_asked_for(container: t.Mapping[str, t.Any]) -> set[str]:
    """Digests that do not run: what may go back, and what the spec has and no Pod could start."""
    if not container["follow"]:
        return set()
    found = wayback.wanted(container["follow"]) if _may_go_back(container) else set()
    return found | ({container["follow"]["digest"]} if container["waiting"] else set())


def lookup_key(reference: str, pull_secrets: t.Iterable[t.Mapping[str, str]] | None) -> tuple[t.Any, ...]:
    """What makes two look-ups one."""
    return reference, tuple((item["namespace"], item["name"]) for item in distinct_secrets(pull_secrets))

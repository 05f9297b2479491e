# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Letting go of what is followed: the tag goes back in place of our digest, and what we remember goes. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow as follows
from ansible_collections.kubesteward.core.plugins.module_utils.images import rollout
from ansible_collections.kubesteward.core.plugins.module_utils.images.inventory import lookup_key
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import workload_name
from ansible_collections.kubesteward.core.plugins.module_utils.kube import FIELD_MANAGER

Container = t.Mapping[str, t.Any]
Object = t.Mapping[str, t.Any]
Operation = dict[str, t.Any]

TAGS, DIGESTS = "tags", "digests"
#: begins the message of a container whose tag does not go back
STAYS = "the digest stays"
_FIELDS = "/metadata/managedFields"


@dataclasses.dataclass(frozen=True)
class Policy:
    """What goes into the specs.

    :ivar release: `tags` puts the followed references back, `digests` leaves the digests
    :ivar force: a tag goes back also where it names a digest that failed
    """

    release: str = TAGS
    force: bool = False


PUT_BACK = Policy()


@dataclasses.dataclass(frozen=True)
class Owner:
    """One object to let go of.

    :ivar paths: container -> its place when it was looked at
    :ivar policies: container -> its imagePullPolicy
    :ivar bad: container -> (reference, why that one must not go back)
    """

    owner: dict[str, str]
    workload: Container
    paths: dict[str, str] = dataclasses.field(default_factory=dict)
    policies: dict[str, str | None] = dataclasses.field(default_factory=dict)
    bad: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be done to one object.

    :ivar images: {`container`, `from`, `to`, `message`} of each container whose spec carries what we wrote; `to` is
        `from` where the digest stays
    :ivar containers: names of the containers that are let go of
    """

    operations: list[Operation] = dataclasses.field(default_factory=list)
    images: list[dict[str, str]] = dataclasses.field(default_factory=list)
    containers: list[str] = dataclasses.field(default_factory=list)


def owners(containers: t.Sequence[Container], published: t.Iterable[t.Mapping[str, t.Any]]) -> list[Owner]:
    """The objects to let go of, in the order of their containers.

    :param published: registry_digest's entries, as far as there are any
    """
    named = {lookup_key(x["image"], x.get("pull_secrets")): x.get("digest") for x in published}
    failed = _failed(containers)
    found: dict[tuple[str, str], Owner] = {}
    for container in containers:
        patched = rollout.owner_of(container["workload"])
        key = patched["kind"], patched["name"]
        owner = found.setdefault(key, Owner(patched, container["workload"]))
        name, reference = container["container"], container["reference"]
        owner.paths[name] = container["path"]
        owner.policies[name] = container.get("pull_policy")
        digest = named.get(lookup_key(reference, container["pull_secrets"]))
        why = _why_bad(container, digest, failed)
        if why:
            owner.bad[name] = reference, why
    return list(found.values())


def _failed(containers: t.Iterable[Container]) -> list[tuple[str, str, str]]:
    """(reference, digest, workload) of every digest that is in quarantine: it is as bad for others."""
    return [
        (memory["reference"], memory["quarantine"]["digest"], workload_name(container["workload"]))
        for container in containers
        for memory in (container["follow"], container["undone"])
        if memory and memory.get("quarantine")
    ]


def _why_bad(container: Container, digest: str | None, failed: t.Iterable[tuple[str, str, str]]) -> str:
    for reference, bad, where in failed:
        if container["retry"] == bad:
            continue
        if digest == bad:
            return f"names {bad}, which failed on {where}"
        if not digest and reference == container["reference"]:
            return f"may name {bad} still, which failed on {where}; the registry does not tell"
    return ""


def plan(owner: Owner, live: Object, policy: Policy = PUT_BACK) -> Plan:
    """What lets go of an object as it is now; no operations where nothing of these containers is remembered.

    What is remembered of other containers that it has stays.
    """
    text = (live["metadata"].get("annotations") or {}).get(follows.ANNOTATION)
    if text is None:
        return Plan()
    entries, places = follows.read(live), _places(owner, live)
    kept = {name: entry for name, entry in entries.items() if name not in owner.paths and name in places}
    if entries and len(kept) == len(entries):
        return Plan()
    done = Plan(containers=sorted(name for name in entries if name in owner.paths))
    for name in done.containers:
        if name in places:
            _let_go(done, owner, name, entries[name], places[name], policy)
    done.operations.extend(rollout.forget(live, kept))
    return done


def _places(owner: Owner, live: Object) -> dict[str, tuple[str, str]]:
    """Container -> its place and image in the object as it is now: others may have been put before it since."""
    sample = next(iter(owner.paths.values()))
    if live["kind"] == "Start":
        return {name: (path, rollout.lookup(live, f"{path}/image") or "") for name, path in owner.paths.items()}
    pod = sample.rsplit("/", 2)[0]
    return {
        item["name"]: (f"{pod}/{field}/{index}", item.get("image") or "")
        for field in ("containers", "initContainers")
        for index, item in enumerate(rollout.lookup(live, f"{pod}/{field}") or ())
    }


def _let_go(done: Plan, owner: Owner, name: str, entry: follows.Follow, place: tuple[str, str], policy: Policy) -> None:
    path, image = place
    if not entry.holds_for(image):
        return
    reference, why = owner.bad.get(name, ("", ""))
    to, message = entry.reference, _older(entry.reference, owner.policies.get(name))
    if policy.release == DIGESTS:
        to, message = image, ""
    elif reference == entry.reference and not policy.force:
        to, message = image, f"{STAYS}: {reference} {why} (update_force puts the tag back all the same)"
    if path != "/spec":
        done.operations.append({"op": "test", "path": f"{path}/name", "value": name})
    done.operations.append({"op": "test", "path": f"{path}/image", "value": image})
    if to != image:
        done.operations.append({"op": "replace", "path": f"{path}/image", "value": to})
    done.images.append({"container": name, "from": image, "to": to, "message": message})


def _older(reference: str, pull_policy: str | None) -> str:
    """What a tag may bring that is not what the registry names."""
    if pull_policy not in ("IfNotPresent", "Never"):
        return ""
    return (
        f"imagePullPolicy is {pull_policy}: a node that has an image under {reference} runs that one, also where it is "
        "an older one (update_release: digests keeps the digest)"
    )


def without_our_fields(live: Object) -> list[Operation]:
    """The JSON patch by which the API server forgets what we patched in an object; empty where it knows of nothing.

    Fields that somebody applies on the server's side would be a conflict with us for ever. While we remember
    something of it, and of a status, it stays, and so does what we applied ourselves.
    """
    if follows.ANNOTATION in (live["metadata"].get("annotations") or {}):
        return []
    fields = live["metadata"].get("managedFields") or []
    ours = [index for index, entry in enumerate(fields) if _is_our_patch(entry)]
    if not ours:
        return []
    if len(ours) == len(fields):
        # an empty list would change nothing; the API server takes this for none
        return [*_tests(ours), {"op": "replace", "path": _FIELDS, "value": [{}]}]
    # from the end, so that the places of the others stay
    return [*_tests(ours), *({"op": "remove", "path": f"{_FIELDS}/{index}"} for index in reversed(ours))]


def _tests(indexes: t.Iterable[int]) -> list[Operation]:
    return [
        {"op": "test", "path": f"{_FIELDS}/{index}/{key}", "value": value}
        for index in indexes
        for key, value in (("manager", FIELD_MANAGER), ("operation", "Update"))
    ]


def _is_our_patch(entry: Object) -> bool:
    mine = entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Update"
    return mine and not entry.get("subresource")

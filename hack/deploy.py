# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the operator, or bring it up to date: apply an overlay, wait until its Pod is ready, else say why it is not.

Run by `make deploy`. Nothing is taken from others: a field that somebody else set is a conflict, and the settings that
an administrator wrote in the cluster stay.
"""

from __future__ import annotations

import argparse
import json
import sys
import typing as t

import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import inputs
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import forms, sizes
from ansible_collections.kubesteward.core.plugins.module_utils.registry import call as call_of_registries
from ansible_collections.kubesteward.core.plugins.module_utils.registry import hosts
from hack import cluster
from hack.cluster import (
    CRDS,
    IMAGE,
    MANAGER,
    ROOT,
    Object,
    StopError,
    call,
    get,
    kubectl,
    manager_in,
    name_of,
    render,
    say,
)

READY_SECONDS = 300
SETTINGS = "kubesteward-settings"
#: what concerns all passes; another variable of a role says what one pass is about, and would be said for every one
KNOWN = {
    "update": (
        "registries",
        "allowed_registries",
        "auth_file",
        "timeout",
        "deadline",
        "rollback",
        "verification_seconds",
        "dry_run",
        "suspend",
        "max_concurrent",
    ),
    "nspro": ("sizes", "allowed_roles", "reserved", "openshift"),
}
#: the least and the most that a setting may be
BOUNDS = {
    "update_verification_seconds": (inputs.VERIFICATION_SECONDS[0], inputs.VERIFICATION_SECONDS[-1]),
    "update_timeout": (0.1, call_of_registries.MOST["timeout"]),
    "update_deadline": (0.1, call_of_registries.MOST["deadline"]),
    "update_max_concurrent": (1, 1000),
}
#: what the product itself says of a setting, before every pass would
CHECKS: dict[str, t.Callable[[t.Any], object]] = {
    "nspro_sizes": sizes.read,
    "nspro_allowed_roles": forms.check_roles,
    "update_registries": hosts.read_rules,
}
#: what lists are of
ELEMENTS = {
    **dict.fromkeys(("update_allowed_registries", "nspro_allowed_roles", "nspro_reserved"), (str, "texts")),
    "update_registries": (dict, "maps"),
}
#: types of Ansible's argument specs in YAML; a number may be written as a float
TYPES: dict[str, type | tuple[type, ...]] = {
    "list": list,
    "dict": dict,
    "bool": bool,
    "str": str,
    "path": str,
    "int": int,
    "float": (int, float),
}
# who wrote the settings is told apart from other appliers, who all are called kubectl
SETTINGS_MANAGER = "kubesteward-deploy"
LOG_LINES, EVENT_LINES = 30, 12


def main(arguments: t.Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--overlay", default="config/default", help="folder of a kustomization")
    parser.add_argument("--image", help="image of the operator instead of the overlay's")
    parser.add_argument("--dry-run", action="store_true", help="ask the API server, write nothing")
    parser.add_argument("--force", action="store_true", help="take over fields that others set, and what is watched")
    parser.add_argument("--force-settings", action="store_true", help="write the overlay's settings over the cluster's")
    parser.add_argument("--seconds", type=int, default=READY_SECONDS, help="how long to wait for the Pod")
    given = parser.parse_args(arguments)
    try:
        with cluster.pinned():
            deploy(given)
    except StopError as exc:
        print(f"deploy: {exc}", file=sys.stderr)
        return 1
    return 0


def deploy(given: argparse.Namespace) -> None:
    if given.image is not None and not given.image.strip():
        raise StopError("The image has an empty name; nothing was applied. IMG=registry/name:tag names one.")
    objects = with_image(render(given.overlay), given.image or "")
    deployment = manager_in(objects)
    problems = [problem for item in objects for problem in settings_problems(item)]
    if problems:
        raise StopError(f"The settings in {given.overlay} are wrong; nothing was applied.\n" + "\n".join(problems))
    namespaces = get("namespaces")
    problems = [
        *missing_namespaces(objects, [item["metadata"]["name"] for item in namespaces]),
        *ending_namespaces(objects, namespaces),
        *missing_kinds(objects, cluster.unserved(objects)),
        *(other_scopes(deployment, live_one(deployment)) if not given.force else ()),
    ]
    if problems:
        raise StopError("Nothing was applied.\n" + "\n".join(problems))
    if given.dry_run:
        rehearse(objects, {item["metadata"]["name"] for item in namespaces}, given)
        return
    apply(objects, given)
    wait(deployment, given.seconds)


def live_one(deployment: Object) -> list[Object]:
    """The Deployment as it is in the cluster, if it is there.

    :raises StopError: it is not ours to change
    """
    name = name_of(deployment)
    live = get("deployment", name.name, "--namespace", name.namespace)
    if any(cluster.is_of_olm(item) for item in live):
        raise StopError(f"Nothing was applied. {name} {cluster.OF_OLM}")
    return live


def other_scopes(deployment: Object, live: t.Iterable[Object]) -> list[str]:
    """What would no longer be looked after, or be from now on, though nobody said so."""
    wanted = cluster.watched(deployment)
    return [
        f"{name_of(item)} watches {cluster.scope_text(cluster.watched(item))}, and would watch "
        f"{cluster.scope_text(wanted)}. OVERLAY=... names the overlay that it is from; FORCE=yes changes what it "
        "watches, and leaves the rights that it had before."
        for item in live
        if cluster.watched(item) != wanted
    ]


def with_image(objects: list[Object], image: str) -> list[Object]:
    """The same objects, with another image in the operator's container.

    :raises StopError: the overlay has no container of that image
    """
    if not image:
        return objects
    copies: list[Object] = json.loads(json.dumps(objects))
    containers = manager_in(copies)["spec"]["template"]["spec"]["containers"]
    found = [item for item in containers if item["name"] == "manager"]
    if len(found) != 1:
        raise StopError("The operator's Deployment has no container `manager` whose image could be set.")
    found[0]["image"] = image
    return copies


def options() -> dict[str, str]:
    """Settings that there are, with their types."""
    known = {}
    for role, names in KNOWN.items():
        text = (ROOT / f"roles/{role}/meta/argument_specs.yml").read_text()
        specs = yaml.safe_load(text)["argument_specs"]["main"]["options"]
        known.update({f"{role}_{name}": specs[f"{role}_{name}"]["type"] for name in names})
    return known


def is_settings(item: Object) -> bool:
    return item["kind"] == "ConfigMap" and SETTINGS in item["metadata"]["name"]


def settings_problems(item: Object) -> list[str]:
    """What is wrong with the settings; a name that is misspelt would be no setting at all, and nobody would say so."""
    if not is_settings(item):
        return []
    try:
        given = yaml.safe_load((item.get("data") or {}).get("settings.yml", ""))
    except yaml.YAMLError as exc:
        return [f"settings.yml is no YAML: {exc}"]
    if not isinstance(given, dict):
        return ["settings.yml has to be a mapping; {} is an empty one"]
    known = options()
    problems = [
        f"{name} is no setting; there are {', '.join(sorted(known))}" for name in sorted(map(str, given.keys() - known))
    ]
    for name in sorted(given.keys() & known):
        wanted = TYPES[known[name]]
        if not isinstance(given[name], wanted) or (isinstance(given[name], bool) and wanted is not bool):
            problems.append(f"{name} has to be of type {known[name]}")
        elif name in BOUNDS and not BOUNDS[name][0] <= given[name] <= BOUNDS[name][1]:
            problems.append(f"{name} has to be from {BOUNDS[name][0]} to {BOUNDS[name][1]}")
        elif name in ELEMENTS and not all(isinstance(entry, ELEMENTS[name][0]) for entry in given[name]):
            problems.append(f"{name} has to be a list of {ELEMENTS[name][1]}")
        elif name in CHECKS:
            problems += _objection(name, given[name])
    return problems


def _objection(name: str, value: t.Any) -> list[str]:
    try:
        CHECKS[name](value)
    except StewardError as exc:
        return [f"{name}: {exc}"]
    return []


def missing_namespaces(objects: t.Iterable[Object], there: t.Collection[str]) -> list[str]:
    """Namespaces that objects are in, that are not there, and that are not among the objects."""
    objects = list(objects)
    made = {item["metadata"]["name"] for item in objects if item["kind"] == "Namespace"}
    return [
        f"There is no namespace {name}. Make it, or name another one: the one that is watched is named in "
        "config/single-namespace/watched/kustomization.yaml."
        for name in sorted({name_of(item).namespace for item in objects} - made - set(there) - {""})
    ]


def ending_namespaces(objects: t.Iterable[Object], namespaces: t.Iterable[Object]) -> list[str]:
    """Namespaces of objects that are being deleted: nothing new can be put there, and all of it would go with them."""
    used = {name_of(item).namespace for item in objects}
    ending = [x["metadata"]["name"] for x in namespaces if "deletionTimestamp" in x["metadata"]]
    return [f"The namespace {name} is being deleted: wait until it is gone." for name in ending if name in used]


def missing_kinds(objects: t.Iterable[Object], unserved: t.Iterable[Object]) -> list[str]:
    """Objects of kinds that are neither served nor come with the overlay."""
    crds = [item["spec"] for item in objects if item["kind"] == "CustomResourceDefinition"]
    made = {(spec["group"], spec["names"]["kind"]) for spec in crds}
    return [
        f"The API server has no kind {item['kind']} of {item['apiVersion']}, which {name_of(item)} is of. Leave it out "
        "by a patch in an overlay ($patch: delete); ValidatingAdmissionPolicies come with Kubernetes 1.30."
        for item in unserved
        if (item["apiVersion"].partition("/")[0], item["kind"]) not in made
    ]


def rehearse(objects: list[Object], there: t.Collection[str], given: argparse.Namespace) -> None:
    """Ask the API server what it would say; what is in a namespace that is yet to be made it cannot.

    :raises StopError: something would be refused
    """
    askable = [item for item in objects if name_of(item).namespace in {"", *there}]
    apply(askable, given)
    for item in objects:
        if item not in askable:
            say(f"{name_of(item)} would be created with its namespace")


def apply(objects: list[Object], given: argparse.Namespace) -> None:
    """Write everything, kinds first.

    :raises StopError: something was refused; what came before is there
    """
    kinds = [item for item in objects if item["kind"] == "CustomResourceDefinition"]
    namespaces = [item for item in objects if item["kind"] == "Namespace"]
    settings = [item for item in objects if is_settings(item)]
    rest = [item for item in objects if item not in [*kinds, *namespaces, *settings]]
    dry = ["--dry-run=server"] if given.dry_run else []
    more = [*dry, *(["--force-conflicts"] if given.force else [])]
    _apply([*namespaces, *kinds], more)
    if not dry:
        _wait_for(kinds)
    for item in settings:
        _apply_settings(item, [*dry, *(["--force-conflicts"] if given.force_settings else [])])
    _apply(rest, more)


def _wait_for(kinds: t.Iterable[Object]) -> None:
    for item in kinds:
        name = item["metadata"]["name"]
        if name in CRDS.values():
            kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{name}", seconds=60)


def _apply(objects: list[Object], more: t.Sequence[str]) -> None:
    if not objects:
        return
    done = call("apply", "--server-side", *more, "-f", "-", stdin=as_list(objects))
    say(done.stdout.rstrip())
    if done.returncode:
        hint = "\nFORCE=yes takes over what others set." if "conflict" in done.stderr else ""
        raise StopError(f"The API server refused some of it:\n{done.stderr.strip()}{hint}")


def _apply_settings(item: Object, more: t.Sequence[str]) -> None:
    done = call("apply", "--server-side", "--field-manager", SETTINGS_MANAGER, *more, "-f", "-", stdin=item)
    if done.returncode == 0:
        say(done.stdout.rstrip())
    elif "conflict" in done.stderr:
        say(f"{name_of(item)} stays as somebody wrote it in the cluster (FORCE=settings writes the overlay's)")
        meta = item["metadata"]
        for kept in get("configmap", meta["name"], "--namespace", meta["namespace"]):
            if _allows_no_registry(kept):
                say(
                    "update_allowed_registries is an empty list there: it allows no registry, no line at all allows all"
                )
    else:
        raise StopError(f"The API server refused the settings:\n{done.stderr.strip()}")


def _allows_no_registry(item: Object) -> bool:
    """Until 1.0.0 an empty list allowed all, and the settings that were shipped had one."""
    try:
        given = yaml.safe_load((item.get("data") or {}).get("settings.yml", ""))
    except yaml.YAMLError:
        return False
    return isinstance(given, dict) and given.get("update_allowed_registries") == []


def as_list(objects: list[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def wait(deployment: Object, seconds: int) -> None:
    """Until the Pod is ready.

    :raises StopError: it is not, with what is known of the reason
    """
    name = name_of(deployment)
    where = ["--namespace", name.namespace]
    status = ["rollout", "status", f"deployment/{name.name}", *where, f"--timeout={seconds}s"]
    done = call(*status, seconds=seconds)
    if done.returncode == 0:
        say(f"{name} is ready")
        return
    selector = ",".join(f"{key}={value}" for key, value in MANAGER.items())
    pods = get("pods", *where, "-l", selector)
    lines = [
        *reasons(get("deployment", name.name, *where), pods),
        *events(get("events", *where))[-EVENT_LINES:],
        *_last_words(pods, where),
    ]
    raise StopError(f"{name} is not ready after {seconds} s:\n" + "\n".join(f"  {line}" for line in lines))


def reasons(deployments: t.Iterable[Object], pods: t.Iterable[Object]) -> list[str]:
    """Why Pods are missing or not ready, in the cluster's words."""
    lines = []
    for item in deployments:
        for condition in item.get("status", {}).get("conditions", ()):
            if condition["type"] == "ReplicaFailure" or condition["status"] == "False":
                lines.append(f"{name_of(item)}: {condition.get('reason')}: {condition.get('message')}")
    for pod in pods:
        status = pod.get("status", {})
        for condition in status.get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                lines.append(f"{name_of(pod)}: {condition.get('reason')}: {condition.get('message')}")
        for container in status.get("containerStatuses", ()):
            lines += [f"{name_of(pod)}: {text}" for text in _troubles(container)]
    return lines


def _troubles(container: Object) -> list[str]:
    found = []
    for when, state in (("", container.get("state", {})), ("before that ", container.get("lastState", {}))):
        for what in ("waiting", "terminated"):
            if what in state:
                detail = state[what]
                code = f", exit {detail['exitCode']}" if "exitCode" in detail else ""
                found.append(f"{when}{what}: {detail.get('reason')}{code}: {(detail.get('message') or '').strip()}")
    return found


def events(items: t.Iterable[Object]) -> list[str]:
    """Warnings about the operator's objects, the last one at the end."""
    about = [x for x in items if x.get("type") == "Warning" and IMAGE in x["involvedObject"].get("name", "")]
    about.sort(key=lambda x: x.get("lastTimestamp") or x.get("eventTime") or "")
    return [f"{x['involvedObject']['kind']} {x['involvedObject']['name']}: {x.get('message', '')}" for x in about]


def _last_words(pods: t.Iterable[Object], where: t.Sequence[str]) -> list[str]:
    lines = []
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses", ()):
            if container.get("restartCount") or "running" in container.get("state", {}):
                previous = [] if "running" in container["state"] else ["--previous"]
                done = call("logs", pod["metadata"]["name"], *where, f"--tail={LOG_LINES}", *previous)
                lines += [f"log of {pod['metadata']['name']}: {line}" for line in done.stdout.splitlines()]
    return lines


if __name__ == "__main__":
    sys.exit(main())

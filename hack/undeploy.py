# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the operator out: stop it, let go of what it looks after, then remove it. Its kinds and all resources stay.

Run by `make undeploy`. A failure leaves the operator stopped and installed; another run goes on from there, and one
after that changes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow
from ansible_collections.kubesteward.core.plugins.module_utils.images.release import STAYS
from hack import cluster
from hack.cluster import CRDS, FINALIZER, ROOT, Found, Object, StopError, call, get, kubectl, name_of, say

STOP_SECONDS = 180
PASS_SECONDS = 600
DELETE_SECONDS = 120
BATCH = 200
KEEPS = ("digests", "namespaces")
#: objects that are in a namespace by themselves, as kubectl names them
BY_ITSELF = {
    "configmap/kube-root-ca.crt",
    "configmap/openshift-service-ca.crt",
    "serviceaccount/default",
}
#: kinds that say something of other objects, or go with them
PASSING = (
    "bindings",
    "events",
    "events.events.k8s.io",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "pods.metrics.k8s.io",
    "localsubjectaccessreviews.authorization.k8s.io",
)


def main(arguments: t.Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--overlay", default="config/default", help="the kustomization that was installed")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, write nothing")
    parser.add_argument("--keep", action="append", default=[], choices=KEEPS, help="what is not let go")
    what = "put tags back also where they name a digest that failed"
    parser.add_argument("--force", action="append", default=[], choices=["tags"], help=what)
    given = parser.parse_args(arguments)
    try:
        with cluster.pinned():
            undeploy(given.overlay, frozenset(given.keep), given.dry_run, bool(given.force))
    except StopError as exc:
        print(f"undeploy: {exc}", file=sys.stderr)
        return 1
    return 0


def undeploy(overlay: str, keep: frozenset[str], dry_run: bool, force: bool = False) -> None:
    objects = cluster.render(overlay)
    deployment = cluster.manager_in(objects)
    if is_installed(deployment):
        let_go(deployment, keep, dry_run, force)
    else:
        say(f"{name_of(deployment)} is not installed; others may look after what there is, so nothing is let go")
        for line in left_behind(cluster.look(cluster.watched(deployment))):
            say(line)
    remove(objects, deployment, dry_run)
    say("the kinds and all resources stay; make uninstall takes them away")


def left_behind(found: Found) -> list[str]:
    """What somebody's passes have left, and how to let go of it where that somebody is gone."""
    kinds = (
        (len(found.followed), "objects keep a digest in place of the tag"),
        (len(found.claimed), "Namespaces are held by Nspros"),
        (len(found.held_by_finalizers), "Nspros have a finalizer"),
    )
    lines = [f"{count} {what}" for count, what in kinds if count]
    return [*lines, f"{cluster.RELEASE} lets go of it where no operator runs"] if lines else []


def is_installed(deployment: Object) -> bool:
    """False where others may look after what there is. Its account goes last, so a run that failed counts as installed.

    :raises StopError: another overlay was installed
    """
    name = name_of(deployment)
    where = ["--namespace", name.namespace]
    live = get("deployment", name.name, *where)
    if live and cluster.is_of_olm(live[0]):
        raise StopError(f"{name} {cluster.OF_OLM}")
    if live and cluster.watched(live[0]) != cluster.watched(deployment):
        seen = cluster.scope_text(cluster.watched(live[0]))
        raise StopError(f"{name} watches {seen}, which this overlay does not say. Name the one it is from: OVERLAY=...")
    account = deployment["spec"]["template"]["spec"].get("serviceAccountName", "default")
    return bool(live) or bool(get("serviceaccount", account, *where))


def let_go(deployment: Object, keep: frozenset[str], dry_run: bool, force: bool) -> None:
    """Stop the operator and undo what it did.

    :raises StopError: something is left
    """
    scope = cluster.watched(deployment)
    say(f"watched: {cluster.scope_text(scope)}")
    problems = rivals(deployment, cluster.managers())
    if problems:
        raise StopError("Nothing was changed.\n" + "\n".join(problems))
    # whoever may not read it all is told so while the operator still works
    cluster.look(scope)
    stop(deployment, dry_run)
    found = cluster.look(scope)
    problems = [] if "digests" in keep else release_images(found, dry_run, force)
    problems += [] if "namespaces" in keep else release_namespaces(found, dry_run)
    if not problems:
        problems = remove_finalizers(found, dry_run)
    if not dry_run and not problems:
        problems = left_over(cluster.look(scope), keep)
    if problems:
        state = "It would be" if dry_run else "The operator is stopped, and"
        raise StopError(f"{state} not removed. Mend this, then run it again:\n" + "\n".join(problems))


def rivals(deployment: Object, managers: t.Iterable[Object]) -> list[str]:
    """Other operators that work on the same, and would take back what is let go."""
    scope = cluster.watched(deployment)
    problems = []
    for item in managers:
        if name_of(item) == name_of(deployment) or item["spec"].get("replicas") == 0:
            continue
        # where OLM says what is watched, it is not in the Deployment
        seen = frozenset() if cluster.is_of_olm(item) else cluster.watched(item)
        if not scope or not seen or scope & seen:
            problems.append(
                f"{name_of(item)} is another operator that works on the same, and would take back what is let go: take "
                "that one out first, or scale it to 0."
            )
    return problems


def stop(deployment: Object, dry_run: bool) -> None:
    """Delete its Deployment and wait for the Pods to end, or it would take back what is let go."""
    name = name_of(deployment)
    where = ["--namespace", name.namespace]
    if not get("deployment", name.name, *where):
        say(f"{name} is not there")
        return
    if dry_run:
        say(f"{name} would be stopped")
        return
    patience = f"--timeout={STOP_SECONDS}s"
    # foreground: it is gone after its Pods are
    kubectl("delete", "deployment", name.name, *where, "--cascade=foreground", patience, seconds=STOP_SECONDS)
    say(f"{name} is stopped")


def release_images(found: Found, dry_run: bool, force: bool = False) -> list[str]:
    """Put the followed tags back, one namespace after the other; what went wrong."""
    problems = []
    batches = [(x, batch) for x, items in by_namespace(found.followed).items() for batch in in_batches(items)]
    for namespace, items in batches:
        targets = [{"kind": item["kind"], "name": item["metadata"]["name"]} for item in items]
        # all containers, whichever an Update follows or ignores: a name that no container has is ignored
        variables = {"update_targets": targets, "update_containers": {"ignore": ["-"]}, "update_state": "released"}
        problem = play("update", {"update_namespace": namespace, "update_force": force, **variables}, dry_run)
        problems += [problem] if problem else []
        if not problem:
            what = "would get their tags back" if dry_run else "have their tags back, but where a digest stays"
            say(f"{', '.join(str(name_of(item)) for item in items)}: {what}")
    return problems


def release_namespaces(found: Found, dry_run: bool) -> list[str]:
    """Let every Namespace of Nspros go, without deleting any; what went wrong."""
    problems = []
    for home in found.homes:
        problem = play("nspro", {"nspro_namespace": home, "nspro_state": "released", "nspro_all": True}, dry_run)
        problems += [problem] if problem else []
        if not problem:
            say(f"{home}: the Namespaces of its Nspros {'would stay' if dry_run else 'stay'}, without anything of ours")
    return problems


def by_namespace(items: t.Iterable[Object]) -> dict[str, list[Object]]:
    grouped: dict[str, list[Object]] = {}
    for item in sorted(items, key=lambda item: str(name_of(item))):
        grouped.setdefault(item["metadata"]["namespace"], []).append(item)
    return grouped


def in_batches(items: list[Object]) -> list[list[Object]]:
    """As many as a command line has room for; Linux ends an argument at 128 KiB."""
    return [items[start : start + BATCH] for start in range(0, len(items), BATCH)]


def play(name: str, variables: Object, dry_run: bool) -> str:
    """Run a playbook of the collection; an empty text, or what it printed where it failed."""
    more = ["--check", "--diff"] if dry_run else []
    playbook = f"kubesteward.core.{name}"
    command = [str(Path(sys.executable).with_name("ansible-playbook")), playbook, "-e", json.dumps(variables), *more]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            # no counters: nobody takes them any more
            env={**{k: v for k, v in os.environ.items() if k != "KUBESTEWARD_METRICS_URL"}, "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PASS_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{playbook} {json.dumps(variables)} has no end after {PASS_SECONDS} s"
    if dry_run and done.returncode == 0:
        say(done.stdout.strip())
    else:
        for line in done.stdout.splitlines():
            if STAYS in line:
                say(line.strip(' ",-'))
    return "" if done.returncode == 0 else f"{playbook} {json.dumps(variables)}:\n{done.stdout}{done.stderr}"


def remove_finalizers(found: Found, dry_run: bool) -> list[str]:
    """Take our finalizer off every Nspro, those of others stay; what went wrong."""
    problems = []
    for item in found.held_by_finalizers:
        name = name_of(item)
        if dry_run:
            say(f"{name}: its finalizer would be removed")
            continue
        problem = remove_finalizer(name)
        problems += [problem] if problem else []
        if not problem:
            say(f"{name}: its finalizer is removed")
    return problems


def remove_finalizer(name: cluster.Name, attempts: int = 3) -> str:
    """Take our finalizer off a Nspro as it is now; an empty text, or the API server's words."""
    problem = ""
    for _attempt in range(attempts):
        live = get(CRDS["Nspro"], name.name, "--namespace", name.namespace)
        operations = without_finalizer(live[0]) if live else []
        if not operations:
            return ""
        patch = ["--type=json", "-p", json.dumps(operations)]
        done = call("patch", CRDS["Nspro"], name.name, "--namespace", name.namespace, *patch)
        if done.returncode == 0 or "not found" in done.stderr:
            return ""
        problem = f"{name}: {done.stderr.strip()}"
    return problem


def without_finalizer(item: Object) -> list[Object]:
    """The JSON patch that takes away our finalizer and no other; empty where there is none."""
    finalizers = item["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        return []
    path = f"/metadata/finalizers/{finalizers.index(FINALIZER)}"
    return [{"op": "test", "path": path, "value": FINALIZER}, {"op": "remove", "path": path}]


def left_over(found: Found, keep: t.Collection[str]) -> list[str]:
    """What should have been let go and was not."""
    problems = [f"{name_of(item)} still has its finalizer" for item in found.held_by_finalizers]
    if "digests" not in keep:
        way = f"put the image right and remove its annotation {follow.ANNOTATION}"
        problems += [f"{name_of(item)} still follows a tag by its digest: {way}" for item in found.followed]
    if "namespaces" not in keep:
        problems += [f"the Namespace {name} is still held by the Nspro {by}" for name, by in found.claimed.items()]
    return problems


def remove(objects: t.Iterable[Object], deployment: Object, dry_run: bool) -> None:
    """Delete what the overlay installs, without the kinds, and its Namespace only where nothing of others is in it."""
    mine = [item for item in objects if item["kind"] not in ("CustomResourceDefinition", "Namespace")]
    namespaces = [item["metadata"]["name"] for item in objects if item["kind"] == "Namespace"]
    if dry_run:
        for item in mine:
            say(f"{name_of(item)} would be deleted, if it is there")
        for name in namespaces:
            say(f"Namespace/{name} would be deleted, if nothing else is in it")
        return
    # what has gone with its kind is gone, and kubectl would fail over it
    unserved = cluster.unserved(mine)
    listed = {"apiVersion": "v1", "kind": "List", "items": [bare(item) for item in mine if item not in unserved]}
    patience = f"--timeout={DELETE_SECONDS}s"
    text = kubectl("delete", "--ignore-not-found", patience, "-f", "-", stdin=listed, seconds=DELETE_SECONDS)
    say(text.rstrip() or "nothing else was there")
    where = ["--namespace", name_of(deployment).namespace]
    kubectl("delete", "lease", lease_of(deployment), *where, "--ignore-not-found")
    for name in namespaces:
        _remove_namespace(name)


def bare(item: Object) -> Object:
    """Enough of an object to delete it."""
    meta = {key: item["metadata"][key] for key in ("name", "namespace") if key in item["metadata"]}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": meta}


def lease_of(deployment: Object) -> str:
    """Name of the Lease that the operator's leader holds."""
    flag = "--leader-election-id="
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        for argument in container.get("args") or ():
            if argument.startswith(flag):
                return argument.removeprefix(flag)
    raise StopError(f"The operator's Deployment has no {flag}..., which its Lease is named by.")


def _remove_namespace(name: str) -> None:
    if not get("namespace", name):
        return
    others = strangers(name)
    if others:
        say(f"the Namespace {name} stays: in it are {', '.join(others)}")
        return
    patience = f"--timeout={DELETE_SECONDS}s"
    say(kubectl("delete", "namespace", name, "--ignore-not-found", patience, seconds=DELETE_SECONDS).rstrip())


def strangers(namespace: str) -> list[str]:
    """What is in a namespace and did not come with it; resources of any kind."""
    kinds = kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
    asked = ",".join(kind for kind in kinds if kind not in PASSING)
    found = kubectl("get", asked, "--namespace", namespace, "--ignore-not-found", "-o", "name").split()
    return sorted(item for item in found if item not in BY_ITSELF)


if __name__ == "__main__":
    sys.exit(main())

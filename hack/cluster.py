# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of whoever calls, by kubectl: what deploy, undeploy and uninstall have in common."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import tempfile
import typing as t
from pathlib import Path

import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims

ROOT = Path(__file__).resolve().parent.parent
Object = dict[str, t.Any]

REQUEST_SECONDS = 60
RENDER_SECONDS = 60
IMAGE = "kubesteward"
MANAGER = {"app.kubernetes.io/name": "kubesteward", "app.kubernetes.io/component": "manager"}
#: lets go of everything, whether an operator was there or not
RELEASE = "ansible-playbook kubesteward.core.release"
FINALIZER = "nspro.example.com/cleanup"
#: kind -> name of its CustomResourceDefinition, which kubectl takes for the resource, too
CRDS = {
    "Start": "starts.install.sios.nginx.testing",
    "Update": "updates.install.sios.nginx.testing",
    "Nspro": "nspros.nspro.example.com",
}
#: what kubectl's library logs of each of its attempts, before kubectl says it once
ATTEMPT = re.compile(r"^[EW]\d{4} \S+ +\d+ memcache\.go:.*\n?", re.MULTILINE)
#: preferences of a person, a question before each deletion for example, are not for a program
NO_PREFERENCES = {"KUBERC": "off", "KUBECTL_KUBERC": "false"}
OF_OLM = (
    "is the Operator Lifecycle Manager's, which would make it again: its Subscription and its ClusterServiceVersion "
    "say what is installed. docs/operator.md says what to do before these are removed."
)
WORKLOADS = "deployments.apps,statefulsets.apps,daemonsets.apps,cronjobs.batch"


class StopError(Exception):
    """Why it does not go on, and what to do about it, for people."""


@dataclasses.dataclass(frozen=True)
class Name:
    """An object, as people write it: `shop/Start/web`."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}".lstrip("/")


def name_of(item: Object) -> Name:
    return Name(item["metadata"].get("namespace", ""), item["kind"], item["metadata"]["name"])


def call(*arguments: str, stdin: t.Any = None, seconds: float = REQUEST_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run kubectl; whatever its exit code is, it is returned. Other input than a text is sent as JSON.

    :raises StopError: kubectl is missing or does not end
    """
    text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
    try:
        return subprocess.run(
            ["kubectl", f"--request-timeout={REQUEST_SECONDS}s", *arguments],
            cwd=ROOT,
            env={**os.environ, **NO_PREFERENCES},
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=seconds + 2 * REQUEST_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise StopError("There is no kubectl on PATH; install it, and point KUBECONFIG to the cluster.") from None
    except subprocess.TimeoutExpired as exc:
        raise StopError(f"kubectl {' '.join(arguments)} has no end after {exc.timeout:.0f} s.") from None


@contextlib.contextmanager
def pinned() -> t.Iterator[None]:
    """Hold kubectl and playbooks to one cluster, the one of kubectl's context now.

    Else kubernetes.core would take K8S_AUTH_... variables first, and the cluster that it runs in before KUBECONFIG; and
    somebody may switch the context of the file meanwhile.
    """
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="kubesteward-") as folder:
        # without a context kubectl, too, asks the cluster that it runs in
        done = call("config", "view", "--raw", "--minify", "--flatten")
        try:
            for name in [name for name in before if name.startswith("K8S_AUTH_")]:
                del os.environ[name]
            if done.returncode == 0:
                path = Path(folder, "kubeconfig")
                # the folder is its owner's alone
                path.write_text(done.stdout)
                os.environ["KUBECONFIG"] = os.environ["K8S_AUTH_KUBECONFIG"] = str(path)
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def kubectl(*arguments: str, stdin: t.Any = None, seconds: float = REQUEST_SECONDS) -> str:
    """What kubectl prints.

    :raises StopError: it fails, in its own words
    """
    done = call(*arguments, stdin=stdin, seconds=seconds)
    if done.returncode:
        raise StopError(f"kubectl {' '.join(arguments)} failed:\n{words(done.stderr) or done.stdout.strip()}")
    return done.stdout


def words(stderr: str) -> str:
    """What kubectl says of a failure, once, and what to do where no cluster answers."""
    text = ATTEMPT.sub("", stderr).strip() or stderr.strip()
    unreachable = "connection to the server" in text or "Unable to connect to the server" in text
    hint = "\nPoint KUBECONFIG to the cluster; without one kubectl asks localhost:8080." if unreachable else ""
    return f"{text}{hint}"


def get(*arguments: str) -> list[Object]:
    """Objects that `kubectl get` finds; none where the one that is named is not there."""
    text = kubectl("get", *arguments, "--ignore-not-found", "-o", "json")
    found = json.loads(text) if text.strip() else {"items": []}
    return found.get("items", [found])


def render(overlay: str) -> list[Object]:
    """The objects of a kustomization.

    :raises StopError: there is none, or it is wrong
    """
    done = call("kustomize", overlay, seconds=RENDER_SECONDS)
    if done.returncode:
        raise StopError(f"{overlay} is no kustomization that kubectl can render:\n{done.stderr.strip()}")
    return [_as_it_is_stored(item) for item in yaml.safe_load_all(done.stdout) if item]


def _as_it_is_stored(item: Object) -> Object:
    # an overlay's `namespace:` is given to these, too, since kustomize does not know that they are in none
    if item["apiVersion"].startswith("admissionregistration.k8s.io/"):
        item["metadata"].pop("namespace", None)
    return item


def manager_in(objects: t.Iterable[Object]) -> Object:
    """The Deployment of the operator.

    :raises StopError: there is not just one
    """
    found = [item for item in objects if item["kind"] == "Deployment" and is_manager(item)]
    if len(found) != 1:
        raise StopError(f"The overlay has {len(found)} Deployments of the operator (labels {MANAGER}); it needs one.")
    return found[0]


def is_manager(item: Object) -> bool:
    labels = (item["spec"]["template"].get("metadata") or {}).get("labels") or {}
    return MANAGER.items() <= labels.items()


def unserved(objects: t.Iterable[Object]) -> list[Object]:
    """Objects of kinds that the API server does not have.

    :raises StopError: it does not say which it has
    """
    objects = list(objects)
    kinds = {version: _kinds(version) for version in {item["apiVersion"] for item in objects}}
    return [item for item in objects if item["kind"] not in kinds[item["apiVersion"]]]


def _kinds(version: str) -> set[str]:
    done = call("get", "--raw", f"/apis/{version}" if "/" in version else f"/api/{version}")
    if done.returncode == 0:
        return {item["kind"] for item in json.loads(done.stdout)["resources"]}
    if "NotFound" in done.stderr:
        return set()
    raise StopError(f"The API server does not say which kinds of {version} it has:\n{done.stderr.strip()}")


def is_of_olm(item: Object) -> bool:
    """Whether the Operator Lifecycle Manager made it, and would make it again."""
    owners = item["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] == "ClusterServiceVersion" for owner in owners)


def managers() -> list[Object]:
    """The Deployments of all operators in the cluster."""
    return [item for item in get("deployments.apps", "--all-namespaces") if is_manager(item)]


def scope_text(scope: t.Collection[str]) -> str:
    return ", ".join(sorted(scope)) or "the whole cluster"


def watched(deployment: Object) -> frozenset[str]:
    """Namespaces that the operator watches; none means all.

    :raises StopError: the manifest does not say it
    """
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env") or ():
            if variable["name"] != "WATCH_NAMESPACE":
                continue
            if "valueFrom" in variable:
                raise StopError(
                    "What WATCH_NAMESPACE is cannot be read from the Deployment; name a value in an overlay."
                )
            return frozenset(filter(None, (part.strip() for part in variable.get("value", "").split(","))))
    return frozenset()


@dataclasses.dataclass(frozen=True)
class Found:
    """What in a cluster is the operator's work.

    :ivar followed: objects whose image is a digest in place of the tag that is followed
    :ivar resources: Starts, Updates, and Nspros
    :ivar claimed: Namespace -> `namespace/name` of the Nspro that holds it, there or not
    """

    followed: tuple[Object, ...]
    resources: tuple[Object, ...]
    claimed: t.Mapping[str, str]

    def of(self, kind: str) -> list[Object]:
        return [item for item in self.resources if item["kind"] == kind]

    @property
    def homes(self) -> list[str]:
        """Namespaces of Nspros, and of those that have left a claim."""
        there = {item["metadata"]["namespace"] for item in self.of("Nspro")}
        return sorted(there | {by.partition("/")[0] for by in self.claimed.values()})

    @property
    def held_by_finalizers(self) -> list[Object]:
        """Nspros that nobody can delete once the operator is gone."""
        return [item for item in self.of("Nspro") if FINALIZER in item["metadata"].get("finalizers", ())]


def look(scope: frozenset[str] = frozenset()) -> Found:
    """Everything in these namespaces, or in the whole cluster."""
    there = served()
    resources = [item for name in CRDS.values() if name in there for item in _within(scope, name)]
    candidates = [*(item for item in resources if item["kind"] == "Start"), *_within(scope, WORKLOADS)]
    followed = [item for item in candidates if follow.ANNOTATION in (item["metadata"].get("annotations") or {})]
    claimed = claimants(get("namespaces")) if CRDS["Nspro"] in there else {}
    mine = {name: by for name, by in claimed.items() if not scope or by.partition("/")[0] in scope}
    return Found(tuple(followed), tuple(resources), mine)


def served() -> set[str]:
    """Names of the CustomResourceDefinitions of ours that are there."""
    known = set(kubectl("get", "crd", "-o", "name").split())
    return {name for name in CRDS.values() if f"customresourcedefinition.apiextensions.k8s.io/{name}" in known}


def _within(scope: frozenset[str], resources: str) -> list[Object]:
    if not scope:
        return get(resources, "--all-namespaces")
    return [item for namespace in sorted(scope) for item in get(resources, "--namespace", namespace)]


def claimants(namespaces: t.Iterable[Object]) -> dict[str, str]:
    """Namespace -> the Nspro that holds it; those of a playbook, and those that are going, are left out."""
    held = {item["metadata"]["name"]: claims.read(item) for item in namespaces if not claims.is_terminating(item)}
    return {name: claim.by for name, claim in held.items() if claim and "/" in claim.by}


def say(text: str) -> None:
    print(text, flush=True)

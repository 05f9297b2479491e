# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ServiceAccounts with just the rights of files in config/rbac, or with all of them but one."""

from __future__ import annotations

import functools
import json
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

import urllib3
import yaml
from integration.passes import ROOT

from ansible_collections.kubesteward.core.plugins.module_utils import kube_plain
from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.kube_access import USER_AGENT

Object = dict[str, t.Any]
RBAC = "rbac.authorization.k8s.io"
#: seconds until the API server must know a new role
KNOWN_SECONDS = 15
#: what a RoleBinding cannot give a right to
CLUSTER_SCOPED = ("namespaces", "nodes")


@dataclass(frozen=True)
class Right:
    """One verb on one resource; `name` is empty where every object is meant."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f' {self.name}' if self.name else ''}"

    @property
    def rule(self) -> Object:
        """A rule that gives it."""
        rule = {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]}
        return {**rule, "resourceNames": [self.name]} if self.name else rule


def refusal_of(right: Right) -> str:
    """The API server's words where that right is missing."""
    if right.verb == "bind":
        return "is attempting to grant RBAC permissions not currently held"
    return f'cannot {right.verb} resource "{right.resource}" in API group "{right.group}"'


def rights(file: str) -> list[Right]:
    """What config/rbac/<file> gives, one by one."""
    role = yaml.safe_load((ROOT / "config/rbac" / file).read_text())
    return [
        Right(group, resource, verb, name)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    ]


@dataclass
class Accounts:
    """Makes ServiceAccounts in a namespace; their roles carry its name and are removed by `close`.

    :ivar where: `cluster`, or `namespace` to bind what is in namespaces by RoleBindings in that one only
    """

    kubectl: t.Callable[..., t.Any]
    admin: Path
    namespace: str
    folder: Path
    where: str = "cluster"

    def create(self, given: t.Mapping[str, t.Iterable[Right]]) -> None:
        """New ServiceAccounts by name, each with some rights."""
        items = [item for name, held in given.items() for item in self._objects(name, held)]
        self.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})

    def _objects(self, name: str, held: t.Iterable[Right]) -> list[Object]:
        local, wide = [], []
        for right in held:
            is_wide = self.where == "cluster" or right.resource in CLUSTER_SCOPED
            (wide if is_wide else local).append(right.rule)
        made: list[Object] = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self._meta(name)}]
        if local:
            made += self._bound(name, f"{self.namespace}-{name}-local", local, {"namespace": self.namespace})
        if wide:
            made += self._bound(name, f"{self.namespace}-{name}", wide, {})
        return made

    def _meta(self, name: str) -> dict[str, str]:
        return {"name": name, "namespace": self.namespace}

    def _bound(self, account: str, name: str, rules: list[Object], where: Object) -> list[Object]:
        meta = {"name": name, "labels": {"test": self.namespace}}
        ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        subjects = [{"kind": "ServiceAccount", **self._meta(account)}]
        kind = "RoleBinding" if where else "ClusterRoleBinding"
        head = {"apiVersion": f"{RBAC}/v1"}
        return [
            {**head, "kind": "ClusterRole", "metadata": meta, "rules": rules},
            {**head, "kind": kind, "metadata": {**meta, **where}, "roleRef": ref, "subjects": subjects},
        ]

    def user(self, name: str) -> str:
        """What the API server calls a ServiceAccount."""
        return f"system:serviceaccount:{self.namespace}:{name}"

    def kubeconfig(self, name: str, known: Right | None) -> Path:
        """A kubeconfig of a ServiceAccount, once the API server knows that it has the right `known`, if any."""
        token = self.kubectl("create", "token", name, "-n", self.namespace).stdout.strip()
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(self._kubeconfig(token))
        path.chmod(0o600)
        if known:
            self._wait(path, known)
        return path

    def _kubeconfig(self, token: str) -> str:
        config = json.loads(self._of_admin)
        config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
        return json.dumps(config)

    @functools.cached_property
    def _of_admin(self) -> str:
        return self.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json").stdout

    def _wait(self, path: Path, right: Right) -> None:
        plural, _slash, below = right.resource.partition("/")
        what = f"{plural}.{right.group}" if right.group else plural
        asked = [right.verb, f"{what}/{right.name}" if right.name else what, f"--subresource={below}"]
        asked += ["-A"] if self.where == "cluster" else ["-n", self.namespace]
        deadline = time.monotonic() + KNOWN_SECONDS
        while time.monotonic() < deadline:
            if self.kubectl("--kubeconfig", str(path), "auth", "can-i", *asked, check=False).returncode == 0:
                return
            time.sleep(0.5)
        raise AssertionError(f"the API server does not know of {right} after {KNOWN_SECONDS} s")

    def close(self) -> None:
        """Remove the roles and bindings; the ServiceAccounts go with their namespace."""
        self.kubectl("delete", "clusterrolebinding,clusterrole", "-l", f"test={self.namespace}", "--wait=false")


def client(kubeconfig: Path) -> kube_plain.PlainClient:
    """What the product sends its requests with, for that kubeconfig."""
    access = kube_plain.find({"kubeconfig": str(kubeconfig)}, {"kubeconfig": "kubeconfig"}, {})
    assert access is not None
    return kube_plain.PlainClient(access, USER_AGENT, urllib3.Retry(0))


def connect(kubeconfig: Path, kind: type[Cluster] = Cluster) -> Cluster:
    """The product's own client with that kubeconfig; `kind` is it, or made of it."""
    return kind(client(kubeconfig).request)

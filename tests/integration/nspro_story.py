# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a namespace in steps, each a pass of ns_provision by some ServiceAccount."""

from __future__ import annotations

import base64
import json
import time
import typing as t
import uuid
from dataclasses import dataclass, field

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.kube import NSPRO_GROUP, ApiError, Cluster, Reference
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.nspros import Told
from ansible_collections.kubesteward.core.plugins.modules import ns_provision

Object = dict[str, t.Any]
WAIT_SECONDS = 30
ACCESS = [{"role": role, "users": ["alice"]} for role in ("admin", "edit", "view")]


def pull_secret(namespace: str, name: str = "login", password: str = "s3cret") -> Object:
    """A Secret that may be shared."""
    auth = {"auths": {"registry.example.com": {"username": "me", "password": password}}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubesteward.io/shareable": "true"}},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(json.dumps(auth).encode()).decode()},
    }


def nspro(namespace: str, name: str, **spec: t.Any) -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": NSPRO_GROUP, "kind": "Nspro", "metadata": meta, "spec": {"nssize": "small", **spec}}


def refusals(told: Told) -> list[str]:
    """What the API server did not allow."""
    texts = [*told.errors, *told.warnings]
    for result in told.results:
        texts += [result.msg, result.error, *result.warnings]
    return [text for text in texts if "forbidden" in text]


@dataclass
class Story:
    """One team's namespace: `admin` does what people do, `steward` is who runs the passes."""

    admin: Cluster
    steward: Cluster
    home: str
    name: str = field(default_factory=lambda: f"team-{uuid.uuid4().hex[:8]}")
    told: Told = field(default_factory=Told)

    def run(self, check_mode: bool = False, **options: t.Any) -> list[str]:
        """One pass; what was refused in it."""
        checked = ArgumentSpecValidator(ns_provision.argument_spec()).validate(options)
        assert not checked.error_messages
        parameters = checked.validated_parameters
        try:
            self.told = ns_provision.run(parameters, self.steward, check_mode, check_mode, conditions.now())
            return refusals(self.told)
        except ApiError as exc:
            if exc.status != 403:
                raise
            return [str(exc)]

    def write(self, **spec: t.Any) -> None:
        self.admin.apply(nspro(self.home, self.name, **spec))

    def until_default_account(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while self.admin.get("v1", "ServiceAccount", self.name, "default") is None:
            assert time.monotonic() < deadline, "no default ServiceAccount"
            time.sleep(0.1)

    def passes(self) -> t.Iterator[list[str]]:
        """Refusals of each pass from the first to the last; between them people change what they want."""
        secrets = [{"name": "login"}]
        self.write(managed=True, access=ACCESS, pullSecrets=secrets, deletion="Keep")
        yield self.run(nspros={"namespace": self.home})
        if self.admin.get("v1", "Namespace", None, self.name):
            self.until_default_account()
        yield self.run(nspros={"namespace": self.home, "name": self.name})
        self.write(nssize="medium", access=ACCESS[:2], pullSecrets=secrets, deletion="Keep", quota={"pods": 5})
        yield self.run(nspros={"namespace": self.home, "name": self.name})
        yield self.run(nspros={"namespace": self.home, "all": True}, state="released")
        self.remove()
        self.name = f"{self.name}-b"
        self.write()
        yield self.run(nspros={"namespace": self.home})
        yield self.run(nspros={"namespace": self.home, "all": True}, state="absent")

    def forecasts(self) -> t.Iterator[list[str]]:
        """The same for a change that hits somebody, in check mode."""
        self.write(nssize="large", shrink="Apply")
        yield self.run(nspros={"namespace": self.home})
        self.until_default_account()
        self._occupy()
        self.write(nssize="small", shrink="Apply", managed=True)
        yield self.run(check_mode=True, nspros={"namespace": self.home})
        yield self.run(check_mode=True, nspros={"namespace": self.home, "name": self.name}, state="absent")

    def _occupy(self) -> None:
        limits = {"limits": {"cpu": "250m", "memory": "10Mi"}}
        container = {"name": "web", "image": "registry.example.com/web", "resources": limits}
        # no node is like this: what is used counts from the moment in which the Pod is admitted
        spec = {"containers": [container], "nodeSelector": {"no": "such"}}
        meta = {"name": "web", "namespace": self.name}
        self.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        deadline = time.monotonic() + WAIT_SECONDS
        while self._used() != "250m":
            assert time.monotonic() < deadline, "the quota does not count the Pod"
            time.sleep(0.1)

    def _used(self) -> str:
        quota = self.admin.get("v1", "ResourceQuota", self.name, f"{self.name}-quota") or {}
        return ((quota.get("status") or {}).get("used") or {}).get("limits.cpu", "")

    def remove(self) -> None:
        """Take away the namespaces that were made, and the Nspros."""
        for target in (
            Reference(NSPRO_GROUP, "Nspro", self.home, self.name),
            Reference("v1", "Namespace", None, self.name),
        ):
            there = self.admin.get(target.api_version, target.kind, target.namespace, target.name)
            if there:
                self.admin.delete(target, there["metadata"]["uid"])

    def first_refusal(self, passes: t.Callable[[Story], t.Iterator[list[str]]]) -> list[str]:
        """Refusals of the first pass that has some; it is the last that takes place."""
        try:
            return next((refused for refused in passes(self) if refused), [])
        finally:
            self.remove()

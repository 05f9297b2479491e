# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nspros, what else is in a cluster, and passes of ns_provision against it."""

from __future__ import annotations

import base64
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.kube import NSPRO_GROUP
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import nspros, report
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.provision import Result
from ansible_collections.kubesteward.core.plugins.modules import ns_provision
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import FakeApi

Object = dict[str, t.Any]

HOME, NOW, LATER = "ops", "2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"
MARKER = "hunter2-marker"
DOCKER = "kubernetes.io/dockerconfigjson"
OURS = {"app.kubernetes.io/managed-by": "kubesteward"}


def cluster(*resources: Object, accounts: t.Sequence[str] = ("default",)) -> FakeApi:
    """A cluster with the namespace of the Nspros, their definition, and somebody else's namespace."""
    api = FakeApi(accounts)
    meta = {"name": nspros.CRD}
    api.put({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta})
    api.put(namespace(HOME))
    api.put(namespace("payments", labels={"team": "payments"}))
    api.put(quota("payments", {"limits.cpu": "8"}))
    api.put(policy("payments", "payments-np", [{"from": [{"podSelector": {}}]}]))
    for item in resources:
        api.put(item)
    return api


def nspro(name: str = "team-a", nssize: str = "small", home: str = HOME, **spec: t.Any) -> Object:
    """A Nspro."""
    meta = {"name": name, "namespace": home, "generation": 1}
    return {"apiVersion": NSPRO_GROUP, "kind": "Nspro", "metadata": meta, "spec": {"nssize": nssize, **spec}}


def namespace(name: str, **meta: t.Any) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **meta}}


def adoptable(name: str, by: str = "", **meta: t.Any) -> Object:
    """A Namespace that its administrator lets be taken over."""
    return namespace(name, annotations={claims.ADOPTABLE: by or f"{HOME}/{name}"}, **meta)


def quota(where: str, hard: Object, name: str = "", labels: Object | None = None) -> Object:
    meta = {"name": name or f"{where}-quota", "namespace": where, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def policy(where: str, name: str, ingress: list[Object], labels: Object | None = None) -> Object:
    meta = {"name": name, "namespace": where, "labels": labels or {}}
    spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}


def binding(where: str, name: str, role: str, labels: Object | None = None) -> Object:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": where, "labels": labels or {}},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "name": "somebody", "apiGroup": group}],
    }


def secret(name: str = "regcred", where: str = HOME, content: str = MARKER, **more: t.Any) -> Object:
    """A pull secret that may be shared."""
    data = {".dockerconfigjson": base64.b64encode(content.encode()).decode()}
    meta = {"name": name, "namespace": where, "labels": {"kubesteward.io/shareable": "true"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": DOCKER, "data": data, **more}


def params(**given: t.Any) -> Object:
    """Options of the module as Ansible hands them over."""
    spec = ns_provision.argument_spec()
    found = {name: entry.get("default") for name, entry in spec.items()}
    if given.get("nspros"):
        given["nspros"] = {"name": None, "must_exist": True, "all": False, **given["nspros"]}
    return {**found, **given}


def provision(api: FakeApi, check_mode: bool = False, now: str = NOW, **given: t.Any) -> nspros.Told:
    """One call of the module."""
    api.writes.clear()
    api.requests.clear()
    api.asked.clear()
    return ns_provision.run(params(**given), api, check_mode, check_mode, now)


def one_pass(api: FakeApi, name: str | None = None, home: str = HOME, **given: t.Any) -> nspros.Told:
    """One pass over the Nspros of a namespace, or over one of them; without a name all are meant."""
    wanted = {"namespace": home, "name": name, "must_exist": False, "all": True}
    return provision(api, nspros=wanted, **given)


def only(told: nspros.Told) -> Result:
    """The result of the only namespace."""
    (result,) = told.results
    return result


def by_name(told: nspros.Told) -> dict[str, Result]:
    return {item.name: item for item in told.results}


def settled(api: FakeApi, **given: t.Any) -> nspros.Told:
    """Passes until nothing is written any more; the last one."""
    for _attempt in range(4):
        told = one_pass(api, **given)
        if not api.writes:
            return told
    raise AssertionError(f"passes never come to rest: {api.writes}")


def writes(api: FakeApi) -> list[str]:
    """What the last pass wrote, statuses aside."""
    return [line for line in api.writes if not line.startswith("status ")]


def claim_of(api: FakeApi, name: str) -> claims.Claim | None:
    return claims.read(t.cast(Object, api.read("Namespace", None, name)))


def condition(api: FakeApi, name: str, kind: str, home: str = HOME) -> Object:
    """A condition of a Nspro's status."""
    found = api.objects[("Nspro", home, name)]["status"]["conditions"]
    return next(item for item in found if item["type"] == kind)


def visible(told: nspros.Told, api: FakeApi) -> str:
    """All that a pass shows: result, diff, warnings, errors, statuses, Events."""
    result = report.result(told.results, told.statuses, with_diff=True)
    problems = report.problems(told.results)
    statuses = [obj.get("status") for key, obj in api.objects.items() if key[0] == "Nspro"]
    return repr([result, problems, told.warnings, told.errors, statuses, api.events])

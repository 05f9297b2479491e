# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What property tests draw: specs of Nspros, sizes, and what others do in the namespace."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from hypothesis import strategies as st

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import FakeApi

Object = dict[str, t.Any]

NAME = builders.namespace("team-a")["metadata"]["name"]
MANAGERS = ("kubectl-edit", "helm", "argocd-controller", "before-first-apply")

#: one amount per line, each in the ways people write it
CPU = [
    ("100m", "0.1", "0.10", "100000u", "1e-1", "100000000n"),
    ("300m", "0.3", ".3", "300e-3"),
    ("1", "1000m", "1.0", "1e0", "0.001k"),
    ("7", "7000m", "70e-1"),
]
MEMORY = [
    ("100Mi", "104857600", "102400Ki", "104857.6k"),
    ("1Gi", "1024Mi", "1073741824"),
    ("300M", "300000k", "3e8", "300000000"),
    ("3Ki", "3072", "3.072k"),
]
COUNTS = [("10", "1e1", "10.0"), ("5",)]


def spelt(amounts: t.Sequence[t.Sequence[str]]) -> st.SearchStrategy[str]:
    return st.sampled_from(amounts).flatmap(st.sampled_from)


hard = st.fixed_dictionaries(
    {"limits.cpu": spelt(CPU), "limits.memory": spelt(MEMORY)},
    optional={"count/pods": spelt(COUNTS), "pods": spelt(COUNTS), "requests.storage": spelt(MEMORY)},
)
#: beyond every default, so that the API server accepts them together
high = st.fixed_dictionaries({}, optional={"cpu": st.just("8"), "memory": st.sampled_from(["64Gi", "65536Mi"])})
low = st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1m", "0.001"]), "memory": st.just("1Ki")})
own = st.fixed_dictionaries({}, optional={"cpu": spelt(CPU[:3]), "memory": spelt(MEMORY[:2])})
limits = st.fixed_dictionaries({}, optional={"default": own, "max": high, "min": low})
size = st.fixed_dictionaries({"quota": hard}, optional={"limit_range": limits})
sizes = st.fixed_dictionaries({"small": size, "large": size})

names = st.lists(st.sampled_from(["ann", "bob", "cy"]), min_size=1, max_size=2, unique=True)
access = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["admin", "edit", "view"]), "groups": names},
        optional={"users": names, "serviceAccounts": st.just(["default", "ops/bot"])},
    ),
    max_size=3,
)
peers = st.lists(st.sampled_from([{"team": "b"}, {"team": "c", "stage": "test"}]), max_size=2)
ports = st.lists(st.sampled_from([{"port": 80}, {"port": 53, "protocol": "UDP"}]), max_size=2)
network = st.fixed_dictionaries(
    {},
    optional={
        "sameNamespace": st.booleans(),
        "fromNamespaces": peers,
        "ports": ports,
        "restrictEgress": st.booleans(),
        "toNamespaces": peers,
        "dns": st.booleans(),
    },
)
levels = st.sampled_from(["baseline", "restricted"])
#: "10" at first: a label's value is a text, whatever amount it looks like
marks = st.dictionaries(st.sampled_from(["team", "cost/centre", "max"]), st.sampled_from(["10", "1e1", ""]))
spec = st.fixed_dictionaries(
    {"nssize": st.sampled_from(["small", "large"]), "managed": st.booleans(), "shrink": st.just("Apply")},
    optional={
        "quota": st.fixed_dictionaries({}, optional={"limits.cpu": spelt(CPU), "services": spelt(COUNTS)}),
        "limitRange": st.fixed_dictionaries({"enabled": st.booleans()}, optional={"default": own, "max": high}),
        "access": access,
        "pullSecrets": st.just([{"name": "regcred"}]) | st.just([{"name": "other", "serviceAccounts": ["builder"]}]),
        "networkPolicy": network,
        "podSecurity": st.fixed_dictionaries({}, optional={"enforce": levels, "enforceVersion": st.just("v1.33")}),
        "labels": marks,
        "annotations": marks,
        "deletion": st.sampled_from(["Delete", "Keep"]),
    },
)


@dataclasses.dataclass(frozen=True)
class Deed:
    """What somebody else does to an object, and what of it must last; `change` edits, `holds` checks."""

    kind: str
    change: t.Callable[[Object], t.Any]
    holds: t.Callable[[Object], bool] | None = None

    def do(self, api: FakeApi, manager: str) -> Object | None:
        """Do it to the first object of the kind; returns the reference, or None where there is no such object."""
        where = None if self.kind == "Namespace" else NAME
        found = [key for key in api.objects if key[0] == self.kind and key[1] == where and self._is_meant(key)]
        if not found:
            return None
        api.edit(*found[0], self.change, manager)
        return {"kind": self.kind, "key": found[0]}

    def _is_meant(self, key: t.Sequence[str | None]) -> bool:
        return self.kind != "Namespace" or key[2] == NAME


def _mark(field: str, key: str, value: str, obj: Object) -> None:
    obj["metadata"].setdefault(field, {})[key] = value


def _has(field: str, key: str, value: str, obj: Object) -> bool:
    return (obj["metadata"].get(field) or {}).get(key) == value


def _lasting(kind: str, field: str) -> Deed:
    arguments = (field, "theirs.example/key", "1")
    return Deed(kind, functools.partial(_mark, *arguments), functools.partial(_has, *arguments))


def _set(path: str, value: t.Any, obj: Object) -> None:
    *above, last = path.split("/")
    for key in above:
        obj = obj.setdefault(key, {})
    obj[last] = value


KINDS = ("Namespace", "ResourceQuota", "LimitRange", "NetworkPolicy", "RoleBinding", "Secret", "ServiceAccount")
LASTING = [_lasting(kind, field) for kind in KINDS for field in ("labels", "annotations")]
LASTING.append(
    Deed(
        "ResourceQuota",
        functools.partial(_set, "spec/hard/configmaps", "9"),
        lambda obj: obj["spec"]["hard"].get("configmaps") == "9",
    )
)
DRIFT = [
    Deed("Namespace", functools.partial(_set, "metadata/labels/size", "huge")),
    Deed("Namespace", lambda obj: obj["metadata"]["labels"].pop("managed", None)),
    Deed("ResourceQuota", functools.partial(_set, "spec/hard/limits.cpu", "99")),
    Deed("ResourceQuota", lambda obj: obj["spec"]["hard"].pop("limits.memory", None)),
    Deed("LimitRange", functools.partial(_set, "spec/limits", [{"type": "Pod", "max": {"cpu": "1"}}])),
    Deed("NetworkPolicy", functools.partial(_set, "spec/podSelector", {"matchLabels": {"app": "x"}})),
    Deed("NetworkPolicy", functools.partial(_set, "spec/ingress", [{"ports": [{"port": 1}]}])),
    Deed("NetworkPolicy", functools.partial(_set, "spec/policyTypes", ["Egress"])),
    Deed("RoleBinding", functools.partial(_set, "subjects", [])),
    Deed("RoleBinding", lambda obj: obj["metadata"].pop("labels", None)),
    Deed("Secret", functools.partial(_set, "data/.dockerconfigjson", "e30=")),
    Deed("ServiceAccount", functools.partial(_set, "imagePullSecrets", [{"name": "theirs"}])),
]
deeds = st.lists(st.tuples(st.sampled_from(LASTING + DRIFT), st.sampled_from(MANAGERS)), max_size=4)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked for one namespace, checked: from a Nspro or from a playbook. Pure."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import sizes

ADOPTION = ("Never", "IfIdentical", "Always")
DELETION = ("Delete", "Keep")
SHRINK = ("Hold", "Apply")
#: who holds a namespace that no Nspro asked for
PLAYBOOK = "playbook"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
#: labels that other objects' rules read: `app: infra` would open other teams' policies
_TAKEN = ("app", "size", "managed")
_TAKEN_DOMAINS = (
    *("kubernetes.io", "k8s.io", "x-k8s.io", "openshift.io", "kubesteward.io"),
    # whose resource the operator wakes, whose project or tenant a namespace is in, and what its Pods are in a cloud
    *("operator-sdk", "cattle.io", "capsule.clastix.io", "iam.amazonaws.com", "cnrm.cloud.google.com"),
)
#: everybody, and nobody: rights for these are rights for strangers
_STRANGERS = (
    *("system:anonymous", "system:unauthenticated", "system:authenticated", "system:masters"),
    *("system:serviceaccounts", "system:authenticated:oauth"),
)
_LEVELS = ("privileged", "baseline", "restricted")


@dataclasses.dataclass(frozen=True)
class Access:
    """A ClusterRole, and who has it in the namespace. Service accounts are `name` or `namespace/name`."""

    role: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    service_accounts: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class PullSecret:
    """A Secret to copy, and the ServiceAccounts that use it."""

    name: str
    service_accounts: tuple[str, ...] = ("default",)


@dataclasses.dataclass(frozen=True)
class Network:
    """What the policy allows beside the managed rule.

    :ivar same_namespace: Pods of the namespace reach each other
    :ivar peers: labels of further namespaces whose Pods may come in
    :ivar ports: ports that are open to everybody, for callers without a Pod network; {`port`, `protocol`}
    :ivar restrict_egress: Pods reach only DNS, their own namespace and `egress_peers`
    :ivar dns: DNS stays reachable where egress is restricted
    """

    same_namespace: bool = False
    peers: tuple[t.Mapping[str, str], ...] = ()
    ports: tuple[t.Mapping[str, t.Any], ...] = ()
    restrict_egress: bool = False
    egress_peers: tuple[t.Mapping[str, str], ...] = ()
    dns: bool = True


@dataclasses.dataclass(frozen=True)
class Request:
    """One namespace as it is wanted; `claimant` is `namespace/name` of a Nspro, or `playbook`.

    :ivar limit_range: what differs from half of the quota; None where no LimitRange is wanted
    :ivar deletion: `Delete`, `Keep`, or empty: created ones are deleted, adopted ones kept
    """

    name: str
    size: str
    managed: bool = False
    claimant: str = PLAYBOOK
    quota: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    limit_range: t.Mapping[str, t.Mapping[str, str]] | None = dataclasses.field(default_factory=dict)
    access: tuple[Access, ...] = ()
    pull_secrets: tuple[PullSecret, ...] = ()
    network: Network = Network()
    pod_security: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    adoption: str = "Never"
    deletion: str = ""
    shrink: str = "Hold"

    @property
    def source_namespace(self) -> str | None:
        """Where pull secrets are copied from: the Nspro's own namespace."""
        return self.claimant.partition("/")[0] if "/" in self.claimant else None


def of_resource(nspro: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A Nspro's spec in the form of the module's options."""
    spec = nspro.get("spec") or {}
    found = {_snake(key): value for key, value in spec.items()}
    found["size"] = found.pop("nssize", None)
    for option in ("network_policy", "limit_range", "pod_security"):
        if found.get(option):
            found[option] = {_snake(key): value for key, value in found[option].items()}
    for option in ("access", "pull_secrets"):
        found[option] = [{_snake(key): value for key, value in entry.items()} for entry in found.get(option) or ()]
    return {**found, "name": nspro["metadata"]["name"]}


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: "_" + found[0].lower(), name)


def read(entry: t.Mapping[str, t.Any], claimant: str, roles: t.Collection[str], known: t.Container[str]) -> Request:
    """Check what is asked for.

    :param entry: `name`, `size`, `managed`, ... as the module's options have them
    :param roles: ClusterRoles that may be given
    :param known: names of sizes
    :raises StewardError: something is not as it must be; the message says what, and where
    """
    name = name_of(entry)
    size = entry.get("size")
    if size not in known:
        raise StewardError(f"size {size!r} is not known; the administrator has defined other ones", size=size)
    network = entry.get("network_policy") or {}
    limit_range = entry.get("limit_range") or {}
    wants_limits = limit_range.get("enabled") is not False
    given_limits = {key: value for key, value in limit_range.items() if key != "enabled" and value}
    return Request(
        name=name,
        size=t.cast(str, size),
        managed=bool(entry.get("managed")),
        claimant=claimant,
        quota=sizes.amounts(entry.get("quota") or {}, "quota"),
        limit_range=sizes.limits(given_limits, "limit_range") if wants_limits else None,
        access=tuple(_access(item, roles) for item in entry.get("access") or ()),
        pull_secrets=_pull_secrets(entry.get("pull_secrets") or (), claimant),
        network=_network(network),
        pod_security=_pod_security(entry.get("pod_security") or {}),
        labels=_own(entry.get("labels") or {}, "labels", _VALUE),
        annotations=_own(entry.get("annotations") or {}, "annotations", None),
        adoption=_choice(entry, "adoption", ADOPTION, "Never"),
        deletion=_choice(entry, "deletion", ("", *DELETION), ""),
        shrink=_choice(entry, "shrink", SHRINK, "Hold"),
    )


def name_of(entry: t.Mapping[str, t.Any]) -> str:
    """The name of the namespace that is asked for.

    :raises StewardError: it is none
    """
    name = str(entry.get("name") or "")
    if not _NAME.fullmatch(name):
        raise StewardError(f"{name!r} is no name of a namespace: at most 63 of a-z, 0-9 and -, not - at either end")
    return name


def _choice(entry: t.Mapping[str, t.Any], option: str, values: t.Sequence[str], default: str) -> str:
    found = entry.get(option) or default
    if found not in values:
        raise StewardError(f"{option} is {found!r}; it can be {', '.join(filter(None, values))}")
    return found


def _own(given: t.Mapping[str, t.Any], what: str, value_form: re.Pattern[str] | None) -> dict[str, str]:
    """A person's own labels or annotations; none that rules of others or of ours read."""
    for key, value in given.items():
        _check_text(key, value, what)
        domain = key.partition("/")[0] if "/" in key else ""
        taken = any(domain == item or domain.endswith(f".{item}") for item in _TAKEN_DOMAINS)
        if taken or (what == "labels" and key in _TAKEN):
            raise StewardError(f"{what}: {key} is not yours to set; others' rules or this product read it")
        _check_form(key, value, value_form, what)
    return {key: str(value) for key, value in given.items()}


def _check_text(key: t.Any, value: t.Any, what: str) -> None:
    if not isinstance(key, str) or isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise StewardError(f"{what}: {key}: {value!r} is no text; quote what YAML would read as something else")


def _check_form(key: str, value: t.Any, value_form: re.Pattern[str] | None, what: str) -> None:
    if not _KEY.fullmatch(key) or (value_form and not value_form.fullmatch(str(value))):
        raise StewardError(f"{what}: {key}: {value!r} has a form that the API server refuses")


def _access(entry: t.Mapping[str, t.Any], roles: t.Collection[str]) -> Access:
    role = entry.get("role")
    if role not in roles:
        raise StewardError(f"access: role {role!r} may not be given; allowed are {', '.join(sorted(roles))}")
    found = Access(
        t.cast(str, role),
        *(tuple(entry.get(key) or ()) for key in ("users", "groups", "service_accounts")),
    )
    subjects = (*found.users, *found.groups)
    for subject in subjects:
        if subject in _STRANGERS or not subject:
            raise StewardError(f"access: {role} for {subject!r} would be rights for strangers")
    for account in found.service_accounts:
        if not all(_NAME.fullmatch(part) for part in account.split("/")) or account.count("/") > 1:
            raise StewardError(f"access: service account {account!r} is neither name nor namespace/name")
    if not (subjects or found.service_accounts):
        raise StewardError(f"access: nobody is named for {role}; give users, groups or service_accounts")
    return found


def _pull_secrets(given: t.Iterable[t.Mapping[str, t.Any]], claimant: str) -> tuple[PullSecret, ...]:
    found: list[PullSecret] = []
    for entry in given:
        if claimant == PLAYBOOK:
            raise StewardError("pull_secrets are copied from a Nspro's own namespace; without a Nspro there is none")
        accounts = entry.get("service_accounts")
        names = ("default",) if accounts is None else tuple(accounts)
        for name in (entry.get("name") or "", *names):
            if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name):
                raise StewardError(f"pull_secrets: {name!r} is no name of a Secret or ServiceAccount")
        if entry["name"] in [item.name for item in found]:
            raise StewardError(f"pull_secrets has {entry['name']} twice; name all its ServiceAccounts in one entry")
        found.append(PullSecret(entry["name"], tuple(dict.fromkeys(names))))
    return tuple(found)


def _network(given: t.Mapping[str, t.Any]) -> Network:
    def peers(option: str) -> tuple[dict[str, str], ...]:
        entries = given.get(option) or ()
        if not all(entries):
            # an empty selector would let everybody in
            raise StewardError(f"network_policy: {option} has an entry without labels; name at least one label")
        for key, value in (item for entry in entries for item in entry.items()):
            _check_text(key, value, f"network_policy: {option}")
            _check_form(key, value, _VALUE, f"network_policy: {option}")
        return tuple({key: str(value) for key, value in entry.items()} for entry in entries)

    ports = tuple(
        {"port": int(entry["port"]), "protocol": entry.get("protocol") or "TCP"} for entry in given.get("ports") or ()
    )
    return Network(
        same_namespace=bool(given.get("same_namespace")),
        peers=peers("from_namespaces"),
        ports=ports,
        restrict_egress=bool(given.get("restrict_egress")),
        egress_peers=peers("to_namespaces"),
        dns=given.get("dns") is not False,
    )


def _pod_security(given: t.Mapping[str, t.Any]) -> dict[str, str]:
    found = {}
    for mode in ("enforce", "audit", "warn"):
        level, version = given.get(mode), given.get(f"{mode}_version")
        if not level:
            continue
        if level not in _LEVELS:
            raise StewardError(f"pod_security: {mode} is {level!r}; it can be {', '.join(_LEVELS)}")
        found[f"pod-security.kubernetes.io/{mode}"] = level
        if version:
            found[f"pod-security.kubernetes.io/{mode}-version"] = str(version)
    if "pod-security.kubernetes.io/enforce" in found:
        # OpenShift's own syncer would overwrite what was set
        found["security.openshift.io/scc.podSecurityLabelSync"] = "false"
    return found

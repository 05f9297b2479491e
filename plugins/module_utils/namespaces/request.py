# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked for one namespace, checked: from a Nspro or from a playbook. Pure."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import forms, limits, sizes

ADOPTION = ("Never", "IfIdentical", "Always")
DELETION = ("Delete", "Keep")
SHRINK = ("Hold", "Apply")
#: who holds a namespace that no Nspro asked for
PLAYBOOK = "playbook"

#: labels that other objects' rules read: `app: infra` would open other teams' policies, `metrics` the operator's own
_TAKEN = ("app", "size", "managed", "metrics")
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
_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]{0,3})")


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
    :ivar restrict_egress: Pods reach only DNS, their own namespace, `egress_peers` and `blocks`
    :ivar blocks: addresses outside of the Pod network that Pods may reach; {`cidr`, `ports`}, no ports mean all
    :ivar dns: DNS stays reachable where egress is restricted
    """

    same_namespace: bool = False
    peers: tuple[t.Mapping[str, str], ...] = ()
    ports: tuple[t.Mapping[str, t.Any], ...] = ()
    restrict_egress: bool = False
    egress_peers: tuple[t.Mapping[str, str], ...] = ()
    blocks: tuple[t.Mapping[str, t.Any], ...] = ()
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
    def idle(self) -> list[str]:
        """Sentences on what is asked of the policy and has no effect as it stands."""
        network, found = self.network, []
        given = {"from_namespaces": network.peers, "ports": network.ports, "same_namespace": network.same_namespace}
        names = [name for name, value in given.items() if value]
        if names and not self.managed:
            found.append(f"network_policy: {', '.join(names)}: no effect without managed: true; everybody comes in")
        given = {"to_namespaces": network.egress_peers, "to_cidrs": network.blocks, "dns: false": not network.dns}
        names = [name for name, value in given.items() if value]
        if names and not network.restrict_egress:
            found.append(f"network_policy: {', '.join(names)}: no effect without restrict_egress: true; all is reached")
        everywhere = [block["cidr"] for block in network.blocks if block["cidr"].endswith("/0") and not block["ports"]]
        if everywhere and network.restrict_egress:
            found.append(
                f"network_policy: to_cidrs: {', '.join(everywhere)}: all is reached, whatever restrict_egress says"
            )
        return found

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
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def read(
    entry: t.Mapping[str, t.Any], claimant: str, roles: t.Collection[str], known: t.Mapping[str, sizes.Size]
) -> Request:
    """Check what is asked for.

    :param entry: `name`, `size`, `managed`, ... as the module's options have them
    :param roles: ClusterRoles that may be given
    :param known: the sizes by name
    :raises StewardError: something is not as it must be; the message says what, and where
    """
    name = name_of(entry)
    size = _size(entry.get("size"), known)
    network = entry.get("network_policy") or {}
    return Request(
        name=name,
        size=size,
        managed=bool(entry.get("managed")),
        claimant=claimant,
        quota=sizes.quota(entry.get("quota") or {}, "quota"),
        limit_range=_limit_range(entry.get("limit_range") or {}, size, known[size]),
        access=tuple(_access(item, roles) for item in entry.get("access") or ()),
        pull_secrets=_pull_secrets(entry.get("pull_secrets") or (), claimant),
        network=_network(network),
        pod_security=_pod_security(entry.get("pod_security") or {}),
        labels=_own(entry.get("labels") or {}, "labels"),
        annotations=_own(entry.get("annotations") or {}, "annotations"),
        adoption=_choice(entry, "adoption", ADOPTION, "Never"),
        deletion=_choice(entry, "deletion", ("", *DELETION), ""),
        shrink=_choice(entry, "shrink", SHRINK, "Hold"),
    )


def name_of(entry: t.Mapping[str, t.Any]) -> str:
    """The name of the namespace that is asked for.

    :raises StewardError: it is none
    """
    name = str(entry.get("name") or "")
    if not forms.is_namespace(name):
        raise StewardError(f"{name!r} is no name of a namespace: at most 63 of a-z, 0-9 and -, not - at either end")
    return name


def _size(size: t.Any, known: t.Collection[str]) -> str:
    if isinstance(size, str) and size in known:
        return size
    near = [name for name in known if name.lower() == str(size).lower()]
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
    what = f"size {size!r} is not known" if size else "no size is given"
    raise StewardError(f"{what}; {hint}", size=size)


def _limit_range(given: t.Mapping[str, t.Any], name: str, size: sizes.Size) -> limits.Limits | None:
    own = sizes.limits({key: value for key, value in given.items() if key != "enabled" and value}, "")
    where = f"with the limit_range of size {name}, " if size.limit_range else ""
    limits.check(limits.given(size.limit_range, own), where)
    return own if given.get("enabled") is not False else None


def _choice(entry: t.Mapping[str, t.Any], option: str, values: t.Sequence[str], default: str) -> str:
    found = entry.get(option) or default
    if found not in values:
        raise StewardError(f"{option} is {found!r}; it can be {', '.join(filter(None, values))}")
    return found


def _own(given: t.Mapping[str, t.Any], what: str) -> dict[str, str]:
    """A person's own labels or annotations; none that rules of others or of ours read."""
    for key, value in given.items():
        _check_text(key, value, what)
        domain = key.partition("/")[0] if "/" in key else ""
        taken = any(domain == item or domain.endswith(f".{item}") for item in _TAKEN_DOMAINS)
        if taken or (what == "labels" and key in _TAKEN):
            raise StewardError(f"{what}: {key} is not yours to set; others' rules or this product read it")
        _check_form(key, value if what == "labels" else "", what)
    found = {key: str(value) for key, value in given.items()}
    if what == "annotations":
        _check_room(found)
    return found


def _check_room(annotations: t.Mapping[str, str]) -> None:
    total = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    most = forms.MOST_OF_ANNOTATIONS - forms.ROOM_FOR_OURS
    if total > most:
        raise StewardError(
            f"annotations have {total} bytes together, with their keys; the Namespace has room for {most}"
        )


def _check_text(key: t.Any, value: t.Any, what: str) -> None:
    if not isinstance(key, str) or isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise StewardError(f"{what}: {key}: {value!r} is no text; quote what YAML would read as something else")


def _check_form(key: str, value: t.Any, what: str) -> None:
    # prefixes are compared as they are for labels, and in small letters for annotations
    if not forms.is_key(key.lower() if what == "annotations" else key) or not forms.is_value(str(value)):
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
        where, slash, name = account.partition("/")
        if not forms.is_subdomain(name if slash else account) or (slash and not forms.is_namespace(where)):
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
            if not forms.is_subdomain(name):
                raise StewardError(f"pull_secrets: {name!r} is no name of a Secret or ServiceAccount")
        if entry["name"] in [item.name for item in found]:
            raise StewardError(f"pull_secrets has {entry['name']} twice; name all its ServiceAccounts in one entry")
        found.append(PullSecret(entry["name"], tuple(dict.fromkeys(names))))
    return tuple(found)


def _network(given: t.Mapping[str, t.Any]) -> Network:
    return Network(
        same_namespace=bool(given.get("same_namespace")),
        peers=_peers(given, "from_namespaces"),
        ports=forms.ports(given.get("ports") or (), "network_policy: ports"),
        restrict_egress=bool(given.get("restrict_egress")),
        egress_peers=_peers(given, "to_namespaces"),
        blocks=tuple(_block(entry) for entry in given.get("to_cidrs") or ()),
        dns=given.get("dns") is not False,
    )


def _peers(given: t.Mapping[str, t.Any], option: str) -> tuple[dict[str, str], ...]:
    where, entries = f"network_policy: {option}", given.get(option) or ()
    if not all(entries):
        # an empty selector would let everybody in
        raise StewardError(f"{where} has an entry without labels; name at least one label")
    for key, value in (item for entry in entries for item in entry.items()):
        _check_text(key, value, where)
        _check_form(key, value, where)
    return tuple({key: str(value) for key, value in entry.items()} for entry in entries)


def _block(entry: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    where = "network_policy: to_cidrs"
    return {"cidr": forms.cidr(entry.get("cidr"), where), "ports": forms.ports(entry.get("ports") or (), where)}


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
            if not _VERSION.fullmatch(str(version)):
                raise StewardError(
                    f"pod_security: {mode}_version is {version!r}; it can be latest, or v1.34 for example"
                )
            found[f"pod-security.kubernetes.io/{mode}-version"] = str(version)
    if "pod-security.kubernetes.io/enforce" in found:
        # OpenShift's own syncer would overwrite what was set
        found["security.openshift.io/scc.podSecurityLabelSync"] = "false"
    return found

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a pass needs from the cluster: workloads, their revisions and Pods, Starts, the Update.

`reader` is `kube.Cluster` or anything with its `get` and `find`. Few requests: one list per kind that is wanted, and a
label selector where just one workload is looked at.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images.running import controller_of
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP, ApiError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.platforms import with_version

Object = dict[str, t.Any]

_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")

#: operators of matchExpressions in the text form of the API's query
_SET_OPERATORS = {"In": "in", "NotIn": "notin"}
_KEY_OPERATORS = {"Exists": "", "DoesNotExist": "!"}

#: kind -> (apiVersion, kind of its revisions or None)
WORKLOADS: t.Mapping[str, tuple[str, str | None]] = {
    "Deployment": ("apps/v1", "ReplicaSet"),
    "StatefulSet": ("apps/v1", None),
    "DaemonSet": ("apps/v1", "ControllerRevision"),
    "CronJob": ("batch/v1", "Job"),
}
_REVISION_API = {"ReplicaSet": "apps/v1", "ControllerRevision": "apps/v1", "Job": "batch/v1"}
_API_OF = {**{kind: api_version for kind, (api_version, _revision) in WORKLOADS.items()}, **_REVISION_API}
#: every namespace that has a resource
ALL = "all"
#: a ControllerRevision's number is no metadata
_METADATA_ONLY = ("ReplicaSet", "Job")


class Reader(t.Protocol):
    """What of `kube.Cluster` a snapshot uses."""

    def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> Object | None: ...

    def find(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        selector: str | None = None,
        metadata_only: bool = False,
    ) -> list[Object]: ...


@dataclasses.dataclass(frozen=True)
class Target:
    """Workloads to look at: one by name, those a selector matches, or all of the kind where both are empty."""

    kind: str
    name: str | None = None
    selector: str | None = None


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """What was read. `starts` are those of the namespace that were wanted, `missing` the targets that do not exist."""

    starts: tuple[Object, ...] = ()
    workloads: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    revisions: tuple[Object, ...] = ()
    missing: tuple[Target, ...] = ()


def targets_of(entries: t.Iterable[t.Mapping[str, t.Any]]) -> list[Target]:
    """Read `spec.targets` or the option `workloads`; an empty list means every Start, a kind alone all of that kind.

    :raises StewardError: an unknown kind, both `name` and `selector`, or one of them that is there and empty: a
        variable that is not set must not stand for everything
    """
    targets = []
    for number, entry in enumerate(entries, 1):
        kind, name, given = entry.get("kind"), entry.get("name"), entry.get("selector")
        selector = selector_text(given or {})
        if kind is None or (kind != "Start" and kind not in WORKLOADS):
            raise StewardError(f"target {number} has kind {kind!r}; use one of Start, {', '.join(WORKLOADS)}")
        empty = [option for option, value in (("name", name), ("selector", given)) if value is not None]
        if len(empty) > 1 or (empty and not (name or selector)):
            what = " and ".join(empty)
            raise StewardError(
                f"target {number} ({kind}) has {'both ' if len(empty) > 1 else 'an empty '}{what}; give a name, or a"
                " selector with matchLabels or matchExpressions, or neither for all of the kind"
            )
        targets.append(Target(kind, name or None, selector or None))
    return targets or [Target("Start")]


def selector_text(selector: t.Mapping[str, t.Any]) -> str:
    """A LabelSelector in the text form of the API's query.

    :raises StewardError: a label that is none: in the text form it could say something else
    """
    unknown = set(selector) - {"matchLabels", "matchExpressions"}
    if unknown:
        raise StewardError(f"selector has {sorted(unknown)[0]!r}; it takes matchLabels and matchExpressions")
    labels = sorted((selector.get("matchLabels") or {}).items())
    for key, value in labels:
        if not _LABEL_KEY.fullmatch(str(key)) or not _LABEL_VALUE.fullmatch(str(value)):
            raise StewardError(f"selector.matchLabels has {key!r}: {value!r}, which is not a label")
    return ",".join([f"{key}={value}" for key, value in labels] + list(map(_rule, _rules(selector))))


def _rules(selector: t.Mapping[str, t.Any]) -> list[t.Mapping[str, t.Any]]:
    rules = selector.get("matchExpressions") or []
    if not isinstance(rules, (list, tuple)) or not all(isinstance(rule, dict) for rule in rules):
        raise StewardError("selector.matchExpressions is no list of maps with key, operator and values")
    return list(rules)


def _rule(rule: t.Mapping[str, t.Any]) -> str:
    """One of `matchExpressions` in the text form."""
    key, operator, values = str(rule.get("key") or ""), rule.get("operator"), rule.get("values") or []
    where = f"selector.matchExpressions has {dict(rule)!r}"
    if not _LABEL_KEY.fullmatch(key):
        raise StewardError(f"{where}, whose key is no name of a label")
    if operator not in _SET_OPERATORS and operator not in _KEY_OPERATORS:
        known = ", ".join((*_SET_OPERATORS, *_KEY_OPERATORS))
        raise StewardError(f"{where}, whose operator is none of {known}")
    if not isinstance(values, (list, tuple)) or not all(_LABEL_VALUE.fullmatch(str(value)) for value in values):
        raise StewardError(f"{where}, whose values are no values of labels")
    if bool(values) != (operator in _SET_OPERATORS):
        raise StewardError(f"{where}: {', '.join(_SET_OPERATORS)} need values, {', '.join(_KEY_OPERATORS)} have none")
    if operator in _KEY_OPERATORS:
        return f"{_KEY_OPERATORS[operator]}{key}"
    return f"{key} {_SET_OPERATORS[operator]} ({','.join(map(str, values))})"


def read_targets(reader: Reader, namespace: str, targets: t.Sequence[Target]) -> Snapshot:
    """Everything the targets need. A target that does not exist is in `missing`, not an error.

    :raises ApiError: the cluster refuses or does not answer
    """
    starts, missing = _find(reader, namespace, INSTALL_GROUP, "Start", [x for x in targets if x.kind == "Start"])
    wanted = [x for x in targets if x.kind != "Start"]
    wanted += [Target("Deployment", deployment_name(start)) for start in starts]
    workloads: dict[tuple[str, str], Object] = {}
    for kind, (api_version, _revision) in WORKLOADS.items():
        found, absent = _find(reader, namespace, api_version, kind, [x for x in wanted if x.kind == kind])
        missing += absent
        workloads.update({(kind, item["metadata"]["name"]): item for item in found})
    starts += _owning_starts(reader, namespace, workloads.values(), starts)
    return _with_pods(reader, namespace, Snapshot(tuple(starts), tuple(workloads.values()), missing=tuple(missing)))


def _owning_starts(
    reader: Reader, namespace: str, workloads: t.Iterable[Object], known: t.Sequence[Object]
) -> list[Object]:
    """Starts that control a Deployment which was asked for by itself: they are what a roll patches."""
    uids = {start["metadata"]["uid"] for start in known}
    controllers = [controller_of(workload) or {} for workload in workloads]
    wanted = {owner["uid"] for owner in controllers if owner.get("kind") == "Start"} - uids
    if not wanted:
        return []
    return [start for start in reader.find(INSTALL_GROUP, "Start", namespace) if start["metadata"]["uid"] in wanted]


def named_namespace(params: t.Mapping[str, t.Any]) -> str:
    """The option `namespace`. An empty one would read the whole cluster.

    :raises StewardError: it is empty
    """
    namespace: str = params.get("namespace") or ""
    if not namespace.strip():
        hint = "in the playbooks and roles it is update_namespace or start_namespace"
        raise StewardError(f"The namespace is empty: set the option namespace ({hint})")
    return namespace


def namespaces(params: t.Mapping[str, t.Any], reader: Reader, kind: str) -> list[str]:
    """The namespaces that the options mean: `namespaces`, a list or the word `all`, or `namespace`.

    :param kind: of our resources, where `all` stands for the namespaces that have some
    :raises StewardError: nobody can tell which are meant
    """
    wanted = params.get("namespaces")
    if wanted is None:
        return [named_namespace(params)]
    if wanted == ALL:
        found = reader.find(INSTALL_GROUP, kind, None, metadata_only=True)
        return sorted({item["metadata"]["namespace"] for item in found})
    if not isinstance(wanted, list) or not all(isinstance(name, str) and name.strip() for name in wanted):
        raise StewardError(f"namespaces is {wanted!r}; give a list of names, or the word {ALL}")
    return list(dict.fromkeys(wanted))


def require_namespace(reader: Reader, namespace: str) -> None:
    """Tell a namespace with nothing in it from one that does not exist, most likely a slip of the pen.

    :raises StewardError: there is no such namespace
    """
    try:
        found = reader.get("v1", "Namespace", None, namespace)
    except ApiError as exc:
        if exc.status in (401, 403):
            return
        raise
    if found is None:
        raise StewardError(f"There is no namespace {namespace} in this cluster")


def read_pods(reader: Reader, namespace: str, name: str | None, selector: str | None) -> Snapshot:
    """The workloads of one Pod, or of the Pods a selector matches; a Pod that no known kind controls is its own."""
    if name:
        pods = [pod for pod in [reader.get("v1", "Pod", namespace, name)] if pod]
    else:
        pods = reader.find("v1", "Pod", namespace, selector)
    workloads: dict[str, Object] = {}
    revisions: dict[str, Object] = {}
    for pod in pods:
        chain = _controllers(reader, namespace, pod, {**workloads, **revisions})
        *middle, top = chain or [pod]
        workloads[top["metadata"]["uid"]] = {"apiVersion": "v1", "kind": "Pod", **top}
        revisions.update({item["metadata"]["uid"]: item for item in middle})
    for workload in list(workloads.values()):
        kind = WORKLOADS.get(workload["kind"], ("", None))[1]
        if kind:
            revisions.update({item["metadata"]["uid"]: item for item in _revisions(reader, namespace, kind, workload)})
    starts = reader.find(INSTALL_GROUP, "Start", namespace)
    return Snapshot(tuple(starts), tuple(workloads.values()), tuple(pods), tuple(revisions.values()))


def read_platforms(reader: Reader) -> dict[str, str] | None:
    """Node name -> `os/arch`, or `windows(version)/arch`; None where Nodes may not be read."""
    try:
        nodes = reader.find("v1", "Node", None, metadata_only=True)
    except ApiError as exc:
        if exc.status in (401, 403):
            return None
        raise
    platforms = {}
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        os_name, arch = labels.get("kubernetes.io/os", "linux"), labels.get("kubernetes.io/arch")
        if arch:
            build = labels.get("node.kubernetes.io/windows-build", "")
            platforms[node["metadata"]["name"]] = with_version(f"{os_name}/{arch}", build)
    return platforms


def deployment_name(start: t.Mapping[str, t.Any]) -> str:
    """Name of the Deployment a Start gives."""
    return f"{(start.get('spec') or {}).get('name') or 'nginx'}-sample"


def _find(
    reader: Reader, namespace: str, api_version: str, kind: str, targets: t.Sequence[Target]
) -> tuple[list[Object], list[Target]]:
    if not targets:
        return [], []
    if len(targets) == 1 and targets[0].name:
        one = reader.get(api_version, kind, namespace, targets[0].name)
        return ([{"apiVersion": api_version, "kind": kind, **one}], []) if one else ([], [targets[0]])
    found: dict[str, Object] = {}
    missing = []
    everything: dict[str, Object] | None = None
    for target in targets:
        if target.selector:
            matches = reader.find(api_version, kind, namespace, target.selector)
        else:
            if everything is None:
                everything = {item["metadata"]["name"]: item for item in reader.find(api_version, kind, namespace)}
            matches = [item for name, item in everything.items() if target.name in (None, name)]
            if target.name and not matches:
                missing.append(target)
        found.update({item["metadata"]["name"]: item for item in matches})
    return list(found.values()), missing


def _with_pods(reader: Reader, namespace: str, snapshot: Snapshot) -> Snapshot:
    if not snapshot.workloads:
        return snapshot
    single = snapshot.workloads[0] if len(snapshot.workloads) == 1 else None
    selector = None
    if single and single["kind"] != "CronJob":
        selector = selector_text(single["spec"]["selector"])
    pods = reader.find("v1", "Pod", namespace, selector)
    revisions: list[Object] = []
    kinds = {WORKLOADS[workload["kind"]][1] for workload in snapshot.workloads}
    for kind in sorted(kind for kind in kinds if kind):
        revisions += _revisions(reader, namespace, kind, single)
    return dataclasses.replace(snapshot, pods=tuple(pods), revisions=tuple(revisions))


def _revisions(reader: Reader, namespace: str, kind: str, single: Object | None) -> list[Object]:
    selector = None
    if single and single["kind"] != "CronJob":
        selector = selector_text(single["spec"]["selector"])
    return reader.find(_REVISION_API[kind], kind, namespace, selector, metadata_only=kind in _METADATA_ONLY)


def _controllers(reader: Reader, namespace: str, pod: Object, known: t.Mapping[str, Object]) -> list[Object]:
    """The objects that control a Pod, nearest first, as far as their kinds are known."""
    chain: list[Object] = []
    current = pod
    while True:
        owner = controller_of(current)
        # other groups have Jobs and Deployments too, e.g. batch.volcano.sh
        if not owner or _API_OF.get(owner["kind"]) != owner["apiVersion"]:
            return chain
        found = known.get(owner["uid"]) or reader.get(owner["apiVersion"], owner["kind"], namespace, owner["name"])
        if not found:
            return chain
        current = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **found}
        chain.append(current)

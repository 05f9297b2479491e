# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nspros of a namespace: provide what they ask for, let go of what nobody asks for any more, and tell.

`cluster` is `kube.Cluster` or anything with its methods.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.concurrency import run_concurrently
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import NSPRO_GROUP, ApiError, Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import nspro_status, provision
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import request as requests
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.provision import Farewell, Options
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result, refused
from ansible_collections.kubesteward.core.plugins.module_utils.telling import apply_status, post_events

Object = dict[str, t.Any]

CRD = "nspros.nspro.example.com"
_LET_GO = "ansible-playbook kubesteward.core.nspro -e nspro_namespace={} -e nspro_state=released -e nspro_all=true"


@dataclasses.dataclass
class Told:
    """What became of the Nspros: results, statuses by `namespace/name` where they are new, and what went wrong."""

    results: list[Result] = dataclasses.field(default_factory=list)
    statuses: dict[str, Object] = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which Nspros to look at.

    :ivar name: one of them; empty for all of the namespace, and for claims whose Nspro is gone
    :ivar state: `present`, `absent` or `released`
    :ivar everyone: all of the namespace are meant where they are let go and no name is given
    """

    namespace: str
    name: str = ""
    must_exist: bool = True
    state: str = "present"
    everyone: bool = False


def run(cluster: Cluster, wanted: Wanted, options: Options) -> Told:
    """One pass.

    :raises StewardError: no name is given where all would be let go, or what is named is not there
    """
    _require_a_wish(wanted)
    told = Told()
    if wanted.name:
        found = [x for x in [cluster.get(NSPRO_GROUP, "Nspro", wanted.namespace, wanted.name)] if x]
        if not found and wanted.must_exist:
            raise StewardError(f"There is no Nspro {wanted.name} in namespace {wanted.namespace}")
    else:
        found = cluster.find(NSPRO_GROUP, "Nspro", wanted.namespace)
    keep = _KeepBecause(cluster, wanted.namespace)
    told.results = run_concurrently(lambda nspro: _one(cluster, nspro, wanted, options, keep), found, provision.WORKERS)
    for nspro, one in zip(found, told.results, strict=True):
        _tell(cluster, nspro, one, options, told)
    if not wanted.name:
        try:
            told.results += _orphans(cluster, found, wanted, options)
            if not told.results and wanted.must_exist:
                told.errors += _nothing_because(cluster, wanted.namespace)
        except ApiError as exc:
            told.errors.append(str(exc))
    return told


def _require_a_wish(wanted: Wanted) -> None:
    if not wanted.namespace.strip():
        raise StewardError("The namespace of the Nspros is empty; set nspro_namespace (in the module nspros.namespace)")
    if wanted.state == "present" or wanted.name or wanted.everyone:
        return
    what = "let go, with all that is in it where its claim says so" if wanted.state == "absent" else "released"
    raise StewardError(
        f"The name is empty, and every Namespace of the Nspros in {wanted.namespace} would be {what}. Name the one"
        f" that is meant (nspro_name; in the module nspros.name), or say that all are: nspro_all=true (nspros.all)"
    )


def _nothing_because(cluster: Cluster, namespace: str) -> list[str]:
    """Tell a namespace without Nspros from one that is not there, most likely a slip of the pen."""
    if cluster.get("v1", "Namespace", None, namespace) is None:
        return [f"There is no namespace {namespace} in this cluster, and no Namespace was made for a Nspro of it"]
    if cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, CRD) is None:
        return [
            f"The cluster does not know Nspros: it has no CustomResourceDefinition {CRD}; make install puts it there"
        ]
    return []


def _one(cluster: Cluster, nspro: Object, wanted: Wanted, options: Options, keep: _KeepBecause) -> Result:
    meta = nspro["metadata"]
    name, claimant = meta["name"], f"{meta['namespace']}/{meta['name']}"
    if wanted.state == "released":
        return provision.let_go(cluster, name, claimant, RELEASED, options)
    if wanted.state != "present" or meta.get("deletionTimestamp"):
        is_kept = (nspro.get("spec") or {}).get("deletion") == "Keep"
        farewell = Farewell(keep.untouched, _as_its_spec_says if is_kept else keep.reason)
        return provision.let_go(cluster, name, claimant, farewell, options)
    try:
        request = requests.read(requests.of_resource(nspro), claimant, options.roles, options.sizes)
    except StewardError as exc:
        return refused(name, exc)
    return provision.provide(cluster, request, options)


def _as_its_spec_says() -> str:
    """Why nothing is deleted although the claim, which may be older than the spec, allows it."""
    return "its Nspro says so"


#: nothing is deleted where somebody asks for it
RELEASED = Farewell(kept_because=lambda: "it was asked to be released")


class _KeepBecause:
    """Why nothing may be deleted although a Nspro goes: it is asked once, and only where something goes."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster, self._namespace, self._known = cluster, namespace, t.cast("str | None", None)
        self._made: dict[str, str] = {}
        self._away, self._unsure = "", ""

    def untouched(self) -> str:
        """Why nothing at all is done: the Nspro goes with its definition, and comes back with it.

        :raises ApiError: nobody can say
        """
        self.reason()
        return f"{self._away}; to let go of it: {_LET_GO.format(self._namespace)}" if self._away else ""

    def reason(self) -> str:
        """The reason, or an empty text.

        :raises ApiError: nobody can say
        """
        if self._known is None:
            self._known = self._find()
        return self._known

    def doubt(self, namespace: Object) -> str:
        """Why a Nspro that is not there was perhaps not deleted, or an empty text.

        :raises ApiError: nobody can say
        """
        if claims.is_copy(namespace):
            return "its claim was not written here by us; it is a copy, from a backup for example, or edited by hand"
        if self.reason():
            return self._away or self._unsure
        made = namespace["metadata"].get("creationTimestamp") or ""
        # one that was made anew took every Nspro along when the one before it went
        later = [what for what, at in self._made.items() if at > made]
        return f"{later[0]} is younger than it, so its Nspro may have gone with the one before" if later else ""

    def _find(self) -> str:
        crd = self._cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, CRD)
        if crd is None or crd["metadata"].get("deletionTimestamp"):
            what = "is away" if crd is None else "is being deleted"
            self._away = f"the CustomResourceDefinition {CRD} {what}; its Nspro has it again once both are back"
            return self._away
        home = self._cluster.get("v1", "Namespace", None, self._namespace)
        if home is None or claims.is_terminating(home):
            return f"the Nspro goes because its own namespace {self._namespace} does"
        if not _is_served(crd):
            self._unsure = f"the CustomResourceDefinition does not serve {NSPRO_GROUP}, so its Nspro may be there"
            return self._unsure
        for what, item in ((f"namespace {self._namespace}", home), ("the CustomResourceDefinition", crd)):
            self._made[what] = item["metadata"].get("creationTimestamp") or ""
        return ""


def _is_served(crd: Object) -> bool:
    """False where a list of Nspros would be "not found", which looks like none."""
    versions = (crd.get("spec") or {}).get("versions") or ()
    served = [version["name"] for version in versions if version.get("served")]
    refused = [
        item
        for item in (crd.get("status") or {}).get("conditions") or ()
        if item.get("type") == "Established" and item.get("status") != "True"
    ]
    return not refused and (not versions or NSPRO_GROUP.partition("/")[2] in served)


def _orphans(cluster: Cluster, found: t.Sequence[Object], wanted: Wanted, options: Options) -> list[Result]:
    """Namespaces whose Nspro is gone, finalizer or not; the claim says what becomes of them."""
    is_released = wanted.state == "released"
    there = {f"{nspro['metadata']['namespace']}/{nspro['metadata']['name']}" for nspro in found}
    gone = []
    for namespace in cluster.find("v1", "Namespace", None, metadata_only=True):
        claim = claims.read(namespace)
        if not claim or not claim.by.startswith(f"{wanted.namespace}/") or claim.by in there:
            continue
        # one that was made since the list was read is not gone
        if cluster.get(NSPRO_GROUP, "Nspro", *claim.by.split("/", 1)) is None:
            gone.append((namespace, claim.by))

    # asked anew, after the Nspros were seen to be gone: they may have gone just now because their namespace does
    keep = _KeepBecause(cluster, wanted.namespace)
    farewell = Farewell(keep.untouched, keep.reason)

    def let_go(item: tuple[Object, str]) -> Result:
        namespace, claimant = item
        name = namespace["metadata"]["name"]
        try:
            doubt = "" if is_released else keep.doubt(namespace)
        except ApiError as exc:
            return provision.failed(Result(name), exc)
        if doubt:
            way = f"nothing was done; where nobody wants it any more, delete it, or: {_LET_GO.format(wanted.namespace)}"
            return Result(name).says("pending", "in_doubt", f"there is no Nspro {claimant}, but {doubt}: {way}")
        return provision.let_go(cluster, name, claimant, RELEASED if is_released else farewell, options)

    return run_concurrently(let_go, gone, provision.WORKERS)


def _tell(cluster: Cluster, nspro: Object, result: Result, options: Options, told: Told) -> None:
    meta, before = nspro["metadata"], nspro.get("status") or {}
    after = nspro_status.following(nspro, result, options.now)
    name = f"{meta['namespace']}/{meta['name']}"
    events = nspro_status.events(nspro, result, after)
    if nspro_status.is_news(before, after):
        told.statuses[name] = after
        if not options.check_mode:
            try:
                apply_status(cluster, nspro, after)
            except ApiError as exc:
                # what the status does not remember would be told in every pass; one that is gone has nobody to tell
                events = []
                if exc.status != 404:
                    told.errors.append(str(exc))
    if not options.check_mode:
        about = {"kind": "Nspro", "name": meta["name"], "api_version": NSPRO_GROUP, "uid": meta["uid"]}
        told.warnings += post_events(
            cluster, meta["namespace"], [{**event, "about": about} for event in events], options.now
        )

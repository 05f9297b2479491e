# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May we? Who holds a Namespace, and what becomes of it when they let go. Pure.

A claim is an annotation on the Namespace, never an ownerReference and never a finalizer there: both have made
namespaces vanish, or made them undeletable, for users of others.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import FIELD_MANAGER
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import differences
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.request import DELETION, PLAYBOOK

Object = t.Mapping[str, t.Any]

CLAIM = "kubesteward.io/claim"
#: an administrator's word on a Namespace: `namespace/name` of the Nspro that may adopt it, or `playbook`
ADOPTABLE = "kubesteward.io/adoptable-by"
#: an administrator's word on a Namespace: it is never deleted, whatever a resource says
GUARD = "kubesteward.io/guard"
#: which managers undid what we repaired
REPAIRS = "kubesteward.io/repairs"
OURS = (CLAIM, REPAIRS)
RESERVED = ("default", "kube-*", "kubernetes-*", "openshift", "openshift-*")
CREATED, ADOPTED = "created", "adopted"

_NAME = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_HOLDER = re.compile(rf"{PLAYBOOK}|{_NAME}/{_NAME}")


@dataclasses.dataclass(frozen=True)
class Claim:
    """What the annotation says.

    :ivar by: `namespace/name` of a Nspro, or `playbook`
    :ivar origin: `created` or `adopted`
    :ivar deletion: `Delete` or `Keep`, as it was when it was last written
    :ivar labels: keys of labels that are ours
    :ivar annotations: keys of annotations that are ours
    :ivar kept: what was there before, and stays: `Kind/name`, `labels/key`, `annotations/key`
    :ivar links: Secret -> the ServiceAccounts it was linked to
    """

    by: str
    origin: str
    deletion: str
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    links: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def render(self) -> str:
        """The annotation's text; what is empty is left out."""
        links = {name: sorted(accounts) for name, accounts in sorted(self.links.items())}
        found = {
            "by": self.by,
            "origin": self.origin,
            "deletion": self.deletion,
            "labels": sorted(self.labels),
            "annotations": sorted(self.annotations),
            "kept": sorted(self.kept),
            "links": links,
        }
        return json.dumps({key: value for key, value in found.items() if value}, sort_keys=True)


def read(namespace: Object) -> Claim | None:
    """The claim on a Namespace, or None where there is none.

    A claim that nobody can read is somebody's all the same: it is held by `unknown`.
    """
    text = (namespace["metadata"].get("annotations") or {}).get(CLAIM)
    if text is None:
        return None
    try:
        found = json.loads(text)
        links = {str(key): tuple(map(str, value)) for key, value in (found.get("links") or {}).items()}
        names = {key: tuple(map(str, found.get(key) or ())) for key in ("labels", "annotations", "kept")}
        claim = Claim(found["by"], found["origin"], found["deletion"], **names, links=links)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Claim("unknown", ADOPTED, "Keep")
    return claim if _is_sound(claim) else Claim("unknown", ADOPTED, "Keep")


def _is_sound(claim: Claim) -> bool:
    """False for what was edited by hand into something that could not be asked the API server for."""
    if not isinstance(claim.by, str) or not _HOLDER.fullmatch(claim.by):
        return False
    names = [*claim.links, *(account for accounts in claim.links.values() for account in accounts)]
    return (
        claim.origin in (CREATED, ADOPTED)
        and claim.deletion in DELETION
        and all(re.fullmatch(_NAME, name) for name in names)
    )


def holder(name: str) -> str:
    """The name of who claims, checked: a claim that nobody could read again would lock its Namespace for ever.

    :raises StewardError: it is none
    """
    if not _HOLDER.fullmatch(name):
        raise StewardError(f"claim: {name!r} is no namespace/name of a Nspro: a-z, 0-9, - and . in each")
    return name


@dataclasses.dataclass(frozen=True)
class Answer:
    """May a claimant have a Namespace?

    :ivar state: `free` (create it), `ours`, `adopt`, or why not: `conflict`, `reserved`, `terminating`
    :ivar message: for people, where it may not; names the holder
    """

    state: str
    message: str = ""
    claim: Claim | None = None

    @property
    def granted(self) -> bool:
        return self.state in ("free", "ours", "adopt")


def ask(name: str, claimant: str, adoption: str, live: Object | None, reserved: t.Iterable[str] = RESERVED) -> Answer:
    """May `claimant` have the Namespace `name`?

    :param adoption: `Never`, `IfIdentical` or `Always`; whether it is identical is the plan's to say
    :param live: the Namespace as it is, or None
    :param reserved: patterns of names that nobody gets
    """
    pattern = reserved_by(name, reserved)
    if pattern:
        return Answer("reserved", f"the name {name} is reserved ({pattern}); nothing was written")
    if live is None:
        return Answer("free")
    if is_terminating(live):
        message = f"Namespace {name} is being deleted; it is made anew once it is gone"
        return Answer("terminating", message + hindrance(live))
    claim = read(live)
    if claim and claim.by == claimant:
        return Answer("ours", claim=claim)
    if claim:
        holder = "a playbook" if claim.by == PLAYBOOK else f"Nspro {claim.by}"
        return Answer("conflict", f"Namespace {name} is held by {holder}; it is left alone")
    if adoption == "Never":
        return Answer("conflict", f"Namespace {name} exists and is not ours; adoption is Never")
    permitted = (live["metadata"].get("annotations") or {}).get(ADOPTABLE)
    if permitted != claimant:
        message = f"Namespace {name} exists; its administrator has not annotated it {ADOPTABLE}={claimant}"
        return Answer("conflict", message)
    return Answer("adopt")


def reserved_by(name: str, reserved: t.Iterable[str]) -> str | None:
    """The pattern that reserves a name, or None."""
    return next((item for item in reserved if fnmatch.fnmatchcase(name, item)), None)


def is_terminating(live: Object) -> bool:
    """True for a Namespace that is being deleted."""
    return bool(live["metadata"].get("deletionTimestamp")) or (live.get("status") or {}).get("phase") == "Terminating"


def hindrance(live: Object) -> str:
    """What keeps a Namespace that is being deleted from going, in the API server's words; empty while nothing does."""
    conditions = (live.get("status") or {}).get("conditions") or ()
    found = [
        f"{item.get('reason') or item.get('type')}: {item.get('message') or ''}".rstrip(": ")
        for item in conditions
        if item.get("status") == "True"
    ]
    finalizers = live["metadata"].get("finalizers") or ()
    if finalizers:
        found.append(f"the Namespace itself has finalizers: {', '.join(finalizers)}")
    return f"; in its way is: {'; '.join(found)}" if found else ""


def is_copy(live: Object) -> bool:
    """True where the claim was not written by us on this very Namespace, but came from a backup or by hand."""
    meta, path = live["metadata"], ("metadata", "annotations", CLAIM)
    born = meta.get("creationTimestamp") or ""
    entries = [item for item in meta.get("managedFields") or () if item.get("manager") == FIELD_MANAGER]
    ours = [item for item in entries if path in differences.owned({"metadata": {"managedFields": [item]}})]
    # a backup that brings managedFields along brings times that are older than the Namespace
    return not any((item.get("time") or born) >= born for item in ours)


def policy(origin: str, wanted: str) -> str:
    """What becomes of a Namespace when it is let go: `Delete` or `Keep`."""
    return wanted or ("Delete" if origin == CREATED else "Keep")


def farewell(live: Object | None, claimant: str, keep_because: str = "") -> tuple[str, str]:
    """What to do with a Namespace that its claimant lets go.

    :param keep_because: why nothing may be deleted, whatever the claim says; empty where nothing speaks against it
    :returns: `gone`, `foreign`, `terminating`, `delete` or `release`, and a sentence for people
    """
    if live is None:
        return "gone", "there is no such Namespace"
    name = live["metadata"]["name"]
    claim = read(live)
    if claim is None or claim.by != claimant:
        holder = claim.by if claim else "nobody we know"
        return "foreign", f"Namespace {name} is held by {holder}; it is left alone"
    if is_terminating(live):
        return "terminating", f"Namespace {name} is being deleted already{hindrance(live)}"
    guard = (live["metadata"].get("annotations") or {}).get(GUARD)
    if guard is not None:
        return "release", f"Namespace {name} is kept: it is annotated {GUARD}"
    if keep_because:
        return "release", f"Namespace {name} is kept: {keep_because}"
    if claim.deletion == "Keep":
        return "release", f"Namespace {name} is kept: its claim says so"
    return "delete", f"Namespace {name} was made for {claimant} and goes with it"

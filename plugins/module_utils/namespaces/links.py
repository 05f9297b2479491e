# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pull secrets of ServiceAccounts: added and taken away without losing what the platform put there. Pure.

`imagePullSecrets` is one value for the API server, so each patch tests the list it was made from.
"""

from __future__ import annotations

import dataclasses
import typing as t

Object = dict[str, t.Any]
Links = t.Mapping[str, t.Iterable[str]]


@dataclasses.dataclass
class Linked:
    """What is to be done.

    :ivar patches: (ServiceAccount, JSON patch)
    :ivar links: Secret -> ServiceAccounts that are or will be linked by us
    :ivar pending: ServiceAccounts that are not there yet
    """

    patches: list[tuple[str, list[Object]]] = dataclasses.field(default_factory=list)
    links: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    pending: list[str] = dataclasses.field(default_factory=list)


def plan(wanted: Links, before: Links, accounts: t.Mapping[str, t.Mapping[str, t.Any]]) -> Linked:
    """The patches that link what is wanted and take away what was ours and is not wanted.

    :param wanted: Secret -> ServiceAccounts
    :param before: the same, as the claim has it
    :param accounts: ServiceAccounts by name
    """
    found = Linked()
    wanted_of, ours_of = _by_account(wanted), _by_account(before)
    done: dict[str, list[str]] = {}
    for account in sorted({*wanted_of, *ours_of}):
        there = accounts.get(account)
        if there is None:
            if account in wanted_of:
                found.pending.append(f"ServiceAccount {account} is not there yet")
            # nobody can have linked it before us, and a claim that says so now need not be written again then
            for name in wanted_of.get(account, ()):
                done.setdefault(name, []).append(account)
            continue
        secrets, ours = wanted_of.get(account, []), ours_of.get(account, [])
        there_already = {entry.get("name") for entry in there.get("imagePullSecrets") or ()}
        for name in secrets:
            # what somebody else linked is theirs to take away
            if name in ours or name not in there_already:
                done.setdefault(name, []).append(account)
        patch = _patch(there, secrets, [name for name in ours if name not in secrets])
        if patch:
            found.patches.append((account, patch))
    found.links = {name: tuple(items) for name, items in sorted(done.items())}
    return found


def either(one: Links, other: Links) -> dict[str, tuple[str, ...]]:
    """What is in any of both."""
    return {name: tuple(dict.fromkeys([*one.get(name, ()), *other.get(name, ())])) for name in sorted({*one, *other})}


def _by_account(links: Links) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for secret, accounts in links.items():
        for account in accounts:
            found.setdefault(account, []).append(secret)
    return found


def _patch(account: t.Mapping[str, t.Any], add: t.Sequence[str], remove: t.Sequence[str]) -> list[Object]:
    before = account.get("imagePullSecrets")
    entries = [entry for entry in before or () if entry.get("name") not in remove]
    known = {entry.get("name") for entry in entries}
    entries += [{"name": name} for name in add if name not in known]
    if entries == (before or []):
        return []
    if before is None:
        version = {"op": "test", "path": "/metadata/resourceVersion", "value": account["metadata"]["resourceVersion"]}
        return [version, {"op": "add", "path": "/imagePullSecrets", "value": entries}]
    return [
        {"op": "test", "path": "/imagePullSecrets", "value": before},
        {"op": "replace", "path": "/imagePullSecrets", "value": entries},
    ]

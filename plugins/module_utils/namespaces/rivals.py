# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Nspro has a free name: of those that ask for it, the oldest.

Passes run when they run: without this, whichever comes first after a Namespace is gone would have the name, and with it
whatever the one before gave access to.
"""

from __future__ import annotations

import threading
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import NSPRO_GROUP, Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import request as requests
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.sizes import Size

Object = t.Mapping[str, t.Any]


class Rivals:
    """Nspros of one name; they are listed once, and only where a name is free.

    An older one was there before the one that asks, and so is in every list that is made after that one was read.
    """

    def __init__(
        self, cluster: Cluster, roles: t.Collection[str], sizes: t.Mapping[str, Size], reserved: t.Iterable[str]
    ) -> None:
        self._cluster, self._roles, self._sizes, self._reserved = cluster, roles, sizes, tuple(reserved)
        self._lock = threading.Lock()
        self._known: t.Sequence[Object] | None = None

    def older(self, name: str, claimant: str) -> str:
        """A sentence where an older Nspro asks for the name of `claimant` too, or an empty text; a playbook has no age.

        :raises ApiError: the Nspros of the cluster may not be listed
        """
        if claimant == requests.PLAYBOOK:
            return ""
        same = sorted((item for item in self._all() if item["metadata"]["name"] == name), key=seniority)
        mine = [item for item in same if holder(item) == claimant]
        for item in same:
            home = item["metadata"]["namespace"]
            if mine and seniority(item) < seniority(mine[0]) and self._asks(home, name):
                way = f"give this one another name, or take that one away: kubectl delete nspro {name} -n {home}"
                return f"Nspro {holder(item)} is older and has the name {name}; {way}"
        return ""

    def _all(self) -> t.Sequence[Object]:
        with self._lock:
            if self._known is None:
                self._known = self._cluster.find(NSPRO_GROUP, "Nspro", None, metadata_only=True)
            return self._known

    def _asks(self, home: str, name: str) -> bool:
        """False for one that is going, or that could not have the name: each of its own passes says so."""
        nspro = self._cluster.get(NSPRO_GROUP, "Nspro", home, name)
        if nspro is None or nspro["metadata"].get("deletionTimestamp"):
            return False
        if claims.reserved_by(name, [*self._reserved, home]):
            return False
        try:
            requests.read(requests.of_resource(nspro), holder(nspro), self._roles, self._sizes)
        except StewardError:
            return False
        return True


def seniority(nspro: Object) -> tuple[str, str, str]:
    """Sorts the oldest first; names decide between those of one second."""
    meta = nspro["metadata"]
    return meta.get("creationTimestamp") or "", meta["namespace"], meta["name"]


def holder(nspro: Object) -> str:
    """A Nspro as claims name it."""
    return f"{nspro['metadata']['namespace']}/{nspro['metadata']['name']}"

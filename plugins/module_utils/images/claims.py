# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Update has a workload: of several that look at it, the oldest.

`reader` is `kube.Cluster` or anything with its `find`.
"""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.inventory import seniority
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP

Object = t.Mapping[str, t.Any]


def older_holder(
    reader: snapshot.Reader, namespace: str, update: Object
) -> t.Callable[[t.Mapping[str, t.Any]], str | None]:
    """A function from a container to the name of an older Update that looks at it too, or None.

    The Updates are listed at the first call, and what their selectors match only where one has a selector.

    :raises ApiError: at that first call, where the Updates may not be listed
    """

    @functools.cache
    def elders() -> list[Object]:
        found = reader.find(INSTALL_GROUP, "Update", namespace)
        older = [item for item in found if seniority(item) < seniority(update) and _works(item)]
        return sorted(older, key=seniority)

    @functools.cache
    def matched(kind: str, selector: str) -> frozenset[str]:
        api_version = INSTALL_GROUP if kind == "Start" else snapshot.WORKLOADS[kind][0]
        found = reader.find(api_version, kind, namespace, selector, metadata_only=True)
        return frozenset(item["metadata"]["name"] for item in found)

    def holder(container: t.Mapping[str, t.Any]) -> str | None:
        return next((item["metadata"]["name"] for item in elders() if looks_at(item, container, matched)), None)

    return holder


def _works(update: Object) -> bool:
    """False for an Update that is going, or whose targets cannot be read: each of its own passes fails."""
    try:
        snapshot.targets_of((update.get("spec") or {}).get("targets") or ())
    except StewardError:
        return False
    return not update["metadata"].get("deletionTimestamp")


def looks_at(
    update: Object, container: t.Mapping[str, t.Any], matched: t.Callable[[str, str], t.Container[str]]
) -> bool:
    """True where an Update follows a container.

    :param matched: gives the names of a kind that a selector matches
    """
    spec = update.get("spec") or {}
    policy = spec.get("containers") or {}
    name = container["container"]
    if name in (policy.get("ignore") or ()) or (policy.get("follow") and name not in policy["follow"]):
        return False
    workload = container["workload"]
    names = {workload["kind"]: workload["name"]}
    if workload["owner"]:
        names[workload["owner"]["kind"]] = workload["owner"]["name"]
    if container["start"]:
        # who looks at a Start looks at everything in its Deployment
        names["Start"] = container["start"]
    for target in snapshot.targets_of(spec.get("targets") or ()):
        wanted = names.get(target.kind)
        if wanted is None:
            continue
        if target.selector:
            if wanted in matched(target.kind, target.selector):
                return True
        elif target.name in (None, wanted):
            return True
    return False

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs: for one Update or what the options name, or for many Updates, each with an answer of its own.

`cluster` is `kube.Cluster` or anything with its `begin`, `get` and `find`.
"""

from __future__ import annotations

import copy
import itertools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError, unexpected
from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.slim import SharedReader, SlimReader
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster

Object = dict[str, t.Any]
Params = t.Mapping[str, t.Any]

#: options of pod_image_id that say what to look at, one of them at a time
_WAYS = ("name", "label_selectors", "workloads", "starts")


def one(params: Params, reader: snapshot.Reader, update: Object | None) -> Object:
    """What an Update, or the options, name: `update_resource`, `containers`, `missing`, `quarantined`.

    :param params: pod_image_id's
    :raises StewardError: they say nothing that can be read, or the cluster does not give it
    """
    namespace = params["namespace"]
    given = [way for way in _WAYS if params.get(way)]
    if len(given) > 1:
        raise StewardError(f"{' and '.join(given)} exclude each other; give one of them")
    seen = snapshot.Snapshot() if params.get("update") and not update else _read(params, reader, update)
    if not (seen.workloads or seen.starts or update or params.get("update")):
        snapshot.require_namespace(reader, namespace)
    spec = (update or {}).get("spec") or {}
    found = inventory.containers(seen, _policy(params, spec), namespace)
    platforms = params.get("platforms") or spec.get("platforms") or ()
    inventory.add_platforms(found, lambda: snapshot.read_platforms(reader), platforms)
    return {
        "update_resource": update,
        "containers": found,
        "missing": [f"{target.kind}/{target.name}" for target in seen.missing],
        "quarantined": inventory.has_quarantine(found),
    }


def named(params: Params, reader: snapshot.Reader) -> Object | None:
    """The Update of the name `update`.

    :raises StewardError: there is none, and there must be
    """
    namespace, name = params["namespace"], params["update"]
    update = reader.get(INSTALL_GROUP, "Update", namespace, name)
    if update is None and params.get("update_must_exist"):
        raise StewardError(f"There is no Update {name} in namespace {namespace}")
    return update


def updates_in(reader: snapshot.Reader, namespace: str) -> list[Object]:
    """The Updates of a namespace in the order of their names."""
    return sorted(reader.find(INSTALL_GROUP, "Update", namespace), key=lambda item: item["metadata"]["name"])


def each(params: Params, cluster: Cluster) -> list[Object]:
    """An entry for each Update that is asked for: what `one` gives, with `namespace`, `name` and `error`.

    What is wrong with one stays with it. A namespace without Updates has one entry, of what the options name in it.

    :param params: pod_image_id's; `namespaces` is a list of names, `all` for those that have Updates, or None
    :raises StewardError: nobody can tell which namespaces are meant
    """
    entries: list[Object] = []
    for namespace in snapshot.namespaces(params, cluster, "Update"):
        # what one namespace has in it must not take the memory that another one may use
        own = copy.copy(cluster)
        own.begin()
        entries += _in_namespace({**params, "namespace": namespace}, SlimReader(own))
    return entries


def lookups(entries: t.Iterable[Object]) -> list[Object]:
    """The look-ups of all entries: what several need is asked once, on behalf of all their namespaces."""
    authors: dict[t.Any, dict[str, None]] = {}
    for entry in entries:
        for container in entry["containers"]:
            authors.setdefault(_key(container["reference"], container), {})[entry["namespace"]] = None
    found = inventory.lookups(itertools.chain.from_iterable(entry["containers"] for entry in entries))
    return [{**item, "on_behalf_of": list(authors[_key(item["image"], item)])} for item in found]


def _key(reference: str, item: t.Mapping[str, t.Any]) -> tuple[t.Any, ...]:
    return inventory.lookup_key(reference, item["pull_secrets"])


def _in_namespace(params: Params, reader: SlimReader) -> list[Object]:
    found: list[Object | None]
    try:
        found = [named(params, reader)] if params.get("update") else [*updates_in(reader, params["namespace"])]
    except StewardError as exc:
        return [_entry(params, None, str(exc))]
    shared = SharedReader(reader) if len(found) > 1 else reader
    return [_tried(params, shared, update) for update in found or [None]]


def _tried(params: Params, reader: SlimReader | SharedReader, update: Object | None) -> Object:
    reader.begin()
    try:
        return {**_entry(params, update), **one(params, reader, update)}
    except StewardError as exc:
        return _entry(params, update, str(exc))
    except Exception as exc:
        entry = _entry(params, update)
        return {**entry, "error": str(unexpected(exc, f"Update {entry['name']} in namespace {entry['namespace']}"))}


def _entry(params: Params, update: Object | None, error: str = "") -> Object:
    name = update["metadata"]["name"] if update else params.get("update") or ""
    found: Object = {"update_resource": update, "containers": [], "missing": [], "quarantined": False}
    return {"namespace": params["namespace"], "name": name, **found, "error": error}


def _policy(params: Params, spec: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
    # an empty option arrives with both of its keys set to None
    given = params.get("containers") or {}
    return given if any(given.values()) else spec.get("containers") or {}


def _read(params: Params, reader: snapshot.Reader, update: Object | None) -> snapshot.Snapshot:
    namespace = params["namespace"]
    if params.get("name") or params.get("label_selectors"):
        selector = ",".join(params.get("label_selectors") or ())
        return snapshot.read_pods(reader, namespace, params.get("name"), selector)
    targets = [] if params.get("starts") else ((update or {}).get("spec") or {}).get("targets")
    return snapshot.read_targets(reader, namespace, snapshot.targets_of(params.get("workloads") or targets or ()))

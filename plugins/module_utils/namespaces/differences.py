# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How live objects differ from what is wanted, and who made them differ. Pure.

Only fields that we set are compared; quantities are compared as numbers, and what the API server fills in is no
difference. `managedFields` tell which fields of ours are no longer wanted, and who wrote what differs.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.kube import FIELD_MANAGER
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import quantity

Object = t.Mapping[str, t.Any]
Path = tuple[str, ...]

#: maps that are one value: what others add there changes what ours means
_ATOMIC = frozenset({("podSelector",), ("roleRef",)})
#: fields whose values are quantities
_QUANTITIES = frozenset({"hard", "default", "defaultRequest", "max", "min"})
#: what the API server adds to a list's items
_DEFAULTED = {"protocol": "TCP", "apiGroup": "rbac.authorization.k8s.io"}


def differences(wanted: Object, live: Object) -> list[Path]:
    """Paths of what is wanted and is not so, and of fields of ours that are no longer wanted.

    Identity (`apiVersion`, `kind`, name, namespace) is not compared. Lists and selectors count as one value.
    """
    found = list(_unlike(_comparable(wanted), live, (), False))
    return found + [path for path in owned(live) if _is_unwanted(path, wanted, live)]


def _comparable(wanted: Object) -> dict[str, t.Any]:
    meta = {key: value for key, value in wanted["metadata"].items() if key in ("labels", "annotations")}
    body = {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind", "metadata")}
    return {"metadata": meta, **body}


def _unlike(wanted: t.Any, live: t.Any, path: Path, is_quantity: bool) -> t.Iterator[Path]:
    if isinstance(wanted, t.Mapping) and path[-1:] not in _ATOMIC:
        for key, value in wanted.items():
            below = live.get(key) if isinstance(live, t.Mapping) else None
            yield from _unlike(value, below, (*path, key), is_quantity or key in _QUANTITIES)
        if not wanted and not isinstance(live, t.Mapping):
            yield path
    elif not _same(wanted, live, is_quantity):
        yield path


def _same_list(wanted: t.Sequence[t.Any], live: t.Any) -> bool:
    if not isinstance(live, (list, tuple)) or len(wanted) != len(live):
        return False
    return all(_same(one, other, False) for one, other in zip(wanted, live, strict=True))


def _same(one: t.Any, other: t.Any, is_quantity: bool) -> bool:
    """Equal but for spelling and defaults; below a list nothing of others may be added."""
    if isinstance(one, t.Mapping) and isinstance(other, t.Mapping):
        keys = {*one, *other}
        return all(
            _same(
                one.get(key, _DEFAULTED.get(key)),
                other.get(key, _DEFAULTED.get(key)),
                is_quantity or key in _QUANTITIES,
            )
            for key in keys
        )
    if isinstance(one, (list, tuple)):
        return _same_list(one, other)
    if is_quantity and one is not None and other is not None:
        return quantity.equal(one, other)
    return one == other


def owned(live: Object, manager: str = FIELD_MANAGER) -> list[Path]:
    """Paths of the leaves that a manager has set, from `managedFields`; items of lists are part of the list."""
    found: dict[Path, None] = {}
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and not entry.get("subresource"):
            for path in _leaves(entry.get("fieldsV1") or {}, ()):
                found[path] = None
    return list(found)


def _leaves(fields: Object, path: Path) -> t.Iterator[Path]:
    below = {key[2:]: value for key, value in fields.items() if key.startswith("f:")}
    if not below:
        if path:
            yield path
        return
    for key, value in below.items():
        yield from _leaves(value, (*path, key))


def _is_unwanted(path: Path, wanted: Object, live: Object) -> bool:
    if path[0] in ("apiVersion", "kind", "status") or value_at(live, path) is None:
        return False
    if path[0] == "metadata" and (len(path) < 3 or path[1] not in ("labels", "annotations")):
        return False
    return value_at(wanted, path) is None


def value_at(obj: t.Any, path: Path) -> t.Any:
    """The value at a path, or None."""
    for key in path:
        if not isinstance(obj, t.Mapping):
            return None
        obj = obj.get(key)
    return obj


def authors(live: Object, paths: t.Iterable[Path]) -> list[str]:
    """Other managers that own one of these fields; whoever last removed a field leaves no trace."""
    wanted = set(paths)
    found: dict[str, None] = {}
    for entry in live["metadata"].get("managedFields") or ():
        manager = entry.get("manager") or ""
        if manager in (FIELD_MANAGER, "") or entry.get("subresource"):
            continue
        for path in _leaves(entry.get("fieldsV1") or {}, ()):
            if any(path[: len(item)] == item or item[: len(path)] == path for item in wanted):
                found[manager] = None
    return list(found)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does ansible-operator write for its runs what the tests without the program say that it writes?

`variables.py FOLDER HOME NAMESPACE...`: its runner folder, its own namespace, those whose resources are looked at.
Prints what was compared; fails with the first difference.
"""

from __future__ import annotations

import json
import pathlib
import sys
import typing as t

from integration.operator_passes import INVENTORY, extra_vars, is_finalizing, watches


def unmarked(value: t.Any) -> t.Any:
    """The resource as it was before its strings were marked."""
    if isinstance(value, dict):
        if value.keys() == {"__ansible_unsafe"}:
            return value["__ansible_unsafe"]
        return {key: unmarked(item) for key, item in value.items()}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


def main(folder: str, home: str, *namespaces: str) -> None:
    known = watches(home)
    seen = []
    for path in sorted(pathlib.Path(folder).glob("*/*/*/*/*/env/extravars")):
        _group, _version, kind, namespace, name = path.parts[-7:-2]
        if namespace not in namespaces:
            continue
        found = json.loads(path.read_text())
        (key,) = [key for key in found if key.startswith("_") and key.endswith(f"_{kind.lower()}")]
        resource = unmarked(found[key])
        wanted = extra_vars(resource, known[kind])
        different = sorted(key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key))
        assert not different, f"{path}: {different}"
        assert (path.parents[1] / "inventory/hosts").read_text() == INVENTORY
        seen.append(f"{kind} {name}{' finalizing' if is_finalizing(resource, known[kind]) else ''}")
    assert {line.split()[0] for line in seen} == known.keys(), seen
    print("\n".join(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])

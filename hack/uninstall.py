# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take the kinds out of a cluster, and every resource of theirs, once somebody has seen which these are and agrees.

Run by `make uninstall`. With `--keep deployments` those of the Starts go on without them.
"""

from __future__ import annotations

import argparse
import sys
import typing as t

from hack import cluster
from hack.cluster import CRDS, Found, Object, StopError, kubectl, name_of, say

DELETE_SECONDS = 180
MEANS = {
    "Start": "their Deployments, and the Pods of these, go with them",
    "Update": "the workloads stay as they are",
    "Nspro": "their Namespaces stay, and nobody looks after them",
}


def main(arguments: t.Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--confirm", action="store_true", help="delete what was listed")
    parser.add_argument("--keep", action="append", default=[], choices=["deployments"], help="what stays of Starts")
    given = parser.parse_args(arguments)
    try:
        with cluster.pinned():
            uninstall(given.confirm, bool(given.keep))
    except StopError as exc:
        print(f"uninstall: {exc}", file=sys.stderr)
        return 1
    return 0


def uninstall(confirmed: bool, keep_deployments: bool) -> None:
    found = cluster.look()
    problems = refusals(found, cluster.managers())
    if problems:
        raise StopError("Nothing was deleted.\n" + "\n".join(problems))
    for line in plan(found, keep_deployments):
        say(line)
    if not confirmed:
        more = "; KEEP=deployments leaves the Deployments of Starts" if found.of("Start") else ""
        say(f"Nothing was deleted. CONFIRM=yes deletes the kinds and this{more}.")
        return
    if keep_deployments:
        leave_deployments(found.of("Start"))
    patience = f"--timeout={DELETE_SECONDS}s"
    names = [f"crd/{name}" for name in CRDS.values()]
    text = kubectl("delete", *names, "--ignore-not-found", patience, seconds=DELETE_SECONDS)
    say(text.rstrip() or "the kinds are not there")


def leave_deployments(starts: t.Iterable[Object]) -> None:
    """Delete Starts so that nothing that they own goes with them."""
    for item in starts:
        name = name_of(item)
        way = ["--cascade=orphan", "--ignore-not-found"]
        kubectl("delete", CRDS["Start"], name.name, "--namespace", name.namespace, *way)


def refusals(found: Found, operators: t.Iterable[Object]) -> list[str]:
    """Why it would go wrong."""
    way = "is an operator that runs: make undeploy takes it out first"
    problems = [f"{name_of(item)} {cluster.OF_OLM if cluster.is_of_olm(item) else way}" for item in operators]
    for item in found.held_by_finalizers:
        problems.append(f"{name_of(item)} has a finalizer, and would never be gone: {cluster.RELEASE} takes it off")
    return problems


def plan(found: Found, keep_deployments: bool) -> list[str]:
    """What would be deleted, and what becomes of what it stands for."""
    lines = []
    for kind, meaning in MEANS.items():
        items = found.of(kind)
        if items:
            kept = kind == "Start" and keep_deployments
            lines.append(f"{len(items)} {kind}s: {'their Deployments stay' if kept else meaning}")
            lines += [f"  {name_of(item).namespace}/{name_of(item).name}" for item in items]
    if found.followed:
        lines.append(
            f"{len(found.followed)} objects keep a digest in place of the tag; {cluster.RELEASE} puts the tags back:"
        )
        lines += [f"  {name_of(item)}" for item in found.followed]
    return lines


if __name__ == "__main__":
    sys.exit(main())

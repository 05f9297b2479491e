# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pass after pass over the same workloads, with what was published, until what was rolled has proven itself or failed.

Nothing is looked up again: what a tag names meanwhile is for the next run.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import execution, inventory, slim, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import place, workload_name
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP, Cluster

Object = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Clock:
    """Time as a wait needs it: `now` (`2006-01-02T15:04:05Z`), seconds that only grow, and a pause in seconds."""

    now: t.Callable[[], str]
    seconds: t.Callable[[], float]
    sleep: t.Callable[[float], None]


def until_proven(cluster: Cluster, namespace: str, params: t.Mapping[str, t.Any], clock: Clock) -> execution.Pass:
    """The last pass, with all that the passes before it did; what did not end well is in its errors.

    :param params: image_rollout's, with `wait_timeout` and `wait_sleep` in seconds
    """
    ends = clock.seconds() + params["wait_timeout"]
    whole = execution.Pass()
    while True:
        cluster.begin()
        again = {**params, **_seen(cluster, namespace, params)}
        done = _joined(whole, execution.reconcile(cluster, namespace, again, False, clock.now()))
        open_ones = _open(done)
        left = ends - clock.seconds()
        if not open_ones or left <= 0 or done.deleted:
            break
        whole = done
        clock.sleep(min(params["wait_sleep"], left))
    done.errors += [f"{name}: {why}" for name, why in _failed(done, params["wait_timeout"], open_ones).items()]
    return done


def _seen(cluster: Cluster, namespace: str, params: t.Mapping[str, t.Any]) -> Object:
    """What runs now of the containers that were handed over, and the Update as it is now."""
    wanted = {place(container) for container in params["running"]}
    names = dict.fromkeys((x["workload"]["kind"], x["workload"]["name"]) for x in params["running"])
    targets = [snapshot.Target(kind, name) for kind, name in names if kind in snapshot.WORKLOADS]
    reader = slim.SlimReader(cluster)
    found = inventory.containers(snapshot.read_targets(reader, namespace, targets), {}, namespace)
    found = [container for container in found if place(container) in wanted]
    update = params["update_resource"]
    fallback = params.get("platforms") or ((update or {}).get("spec") or {}).get("platforms") or ()
    inventory.add_platforms(found, lambda: snapshot.read_platforms(reader), fallback)
    if update:
        name = update["metadata"]["name"]
        live = cluster.get(INSTALL_GROUP, "Update", namespace, name)
        update = live and {"apiVersion": INSTALL_GROUP, "kind": "Update", **live}
    return {"running": found, "update_resource": update}


def _joined(before: execution.Pass, done: execution.Pass) -> execution.Pass:
    for field in ("rolled", "rolled_back", "settled", "freed"):
        setattr(done, field, [*getattr(before, field), *getattr(done, field)])
    done.warnings = list(dict.fromkeys([*before.warnings, *done.warnings]))
    return done


def _open(done: execution.Pass) -> dict[str, str]:
    """Rolls that are on trial or under way, with what is known of them."""
    ended = {place(roll) for roll in done.settled} | {place(roll) for roll in done.rolled_back}
    found = {}
    for container, verdict in done.judged:
        key = place(container)
        is_new = any(place(roll) == key for roll in done.rolled)
        if key not in ended and (verdict.progress or is_new):
            found[" ".join(key)] = verdict.progress.message if verdict.progress else ""
    return found


def _failed(done: execution.Pass, seconds: int, open_ones: t.Mapping[str, str]) -> dict[str, str]:
    taken = {
        f"{workload_name(roll['workload'])} {roll['container']}": f"{roll['from']} failed and was taken back"
        for roll in done.rolled_back
    }
    late = {
        name: f"its roll has not proven itself after {seconds} s" + (f" ({why})" if why else "")
        for name, why in open_ones.items()
    }
    return {**late, **taken}

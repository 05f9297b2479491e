# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look again and again at what was rolled, until it has proven itself, was taken back, or time is over."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.images import execution, inventory, slim, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.update_conditions import place
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Verdict
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP, ApiError, Cluster

Object = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Clock:
    """Time as a wait needs it: `now` (`2006-01-02T15:04:05Z`), seconds that only grow, and a pause in seconds."""

    now: t.Callable[[], str]
    seconds: t.Callable[[], float]
    sleep: t.Callable[[float], None]


def until_proven(
    cluster: Cluster, namespace: str, params: t.Mapping[str, t.Any], rolled: t.Iterable[Object], clock: Clock
) -> execution.Pass:
    """The last look, with all that the looks before it did; what did not end well is in its errors.

    Nothing is rolled meanwhile: what the tags name was looked up before, and may be another image by now.

    :param params: image_rollout's, with `wait_timeout` and `wait_sleep` in seconds
    :param rolled: what is waited for, entries of image_rollout's `rolled`
    """
    ends = clock.seconds() + params["wait_timeout"]
    wanted = {place(roll): roll["to"] for roll in rolled}
    update = params["update_resource"]
    again = {**params, "only_watch": True, "spec": (update or {}).get("spec") or {}, "delete_flag": False}
    whole = execution.Pass()
    while True:
        try:
            cluster.begin()
            again.update(_seen(cluster, namespace, again))
            again["spec"] = (again["update_resource"] or {}).get("spec") or again["spec"]
            whole, problem = _joined(whole, execution.reconcile(cluster, namespace, again, False, clock.now())), ""
        except ApiError as exc:
            # the next look may get an answer, and what was done so far is to be told
            problem = str(exc)
        state = _states(whole, wanted)
        left = ends - clock.seconds()
        if left <= 0 or not (problem or any(one.is_open for one in state.values())):
            break
        clock.sleep(min(params["wait_sleep"], left))
    if problem:
        whole.errors.append(problem)
    elif left > 0 and (params["delete_flag"] or (params["delete_flag"] is None and again["spec"].get("delete_flag"))):
        again.update(_seen(cluster, namespace, again), delete_flag=params["delete_flag"])
        whole = _joined(whole, execution.reconcile(cluster, namespace, again, False, clock.now()))
    whole.errors += [text for name, one in state.items() if (text := one.complaint(name, params["wait_timeout"]))]
    return whole


@dataclasses.dataclass(frozen=True)
class _State:
    """How a roll stands: `why` it is open, or `ended` otherwise than well."""

    is_open: bool = False
    why: str = ""
    ended: str = ""

    def complaint(self, name: str, seconds: int) -> str:
        if self.is_open:
            return f"{name}: its roll has not proven itself after {seconds} s" + (f" ({self.why})" if self.why else "")
        return f"{name}: {self.ended}" if self.ended else ""


def _states(done: execution.Pass, wanted: t.Mapping[tuple[str, str], str]) -> dict[str, _State]:
    taken = {place(roll) for roll in done.rolled_back}
    proven = {place(roll) for roll in done.settled}
    judged = {place(container): (container, verdict) for container, verdict in done.judged}
    return {" ".join(key): _state(key, image, judged.get(key), taken, proven) for key, image in wanted.items()}


def _state(
    key: tuple[str, str],
    image: str,
    found: tuple[t.Mapping[str, t.Any], Verdict] | None,
    taken: t.Container[tuple[str, str]],
    proven: t.Container[tuple[str, str]],
) -> _State:
    if key in taken:
        return _State(ended=f"{image} failed and was taken back")
    if key in proven:
        return _State()
    if found is None:
        return _State(ended="it is gone, or nobody could look at it")
    container, verdict = found
    follow = container["follow"] or {}
    if container["spec_image"] != image:
        failed = (follow.get("quarantine") or {}).get("digest") or "-"
        way = "failed and was taken back" if image.endswith(failed) else f"gave way to {container['spec_image']}"
        return _State(ended=f"{image} {way}")
    if not follow.get("trial"):
        return _State()
    return _State(is_open=True, why=verdict.progress.message if verdict.progress else "")


def _seen(cluster: Cluster, namespace: str, params: t.Mapping[str, t.Any]) -> Object:
    """What runs now of the containers that were handed over, and the Update as it is now."""
    before = {place(container): container for container in params["running"]}
    reader = slim.SlimReader(cluster)
    targets = _targets(container["workload"] for container in params["running"])
    found = [
        # while the new Pods are not there nobody knows theirs, and what was looked up is known by them
        {**container, "pull_secrets": before[place(container)]["pull_secrets"]}
        for container in inventory.containers(snapshot.read_targets(reader, namespace, targets), {}, namespace)
        if place(container) in before
    ]
    platforms = params.get("platforms") or params["spec"].get("platforms") or ()
    inventory.add_platforms(found, lambda: snapshot.read_platforms(reader), platforms)
    update = params["update_resource"]
    if update:
        name = update["metadata"]["name"]
        live = cluster.get(INSTALL_GROUP, "Update", namespace, name)
        update = live and {"apiVersion": INSTALL_GROUP, "kind": "Update", **live}
    return {"running": found, "update_resource": update}


def _targets(workloads: t.Iterable[Object]) -> list[snapshot.Target]:
    """The workloads by name, and the Starts that are patched for some of them."""
    names: dict[tuple[str, str], None] = {}
    for workload in workloads:
        owner = workload["owner"] or {}
        if owner.get("kind") == "Start":
            names["Start", owner["name"]] = None
        elif workload["kind"] in snapshot.WORKLOADS:
            names[workload["kind"], workload["name"]] = None
    return [snapshot.Target(kind, name) for kind, name in names]


def _joined(before: execution.Pass, done: execution.Pass) -> execution.Pass:
    for field in ("rolled", "rolled_back", "settled", "freed"):
        setattr(done, field, [*getattr(before, field), *getattr(done, field)])
    done.warnings = list(dict.fromkeys([*before.warnings, *done.warnings]))
    return done

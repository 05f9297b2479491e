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
Params = t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Clock:
    """Time as a wait needs it: `now` (`2006-01-02T15:04:05Z`), seconds that only grow, and a pause in seconds."""

    now: t.Callable[[], str]
    seconds: t.Callable[[], float]
    sleep: t.Callable[[float], None]


class Wait:
    """Watches what was rolled of one Update: what the tags name was looked up before, and may be another image by now.

    So nothing is rolled meanwhile.

    :param params: image_rollout's, with `wait_timeout` in seconds
    :param rolled: what is waited for, entries of image_rollout's `rolled`
    :ivar whole: the last look, with all that the looks before it did; what did not end well is in its errors
    """

    def __init__(
        self, cluster: Cluster, namespace: str, params: Params, rolled: t.Iterable[Object], clock: Clock
    ) -> None:
        self._cluster, self._namespace, self._clock = cluster, namespace, clock
        self._given, self._seconds = params, params["wait_timeout"]
        self._wanted = {place(roll): roll["to"] for roll in rolled}
        spec = (params["update_resource"] or {}).get("spec") or {}
        self._again = {**params, "only_watch": True, "spec": spec, "delete_flag": False}
        self._problem = ""
        self.whole = execution.Pass()

    def look(self) -> bool:
        """Look once more; False where nothing is open any more, and `end` has been called."""
        again, self._problem = self._again, ""
        try:
            self._cluster.begin()
            again.update(_seen(self._cluster, self._namespace, again))
            again["spec"] = (again["update_resource"] or {}).get("spec") or again["spec"]
            self._reconcile()
            if any(state.is_open for state in self._states().values()):
                return True
            flag = self._given["delete_flag"]
            if flag or (flag is None and again["spec"].get("delete_flag")):
                again.update(_seen(self._cluster, self._namespace, again), delete_flag=flag)
                self._reconcile()
        except ApiError as exc:
            # the next look may get an answer, and what was done so far is to be told
            self._problem = str(exc)
            return True
        self.end()
        return False

    def end(self) -> None:
        """Say what did not end well, or is not over."""
        if self._problem:
            self.whole.errors.append(self._problem)
        told = (state.complaint(name, self._seconds) for name, state in self._states().items())
        self.whole.errors += filter(None, told)

    def _states(self) -> dict[str, _State]:
        return _states(self.whole, self._wanted)

    def _reconcile(self) -> None:
        done = execution.reconcile(self._cluster, self._namespace, self._again, False, self._clock.now())
        self.whole = _joined(self.whole, done)


def all_of(waits: t.Iterable[Wait], params: Params, clock: Clock) -> None:
    """Look again and again until none is open, or `wait_timeout` seconds are over, with `wait_sleep` in between."""
    ends = clock.seconds() + params["wait_timeout"]
    waiting = list(waits)
    while True:
        waiting = [wait for wait in waiting if wait.look()]
        left = ends - clock.seconds()
        if not waiting or left <= 0:
            break
        clock.sleep(min(params["wait_sleep"], left))
    for wait in waiting:
        wait.end()


def until_proven(
    cluster: Cluster, namespace: str, params: Params, rolled: t.Iterable[Object], clock: Clock
) -> execution.Pass:
    """Wait for the rolls of one Update."""
    wait = Wait(cluster, namespace, params, rolled, clock)
    all_of([wait], params, clock)
    return wait.whole


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

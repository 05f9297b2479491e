# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many Updates in one call: each is evaluated and written by itself, and what is wrong with one stays with it."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError, unexpected
from ansible_collections.kubesteward.core.plugins.module_utils.images import inputs, judge, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass
from ansible_collections.kubesteward.core.plugins.module_utils.images.inventory import is_looked_up, lookup_key

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.images.waiting import Clock
    from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster

Object = dict[str, t.Any]
Params = t.Mapping[str, t.Any]
#: an entry of pod_image_id's `updates`, and what became of it
Done = list[tuple[Object, Pass]]


def run(params: Params, cluster: Cluster, one: t.Callable[[Params], Pass]) -> Done:
    """What `one` does for each Update, in their order.

    :param params: image_rollout's; `updates` are pod_image_id's
    :param one: a pass over what its params have of one Update
    :raises StewardError: an option that is for all of them makes no sense
    """
    inputs.check_updates(params["updates"])
    inputs.check([], params["published"])
    published = judge.by_key(params["published"])
    nodes = functools.cache(lambda: snapshot.read_platforms(cluster))
    done: Done = []
    for entry in params["updates"]:
        if entry["error"]:
            done.append((entry, Pass(errors=[entry["error"]])))
            continue
        cluster.begin()
        own = _params_of(params, entry, published)
        done.append((entry, _tried(entry, functools.partial(one, {**own, "nodes": nodes}))))
    return done


def until_proven(params: Params, cluster: Cluster, before: t.Sequence[Object], clock: Clock) -> Done:
    """Wait for what an earlier call rolled, of all Updates at the same time; a Pass only where something was.

    :param before: the `results` of that call, one for each of `updates`
    """
    # the rest of this file is in every pass, and waits are in few
    from ansible_collections.kubesteward.core.plugins.module_utils.images import waiting

    published = judge.by_key(params["published"])
    rolled = {(result["namespace"], result["name"]): result["rolled"] for result in before}
    waited = [entry for entry in params["updates"] if rolled.get((entry["namespace"], entry["name"]))]
    waits = [
        waiting.Wait(
            cluster,
            entry["namespace"],
            _params_of(params, entry, published),
            rolled[entry["namespace"], entry["name"]],
            clock,
        )
        for entry in waited
    ]
    waiting.all_of(waits, params, clock)
    return [(entry, wait.whole) for entry, wait in zip(waited, waits, strict=True)]


def _params_of(params: Params, entry: Object, published: t.Mapping[t.Any, t.Mapping[str, t.Any]]) -> Object:
    """The options as they are for one Update alone, with what is published of its containers."""
    keys = [
        key
        for container in entry["containers"]
        # what another Update asked for is no news of a container that nothing is compared with
        if is_looked_up(container)
        for key in (lookup_key(container["reference"], container["pull_secrets"]), container["reference"])
    ]
    found = {id(published[key]): published[key] for key in keys if key in published}
    return {
        **params,
        "namespace": entry["namespace"],
        "update": None,
        "update_resource": entry["update_resource"],
        "running": entry["containers"],
        "missing": entry["missing"],
        "published": list(found.values()),
    }


def _tried(entry: Object, work: t.Callable[[], Pass]) -> Pass:
    try:
        return work()
    except StewardError as exc:
        return Pass(errors=[str(exc)])
    except Exception as exc:
        return Pass(errors=[str(unexpected(exc, f"Update {entry['name']} in namespace {entry['namespace']}"))])

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass that ends in the middle, wherever that is: the next one ends where an undisturbed one would have."""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import re

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.images import running
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import NAMESPACE, state
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import one_pass
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.states import (
    cluster_with,
    registries,
    workloads,
)

MINUTES = ("2026-03-01T10:00:00Z", "2026-03-01T10:00:10Z", "2026-03-01T10:00:20Z", "2026-03-01T10:00:30Z")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z|\b[0-9]+ s\b")
#: of the status, what is known while there is a Pod to ask for, or was found in a pass that could not write it down
_OF_THE_MOMENT = ("lastRoll", "run_name", "run_id", "registory_id", "check_id", "update")


class Killed(BaseException):
    """The process is gone; nothing catches that."""


def stumbling(cluster, number, error):
    """Let the write of this number fail; returns the list of writes that were tried."""
    tried = []

    def before_write(verb, target):
        if target.kind != "Event":
            tried.append(f"{verb} {target.kind}/{target.name}")
        if len(tried) == number and target.kind != "Event":
            raise error(f"Could not {verb} {target}: the API server did not answer")

    cluster.before_write = before_write
    return tried


def refused(message):
    return ApiError(message, 500)


def what_is(cluster):
    """Everything but versions, times and how long something took, Events, and messages, which alone are no news."""
    found = {}
    for key, item in cluster.objects.items():
        item = json.loads(_TIME.sub("then", json.dumps(item)))
        del item["metadata"]["resourceVersion"]
        if key[0] == "Update":
            status = item.pop("status")
            for entry in [*status["images"], *status["conditions"], *status["history"]]:
                entry.pop("message", None)
                if entry.get("verdict") == "unknown":
                    entry.pop("published", None)
            # what failed before is told where the roll that leaves it behind was refused, and then comes that roll
            history = [entry for entry in status["history"] if entry["outcome"] in ("rolled", "done")]
            status["history"] = sorted(history, key=str)
            found.update({(*key, name): value for name, value in status.items() if name not in _OF_THE_MOMENT})
        found[key] = item
    return found


def passes(cluster, registry, objects, minutes):
    """Passes, with what the StatefulSet controller does before each."""
    owners = [item["metadata"]["name"] for item in objects if item["kind"] == "StatefulSet"]
    for now in minutes:
        for name in owners:
            owner = cluster.read("StatefulSet", name)
            number = owner["metadata"]["generation"]
            # the name that the builders give the first revision, and others for later ones
            owner["status"]["updateRevision"] = f"{name}-{'now' if number == 1 else number}"
            cluster.put(owner)
            for pod in objects:
                if pod["kind"] == "Pod" and running.controller_of(pod)["name"] == name:
                    replace(cluster, owner, pod)
        one_pass(cluster, registry, "update-sample", now=now)


def replace(cluster, owner, pod):
    """A Pod that was deleted comes again, with what the template has now."""
    if ("Pod", NAMESPACE, pod["metadata"]["name"]) in cluster.objects:
        return
    new = copy.deepcopy(pod)
    new["metadata"].update(uid=f"{pod['metadata']['uid']}-again", creationTimestamp=MINUTES[0])
    new["metadata"]["labels"]["controller-revision-hash"] = owner["status"]["updateRevision"]
    new["spec"]["containers"] = running.pod_template(owner)["spec"]["containers"]
    images = [item["image"] for item in new["spec"]["containers"]]
    new["status"]["containerStatuses"] = [
        state(image if "@" in image else "", entry["name"])
        for image, entry in zip(images, new["spec"]["containers"], strict=True)
    ]
    cluster.put(new)


def rolls(writes):
    return collections.Counter(line for line in writes if line.startswith(("patch", "delete")))


@given(workloads(), registries(), st.sampled_from((refused, Killed)), st.data())
def test_wherever_a_pass_ends_the_next_one_ends_the_same(objects, registry, error, data):
    undisturbed = cluster_with(objects)
    tried = stumbling(undisturbed, 0, error)
    passes(undisturbed, registry, objects, MINUTES[:1])
    count = len(tried)
    passes(undisturbed, registry, objects, MINUTES[1:-1])

    cluster = cluster_with(objects)
    stumbling(cluster, data.draw(st.integers(1, count)), error)
    with contextlib.suppress(Killed):
        passes(cluster, registry, objects, MINUTES[:1])
    stumbling(cluster, 0, error)
    passes(cluster, registry, objects, MINUTES[1:])
    is_now, was_to_be = what_is(cluster), what_is(undisturbed)
    assert sorted(is_now) == sorted(was_to_be)
    for key, value in was_to_be.items():
        assert is_now[key] == value, key
    # nothing is done twice, and nothing was left out
    assert rolls(cluster.writes) == rolls(undisturbed.writes)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For any workloads and digests: what was planned is written once, and a second pass plans nothing."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.images import running
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import one_pass
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.states import (
    KINDS,
    cluster_with,
    registries,
    workloads,
)

ACTIONS = ("rolled", "rolled_back", "settled", "freed")


def specs(cluster):
    """Specs of the workloads without their images, and their images."""
    found, written = {}, {}
    for (kind, _namespace, name), item in cluster.objects.items():
        if kind in KINDS:
            item = copy.deepcopy(item)
            for entry in running.pod_template(item)["spec"]["containers"]:
                written[kind, name, entry["name"]] = entry.pop("image")
            found[kind, name] = item["spec"]
    return found, written


def places(entries):
    return {(x["workload"]["kind"], x["workload"]["name"], x["container"]) for x in entries}


def owners(entries):
    return {(x["owner"]["kind"], x["owner"]["name"]) for x in entries}


@given(workloads(), registries(), st.sampled_from(({}, {"suspend": True}, {"dryRun": True})), st.booleans())
def test_a_second_pass_plans_and_writes_nothing(objects, registry, held, has_rival):
    cluster = cluster_with(objects, has_rival, **held)
    predicted = one_pass(cluster, registry, "update-sample", check_mode=True)
    assert cluster.writes == []
    specs_before, images_before = specs(cluster)
    done = one_pass(cluster, registry, "update-sample")
    assert [getattr(predicted, name) for name in (*ACTIONS, "status")] == [
        getattr(done, name) for name in (*ACTIONS, "status")
    ]
    assert done.errors == []
    assert not (held and any(getattr(done, name) for name in ACTIONS))
    if has_rival:
        first = objects[0]
        assert not any(
            x["workload"]["name"] == first["metadata"]["name"] for x in [*done.images_written, *done.settled]
        )

    specs_after, images_after = specs(cluster)
    assert specs_after == specs_before
    changed = {key for key in images_after if images_after[key] != images_before[key]}
    assert changed == places(done.images_written)
    patches = [line for line in cluster.writes if line.startswith("patch")]
    assert len(patches) == len(set(patches)) == len(owners([*done.images_written, *done.settled]))
    check_targets(done, registry)

    again = one_pass(cluster, registry, "update-sample")
    assert [getattr(again, name) for name in ACTIONS] == [[], [], [], []]
    later = one_pass(cluster, registry, "update-sample", now="2026-03-01T10:05:00Z")
    # what crashes or cannot be pulled is decided within these minutes, and nothing else is
    on_trial = {(*places([x]),)[0] for x, v in again.judged if v.progress and v.progress.state == "under_way"}
    assert later.rolled == []
    assert places(later.rolled_back) <= on_trial
    assert {x["workload"]["name"] for x in later.freed} <= {x["workload"]["name"] for x in later.rolled_back}
    # a way back is seen, and told, by the pass after it
    told = one_pass(cluster, registry, "update-sample", now="2026-03-01T10:05:00Z")
    assert (told.rolled, told.rolled_back, told.freed) == ([], [], [])
    cluster.writes.clear()
    last = one_pass(cluster, registry, "update-sample", now="2026-03-01T10:05:00Z")
    assert ([getattr(last, name) for name in ACTIONS], cluster.writes) == ([[], [], [], []], [])


def check_targets(done, registry):
    """A roll goes to what the registry answered, a rollback to what was remembered; neither leaves its repository."""
    for roll in done.rolled:
        # always the top-level digest of what the followed tag names, in that tag's repository
        name, _at, digest = roll["to"].partition("@")
        assert any(key.startswith(name) and entry["digest"] == digest for key, entry in registry.items())
    containers = {(*places([x]),): x for x, _verdict in done.judged}
    for roll in done.rolled_back:
        found = containers[(*places([roll]),)]
        assert roll["to"] == found["follow"]["back"]
        assert roll["to"].startswith(found["reference"].rpartition(":")[0])
    for found, decision in done.judged:
        if decision.rolls and found["running"]:
            # never on the word of a local image ID alone, but on that of a digest in the spec that is not run yet
            written = found["follow"]["digest"] if found["follow"] else decision.candidate
            assert written != decision.candidate or any(
                item["id_kind"] == "manifest" and item["digest"] != decision.candidate for item in found["running"]
            )
        memory = found["follow"] or found["undone"] or {}
        failed = (memory.get("quarantine") or {}).get("digest")
        if decision.rolls and found["retry"] != decision.candidate:
            assert decision.candidate != failed
            assert decision.candidate not in memory.get("left", ())

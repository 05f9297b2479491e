# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The 500 workloads look like those of people and are read as running what the registry has."""

from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.module_utils.images import running
from bench import many, workloads
from bench.memory import Peak
from bench.play import Expected, Play

DIGEST = "sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"
IMAGE = "quay.io/bench/image-7:1"


def test_a_written_status_is_read_as_one_ready_pod_that_runs_the_digest():
    template = workloads.deployment("web-7", IMAGE)["spec"]["template"]
    pod = {**template, "status": workloads.running_status(template, {IMAGE: DIGEST})}
    (found,) = running.gather([pod], "web")["running"]
    assert (found["digest"], found["pods"], found["ready"]) == (DIGEST, 1, 1)


def test_the_update_selects_it_and_no_node_gets_its_pod():
    made = workloads.deployment("web", IMAGE)
    assert many.LABELS.items() <= made["metadata"]["labels"].items()
    assert made["spec"]["template"]["spec"]["schedulingGates"]
    selected = made["spec"]["selector"]["matchLabels"]
    assert selected.items() <= made["spec"]["template"]["metadata"]["labels"].items()


def test_memory_is_that_of_the_run_that_was_timed(monkeypatch):
    def run(self, unchanged, beside):
        assert beside == watched.peak.watching
        watched.peak.kib = 1000 * 1000
        return 1.5

    monkeypatch.setattr(Play, "run", run)
    watched = workloads.Watched(Play("x", (), Expected(), {}), Peak())
    assert watched.run() == 1.5
    assert workloads.Memory(watched).run() == 1024.0

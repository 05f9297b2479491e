# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that look as if they ran are read by the product as running what the registry has."""

from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.module_utils.images import running
from bench import many

DIGEST = "sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"
IMAGE = "quay.io/bench/image-7:1"


def test_a_written_status_is_read_as_one_ready_pod_that_runs_the_digest():
    template = many.deployment("web-7", IMAGE)["spec"]["template"]
    pod = {**template, "status": many.running_status(template, {IMAGE: DIGEST})}
    found = running.gather([pod], "web")
    image_id = f"quay.io/bench/image-7@{DIGEST}"
    entry = {"image_id": image_id, "digest": DIGEST, "id_kind": "manifest", "pods": 1, "ready": 1}
    assert found == {"running": [entry], "waiting": 0, "waiting_reasons": {}}


def test_no_node_ever_gets_such_a_pod():
    assert many.deployment("web", IMAGE)["spec"]["template"]["spec"]["schedulingGates"]

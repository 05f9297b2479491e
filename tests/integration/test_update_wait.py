# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run from the command line that waits for what it rolled."""

from __future__ import annotations

import json

import pytest
from integration.passes import Shop
from integration.test_several_updates import run
from integration.workloads import container, deployment

pytestmark = pytest.mark.usefixtures("crds")


@pytest.fixture
def web(shop: Shop) -> Shop:
    shop.push("one")
    update = shop.update("web", {"targets": [{"kind": "Deployment", "name": "web"}]})
    shop.apply(deployment("web", container("web", shop.image)), update)
    shop.kubectl("rollout", "status", "-n", shop.namespace, "deployment/web", "--timeout=90s")
    return shop


def test_a_run_that_waits_ends_with_its_rolls_proven(web, tmp_path):
    published = web.push("two")
    kubeconfig = web.testbed.kubeconfig
    done, (found,) = run(web, tmp_path, kubeconfig, update_wait=True, update_verification_seconds=3)
    assert done.returncode == 0, done.stdout
    assert found["errors"] == []
    assert [entry["container"] for entry in found["rolled"]] == ["web"]
    assert [entry["verdict"] for entry in found["verdicts"]] == ["current"]
    live = web.get("deployment", "web")
    assert published in json.dumps(live["spec"])
    assert '"trial": true' not in live["metadata"]["annotations"]["kubesteward.io/follow"]
    assert web.get("update", "web")["status"]["history"][-1]["outcome"] == "done"

    web.push("three")
    done, (found,) = run(web, tmp_path, kubeconfig, update_wait="true", update_wait_seconds=2)
    assert done.returncode != 0
    assert found["errors"] == ["Deployment/web web: its roll has not proven itself after 2 s"]

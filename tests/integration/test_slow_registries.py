# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One author's registries that answer as slowly as they can do not keep the operator from the Updates of others."""

from __future__ import annotations

import concurrent.futures
import time

import pytest
from integration.passes import Shop
from integration.workloads import container, deployment, until

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Asked,
    Reply,
    content,
    manifest,
    serving,
)

pytestmark = pytest.mark.usefixtures("crds")

UPDATES = 12
WORKERS = 2
#: a fifth of the default
TIMEOUT = 2


def late(asked: Asked) -> Reply:
    """Five redirects and then 503, each just before the time-out."""
    time.sleep(0.9 * TIMEOUT)
    hop = int(asked.query.get("hop", ["0"])[0])
    return Reply(302, {"Location": f"{asked.path}?hop={hop + 1}"}) if hop < 5 else Reply(503)


def pending(shop: Shop, image: str) -> None:
    """A Deployment whose Pod never gets a node: nobody but we looks at its image."""
    shop.apply(deployment("web", container("app", image), pod={"nodeSelector": {"no": "such"}}))
    assert until(lambda: shop.list("pods"), 60)


def test_twelve_updates_of_one_author_leave_two_workers_to_others(shop, namespaces):
    other = Shop(shop.testbed, shop.kubectl, namespaces())
    target = {"targets": [{"kind": "Deployment", "name": "web"}]}
    with serving(late) as slow, serving(content(tags={"t": manifest()})) as good:
        pending(shop, f"{slow.host}/app:t")
        pending(other, f"{good.host}/app:t")
        shop.apply(*(shop.update(f"slow-{number}", target) for number in range(UPDATES)))
        other.apply(other.update(spec=target))
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(max_workers=WORKERS) as workers:
            passes = [
                workers.submit(shop.run, "update", update_name=f"slow-{number}", update_timeout=TIMEOUT)
                for number in range(UPDATES)
            ]
            last = workers.submit(other.run, "update", update_name="sample", update_timeout=TIMEOUT)
            last.result()
        waited = time.monotonic() - began
        asked = len(slow.asked)
        assert all(done.result().code == 0 for done in passes)
    # two periods, on a machine that may be busy with other things
    assert waited < 120
    # three each for the passes that began before anything was known, one each for those after them
    assert asked <= 3 * UPDATES / 2
    slow_status = shop.get("update", f"slow-{UPDATES - 1}")["status"]["images"][0]
    assert (slow_status["verdict"], slow_status["reason"]) == ("unknown", "unreachable")
    assert "slow a short while ago" in slow_status["message"] or "was not asked" in slow_status["message"]
    assert slow.host in slow_status["message"]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is not the image's fault: good images stay where they are, and nobody waits for them without need."""

from __future__ import annotations

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    cluster_of,
    run,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.test_execution_rollback import (
    ROLLED,
    recover,
)


def test_a_good_image_that_nobody_looked_at_for_a_day_is_not_taken_back_for_a_moment_of_unreadiness():
    cluster = cluster_of("a")
    run(cluster, PUSHED, now=ROLLED)
    recover(cluster, "a", since=ROLLED)
    unready = {"type": "ContainersReady", "status": "False", "lastTransitionTime": "2026-03-02T09:59:55Z"}

    def blink(pod):
        pod["metadata"]["creationTimestamp"] = ROLLED
        pod["status"]["conditions"] = [unready]
        pod["status"]["containerStatuses"][0]["ready"] = False

    cluster.edit("Pod", "pod-a", blink)
    assert run(cluster, PUSHED, now="2026-03-02T10:00:00Z").rolled_back == []
    assert len(run(cluster, PUSHED, now="2026-03-02T10:09:55Z").rolled_back) == 1

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An object that is deleted and made anew while its pass runs begins without the status of the old one."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import telling
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import fake_cluster, passes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import start, update


def made_anew(cluster, kind, name):
    cluster.edit(kind, name, lambda item: (item["metadata"].update(uid="another"), item.update(status={})))


def test_an_update_made_anew_during_its_pass_does_not_get_the_old_ones_status():
    cluster = passes.cluster_of("a")

    def anew(verb, _target):
        if verb == "patch":
            made_anew(cluster, "Update", "update-sample")

    cluster.before_write = anew
    done = passes.run(cluster, passes.PUSHED)
    assert passes.status(cluster) == {}
    assert done.errors == []
    # what was done is done
    assert len(done.rolled) == 1
    cluster.before_write = lambda verb, target: None
    passes.run(cluster, passes.PUSHED)
    assert passes.status(cluster)["lastRoll"]


@pytest.mark.parametrize("obj", [update(), start()], ids=lambda obj: obj["kind"])
def test_a_status_is_only_written_to_the_object_that_was_read(obj):
    cluster = fake_cluster.FakeCluster(obj)
    made_anew(cluster, obj["kind"], obj["metadata"]["name"])
    with pytest.raises(ApiError, match="made anew") as caught:
        telling.apply_status(cluster, obj, {"conditions": []})
    assert caught.value.status == 404
    assert cluster.writes == []


def test_an_object_that_the_api_server_would_not_have_is_no_other_one():
    class Refusing(fake_cluster.FakeCluster):
        def json_patch(self, *_args, **_more):
            raise ApiError("Could not patch: spec.targets is invalid", 422)

    with pytest.raises(ApiError, match="invalid") as caught:
        telling.apply_status(Refusing(update()), update(), {"conditions": []})
    assert caught.value.status == 422


def test_a_pass_that_has_no_news_asks_for_nothing_of_its_update():
    cluster = passes.cluster_of("a")
    passes.run(cluster, passes.SAME)
    cluster.requests.clear()
    passes.run(cluster, passes.SAME)
    assert not [line for line in cluster.requests if line.startswith(("status", "patch"))]

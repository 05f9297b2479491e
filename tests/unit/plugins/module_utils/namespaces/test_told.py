# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told is true, and holds no secret."""

from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import report
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import MARKER
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused


def test_a_diff_shows_no_copy_of_a_secret_that_a_tool_keeps_in_an_annotation():
    api = builders.cluster(builders.secret(content="new"), builders.adoptable("team-a"))
    theirs = builders.secret(where="team-a", content="old")
    theirs["metadata"]["annotations"] = {"kapp.k14s.io/original": MARKER, "objectset.rio.cattle.io/applied": MARKER}
    api.put(theirs, "kapp")
    api.put(builders.nspro(adoption="Always", pullSecrets=[{"name": "regcred"}]))
    told = builders.one_pass(api, check_mode=True)
    assert "Secret" in {operation.kind for operation in builders.only(told).done}
    assert MARKER not in builders.visible(told, api)


def test_a_shrink_that_was_refused_is_not_told_as_done():
    api = builders.cluster(builders.nspro(nssize="large"))
    builders.settled(api)
    api.count("team-a", limits_cpu="250m", limits_memory="1Mi")
    api.put(builders.nspro(nssize="small", shrink="Apply"))

    def refuse(verb, target):
        if (verb, target.kind) == ("apply", "ResourceQuota"):
            raise refused(403, "forbidden")

    api.before = refuse
    assert builders.only(builders.one_pass(api)).state == "pending"
    assert "ShrinkApplied" not in [event["reason"] for event in api.events]
    api.before = lambda verb, target: None
    builders.one_pass(api)
    assert [event["reason"] for event in api.events].count("ShrinkApplied") == 1


def test_the_diff_of_a_release_shows_what_stays():
    api = builders.cluster(builders.adoptable("team-a"))
    api.put(builders.quota("team-a", {"limits.cpu": "100m", "limits.memory": "100Mi"}, labels={"theirs": "1"}), "helm")
    api.put(builders.nspro(adoption="Always"))
    builders.settled(api)
    told = builders.one_pass(api, check_mode=True, state="released")
    diff = report.result(told.results, told.statuses, with_diff=True)["diff"]
    (quota,) = [item for item in diff if item["before_header"].endswith("ResourceQuota/team-a-quota")]
    assert "managed-by" in quota["before"]
    assert "managed-by" not in quota["after"]
    assert '"limits.cpu": "100m"' in quota["after"]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a pass, for machines and for people."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import report
from ansible_collections.kubesteward.core.plugins.module_utils.images.execution import Pass
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Verdict
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    REPOSITORY,
    published,
    sha,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    SAME,
    at,
    cluster_of,
    run,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.test_status import (
    HELD,
    STALE,
    UNKNOWN,
    judged,
)


def test_what_was_rolled_is_reported():
    result = report.result(run(cluster_of("a"), PUSHED), with_diff=False)
    assert result["changed"] is True
    workload = {"kind": "Deployment", "name": "a", "api_version": "apps/v1", "uid": "uid-Deployment-a", "owner": None}
    assert result["verdicts"] == [
        {
            "workload": workload,
            "container": "app",
            "image": IMAGE,
            "verdict": "stale",
            "reason": "digest_differs",
            "message": f"{IMAGE} now names {I2}",
            "running": [I1],
            "published": I2,
        }
    ]
    assert result["counts"] == {"current": 0, "stale": 1, "unknown": 0}
    owner = {"kind": "Deployment", "name": "a", "api_version": "apps/v1"}
    assert result["rolled"] == [{"workload": workload, "container": "app", "owner": owner, "from": IMAGE, "to": at(I2)}]
    assert (result["held"], result["released"], result["starts"], result["deleted"]) == ([], [], [], False)
    assert result["status"]["update"] is True
    assert "diff" not in result


def test_an_unchanged_pass_is_not_changed():
    cluster = cluster_of("a")
    assert report.result(run(cluster, SAME), with_diff=False)["changed"] is True
    result = report.result(run(cluster, SAME), with_diff=True)
    assert (result["changed"], result["diff"]) == (False, [])


def test_what_is_held_is_reported():
    result = report.result(run(cluster_of("a", suspend=True), PUSHED), with_diff=False)
    assert [(x["workload"]["name"], x["reason"]) for x in result["held"]] == [("a", "suspended")]


def test_without_an_update_there_is_no_status():
    assert "status" not in report.result(Pass(), with_diff=True)


def test_the_diff_shows_images_digests_and_flags():
    rolled, told = report.result(run(cluster_of("a"), PUSHED), with_diff=True)["diff"]
    assert rolled["before_header"] == rolled["after_header"] == "Deployment/a container app"
    assert rolled["before"] == f"image: {IMAGE}\nruns: {I1}\n"
    assert rolled["after"] == f"image: {at(I2)}\n"
    assert told["before_header"] == "Update/update-sample status"
    assert told["before"] == "check_id: false\nupdate: false\n"
    assert told["after"] == "check_id: true\nupdate: true\nDeployment/a app: stale (digest_differs)\n"


def test_the_diff_of_an_update_that_ends():
    found = report.result(run(cluster_of("a", delete_flag=True), SAME), with_diff=True)["diff"]
    assert (found[-1]["before"], found[-1]["after"]) == ("state: present\n", "state: absent\n")


def test_the_table_is_aligned_and_short():
    lines = report.result(run(cluster_of("a", "b"), {IMAGE: published(I2, children=())}), with_diff=False)["table"]
    assert lines[0].split() == ["WORKLOAD", "CONTAINER", "VERDICT", "REASON", "RUNNING", "PUBLISHED"]
    assert lines[1].split() == ["Deployment/a", "app", "rolled", "digest_differs", I1[7:19], I2[7:19]]
    assert len({line.index(I2[7:19]) for line in lines[1:]}) == 1


def test_the_table_of_one_that_runs_nothing_or_much():
    (pair,) = judged(HELD)
    many = [{"digest": sha(str(n)), "id_kind": "manifest", "pods": 1} for n in range(5)]
    done = Pass([({**pair[0], "running": [], "published": None}, HELD), ({**pair[0], "running": many}, HELD)])
    empty, full = report.table(done, ())[1:]
    assert empty.split()[-2:] == ["-", "-"]
    assert "and 2 more" in full
    assert full.count(",") == 2


def test_below_the_table_is_why_containers_are_unknown_or_held():
    result = report.result(run(cluster_of("a"), {}), with_diff=False)
    assert result["table"][-1] == "Deployment/a app: " + result["verdicts"][0]["message"]
    assert len(report.result(run(cluster_of("a"), SAME), with_diff=False)["table"]) == 2


def test_below_the_table_is_what_was_released_and_that_nothing_ran():
    owner = {"kind": "Deployment", "name": "a", "api_version": "apps/v1"}
    images = [{"container": "app", "from": at(I2), "to": IMAGE, "message": "a node may have an older one"}]
    done = Pass(released=[{"owner": owner, "workload": owner, "containers": ["app", "init"], "images": images}])
    told = ["Deployment/a app: a node may have an older one", "Deployment/a app, init: released"]
    assert report.result(done, with_diff=False)["table"][1:] == told
    (told,) = report.result(Pass(), with_diff=False, nothing_ran=True)["table"][1:]
    assert told.startswith("Nothing to look at: ")


def test_the_messages_below_the_table_are_few():
    (pair,) = judged(HELD)
    done = Pass([({**pair[0], "container": f"app-{n}"}, HELD) for n in range(25)])
    found = report.notes(done, ())
    assert len(found) == 21
    assert found[-1] == "and 5 more"


def test_errors_are_one_message():
    assert report.aggregated(["a"]) == "a"
    assert report.aggregated(["a", "b"]).endswith("a; b")
    assert REPOSITORY not in report.aggregated(["a", "b"])


QUARANTINED = Verdict("stale", "quarantined", "failed before", I2)
CURRENT = Verdict("current", "digest_matches", "", None)


@pytest.mark.parametrize(
    ("fail_on", "found"),
    [
        ([], []),
        (["unknown"], ["Deployment/gone: there is none", "Deployment/w0 app: unknown (not_found): no such tag"]),
        (
            ["held"],
            [
                "Deployment/w1 app: stale (suspended): suspended",
                "Deployment/w3 app: stale (quarantined): failed before",
            ],
        ),
        (
            ["stale"],
            [
                "Deployment/w1 app: stale (suspended): suspended",
                "Deployment/w2 app: stale (digest_differs): differs",
                "Deployment/w3 app: stale (quarantined): failed before",
            ],
        ),
        (
            ["rolled_back"],
            [
                "Deployment/w3 app: stale (quarantined): failed before",
                "Deployment/w4 app: current (digest_matches)",
            ],
        ),
    ],
)
def test_a_run_fails_for_what_its_caller_named_and_for_nothing_else(fail_on, found):
    pairs = judged(UNKNOWN, HELD, STALE, QUARANTINED, CURRENT)
    moves = [{"workload": c["workload"], "container": c["container"], "from": IMAGE, "to": at(I2)} for c, _ in pairs]
    done = Pass(judged=pairs, rolled=[moves[2]], rolled_back=[moves[4]])
    assert report.failures(done, ["Deployment/gone"], fail_on) == found


def test_a_trial_that_ended_and_a_pod_that_was_deleted_are_told_and_in_the_diff():
    (container, _verdict), *_rest = judged(STALE)
    move = {"workload": container["workload"], "container": "app", "from": IMAGE, "to": at(I2)}
    done = Pass(settled=[move], freed=[{"workload": container["workload"], "pod": "w0-1"}])
    assert report.notes(done, set()) == [
        "Deployment/w0 app: its roll has run well, which was written down (settled)",
        "Deployment/w0: its broken Pod w0-1 was deleted",
    ]
    assert "would be deleted" in report.notes(done, set(), is_check=True)[1]
    settled, freed = report.diff(done)
    assert (settled["before_header"], settled["before"], settled["after"]) == (
        "Deployment/w0 container app",
        "trial: true\n",
        "",
    )
    assert (freed["before_header"], freed["before"], freed["after"]) == (
        "Pod/w0-1",
        "state: present\n",
        "state: absent\n",
    )

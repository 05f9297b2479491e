# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""watches.yaml fits the CRDs and reads nothing from the operator's cache."""

from __future__ import annotations

import re

import pytest

READ = {
    ("", "v1"): {"Event", "Namespace", "Node", "Pod", "Secret", "ServiceAccount"},
    ("apps", "v1"): {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
    ("batch", "v1"): {"CronJob", "Job"},
    ("install.sios.nginx.testing", "v1"): {"Start", "Update"},
}


def seconds(period: str) -> int:
    """A Go duration of one unit in seconds."""
    match = re.fullmatch(r"([1-9]\d*)([smh])", period)
    assert match, period
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def test_every_kind_has_one_watch(crds, watches):
    assert watches.keys() == crds.keys()
    for kind, watch in watches.items():
        assert watch["group"] == crds[kind]["spec"]["group"]
        assert watch["version"] == crds[kind]["spec"]["versions"][0]["name"]


@pytest.mark.parametrize("kind", ["Start", "Update"])
def test_specs_reach_the_playbook_as_written_and_are_never_executed(watches, kind):
    watch = watches[kind]
    assert watch["snakeCaseParameters"] is False
    assert watch["markUnsafe"] is True
    assert watch["manageStatus"] is True
    assert "role" not in watch


@pytest.mark.parametrize("kind", ["Start", "Update"])
def test_no_decision_is_taken_on_a_cached_read(watches, kind):
    listed = {(entry["group"], entry["version"], entry["kind"]) for entry in watches[kind]["blacklist"]}
    assert listed == {(group, version, name) for (group, version), names in READ.items() for name in names}


@pytest.mark.parametrize(("kind", "period"), [("Update", 60), ("Start", 60)])
def test_periods_are_not_zero_which_would_mean_ten_hours(watches, kind, period):
    assert seconds(watches[kind]["reconcilePeriod"]) == period


@pytest.mark.parametrize("kind", ["Start", "Update"])
def test_runs_leave_as_few_folders_behind_as_work(watches, kind):
    assert watches[kind]["maxRunnerArtifacts"] == 3


@pytest.mark.parametrize("kind", ["Start", "Update"])
def test_playbooks_are_named_from_the_folder_the_operator_starts_in(root, watches, kind):
    assert watches[kind]["playbook"] == f"playbooks/{kind.lower()}.yml"
    assert (root / watches[kind]["playbook"]).is_file()


@pytest.mark.parametrize("kind", ["Start", "Update"])
def test_I7_each_resource_has_a_period_of_its_own_and_no_hour_of_the_clock(watches, kind):
    # the operator counts a period from the end of the resource's own last pass, so passes do not meet at the full hour
    assert re.fullmatch(r"[0-9]+[sm]", watches[kind]["reconcilePeriod"])
    assert not any("schedule" in key.lower() for key in watches[kind])

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module's result adds to counters."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils import handover
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.plugin_utils import counters

FOUND = {"state": "found", "digest": "sha256:1"}


def counted(module, result, arguments=None, check_mode=False):
    """Counters without what all of them have in their names."""
    found = counters.of_result(f"kubesteward.core.{module}", result, arguments or {}, check_mode)
    return {name.removeprefix("kubesteward_").removesuffix("_total"): count for name, count in found.items()}


def failure(reason):
    return {"state": "unknown", "reason": reason, "msg": "no"}


@pytest.mark.parametrize("write", [list, handover.write])
@pytest.mark.parametrize("check_mode", [False, True])
def test_look_ups_are_counted_by_their_reason_in_check_mode_too(write, check_mode):
    images = [FOUND, failure("unauthorized"), failure("unauthorized"), failure("not_found"), failure("brand_new")]
    result = {"changed": False, "images": write(images), "requests_made": 7}
    assert counted("registry_digest", result, check_mode=check_mode) == {
        "registry_requests": 7,
        "registry_lookups": 5,
        "registry_lookup_failures_unauthorized": 2,
        "registry_lookup_failures_not_found": 1,
        "registry_lookup_failures_other": 1,
    }


def test_one_look_up():
    result = {"changed": False, "digest": "sha256:1", "requests_made": 1}
    assert counted("registry_digest", result) == {"registry_requests": 1, "registry_lookups": 1}


def test_one_look_up_that_fails_the_module():
    result = {"failed": True, "reason": "rate_limited", "msg": "later", "requests_made": 3}
    assert counted("registry_digest", result) == {
        "module_failures": 1,
        "registry_requests": 3,
        "registry_lookups": 1,
        "registry_lookup_failures_rate_limited": 1,
    }


def test_wrong_options_are_no_look_up():
    assert counted("registry_digest", {"failed": True, "msg": "retries is 99"}) == {"module_failures": 1}


def test_nothing_to_look_up_adds_nothing():
    result = {"changed": False, "images": handover.write([]), "requests_made": 0}
    assert counted("registry_digest", result) == {}


def test_a_list_of_images_that_is_none_is_told():
    with pytest.raises(StewardError, match="images must be a list"):
        counted("registry_digest", {"images": "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"})


ROLLED = {"rolled": [{}, {}], "rolled_back": [{}], "settled": [{}, {}, {}], "freed": [{}], "released": []}


def test_rolls_and_what_became_of_them():
    assert counted("image_rollout", ROLLED) == {"rolls": 2, "rollbacks": 1, "rolls_settled": 3, "pods_freed": 1}


def test_rolls_before_a_failure_count():
    assert counted("image_rollout", {**ROLLED, "failed": True, "msg": "1 object"})["rolls"] == 2
    assert counted("image_rollout", {"failed": True, "msg": "wrong options"}) == {"module_failures": 1}


@pytest.mark.parametrize(("dry_run", "expected"), [(None, 1), (False, 1), ("no", 1), (True, 0), ("yes", 0), (1, 0)])
def test_what_a_dry_run_would_release_is_not_counted(dry_run, expected):
    arguments = {"state": "released"} if dry_run is None else {"state": "released", "dry_run": dry_run}
    found = counted("image_rollout", {"rolled": [], "released": [{"owner": {}}]}, arguments)
    assert found.get("references_released", 0) == expected


def namespace(state, *operations):
    done = [{"action": action, "kind": kind, "name": "x"} for action, kind in operations]
    return {"name": "team", "state": state, "operations": done}


def test_namespaces_that_come_and_go():
    result = {
        "writes": 6,
        "namespaces": [
            namespace("ready", ("create", "Namespace"), ("apply", "ResourceQuota")),
            namespace("ready", ("patch", "Namespace"), ("delete", "RoleBinding")),
            namespace("terminating", ("delete", "Namespace")),
            namespace("released", ("patch", "Namespace")),
        ],
    }
    assert counted("ns_provision", result) == {
        "namespace_writes": 6,
        "namespaces_created": 1,
        "namespaces_deleted": 1,
        "namespaces_released": 1,
    }


def test_an_unchanged_namespace_adds_nothing():
    assert counted("ns_provision", {"writes": 0, "namespaces": [namespace("ready"), namespace("absent")]}) == {}


def test_starts():
    starts = [{"state": state} for state in ("applied", "unchanged", "conflict", "applied")]
    assert counted("start_apply", {"starts": starts}) == {"starts_applied": 2}


@pytest.mark.parametrize(
    ("module", "result"),
    [
        ("image_rollout", {**ROLLED, "released": [{}]}),
        ("ns_provision", {"writes": 1, "namespaces": [namespace("released", ("create", "Namespace"))]}),
        ("start_apply", {"starts": [{"state": "applied"}]}),
    ],
)
def test_what_check_mode_predicts_is_not_counted(module, result):
    assert counted(module, result, check_mode=True) == {}
    assert counted(module, {**result, "failed": True}, check_mode=True) == {"module_failures": 1}


@pytest.mark.parametrize("result", [{"ansible_job_id": "j1", "started": 1}, {"skipped": True}, {"unreachable": True}])
@pytest.mark.parametrize("module", ["registry_digest", "image_rollout", "ns_provision", "start_apply", "pod_image_id"])
def test_what_is_no_result_of_the_module_adds_nothing(module, result):
    assert counted(module, result) == {}


def test_every_reason_of_a_failed_look_up_has_a_counter(root_of_plugins):
    source = "".join(path.read_text() for path in (root_of_plugins / "module_utils/registry").glob("*.py"))
    used = set(re.findall(r'reason="([a-z0-9_]+)"', source))
    assert len(used) >= 10
    assert used - set(counters.REASONS) == set()


def test_names_and_descriptions_are_as_prometheus_wants_them():
    for name, text in counters.COUNTERS.items():
        assert re.fullmatch(r"kubesteward_[a-z0-9_]+_total", name)
        assert text.endswith(".")


@pytest.fixture
def root_of_plugins(pytestconfig):
    return pytestconfig.rootpath / "plugins"

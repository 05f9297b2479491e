# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of the manager's Deployment follow from what `make bench` holds passes to."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.quantity import parse
from bench import operator
from bench.catalog import MEASURES
from bench.reconcile import variables

MB = 1_000_000
#: for the passes of the largest namespaces, and for what ansible-operator's cache grows to
MARGIN = 1.25
#: Updates, Starts and Nspros of a cluster that is not small
RESOURCES = 1000
#: bounds of single passes by what sets how many run at once
PASSES = {
    "MAX_CONCURRENT_RECONCILES_UPDATE_INSTALL_SIOS_NGINX_TESTING": "operator_pass_500",
    "MAX_CONCURRENT_RECONCILES_START_INSTALL_SIOS_NGINX_TESTING": "operator_start",
    "MAX_CONCURRENT_RECONCILES_NSPRO_NSPRO_EXAMPLE_COM": "operator_nspro",
}


def bound(name: str) -> float:
    """Most MB of a measure."""
    (limit,) = [measure.limit for measure in MEASURES if measure.name == name]
    return limit.most


@pytest.fixture(scope="module")
def pod(root) -> dict:
    text = (root / "config/manager/manager.yaml").read_text()
    (deployment,) = [item for item in yaml.safe_load_all(text) if item and item["kind"] == "Deployment"]
    return deployment["spec"]["template"]["spec"]


def test_the_limit_of_memory_has_room_for_all_passes_at_once(pod):
    container = operator.manager()
    workers = {name: int(variables(container)[name]) for name in PASSES}
    at_once = sum(count * bound(f"{PASSES[name]}_peak_mb") for name, count in workers.items())
    needed = (operator.PROGRAM_MB + at_once) * MARGIN * MB
    limit = parse(container["resources"]["limits"]["memory"])
    assert limit >= needed, f"{needed / MB:.0f} MB are needed"
    # a promise that is not asked for is none
    assert limit < 2 * needed


def test_the_request_of_memory_is_the_program_and_a_pass_of_each_kind(pod):
    needed = operator.PROGRAM_MB + sum(bound(f"{name}_peak_mb") for name in PASSES.values())
    assert parse(operator.manager()["resources"]["requests"]["memory"]) >= needed * MB


def test_100_updates_fit_beside_the_program(pod):
    limit = parse(operator.manager()["resources"]["limits"]["memory"])
    assert (operator.PROGRAM_MB + bound("operator_100_updates_peak_mb")) * MB < limit


def test_tmp_has_room_for_the_folders_of_a_thousand_resources(pod):
    (tmp,) = [volume["emptyDir"] for volume in pod["volumes"] if volume["name"] == "tmp"]
    each = max(bound(f"{name}_tmp_mb") for name in ("operator_pass", "operator_start", "operator_nspro"))
    assert parse(tmp["sizeLimit"]) >= RESOURCES * each * MB

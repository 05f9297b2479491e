# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What image_rollout is handed: whatever our modules return passes, and nothing that a pass would stumble over."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import inputs
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    pod_of,
    published,
    start,
    start_deployment,
    workload,
)

UNKNOWN = {"image": IMAGE, "state": "unknown", "reason": "not_found", "msg": "no such tag"}


def watched():
    """A container on trial, one whose roll was undone, and one of a Start."""
    found = []
    for name, image in (("a", f"{REPOSITORY}@{I2}"), ("b", f"{REPOSITORY}@{I1}")):
        notes = annotation(app=followed(I2, trial=True, left=[I1]))
        owner = workload(name=name, containers=[container(image=image)], annotations=notes)
        one, between = pod_of(owner, f"{REPOSITORY}@{I1}")
        found += inspect(owner, one, *between)
    resource = start()
    return [*found, *inspect(resource, start_deployment(resource))]


def test_what_the_modules_return_passes():
    containers = watched()
    assert [bool(item[key]) for item, key in zip(containers, ("trial", "undone"), strict=False)] == [True, True]
    assert containers[2]["workload"]["owner"]
    inputs.check(containers, [published(), published(children=None), UNKNOWN])


#: what a caller of before may not give
OPTIONAL = {"type", "pull_policy", "unwell", "outdated", "restarts", "well"}


@pytest.mark.parametrize("key", sorted(set(watched()[0]) - OPTIONAL))
def test_every_key_of_a_container_is_looked_for(key):
    for number, found in enumerate(watched()):
        spoilt = copy.deepcopy(found)
        del spoilt[key]
        with pytest.raises(StewardError, match=rf"running\[0\] has no {key}; give the containers"):
            inputs.check([spoilt], [])
        with pytest.raises(StewardError, match=rf"running\[{number}\] has no {key}"):
            inputs.check([*watched()[:number], spoilt], [])


@pytest.mark.parametrize("key", sorted(watched()[0]["rollout"].keys() - OPTIONAL))
def test_every_figure_of_a_rollout_is_looked_for(key):
    (found, *_rest) = watched()
    del found["rollout"][key]
    with pytest.raises(StewardError, match=rf"running\[0\].rollout has no {key}"):
        inputs.check([found], [])


@pytest.mark.parametrize("key", sorted((set(watched()[0]["trial"]) - OPTIONAL) | {"restarts"}))
def test_every_fact_of_a_trial_is_looked_for(key):
    (found, *_rest) = watched()
    del found["trial"][key]
    with pytest.raises(StewardError, match=rf"running\[0\].trial has no {key}"):
        inputs.check([found], [])


def test_a_long_value_is_cut():
    with pytest.raises(StewardError) as caught:
        inputs.check(["x" * 5000], [])
    assert len(str(caught.value)) < 250

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of an applied plan is empty, whatever was there before and whoever else writes."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import (
    builders,
    fake_schema,
    states,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.states import NAME

FOREIGN_POLICY = builders.policy(NAME, "theirs", [{}])


def start(spec, accounts=("default", "builder")):
    """A cluster with one Nspro and the pull secrets that it may name."""
    api = builders.cluster(builders.secret(), builders.secret("other", content="{}"), accounts=accounts)
    api.put(builders.nspro(NAME, **spec))
    return api


def reach_rest(api, sizes):
    """Passes until the namespace is as it is wanted; then one more, which must write nothing."""
    told = builders.one_pass(api, sizes=sizes)
    # the ServiceAccounts of a new Namespace are seen one pass later
    if builders.only(told).state == "pending":
        told = builders.one_pass(api, sizes=sizes)
    assert builders.only(told).state == "ready", builders.only(told)
    builders.one_pass(api, sizes=sizes)
    assert builders.writes(api) == []
    # what the quota counts is in the status one pass later
    before = api.dump()
    told = builders.one_pass(api, sizes=sizes)
    assert api.writes == []
    assert not told.statuses
    assert api.dump() == before


@given(states.spec, states.sizes)
def test_the_plan_of_an_applied_plan_is_empty(spec, sizes):
    api = start(spec)
    reach_rest(api, sizes)


@given(states.spec, states.spec, states.sizes, states.sizes, states.deeds)
def test_any_spec_after_any_other_and_any_edit_comes_to_rest(first, second, before, after, deeds):
    api = start(first)
    reach_rest(api, before)
    api.put(FOREIGN_POLICY, "helm")
    done = [(deed, found["key"]) for deed, who in deeds if (found := deed.do(api, who)) and deed.holds]
    # one of them may undo another
    theirs = [(deed, key) for deed, key in done if deed.holds(api.objects[key])]
    outside = api.dump(NAME, HOME)
    api.put(builders.nspro(NAME, **second))
    reach_rest(api, after)
    assert api.dump(NAME, HOME) == outside
    for deed, key in theirs:
        # an object of ours that is no longer wanted takes along what others wrote on it
        assert key not in api.objects or deed.holds(api.objects[key])
    assert (FOREIGN_POLICY["kind"], NAME, "theirs") in api.objects


@given(states.spec, states.spec, states.sizes, states.deeds)
def test_the_way_there_leaves_no_trace(first, second, sizes, deeds):
    """The end is the same as if the second spec had been the first, but for what others wrote."""
    api, direct = start(first), start(second)
    reach_rest(api, sizes)
    for deed, who in deeds:
        if deed.holds is None:
            deed.do(api, who)
    api.put(builders.nspro(NAME, **second))
    reach_rest(api, sizes)
    reach_rest(direct, sizes)
    assert content(api) == content(direct)


def content(api):
    """What is in the namespace, without versions, times of repair and owners; what others drifted is repaired."""
    found = {}
    for key, obj in api.objects.items():
        if NAME not in key[1:] or key[0] in ("Nspro", "ServiceAccount"):
            continue
        meta = {field: dict(obj["metadata"].get(field) or {}) for field in ("labels", "annotations")}
        meta["annotations"].pop("kubesteward.io/repairs", None)
        claim = json.loads(meta["annotations"].pop("kubesteward.io/claim", "{}"))
        body = {name: value for name, value in fake_schema.numbers(obj).items() if name not in ("metadata", "status")}
        found["/".join(map(str, key))] = [meta, claim, body]
    return json.dumps(found, sort_keys=True)


@given(states.spec, states.sizes, states.deeds, st.sampled_from(states.MANAGERS), st.booleans())
def test_what_is_adopted_comes_to_rest_and_is_given_back(spec, sizes, deeds, manager, identical):
    api = start({**spec, "adoption": "Always"})
    api.put(builders.adoptable(NAME, labels={"team": "theirs"}), manager)
    api.put(FOREIGN_POLICY, manager)
    hard = sizes[spec["nssize"]]["quota"] if identical else {"limits.cpu": "64", "configmaps": "9"}
    api.put(builders.quota(NAME, hard), manager)
    for deed, who in deeds:
        deed.do(api, who)
    reach_rest(api, sizes)
    told = builders.one_pass(api, state="released", sizes=sizes)
    assert builders.only(told).state == "released"
    kinds = {key[0] for key in api.objects if key[1] == NAME}
    assert ("ResourceQuota", NAME, f"{NAME}-quota") in api.objects
    assert ("NetworkPolicy", NAME, "theirs") in api.objects
    assert kinds <= {"ResourceQuota", "NetworkPolicy", "ServiceAccount"}
    marks = api.objects[("Namespace", None, NAME)]["metadata"]
    assert not {"kubesteward.io/claim", "kubesteward.io/repairs"} & marks["annotations"].keys()
    assert not {"size", "managed"} & marks["labels"].keys() or "huge" in marks["labels"].values()

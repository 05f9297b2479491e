# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of the Nspros that ask for a free name the oldest has it, whichever pass comes first."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused

NAMESPACE = ("Namespace", None, "x")
OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def asking(home, made, name="x", **spec):
    item = builders.nspro(name, home=home, **spec)
    item["metadata"]["creationTimestamp"] = made
    return item


def two(of_a=OLD, of_b=YOUNG, **spec):
    """home-a/x and home-b/x ask for one name."""
    api = builders.cluster(builders.namespace("home-a"), builders.namespace("home-b"))
    api.put(asking("home-a", of_a, **spec))
    api.put(asking("home-b", of_b, access=[{"role": "admin", "users": ["mallory"]}]))
    return api


def passes(api, *homes, **given):
    return [builders.only(builders.one_pass(api, name="x", home=home, **given)) for home in homes]


def test_the_older_one_has_the_name_again_after_its_namespace_was_deleted_by_hand():
    api = two()
    assert [item.state for item in passes(api, "home-a", "home-b")] == ["ready", "conflict"]
    api.remove(*NAMESPACE)
    assert [item.state for item in passes(api, "home-b")] == ["terminating"]
    api.finish("x")
    # the younger one's pass comes first, more than once
    for _again in range(3):
        (waits,) = passes(api, "home-b")
        assert (waits.state, waits.reason, builders.writes(api)) == ("conflict", "conflict", [])
    assert "Nspro home-a/x is older and has the name x" in waits.msg
    assert waits.msg.endswith("kubectl delete nspro x -n home-a")
    assert [item.state for item in passes(api, "home-a", "home-b")] == ["ready", "conflict"]
    assert builders.claim_of(api, "x").by == "home-a/x"


def test_at_the_very_first_pass_the_race_decides_nothing_either():
    api = two()
    assert [item.state for item in passes(api, "home-b", "home-a")] == ["conflict", "ready"]


def test_check_mode_says_so_too():
    api = two()
    assert passes(api, "home-b", check_mode=True)[0].state == "conflict"


@pytest.mark.parametrize("pair", [(OLD, OLD), ("", "")], ids=["same second", "no time"])
def test_names_decide_between_those_of_one_second(pair):
    api = two(*pair)
    assert [item.state for item in passes(api, "home-b", "home-a")] == ["conflict", "ready"]


@pytest.mark.parametrize(
    "of_a",
    [
        {"labels": {"app": "infra"}},
        {"access": [{"role": "cluster-admin", "users": ["x"]}]},
        {"nssize": "huge"},
        {"quota": {"limit.cpu": "1"}},
    ],
    ids=["label", "role", "size", "quota"],
)
def test_one_that_could_not_have_it_does_not_keep_others_from_it(of_a):
    spec = {"nssize": "small", **of_a}
    api = two(nssize=spec.pop("nssize"), **spec)
    assert passes(api, "home-b")[0].state == "ready"


def test_one_that_is_going_asks_no_more():
    api = two()
    api.objects[("Nspro", "home-a", "x")]["metadata"]["deletionTimestamp"] = YOUNG
    assert passes(api, "home-b")[0].state == "ready"


def test_one_that_went_since_the_list_was_read_asks_no_more():
    api = two()

    def hook(verb, target):
        if verb == "get" and (target.kind, target.namespace) == ("Nspro", "home-a"):
            api.objects.pop(("Nspro", "home-a", "x"), None)

    api.before = hook
    assert passes(api, "home-b")[0].state == "ready"


def test_a_nspro_of_its_own_namespaces_name_asks_for_what_nobody_gets():
    api = builders.cluster(builders.namespace("x"), builders.namespace("home-b"))
    api.put(asking("x", OLD))
    api.put(asking("home-b", YOUNG))
    api.objects.pop(NAMESPACE)
    assert passes(api, "home-b")[0].state == "ready"


def test_one_of_another_name_is_no_rival():
    api = builders.cluster(builders.namespace("home-a"), builders.namespace("home-b"))
    api.put(asking("home-a", OLD, "y"))
    api.put(asking("home-b", YOUNG))
    assert passes(api, "home-b")[0].state == "ready"


def test_who_has_it_keeps_it_and_an_older_one_waits():
    api = builders.cluster(builders.namespace("home-a"), builders.namespace("home-b"))
    api.put(asking("home-b", YOUNG))
    assert passes(api, "home-b")[0].state == "ready"
    # its time is older, as of one that a backup brought
    api.put(asking("home-a", OLD))
    assert [item.state for item in passes(api, "home-a", "home-b")] == ["conflict", "ready"]


def test_a_playbook_has_no_age():
    api = two()
    assert builders.only(builders.provision(api, name="x", size="small")).state == "ready"


def test_where_the_nspros_may_not_be_listed_nobody_has_it_and_the_refusal_is_told():
    api = two()

    def hook(verb, target):
        if verb == "list" and target.kind == "Nspro" and target.namespace is None:
            raise refused(403, "nspros is forbidden")

    api.before = hook
    (result,) = passes(api, "home-b")
    assert (result.state, result.reason, result.error) == ("pending", "forbidden", "nspros is forbidden")
    assert builders.writes(api) == []


def test_they_are_listed_once_a_pass_and_only_where_a_name_is_free():
    api = builders.cluster(*(builders.nspro(f"team-{letter}") for letter in "abcd"))
    builders.one_pass(api)
    assert api.requests.count("list Nspro") == 1
    builders.one_pass(api)
    assert api.requests.count("list Nspro") == 0

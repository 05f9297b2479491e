# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what was read to the containers to judge and the references to look up."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    C1,
    I1,
    I2,
    IMAGE,
    NAMESPACE,
    P1,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    pod,
    pod_of,
    revision,
    running,
    start,
    start_deployment,
    state,
    workload,
)


def at(digest):
    return f"{REPOSITORY}@{digest}"


def names(*objects, **policy):
    return [item["container"] for item in inspect(*objects, **policy)]


def test_pull_secrets_are_those_of_a_live_pod():
    owner = workload()
    owner["spec"]["template"]["spec"]["imagePullSecrets"] = [{"name": "of-the-template"}]
    one, between = pod_of(owner, at(I1), secrets=["of-the-account", "other"])
    (found,) = inspect(owner, one, *between)
    assert found["pull_secrets"] == [
        {"namespace": NAMESPACE, "name": "of-the-account"},
        {"namespace": NAMESPACE, "name": "other"},
    ]


def test_without_a_live_pod_those_of_the_template_are_taken():
    owner = workload()
    owner["spec"]["template"]["spec"]["imagePullSecrets"] = [{"name": "regcred"}, {}]
    ending, between = pod_of(owner, at(I1), secrets=["old"], deleted=True)
    (found,) = inspect(owner, ending, *between)
    assert found["pull_secrets"] == [{"namespace": NAMESPACE, "name": "regcred"}]


def test_the_deployment_of_a_start_belongs_to_it():
    resource = start()
    (found,) = inspect(resource, start_deployment(resource))
    assert found["workload"]["owner"] == {
        "kind": "Start",
        "name": "start-sample",
        "api_version": "install.sios.nginx.testing/v1",
        "digest": None,
    }
    assert (found["path"], found["controller"]) == ("/spec", None)


def test_of_two_starts_of_one_name_the_older_has_the_deployment():
    young = start("young", image=f"{REPOSITORY}:2", created="2026-02-01T00:00:00Z")
    old = start("old", created="2026-01-01T00:00:00Z")
    (found,) = inspect(young, old, start_deployment(old))
    assert found["workload"]["owner"]["name"] == "old"
    (found,) = inspect(young, start("a-twin", created="2026-02-01T00:00:00Z"), start_deployment(old))
    assert found["workload"]["owner"]["name"] == "a-twin"


def test_a_workload_of_another_kind_is_no_starts():
    (found,) = inspect(start(), workload("StatefulSet", "nginx-sample"))
    assert found["workload"]["owner"] is None


def test_a_deployment_that_something_else_controls_is_named():
    owner = workload(ownerReferences=[{"kind": "Rollout", "name": "r", "uid": "u", "controller": True}])
    assert inspect(owner)[0]["controller"] == "Rollout r"
    resource = start()
    foreign = start_deployment(resource)
    foreign["metadata"]["ownerReferences"][0]["uid"] = "of-a-start-that-was-deleted"
    assert inspect(resource, foreign)[0]["controller"] == "Start start-sample"
    owner = workload(ownerReferences=[{"kind": "Team", "name": "t", "uid": "u"}])
    assert inspect(owner)[0]["controller"] is None


@pytest.mark.parametrize(("image", "pinned"), [(at(I1), I1), (IMAGE, None), (f"{IMAGE}@{I1}", None), ("nginx", None)])
def test_only_a_digest_without_a_tag_is_pinned(image, pinned):
    (found,) = inspect(workload(containers=[container(image=image)]))
    assert (found["pinned"], found["invalid"]) == (pinned, None)


def test_a_reference_that_cannot_be_read_says_why():
    (found,) = inspect(workload(containers=[container(image="Not/Valid")]))
    assert "Not/Valid" in found["invalid"]


def test_one_look_up_for_each_reference_and_secrets():
    objects = []
    for name, secrets in (("a", ["x"]), ("b", ["x"]), ("c", ["y"])):
        owner = workload(name=name)
        one, between = pod_of(owner, at(I1), secrets=secrets)
        objects += [owner, one, *between]
    lookups = inventory.lookups(inspect(*objects))
    assert [(item["image"], [x["name"] for x in item["pull_secrets"]]) for item in lookups] == [
        (IMAGE, ["x"]),
        (IMAGE, ["y"]),
    ]
    assert all(item["expect"] == [I1] and item["verify"] and item["resolve"] == ["children"] for item in lookups)


@pytest.mark.parametrize(
    ("runs", "expect", "resolve"),
    [
        ((at(I1),), [I1], ["children"]),
        ((at(I1), at(I1)), [I1], ["children"]),
        # the index has to show whether both are its own
        ((at(I1), at(P1)), [], ["children"]),
        ((C1,), [], ["children", "config"]),
        ((at(I1), C1), [], ["children", "config"]),
        (("weird!",), [], ["children"]),
    ],
)
def test_what_is_expected_and_read(runs, expect, resolve):
    (lookup,) = inventory.lookups([running(*runs)])
    assert (lookup["expect"], lookup["resolve"]) == (expect, resolve)
    assert lookup.get("platform") == ("linux/amd64" if "config" in resolve else None)


def test_what_is_looked_up_is_what_is_followed():
    owner = workload(containers=[container(image=at(I1))], annotations=annotation(app=followed(I1)))
    one, between = pod_of(owner, at(I1))
    (lookup,) = inventory.lookups(inspect(owner, one, *between))
    assert lookup["image"] == IMAGE


def test_nothing_is_looked_up_for_invalid_and_absent_ones():
    owners = [workload(name="b", containers=[container(image="r.example/X")])]
    objects = [workload(name="without-pods")]
    for owner in owners:
        one, between = pod_of(owner, at(I1))
        objects += [owner, one, *between]
    assert inventory.lookups(inspect(*objects)) == []


def test_of_a_pinned_digest_only_whether_it_is_there_is_asked():
    (lookup,) = inventory.lookups([running(at(I1), image=at(I1))])
    assert (lookup["image"], lookup["expect"], lookup["compare"]) == (at(I1), [I1], [I1])
    assert (lookup["resolve"], lookup["verify"]) == ([], False)


def test_a_pod_that_waits_is_looked_up_without_an_expectation():
    owner = workload()
    one, between = pod_of(owner, [state("", waiting="ImagePullBackOff")])
    (lookup,) = inventory.lookups(inspect(owner, one, *between))
    assert lookup["expect"] == []


def platforms_of(image_id, read, fallback=()):
    owner = workload()
    between = revision(owner)
    pods = [pod(between, image_id, node=node) for node in ("node-1", "node-2", "node-1")]
    found = [{**item, "platforms": []} for item in inspect(owner, between, *pods)]
    inventory.add_platforms(found, read, fallback)
    assert found[0]["nodes"] == ["node-1", "node-2"]
    return found[0]["platforms"]


def test_nodes_are_read_only_where_an_id_is_local():
    def forbidden():
        raise AssertionError("Nodes were read")

    assert platforms_of(at(I1), forbidden) == []
    assert platforms_of(C1, lambda: {"node-1": "linux/arm64", "node-2": "linux/arm64"}) == ["linux/arm64"]
    assert platforms_of(C1, lambda: {"node-1": "linux/arm64", "node-2": "linux/amd64"}) == [
        "linux/amd64",
        "linux/arm64",
    ]


def test_where_nodes_may_not_be_read_the_given_platforms_count():
    assert platforms_of(C1, dict, ["linux/s390x"]) == ["linux/s390x"]


def test_the_flat_fields_are_those_of_the_first_container():
    assert inventory.first([running(at(I1)), running(at(I2))]) == {"image": IMAGE, "image_id": at(I1), "digest": I1}
    assert inventory.first(inspect(workload())) == {"image": IMAGE, "image_id": None, "digest": None}
    assert inventory.first([]) == {"image": None, "image_id": None, "digest": None}

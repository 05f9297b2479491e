# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes can run where Pods, registries, Updates or callers are not as usual."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import inputs, inventory, judge, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy, decide
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import pushes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NOW,
    P1,
    P2,
    Q2,
    REPOSITORY,
    container,
    inspect,
    pod_of,
    published,
    running,
    state,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import FakeCluster
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    cluster_of,
    flags,
    image,
    run,
    status,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    look_up,
    serving,
)

AMD64, ARM64 = pushes.image("linux/amd64", "new"), pushes.image("linux/arm64", "new")
OLD = pushes.image("linux/amd64", "old")
USUAL = Policy()
FOREIGN = published(I2, children=(), image_platform="linux/arm64")
#: an index that changed for arm64 alone
PARTLY = published(
    I2,
    children=(P1, Q2),
    compared_contents={
        I1: {"children": [{"platform": f"linux/{x}", "digest": y} for x, y in (("amd64", P1), ("arm64", P2))]}
    },
)


def judged(found, entry, nodes, policy=USUAL, **more):
    ((_container, verdict),) = judge.judge(found, [entry], policy, {}, NOW, lambda: nodes, **more)
    return verdict


# Pods and nodes


@pytest.mark.parametrize(
    ("nodes", "entry", "reason"),
    [
        # the node that a finished Job ran on, or that a Pod waits for, is not there
        ({"other": "linux/amd64"}, FOREIGN, "not_pullable"),
        ({"other": "linux/arm64"}, FOREIGN, "digest_differs"),
        ({"other": "linux/amd64", "more": "linux/arm64"}, FOREIGN, "digest_differs"),
        ({"other": "linux/s390x"}, published(I2), "not_pullable"),
        ({}, FOREIGN, "digest_differs"),
        # a node without labels tells nothing
        ({"node-1": "linux/arm64", "other": "linux/amd64"}, FOREIGN, "digest_differs"),
    ],
)
def test_where_the_nodes_of_the_pods_are_not_known_one_kind_of_node_of_the_cluster_is_enough(nodes, entry, reason):
    assert judged([running(f"{REPOSITORY}@{I1}")], entry, nodes).reason == reason


def test_each_container_has_its_own_pull_policy():
    owner = workload(containers=[container()], init=[container("setup", imagePullPolicy="Never")])
    runs = f"{REPOSITORY}@{I1}"
    one, between = pod_of(owner, [state(runs)], init=[state(runs, "setup")])
    found = inspect(owner, one, *between)
    assert {x["container"]: x["pull_policy"] for x in found} == {"app": "IfNotPresent", "setup": "Never"}
    verdicts = judge.judge(found, [published(I2, children=())], Policy(), {}, NOW)
    assert {x["container"]: v.reason for x, v in verdicts} == {"app": "digest_differs", "setup": "not_pullable"}


def test_pods_of_two_indexes_with_the_same_image_for_their_node_are_no_mixture():
    found = running(f"{REPOSITORY}@{I1}", f"{REPOSITORY}@{I2}")
    assert judged([found], PARTLY, {"node-1": "linux/amd64"}).reason == "index_changed_only"
    assert judged([found], PARTLY, {"node-1": "linux/arm64"}).reason == "mixed_replicas"


@pytest.mark.parametrize(
    "policy", [Policy(suspended=True), Policy(dry_run=True), Policy(stable_for=3600), Policy(max_concurrent=0)]
)
def test_what_changes_nothing_for_the_nodes_is_current_under_any_policy(policy):
    found = running(f"{REPOSITORY}@{I1}")
    assert judged([found], PARTLY, {"node-1": "linux/amd64"}, policy).reason == "index_changed_only"
    assert judged([found], PARTLY, {"node-1": "linux/arm64"}, policy).verdict == "stale"


def test_nodes_are_not_read_for_what_cannot_depend_on_them():
    def read():
        raise AssertionError("Nodes were read")

    found = running(f"{REPOSITORY}@{I1}")
    for entry, policy in (
        (published(I1), Policy()),
        (published(I2, children=()), Policy()),
        (published(I2), Policy(suspended=True)),
    ):
        judge.judge([found], [entry], policy, {}, NOW, read)


def test_windows_nodes_tell_their_build():
    cluster = FakeCluster(*pushes.nodes_of("windows(10.0.20348)/amd64", "linux/arm64"))
    assert snapshot.read_platforms(cluster) == {"node-1": "windows(10.0.20348)/amd64", "node-2": "linux/arm64"}


# Updates


def test_the_status_says_that_an_image_is_for_other_nodes():
    cluster = cluster_of("a")
    cluster.put(pushes.nodes_of("linux/amd64")[0])
    for _pass in range(2):
        run(cluster, {IMAGE: FOREIGN})
        assert image(cluster, "a") == IMAGE
        assert flags(cluster) == (True, False)
    found = status(cluster)
    message = found["images"][0]["message"]
    assert (found["images"][0]["reason"], "linux/arm64" in message, "linux/amd64" in message) == (
        "not_pullable",
        True,
        True,
    )
    assert {x["type"]: x["status"] for x in found["conditions"]}["RolloutBlocked"] == "True"
    assert [event["reason"] for event in cluster.events] == ["RollHeld"]


@pytest.mark.parametrize(("assumed", "rolls"), [("linux/amd64", False), ("linux/arm64", True), ("linux/aarch64", True)])
def test_where_nodes_may_not_be_read_those_that_the_update_names_decide_over_a_single_image(assumed, rolls):
    found = running(f"{REPOSITORY}@{I1}")
    assert judged([found], FOREIGN, None, platforms=[assumed]).rolls == rolls


# registries


def test_a_config_that_a_mirror_lacks_is_read_from_the_registry():
    everything = pushes.serving(ARM64, OLD)

    def without_blobs(asked):
        lost = Reply(404, {}, b'{"errors":[{"code":"BLOB_UNKNOWN"}]}')
        return lost if "/blobs/" in asked.path else everything(asked)

    containers = pushes.deployed(OLD.digest)
    with serving(without_blobs) as mirror, serving(everything) as server:
        place = {"prefix": "registry.example", "location": server.host, "insecure": True}
        rules = [{**place, "mirror": [{"location": mirror.host, "insecure": True}]}]
        (entry,) = look_up(images=inventory.lookups(containers), registries=rules)["images"]
    assert (entry["image_platform"], entry["pullable"], entry["source_host"]) == ("linux/arm64", True, server.host)


def test_a_config_is_read_with_the_credentials_of_the_manifest():
    def private(asked):
        if asked.authorization != "Basic " + base64.b64encode(b"me:x").decode():
            return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})
        return pushes.serving(ARM64, OLD)(asked)

    with serving(private) as server:
        item = {"image": f"{server.host}/shop/web:1", "platform": "linux/amd64"}
        (entry,) = look_up(images=[item], username="me", password="x")["images"]
    assert (entry["image_platform"], entry["platform_digest"]) == ("linux/arm64", None)


def test_what_is_remembered_of_an_image_has_its_platform(tmp_path):
    for _pass in range(2):
        with serving(pushes.serving(ARM64)) as server:
            item = {"image": f"{server.host}/shop/web:1", "platform": "linux/amd64"}
            (entry,) = look_up(images=[item], cache_dir=str(tmp_path))["images"]
    assert (entry["image_platform"], entry["requests_made"], entry["cached"]) == ("linux/arm64", 1, True)


def test_what_was_remembered_without_platforms_is_read_again(tmp_path):
    with serving(pushes.serving(ARM64)) as server:
        item = {"image": f"{server.host}/shop/web:1", "platform": "linux/amd64"}
        look_up(images=[item], cache_dir=str(tmp_path))
        for path in tmp_path.glob("*.json"):
            path.write_text(json.dumps({**json.loads(path.read_text()), "version": 1}))
        (entry,) = look_up(images=[item], cache_dir=str(tmp_path))["images"]
    assert (entry["image_platform"], entry["cached"]) == ("linux/arm64", False)


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        # an architecture alone, and what is no platform at all
        (pushes.index((AMD64, {"platform": {"architecture": "amd64"}})), "digest_differs"),
        (pushes.index((ARM64, {"platform": {"architecture": "arm64"}})), "not_pullable"),
        (pushes.index((AMD64, {"platform": {"os": "linux"}})), "not_pullable"),
        # the same bytes for several platforms
        (
            pushes.index(
                *((pushes.image(""), {"platform": pushes.platform_of(f"linux/{x}")}) for x in ("arm64", "amd64"))
            ),
            "digest_differs",
        ),
        # indexes in indexes
        (pushes.index(pushes.index(ARM64), pushes.index(AMD64)), "digest_differs"),
        (pushes.index(pushes.index(ARM64)), "not_pullable"),
        # what a registry without referrers keeps below a tag: signatures that look like images
        (
            pushes.index((pushes.pushed(b"{}", layers=["application/vnd.dsse.envelope.v1+json"]), {"platform": None})),
            "not_pullable",
        ),
        # the old form of the same list
        (pushes.index(AMD64, mediaType="application/vnd.docker.distribution.manifest.list.v2+json"), "digest_differs"),
        (pushes.index(OLD, mediaType="application/vnd.docker.distribution.manifest.list.v2+json"), "platform_equal"),
    ],
)
def test_odd_indexes(now, reason):
    verdict, _asked = pushes.decided(now, OLD)
    assert verdict.reason == reason


def test_a_list_of_another_form_with_the_same_images_is_no_difference():
    old = pushes.index(OLD, ARM64)
    new = pushes.index(OLD, ARM64, mediaType="application/vnd.docker.distribution.manifest.list.v2+json")
    assert pushes.decided(new, old)[0].reason == "index_changed_only"


def test_a_message_names_some_platforms_of_very_many():
    now = pushes.index(*(pushes.image(f"linux/arch{number}") for number in range(40)))
    message = pushes.decided(now, OLD)[0].message
    assert "and 30 more" in message
    assert len(message) < 400


# callers who write what is handed over by hand


def test_what_a_hand_wrote_is_read_as_far_as_it_is_readable():
    found = {**running(f"{REPOSITORY}@{I1}"), "platforms": ["linux/amd64"]}
    odd = published(I2, children=None, children_of="x")
    odd["children"] = [{"digest": P1, "platform": 5}, {"digest": P2}]
    assert decide(found, odd).reason == "not_pullable"
    named = published(I2, compared={I1: [P1, P2]}, compared_platforms={I1: ["linux/amd64", "linux/arm64"]})
    assert decide(found, named).reason == "index_changed_only"
    assert decide(found, published(I2, compared={I1: [P2, P1]})).reason == "index_changed_only"
    assert decide(found, published(P1, children=(), compared={I1: [P1]})).reason == "index_changed_only"


@pytest.mark.parametrize(
    ("spoilt", "part"),
    [
        ({"compared_contents": [1]}, r"published\[0\].compared_contents is \[1\], not a mapping"),
        ({"compared_contents": {I1: 5}}, r"published\[0\].compared_contents\[sha256:.*\] is 5, not a mapping"),
        ({"compared_contents": {I1: {"children": [{}]}}}, r"compared_contents\[.*\].children\[0\] has no digest"),
        ({"image_platform": 5}, r"published\[0\].image_platform is 5, not a string"),
        ({"artifact": []}, r"published\[0\].artifact is \[\], not a string"),
    ],
)
def test_what_cannot_be_read_is_named(spoilt, part):
    with pytest.raises(StewardError, match=part):
        inputs.check([], [{**published(I2), **spoilt}])

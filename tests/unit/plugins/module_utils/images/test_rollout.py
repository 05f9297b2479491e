# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The patch: it changes images and one annotation, and nothing that somebody else edited."""

from __future__ import annotations

import copy
import json

import jsonpatch
import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow, rollout, running, verdict
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    NOW,
    P1,
    REPOSITORY,
    annotation,
    container,
    followed,
    inspect,
    published,
    sha,
    start,
    start_deployment,
    workload,
)

OTHER = "registry.example/shop/helper:3"
TARGET = f"{REPOSITORY}@{I2}"


def stale(digest=I2):
    return verdict.Verdict("stale", "digest_differs", "", digest)


def planned(*objects, names=("app",), digest=I2):
    """The roll of these containers of the objects."""
    (roll,) = rollout.plan([(x, stale(digest)) for x in inspect(*objects) if x["container"] in names], NOW)
    return roll


def patched(live, operations):
    before = copy.deepcopy(live)
    after = jsonpatch.apply_patch(live, operations)
    assert live == before
    return after


def without_our_changes(obj, names=("app",)):
    """The object with the images of these containers and our annotation taken out."""
    obj = copy.deepcopy(obj)
    template = running.pod_template(obj) if obj["kind"] != "Start" else {"spec": {}}
    for field in ("containers", "initContainers"):
        for item in template["spec"].get(field, ()):
            if item["name"] in names:
                del item["image"]
    if obj["kind"] == "Start":
        del obj["spec"]["image"]
    (obj["metadata"].get("annotations") or {}).pop(follow.ANNOTATION, None)
    if not obj["metadata"].get("annotations"):
        obj["metadata"].pop("annotations", None)
    return obj


def images(obj):
    return {x["name"]: x["image"] for x in running.template_containers(running.pod_template(obj))}


@pytest.mark.parametrize("annotations", [None, {}, {"other": "kept"}, annotation(app=followed(I1)), annotation(b={})])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob"])
def test_only_the_image_and_one_annotation_change(kind, annotations):
    live = workload(kind, containers=[container("helper", OTHER), container()])
    if annotations is not None:
        live["metadata"]["annotations"] = annotations
    after = patched(live, rollout.patch(planned(live), live))
    assert images(after) == {"helper": OTHER, "app": TARGET}
    assert without_our_changes(after) == without_our_changes(live)
    memory = follow.read(after)["app"]
    assert (memory.reference, memory.digest, memory.origin, memory.at) == (IMAGE, I2, IMAGE, NOW)
    assert memory.trial is (kind != "CronJob")


@pytest.mark.parametrize(
    ("image", "written"),
    [
        ("nginx", f"docker.io/library/nginx@{I2}"),
        ("org/app:2", f"docker.io/org/app@{I2}"),
        ("localhost:5000/app:2", f"localhost:5000/app@{I2}"),
        (f"{REPOSITORY}:1@{I1}", TARGET),
    ],
)
def test_what_is_written_is_the_full_name_at_the_digest(image, written):
    live = workload(containers=[container(image=image)])
    after = patched(live, rollout.patch(planned(live), live))
    assert images(after) == {"app": written}
    # the tag as it was written is what is followed from now on
    assert follow.read(after)["app"].reference == image


def test_the_next_roll_still_follows_the_first_tag():
    live = workload()
    first = patched(live, rollout.patch(planned(live), live))
    third = sha("index 3")
    second = patched(first, rollout.patch(planned(first, digest=third), first))
    memory = follow.read(second)["app"]
    assert (memory.reference, memory.digest, memory.origin) == (IMAGE, third, TARGET)
    # the second digest has not proven itself when the third one comes
    assert (memory.back, memory.left) == (follow.read(first)["app"].back, (I2,))
    assert images(second) == {"app": f"{REPOSITORY}@{third}"}


def test_several_containers_of_one_object_are_one_patch():
    live = workload(containers=[container(), container("b")], init=[container("c")])
    rolls = rollout.plan([(x, stale()) for x in inspect(live)], NOW)
    assert len(rolls) == 1
    after = patched(live, rollout.patch(rolls[0], live))
    assert images(after) == dict.fromkeys(("app", "b", "c"), TARGET)
    assert sorted(follow.read(after)) == ["app", "b", "c"]


def test_each_object_has_its_own_patch():
    found = inspect(workload(name="a"), workload("StatefulSet", "a"), workload(name="b"))
    rolls = rollout.plan([(x, stale()) for x in found], NOW)
    seen = [(roll.owner["kind"], roll.owner["name"], len(roll.changes)) for roll in rolls]
    assert sorted(seen) == [("Deployment", "a", 1), ("Deployment", "b", 1), ("StatefulSet", "a", 1)]


@pytest.mark.parametrize("reason", ["dry_run", "suspended", "not_pullable", "rollout_in_progress", "foreign_owner"])
def test_what_is_held_is_not_planned(reason):
    (found,) = inspect(workload())
    assert rollout.plan([(found, verdict.Verdict("stale", reason, "", I2))], NOW) == []


def test_a_start_is_patched_and_not_its_deployment():
    resource = start(annotations={"kept": "x"})
    roll = planned(resource, start_deployment(resource), names=("nginx-sample",))
    assert roll.owner == {
        "kind": "Start",
        "name": "start-sample",
        "api_version": "install.sios.nginx.testing/v1",
    }
    after = patched(resource, rollout.patch(roll, resource))
    assert after["spec"] == {**resource["spec"], "image": TARGET}
    assert without_our_changes(after) == without_our_changes(resource)
    assert follow.read(after)["nginx-sample"].reference == IMAGE


def edit_image(obj):
    running.pod_template(obj)["spec"]["containers"][0]["image"] = f"{REPOSITORY}:2"


def edit_order(obj):
    running.pod_template(obj)["spec"]["containers"].reverse()


def edit_name(obj):
    running.pod_template(obj)["spec"]["containers"][0]["name"] = "renamed"


def remove_one(obj):
    del running.pod_template(obj)["spec"]["containers"][0]


def remove_all(obj):
    running.pod_template(obj)["spec"]["containers"] = []


@pytest.mark.parametrize("change", [edit_image, edit_order, edit_name, remove_one, remove_all])
@pytest.mark.parametrize("same_image", [True, False])
def test_an_edit_before_or_after_our_read_is_never_overwritten(change, same_image):
    live = workload(containers=[container(), container("b", IMAGE if same_image else OTHER)])
    roll = planned(live)
    edited = copy.deepcopy(live)
    change(edited)
    assert rollout.patch(roll, edited) is None
    operations = rollout.patch(roll, live)
    with pytest.raises(jsonpatch.JsonPatchException):
        jsonpatch.apply_patch(edited, operations)


def test_an_edit_of_one_of_two_containers_stops_both():
    live = workload(containers=[container(), container("b")])
    roll = planned(live, names=("app", "b"))
    edited = copy.deepcopy(live)
    running.pod_template(edited)["spec"]["containers"][1]["image"] = OTHER
    assert rollout.patch(roll, edited) is None
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(edited, rollout.patch(roll, live))


@pytest.mark.parametrize("before", [None, {"other": "x"}, annotation(app=followed(I1))])
def test_what_another_pass_remembers_meanwhile_is_not_lost(before):
    live = workload(containers=[container(), container("b", OTHER)])
    if before:
        live["metadata"]["annotations"] = before
    operations = rollout.patch(planned(live), live)
    edited = copy.deepcopy(live)
    edited["metadata"]["annotations"] = {**(before or {}), **annotation(b=followed(P1, OTHER))}
    edited["metadata"]["resourceVersion"] = "1000000"
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(edited, operations)


def test_the_memory_of_other_containers_is_kept_and_damage_is_not():
    live = workload(annotations={follow.ANNOTATION: json.dumps({"b": followed(P1, OTHER), "c": {"digest": 1}})})
    after = patched(live, rollout.patch(planned(live), live))
    assert sorted(json.loads(after["metadata"]["annotations"][follow.ANNOTATION])) == ["app", "b"]


@pytest.mark.parametrize("text", ["{", "[1]", "null"])
def test_a_damaged_annotation_is_replaced(text):
    live = workload(annotations={follow.ANNOTATION: text, "kept": "x"})
    after = patched(live, rollout.patch(planned(live), live))
    assert follow.read(after)["app"].digest == I2
    assert after["metadata"]["annotations"]["kept"] == "x"


def test_a_plan_goes_to_the_top_level_digest():
    found = inspect(workload())[0]
    entry = published(I2, children=(sha("a"), sha("b")), platform_digest=sha("a"))
    found = {**found, "running": [{"image_id": "x", "digest": I1, "id_kind": "manifest", "pods": 1, "ready": 1}]}
    (roll,) = rollout.plan([(found, verdict.decide(found, entry))], NOW)
    assert roll.changes[0].after == TARGET

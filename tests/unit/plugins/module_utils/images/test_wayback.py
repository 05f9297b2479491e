# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes back can be had, and is watched: images loaded by hand, and registries that lose digests."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import follow, inventory
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    REPOSITORY,
    followed,
    published,
    running,
    sha,
    update,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    TARGETS,
    at,
    cluster_of,
    image,
    run,
    settle,
    status,
)

I0, I3 = sha("index 0"), sha("index 3")
ROLLED, MADE, DUE = "2026-03-01T10:00:00Z", "2026-03-01T10:00:02Z", "2026-03-01T10:01:10Z"
LATER, LAST = "2026-03-01T10:03:00Z", "2026-03-01T10:05:00Z"
END = {"exitCode": 1, "reason": "Error", "startedAt": MADE, "finishedAt": MADE}
CRASHES = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "ready": False, "restartCount": 4}
CRASHES["lastState"] = {"terminated": END}
NOT_PULLED = {"state": {"waiting": {"reason": "ImagePullBackOff"}}, "ready": False, "restartCount": 0, "imageID": ""}
RUNS = {"state": {"running": {"startedAt": MADE}}, "ready": True, "restartCount": 0, "lastState": {}}


def registry(*has, names=I2):
    """The tag names one digest, and the repository has these."""
    return {IMAGE: published(names, children=(), has=[names, *has])}


def workload(image_id=None, policy="IfNotPresent", spec=None, memory=None):
    cluster = cluster_of("a")

    def change(deployment):
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container.update(imagePullPolicy=policy, image=spec or IMAGE)
        if memory:
            deployment["metadata"]["annotations"] = {follow.ANNOTATION: json.dumps({"app": memory})}

    cluster.edit("Deployment", "a", change)
    pod(cluster, {"imageID": image_id or at(I1)})
    return cluster


def pod(cluster, told, made=MADE):
    """What the new Pod is, where the controllers have done their part."""
    settle(cluster, "a")
    cluster.edit("Pod", "pod-a", lambda x: x["status"]["containerStatuses"][0].update(told))
    cluster.edit("Pod", "pod-a", lambda x: x["metadata"].update(creationTimestamp=made))
    cluster.edit("Deployment", "a", lambda x: x["status"].update(availableReplicas=int(told.get("ready", True))))


def memory(cluster):
    return follow.read(cluster.read("Deployment", "a"))["app"]


def condition(cluster, kind):
    return next(x for x in status(cluster)["conditions"] if x["type"] == kind)


def outcomes(cluster):
    return [entry["outcome"] for entry in status(cluster)["history"]]


def taken_back(cluster, has, now=DUE, **more):
    """The image after a roll whose new Pod crashes."""
    run(cluster, has, now=ROLLED)
    pod(cluster, CRASHES)
    run(cluster, has, now=now, **more)
    return image(cluster, "a")


BY_HAND = [f"import-2026-01-01@{I1}", f"docker.io/library/import-2026-01-01@{I1}"]


@pytest.mark.parametrize("image_id", BY_HAND)
def test_an_image_that_was_loaded_by_hand_goes_back_as_it_stood(image_id):
    cluster = workload(image_id)
    assert taken_back(cluster, registry()) == IMAGE


@pytest.mark.parametrize("image_id", BY_HAND)
def test_it_is_told_while_the_roll_is_on_trial(image_id):
    cluster = workload(image_id)
    run(cluster, registry(), now=ROLLED)
    (told,) = [x for x in cluster.events if x["reason"] == "ImageRolled" and x["involvedObject"]["kind"] == "Update"]
    said = f"{I1} ran, and the registry does not have it; a roll that fails goes back to {IMAGE}"
    assert said in told["message"]
    pod(cluster, RUNS)
    run(cluster, registry(), now="2026-03-01T10:00:30Z")
    found = condition(cluster, "RunningDigestGone")
    assert (found["status"], found["reason"], said in found["message"]) == ("True", "WayBackNotFound", True)
    # once it has proven itself there is nothing to go back to
    run(cluster, registry(), now=DUE)
    run(cluster, registry(), now=LATER)
    assert condition(cluster, "RunningDigestGone")["status"] == "False"


@pytest.mark.parametrize("image_id", [*BY_HAND, at(I1), f"docker-pullable://{REPOSITORY}@{I1}"])
def test_what_the_registry_has_goes_back_by_its_digest_whatever_the_node_calls_it(image_id):
    assert taken_back(workload(image_id), registry(I1)) == at(I1)


def test_without_an_answer_only_what_ran_under_its_own_name_goes_back_by_its_digest():
    silent = {IMAGE: published(I2, children=())}
    assert taken_back(workload(), silent) == at(I1)
    assert taken_back(workload(BY_HAND[0]), silent) == IMAGE


def test_a_tag_that_would_be_pulled_anew_does_not_go_back():
    # it names the image that failed
    cluster = workload(BY_HAND[0], policy="Always")
    assert taken_back(cluster, registry()) == at(I2)
    assert condition(cluster, "RolloutBlocked")["reason"] == "RolloutFailed"
    assert outcomes(cluster) == ["rolled", "failed"]
    (entry,) = status(cluster)["images"]
    assert "nothing is known to go back to" in entry["message"]
    # as soon as the registry has it again it goes back
    done = run(cluster, registry(I1), now=LATER)
    assert done.rolled_back == []


def test_a_digest_that_is_lost_after_the_roll_is_not_put_back_where_it_would_be_pulled():
    earlier = followed(I1, left=[I0], earlier=[at(I0)])
    cluster = workload(spec=at(I1), policy="Always", memory=earlier)
    assert memory(cluster).earlier == (at(I0),)
    run(cluster, registry(I1, I0), now=ROLLED)
    pod(cluster, CRASHES)
    # the one before it is there
    run(cluster, registry(I0), now=DUE)
    assert image(cluster, "a") == at(I0)
    assert outcomes(cluster) == ["rolled", "rolledBack"]


def test_a_lost_digest_is_looked_for_in_vain_and_found_again():
    cluster = workload(spec=at(I1), policy="Always", memory=followed(I1))
    assert taken_back(cluster, registry()) == at(I2)
    assert condition(cluster, "RolloutBlocked")["reason"] == "RolloutFailed"
    assert "has" not in condition(cluster, "RunningDigestGone")["reason"]
    assert f"the registry does not have {at(I1)} any more" in condition(cluster, "RunningDigestGone")["message"]
    run(cluster, registry(I1), now=LATER)
    assert image(cluster, "a") == at(I1)


def test_an_image_that_is_deleted_before_the_nodes_have_it_is_taken_back():
    cluster = workload()
    run(cluster, registry(I1), now=ROLLED)
    pod(cluster, NOT_PULLED)
    run(cluster, {IMAGE: {"state": "unknown", "reason": "not_found", "msg": "gone", "has": [I1]}}, now=DUE)
    assert image(cluster, "a") == at(I1)
    assert outcomes(cluster) == ["rolled", "rolledBack"]


def test_nodes_may_have_what_the_registry_lost():
    cluster = workload(spec=at(I1), memory=followed(I1))
    assert taken_back(cluster, registry()) == at(I1)
    assert taken_back(workload(), registry()) == IMAGE


def test_a_way_back_that_does_not_come_up_is_told():
    cluster = workload(policy="Always")
    assert taken_back(cluster, registry(I1)) == at(I1)
    assert condition(cluster, "Rolling")["status"] == "True"
    # the registry loses it between the look and the pull
    pod(cluster, NOT_PULLED, made=DUE)
    run(cluster, registry(), now="2026-03-01T10:01:40Z")
    found = condition(cluster, "RunningDigestGone")
    assert (found["status"], found["reason"], I1 in found["message"]) == ("True", "DigestNotFound", True)
    assert condition(cluster, "Rolling")["status"] == "True"
    for now in (LATER, LAST):
        run(cluster, registry(), now=now)
    found = condition(cluster, "RolloutBlocked")
    assert (found["status"], found["reason"]) == ("True", "RollbackFailed")
    assert "what went back does not come up" in found["message"]
    assert outcomes(cluster) == ["rolled", "rolledBack", "failed"]
    told = [x["involvedObject"]["kind"] for x in cluster.events if x["reason"] == "RollbackFailed"]
    assert sorted(told) == ["Deployment", "Update"]
    # what the tag names stays held, and what went back is not
    assert [entry["digest"] for entry in status(cluster)["quarantine"]] == [I2]
    # a newer image comes in all the same
    run(cluster, registry(names=I3), now=LAST)
    assert image(cluster, "a") == at(I3)


def test_the_tag_goes_back_where_its_digest_cannot_be_pulled_and_the_nodes_may_have_it():
    cluster = workload()
    assert taken_back(cluster, registry(I1)) == at(I1)
    pod(cluster, NOT_PULLED, made=DUE)
    run(cluster, registry(), now=LATER)
    assert image(cluster, "a") == IMAGE
    pod(cluster, {**RUNS, "imageID": at(I1), "state": {"running": {"startedAt": LATER}}}, made=LATER)
    run(cluster, registry(), now=LAST)
    # the tag names what failed, and is held
    assert ([x["digest"] for x in status(cluster)["quarantine"]], image(cluster, "a")) == ([I2], IMAGE)


def test_what_ran_before_that_goes_back_where_it_cannot_be_pulled_either():
    cluster = workload(spec=at(I1), memory=followed(I1, earlier=[at(I0)]))
    assert taken_back(cluster, registry(I1, I0)) == at(I1)
    pod(cluster, NOT_PULLED, made=DUE)
    run(cluster, registry(I0), now=LATER)
    assert image(cluster, "a") == at(I0)
    assert memory(cluster).quarantine.digest == I2
    last = status(cluster)["history"][-1]
    assert (last["from"], last["to"], last["outcome"], last["time"]) == (at(I1), at(I0), "rolledBack", LATER)
    pod(cluster, {**RUNS, "state": {"running": {"startedAt": LATER}}}, made=LATER)
    run(cluster, registry(I0), now=LAST)
    assert (memory(cluster).trial, image(cluster, "a")) == (False, at(I0))


def test_what_ran_well_and_crashes_now_goes_no_further_back():
    cluster = workload(spec=at(I1), memory=followed(I1, earlier=[at(I0)]))
    assert taken_back(cluster, registry(I1, I0)) == at(I1)
    pod(cluster, CRASHES, made=DUE)
    for now in (LATER, LAST):
        run(cluster, registry(I1, I0), now=now)
    assert image(cluster, "a") == at(I1)
    assert condition(cluster, "RolloutBlocked")["reason"] == "RollbackFailed"


def test_a_way_back_that_runs_is_settled_quietly():
    cluster = workload()
    assert taken_back(cluster, registry(I1)) == at(I1)
    pod(cluster, {**RUNS, "state": {"running": {"startedAt": DUE}}}, made=DUE)
    run(cluster, registry(I1), now="2026-03-01T10:01:30Z")
    assert memory(cluster).trial
    done = run(cluster, registry(I1), now=LATER)
    assert (len(done.settled), memory(cluster).trial) == (1, False)
    cluster.writes.clear()
    run(cluster, registry(I1), now=LAST)
    assert cluster.writes == []
    assert condition(cluster, "RolloutBlocked")["reason"] == "Held"
    assert condition(cluster, "Rolling")["status"] == "False"


def test_the_younger_of_two_updates_does_not_say_that_it_takes_anything_back():
    cluster = workload()
    run(cluster, registry(I1), now=ROLLED)
    pod(cluster, CRASHES)
    cluster.put(update("another", targets=TARGETS[:1]))
    run(cluster, registry(I1), now=DUE)
    assert image(cluster, "a") == at(I2)
    assert condition(cluster, "Rolling")["status"] == "False"


def test_what_has_proven_itself_is_remembered():
    cluster = workload()
    for number, digest in enumerate((I2, I3, I0)):
        run(cluster, registry(I1, I2, I3, names=digest), now=f"2026-03-01T1{number}:00:00Z")
        pod(cluster, {**RUNS, "state": {"running": {"startedAt": f"2026-03-01T1{number}:00:02Z"}}})
        run(cluster, registry(I1, I2, I3, names=digest), now=f"2026-03-01T1{number}:30:00Z")
    assert memory(cluster).earlier == (at(I3), at(I2))


def test_the_last_that_has_proven_itself_goes_back_over_a_chain_of_rolls():
    cluster = workload()
    run(cluster, registry(I1), now=ROLLED)
    pod(cluster, CRASHES)
    run(cluster, registry(I1, I2, names=I3), now="2026-03-01T10:00:20Z")
    assert (memory(cluster).back, memory(cluster).earlier) == (at(I1), (IMAGE,))
    assert memory(cluster).unwell == ""
    pod(cluster, CRASHES, made="2026-03-01T10:00:21Z")
    run(cluster, registry(I1, I2, names=I3), now=LATER)
    assert image(cluster, "a") == at(I1)


def test_what_ran_well_for_a_moment_comes_last():
    cluster = workload(BY_HAND[0])
    run(cluster, registry(), now=ROLLED)
    pod(cluster, RUNS)
    run(cluster, registry(I2, names=I3), now="2026-03-01T10:00:20Z")
    assert (memory(cluster).back, memory(cluster).unproven) == (IMAGE, at(I2))
    pod(cluster, CRASHES, made="2026-03-01T10:00:21Z")
    run(cluster, registry(I2, names=I3), now=LATER)
    assert image(cluster, "a") == IMAGE
    # and before nothing
    pod(cluster, NOT_PULLED, made=LATER)
    run(cluster, registry(I2, names=I3), now=LAST)
    assert image(cluster, "a") == at(I2)


def test_an_annotation_of_before_is_understood():
    # written by 1.0.0: the way back was made of the reference's repository and whatever ran
    told = followed(I2, at=ROLLED, trial=True, back=at(I1), left=[I1])
    cluster = workload(at(I2), spec=at(I2), memory=told)
    pod(cluster, CRASHES)
    run(cluster, registry(), now=DUE)
    assert image(cluster, "a") == IMAGE
    # and a way back of before was not watched
    back = followed(I1, origin=at(I2), quarantine={"digest": I2, "reason": "x", "at": ROLLED}, left=[I2])
    cluster = workload(spec=at(I1), memory=back)
    run(cluster, registry(I1), now=DUE)
    cluster.writes.clear()
    run(cluster, registry(I1), now=LATER)
    assert cluster.writes == []


@pytest.mark.parametrize(
    "entry",
    [
        {"earlier": "x", "lacking": 7, "unwell": []},
        {"earlier": ["evil.example/x:1", f"evil.example/x@{I0}", 7, "Not Valid"], "lacking": "sha256:x"},
    ],
)
def test_a_hand_makes_nobody_go_back_to_a_strangers_image(entry):
    cluster = workload(at(I2), spec=at(I2), memory=followed(I2, origin="evil.example/x:1", **entry))
    found = memory(cluster)
    assert (found.earlier, found.lacking, found.unwell) == ((), "", "")
    trial = followed(I2, origin="evil.example/x:1", at=ROLLED, trial=True, back=at(I1), **entry)
    cluster = workload(at(I2), spec=at(I2), memory=trial)
    pod(cluster, CRASHES)
    run(cluster, registry(), now=DUE)
    assert "evil" not in image(cluster, "a")


def test_what_may_go_back_is_asked_for_only_where_the_roll_is_in_trouble():
    found = running(at(I2), image=at(I2))
    memory = followed(I2, trial=True, back=at(I1), earlier=[at(I0)])
    fine = {**found, "reference": IMAGE, "pinned": None, "follow": memory, "trial": {"troubled": []}}
    (lookup,) = inventory.lookups([fine])
    assert (lookup["expect"], lookup["compare"]) == ([I2], [I2])
    (lookup,) = inventory.lookups([{**fine, "trial": {"troubled": [{}]}}])
    assert (lookup["expect"], lookup["compare"]) == ([], sorted([I0, I1, I2]))

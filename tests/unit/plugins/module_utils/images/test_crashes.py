# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A crash loop of the new image is decided by what its container did, and told with exit code and last words."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import crashes, report, trial
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    I1,
    I2,
    IMAGE,
    annotation,
    container,
    followed,
    inspect,
    pod_of,
    published,
    state,
    workload,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.passes import (
    PUSHED,
    at,
    cluster_of,
    image,
    run,
    settle,
    status,
)

ROLLED, MADE = "2026-03-01T10:00:00Z", "2026-03-01T10:00:02Z"
BEFORE, MINUTE, DUE = "2026-03-01T10:00:46Z", "2026-03-01T10:00:47Z", "2026-03-01T10:10:02Z"


def waits(reason, message="", **more):
    return {"state": {"waiting": {"reason": reason, "message": message}}, "ready": False, **more}


def died(restarts=3, code=1, reason="Error", message="", seconds=1, **more):
    """Waits for its next start after runs of so many seconds."""
    end = {"exitCode": code, "reason": reason, "message": message}
    end.update(startedAt="2026-03-01T10:00:30Z", finishedAt=f"2026-03-01T10:{seconds // 60:02}:{30 + seconds % 60:02}Z")
    return waits("CrashLoopBackOff", restartCount=restarts, lastState={"terminated": end}, **more)


def ended(restarts=3, code=1):
    found = died(restarts, code)
    return {**found, "state": found["lastState"]}


def restarted(restarts=3):
    """It was started again, and is not ready yet."""
    return {**died(restarts), "state": {"running": {"startedAt": MADE}}}


READY = {"state": {"running": {"startedAt": MADE}}, "ready": True}


def on_trial(*statuses, sort="container", policy="", beside=None, kind="Deployment", made=MADE, managed=(), **roll):
    """A container of a workload that was rolled; `statuses` are what its new Pods say of it."""
    new = container(image=at(I2))
    if sort == "sidecar":
        new["restartPolicy"] = "Always"
    init = [] if sort == "container" else [new]
    owner = workload(kind, containers=[container("main")] if init else [new], init=init, managedFields=list(managed))
    owner["metadata"]["annotations"] = annotation(
        app=followed(I2, trial=True, back=at(I1), left=[I1], at=ROLLED, **roll)
    )
    owner["status"].update(replicas=len(statuses) + 1, updatedReplicas=len(statuses), availableReplicas=1)
    objects = [owner]
    for number, told in enumerate(statuses):
        entries = [{**state(at(I2)), **told}, *([{**state("x", "proxy"), **beside}] if beside else [])]
        pod, between = pod_of(owner, [] if init else entries, init=entries if init else (), name=f"web-{number}")
        pod["metadata"]["creationTimestamp"] = made
        pod["spec"]["containers"] = [{**container(), "terminationMessagePolicy": policy} if policy else container()]
        objects += [pod, *(between if not number else [])]
    return next(item for item in inspect(*objects) if item["container"] == "app")


def assessed(found, now, **more):
    return trial.assess(found, now, 600, **more)


@pytest.mark.parametrize("sort", ["container", "init", "sidecar"])
@pytest.mark.parametrize(
    "told", [died(), ended(), died(code=137, reason="OOMKilled"), died(code=0, reason="Completed")]
)
def test_a_crash_loop_is_decided_in_about_a_minute(told, sort):
    if sort == "init" and told["lastState"]["terminated"]["exitCode"] == 0:
        # for an init container that is the end that is wanted; it is started again for another reason
        told = died()
    assert assessed(on_trial(told, sort=sort), BEFORE).state == "under_way"
    found = assessed(on_trial(told, sort=sort), MINUTE)
    assert (found.state, found.reason) == ("failed", "RolloutFailed")
    assert f"last exit code {told['lastState']['terminated']['exitCode']}" in found.message
    assert "3 restarts" in found.message


@pytest.mark.parametrize(
    "told",
    [
        waits("ImagePullBackOff", 'Back-off pulling image: "x": not found'),
        waits("ErrImagePull", "rpc error: code = NotFound"),
        waits("InvalidImageName"),
        waits("CreateContainerError", "exec format"),
        waits("RunContainerError", "no such file"),
        waits("CreateContainerConfigError", "container has runAsNonRoot and image will run as root"),
        restarted(),
    ],
)
def test_what_cannot_start_is_decided_as_soon(told):
    assert assessed(on_trial(told), BEFORE).state == "under_way"
    assert assessed(on_trial(told), MINUTE).state == "failed"


@pytest.mark.parametrize(
    "told",
    [
        # it may come up yet: what it needs may start beside it
        died(restarts=2),
        # it ran well for minutes each time
        died(restarts=4, seconds=180),
        # nothing but time shows that it does not get ready
        {**READY, "ready": False},
        # the registry answers again, or grants more pulls, in a moment
        waits("ImagePullBackOff", "429 Too Many Requests"),
        waits("ErrImagePull", "dial tcp: i/o timeout"),
        # a kubelet before 1.32 does not say why
        waits("ImagePullBackOff", 'Back-off pulling image "quay.io/shop/web@sha256:1"'),
        # a Secret that is not there is not the image's fault
        waits("CreateContainerConfigError", 'secret "db" not found'),
    ],
)
def test_what_may_pass_has_its_deadline(told):
    assert assessed(on_trial(told), MINUTE).state == "under_way"
    assert assessed(on_trial(told), DUE).state == "failed"


def test_one_of_ten_replicas_that_crashes_has_the_deadline_too():
    assert assessed(on_trial(*[READY] * 9, died()), MINUTE).state == "under_way"
    assert assessed(on_trial(*[READY] * 9, died()), DUE).state == "failed"
    assert assessed(on_trial(died(), died(restarts=1)), MINUTE).state == "failed"


def test_another_container_that_fails_may_be_the_cause():
    found = on_trial(died(), beside=waits("CrashLoopBackOff"))
    assert assessed(found, MINUTE).state == "under_way"
    assert assessed(on_trial(died(), beside=READY), MINUTE).state == "failed"


def test_a_pull_that_fails_proves_nothing_while_the_registry_is_away():
    assert assessed(on_trial(waits("ImagePullBackOff")), MINUTE, answers=False).state == "under_way"
    assert assessed(on_trial(waits("ImagePullBackOff")), DUE, answers=False).state == "blocked"
    assert assessed(on_trial(died()), MINUTE, answers=False).state == "failed"


def test_restarts_of_a_pod_that_is_older_than_the_roll_are_of_another_image():
    found = on_trial(died(restarts=40), made="2026-02-01T00:00:00Z", kind="StatefulSet")
    assert assessed(found, MINUTE).state == "under_way"


def test_a_deadline_shorter_than_a_minute_holds():
    assert trial.assess(on_trial(died(restarts=0)), "2026-03-01T10:00:32Z", 30).state == "failed"


@pytest.mark.parametrize(
    ("before", "told", "expected"),
    [
        ("CrashLoopBackOff", died(), ("blocked", "UnwellBefore")),
        ("ended with exit code 1", died(), ("blocked", "UnwellBefore")),
        ("is not ready", {**READY, "ready": False}, ("blocked", "UnwellBefore")),
        # worse than it was
        ("is not ready", died(), ("failed", "RolloutFailed")),
        ("CrashLoopBackOff", waits("ImagePullBackOff"), ("failed", "RolloutFailed")),
    ],
)
def test_what_was_as_bad_before_is_not_the_new_images_fault(before, told, expected):
    found = on_trial(told, unwell=before)
    assert assessed(found, MINUTE).state == "under_way"
    progress = assessed(found, DUE)
    assert (progress.state, progress.reason) == expected


def test_a_job_that_ended_is_no_crash():
    owner = workload("CronJob", containers=[container(image=at(I2))])
    owner["metadata"]["annotations"] = annotation(app=followed(I2, trial=True, back=at(I1), at=ROLLED))
    pod, between = pod_of(owner, [{**state(at(I2)), **ended(0, code=0)}], phase="Succeeded")
    assert inspect(owner, pod, *between)[0]["trial"] is None


def unwell(*statuses, **more):
    owner = workload(replicas=len(statuses))
    pods = [pod_of(owner, [{**state(at(I1)), **told}], name=f"web-{n}", **more) for n, told in enumerate(statuses)]
    return inspect(owner, *(pod for pod, _between in pods), *pods[0][1])[0]["unwell"]


def test_what_is_wrong_with_every_pod_is_known_before_a_roll():
    assert unwell(died(), died())["reason"] == "CrashLoopBackOff"
    assert unwell(died(), READY) is None
    assert unwell({**READY, "ready": False})["reason"] == "is not ready"
    assert unwell(waits("ContainerCreating")) is None


def crash(cluster, told, name="a", made=MADE):
    settle(cluster, name)
    cluster.edit("Pod", f"pod-{name}", lambda x: x["status"]["containerStatuses"][0].update(told))
    cluster.edit("Pod", f"pod-{name}", lambda x: x["metadata"].update(creationTimestamp=made))
    cluster.edit("Deployment", name, lambda x: x["status"].update(availableReplicas=0))


def rolled(told, **spec):
    cluster = cluster_of("a", **spec)
    run(cluster, PUSHED, now=ROLLED)
    crash(cluster, told)
    return cluster


WORDS = "cannot reach\x1b[31m the\tdatabase\n" + "x" * 500
SAID = "CrashLoopBackOff for 45 s, 3 restarts, last exit code 1 (Error): cannot reach [31m the database"


def test_while_it_lasts_verdict_table_and_conditions_say_so():
    cluster = rolled(died(restarts=2, message="cannot reach the database"))
    done = run(cluster, PUSHED, now="2026-03-01T10:00:32Z")
    (entry,) = status(cluster)["images"]
    assert (entry["verdict"], entry["reason"]) == ("current", "on_trial")
    for said in ("2 restarts", "last exit code 1 (Error): cannot reach the database", "after 3 restarts", DUE):
        assert said in entry["message"]
    table = report.result(done, with_diff=False)["table"]
    assert "on_trial" in table[1]
    assert "2 restarts" in table[2]
    told = {x["type"]: (x["status"], x["message"]) for x in status(cluster)["conditions"]}
    assert told["UpToDate"][0] == "False"
    assert "2 restarts" in told["UpToDate"][1]
    assert told["Rolling"][0] == "True"
    cluster.writes.clear()
    run(cluster, PUSHED, now="2026-03-01T10:00:42Z")
    assert cluster.writes == []


def test_a_pod_that_cannot_pull_is_told_as_well():
    cluster = rolled(waits("ImagePullBackOff", imageID=""))
    run(cluster, PUSHED, now="2026-03-01T10:00:32Z")
    (entry,) = status(cluster)["images"]
    assert (entry["verdict"], entry["reason"]) == ("unknown", "waiting")
    assert "on trial: Pod pod-a: ImagePullBackOff" in entry["message"]
    assert f"after 45 s if it goes on, at the latest at {DUE}" in entry["message"]


def test_exit_code_reason_and_last_words_are_kept():
    cluster = rolled(died(message=WORDS))
    done = run(cluster, PUSHED, now=MINUTE)
    assert image(cluster, "a") == at(I1)
    last = status(cluster)["history"][-1]
    assert (last["outcome"], SAID in last["message"]) == ("rolledBack", True)
    assert len(last["message"]) < 256
    assert status(cluster)["lastRoll"]["outcome"] == "rolledBack"
    told = [x for x in cluster.events if x["reason"] == "RolledBack"]
    assert {x["involvedObject"]["kind"] for x in told} == {"Deployment", "Update"}
    assert all(SAID in x["message"] for x in told)
    hint = f"kubectl annotate deployment/a -n shop kubesteward.io/retry={I2}"
    assert done.judged[0][1].message.endswith(hint)
    held = run(cluster, PUSHED, now=MINUTE)
    assert held.judged[0][1].message.endswith(hint)
    assert SAID in held.judged[0][1].message


def test_the_end_of_a_log_is_never_told():
    secret = on_trial(died(message="password=hunter2"), policy="FallbackToLogsOnError")
    assert "hunter2" not in assessed(secret, MINUTE).message
    assert "hunter2" in assessed(on_trial(died(message="password=hunter2"), policy="File"), MINUTE).message


def test_a_text_is_one_line_without_control_characters_and_cut():
    assert crashes.clean("a\x00b\r\n\u202e c\x1b[0m") == "a b c [0m"
    assert len(crashes.clean("x" * 100_000)) == crashes.MOST_WORDS


def test_with_rollback_off_it_is_said_that_nothing_is_taken_back():
    cluster = rolled(died(), rollback={"enabled": False})
    run(cluster, PUSHED, now=MINUTE)
    (entry,) = status(cluster)["images"]
    assert (entry["reason"], "rollback is off" in entry["message"]) == ("on_trial", True)
    cluster.writes.clear()
    for minute in range(2, 9):
        crash(cluster, died(restarts=minute + 2))
        cluster.writes.clear()
        run(cluster, PUSHED, now=f"2026-03-01T10:0{minute}:00Z")
        assert not [line for line in cluster.writes if line.startswith(("status", "patch"))]


def test_a_workload_that_crashed_before_too_keeps_the_newer_image_and_says_why():
    cluster = cluster_of("a")
    crash(cluster, died(restarts=9), made="2026-02-01T00:00:00Z")
    run(cluster, PUSHED, now=ROLLED)
    crash(cluster, died(restarts=9))
    for now in (MINUTE, DUE):
        assert run(cluster, PUSHED, now=now).rolled_back == []
    assert image(cluster, "a") == at(I2)
    told = {x["type"]: x for x in status(cluster)["conditions"]}["RolloutBlocked"]
    assert (told["status"], told["reason"]) == ("True", "UnwellBefore")
    assert "was not well either (CrashLoopBackOff)" in told["message"]


def test_what_began_to_crash_a_moment_before_the_roll_says_nothing_of_the_image_before():
    cluster = cluster_of("a")
    crash(cluster, died(restarts=1, seconds=0), made="2026-03-01T09:59:30Z")
    run(cluster, PUSHED, now=ROLLED)
    crash(cluster, died())
    assert len(run(cluster, PUSHED, now=MINUTE).rolled_back) == 1


def test_a_hint_replaces_the_word_for_another_digest():
    cluster = rolled(died())
    run(cluster, PUSHED, now=MINUTE)
    cluster.edit("Deployment", "a", lambda x: x["metadata"]["annotations"].update({"kubesteward.io/retry": I1}))
    done = run(cluster, {IMAGE: published(I2, children=())}, now=MINUTE)
    assert done.judged[0][1].message.endswith(f"{I2} --overwrite")

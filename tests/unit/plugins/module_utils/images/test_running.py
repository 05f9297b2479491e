# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs: image IDs in every form, and which Pods count."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.images import running
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import (
    C1,
    I1,
    I2,
    NOW,
    P1,
    REPOSITORY,
    container,
    inspect,
    pod,
    pod_of,
    revision,
    state,
    workload,
)

HEX = C1.partition(":")[2]


@pytest.mark.parametrize(
    ("text", "repository"),
    [
        (f"docker-pullable://nginx@{I1}", "nginx"),
        (f"docker-pullable://registry.example:5000/shop/web@{I1}", "registry.example:5000/shop/web"),
        (f"registry.example:5000/shop/web:1@{I1}", "registry.example:5000/shop/web:1"),
        (f" registry.example/shop/web@{I1}\n", "registry.example/shop/web"),
    ],
)
def test_the_repository_of_an_image_id(text, repository):
    assert running.parse_image_id(text) == running.ImageId("manifest", I1, repository)


def test_a_digest_of_the_other_algorithm_is_a_manifest():
    digest = f"sha512:{'ab' * 64}"
    assert running.parse_image_id(f"r.example/a@{digest}") == running.ImageId("manifest", digest, "r.example/a")


@pytest.mark.parametrize("text", ["", "  "])
def test_nothing_is_none(text):
    assert running.parse_image_id(text) == running.ImageId("none")


@pytest.mark.parametrize(
    "text",
    [
        "nginx:1.27",
        HEX[:63],
        HEX.upper(),
        f"@{I1}",
        "nginx@sha256:abc",
        f"nginx@md5:{HEX[:32]}",
        f"sha256:{HEX}0",
        "sha256:",
        f"nginx@{I1}@",
        "docker-pullable://",
    ],
)
def test_no_other_form_is_taken_for_a_digest(text):
    found = running.parse_image_id(text)
    assert found is None or found == running.ImageId("none")


def only(*objects, **policy):
    (found,) = inspect(*objects, **policy)
    return found


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob"])
def test_what_the_pods_of_every_kind_run_is_found(kind):
    owner = workload(kind)
    one, between = pod_of(owner, f"{REPOSITORY}@{I1}")
    stranger = pod(None, f"{REPOSITORY}@{I2}")
    found = only(owner, one, stranger, *between)
    assert found["running"] == [
        {"image_id": f"{REPOSITORY}@{I1}", "digest": I1, "id_kind": "manifest", "pods": 1, "ready": 1}
    ]
    assert found["excluded"] == {}


def test_a_pod_without_any_status_waits():
    owner = workload()
    one, between = pod_of(owner, f"{REPOSITORY}@{I1}")
    del one["status"]
    assert only(owner, one, *between)["waiting_reasons"] == {"NotStarted": 1}


@pytest.mark.parametrize(("kind", "counts"), [("Deployment", 0), ("CronJob", 1)])
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_count_for_a_cron_job_only(kind, counts, phase):
    owner = workload(kind)
    one, between = pod_of(owner, f"{REPOSITORY}@{I1}", phase=phase)
    found = only(owner, one, *between)
    assert len(found["running"]) == counts
    assert found["excluded"] == ({} if counts else {"finished": 1})


def test_a_daemon_set_without_revisions_takes_all_its_pods():
    owner = workload("DaemonSet")
    one = pod(owner, f"{REPOSITORY}@{I1}", revision_hash="unknown")
    assert only(owner, one)["running"][0]["digest"] == I1


def test_a_workload_without_a_revision_has_no_pods():
    found = only(workload(), pod(revision(workload(name="other")), P1))
    assert (found["running"], found["waiting"], found["excluded"]) == ([], 0, {})


def test_containers_are_found_by_name_whatever_their_order():
    owner = workload(containers=[container("app"), container("helper", "registry.example/helper:3")])
    statuses = [state(f"registry.example/helper@{I2}", "helper"), state(f"{REPOSITORY}@{I1}")]
    one, between = pod_of(owner, statuses)
    found = inspect(owner, one, *between)
    assert [(item["container"], item["running"][0]["digest"]) for item in found] == [("app", I1), ("helper", I2)]


def test_init_containers_and_sidecars_have_their_own_statuses():
    init = [container("prepare", "registry.example/p:1"), container("proxy", "registry.example/q:1")]
    init[1]["restartPolicy"] = "Always"
    owner = workload(init=init)
    states = [state(f"registry.example/p@{I2}", "prepare"), state(f"registry.example/q@{P1}", "proxy")]
    one, between = pod_of(owner, f"{REPOSITORY}@{I1}", init=states)
    found = {item["container"]: item for item in inspect(owner, one, *between)}
    assert {name: item["type"] for name, item in found.items()} == {
        "app": "container",
        "prepare": "init",
        "proxy": "sidecar",
    }
    assert {name: item["running"][0]["digest"] for name, item in found.items()} == {
        "app": I1,
        "prepare": I2,
        "proxy": P1,
    }
    assert found["proxy"]["path"] == "/spec/template/spec/initContainers/1"


def test_a_bare_pod_is_its_own_workload():
    one = pod(None, f"{REPOSITORY}@{I1}", name="alone")
    other = pod(None, f"{REPOSITORY}@{I2}", name="other")
    group = running.family(one, [one, other], [])
    assert [item["metadata"]["name"] for item in group.live] == ["alone"]
    assert running.pod_template(one) is one


def rollout(kind="Deployment", **status):
    owner = workload(kind, replicas=3)
    owner["status"].update(status)
    return running.rollout_state(owner, running.Family((), {}))


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("Deployment", {"observedGeneration": 0}),
        ("Deployment", {"updatedReplicas": 2}),
        ("Deployment", {"replicas": 4}),
        ("Deployment", {"availableReplicas": 2}),
        ("StatefulSet", {"updatedReplicas": 2}),
        ("DaemonSet", {"updatedNumberScheduled": 2}),
        ("DaemonSet", {"numberAvailable": 2}),
    ],
)
def test_a_rollout_that_is_not_over_is_not_complete(kind, status):
    assert rollout(kind)["complete"]
    assert not rollout(kind, **status)["complete"]


def test_a_cron_job_has_no_rollout():
    assert rollout("CronJob")["complete"]


def test_a_deadline_that_was_exceeded_is_seen():
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    assert rollout(conditions=[{"type": "Available", "status": "True"}, late])["deadline_exceeded"]
    assert not rollout(conditions=[{"type": "Progressing", "reason": "NewReplicaSetAvailable"}])["deadline_exceeded"]


def test_restarts_of_all_containers_are_added_up():
    owner = workload()
    one, _between = pod_of(
        owner, [state(P1, restartCount=2)], init=[state(P1, "prepare", restartCount=3, startedAt=NOW)]
    )
    assert running.rollout_state(owner, running.Family((one,), {}))["restarts"] == 5


def test_a_container_that_is_still_being_created_does_not_fail():
    owner = workload()
    one, _between = pod_of(owner, [state("", waiting="ContainerCreating")])
    assert running.rollout_state(owner, running.Family((one,), {}))["failing"] == []


def test_an_id_of_an_unknown_form_is_kept_as_it_is():
    owner = workload()
    one, between = pod_of(owner, "weird!")
    (group,) = only(owner, one, *between)["running"]
    assert (group["image_id"], group["digest"], group["pods"]) == ("weird!", "", 1)
    # interfaces know three kinds, and the status takes no other
    assert group["id_kind"] == "none"


@pytest.mark.parametrize(("reason", "complete"), [("NewReplicaSetAvailable", True), ("ReplicaSetUpdated", False)])
def test_a_pod_that_became_unready_does_not_take_the_end_of_a_rollout_back(reason, complete):
    steady = workload(replicas=2)
    steady["status"]["availableReplicas"] = 1
    steady["status"]["conditions"] = [{"type": "Progressing", "status": "True", "reason": reason}]
    assert running.rollout_state(steady, running.Family((), {}))["complete"] is complete

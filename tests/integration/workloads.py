# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests of workloads without a Start, and waiting for what a cluster makes of them."""

from __future__ import annotations

import time
import typing as t
from collections.abc import Callable

from integration.passes import Shop

Object = dict[str, t.Any]

PORT = 8080
POLL_SECONDS = 0.5
#: a web server that gets its requests: out of the Service well before it is killed
DRAINED: Object = {"lifecycle": {"preStop": {"sleep": {"seconds": 2}}}}
PROBED: Object = {"readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1}}


def image_of(shop: Shop, tag: str) -> str:
    """What a manifest writes for a tag of the shop's repository; not `latest`, so that the node's copy is used."""
    return shop.testbed.image_name(f"{shop.repository}:{tag}")


def container(name: str, image: str, **fields: t.Any) -> Object:
    return {"name": name, "image": image, **fields}


def deployment(name: str, *containers: Object, pod: Object | None = None, **spec: t.Any) -> Object:
    """A Deployment of one Pod with the label `app: <name>`; `pod` are fields of the Pod's spec, `spec` its own."""
    return _workload("Deployment", name, containers, pod, spec)


def stateful_set(name: str, *containers: Object, pod: Object | None = None, **spec: t.Any) -> Object:
    """A StatefulSet like `deployment`, OrderedReady by default."""
    return _workload("StatefulSet", name, containers, pod, {"serviceName": name, **spec})


def _workload(kind: str, name: str, containers: t.Sequence[Object], pod: Object | None, spec: Object) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers), **(pod or {})}}
    body = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": body}


def service(name: str, app: str) -> Object:
    spec = {"selector": {"app": app}, "ports": [{"port": 80, "targetPort": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def until(check: Callable[[], t.Any], seconds: float, pause: float = POLL_SECONDS) -> t.Any:
    """The first true answer of `check`, or the last one where the time is over: it is for the test to assert of it."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer or time.monotonic() > deadline:
            return answer
        time.sleep(pause)


def rolled_out(shop: Shop, *names: str, seconds: int = 60) -> None:
    """Wait until these rollouts (`deployment/web`) are complete."""
    for name in names:
        shop.kubectl("rollout", "status", "-n", shop.namespace, name, f"--timeout={seconds}s")


def pods_of(shop: Shop, app: str) -> list[Object]:
    """Pods with the label `app` that are not terminating."""
    return [
        pod
        for pod in shop.list("pods")
        if pod["metadata"]["labels"].get("app") == app and "deletionTimestamp" not in pod["metadata"]
    ]


def digests_of(shop: Shop, app: str) -> set[str]:
    """Digests that the containers of those Pods report."""
    statuses = [status for pod in pods_of(shop, app) for status in pod["status"].get("containerStatuses", [])]
    return {status["imageID"].rpartition("@")[2] for status in statuses}


def images_in(workload: Object) -> dict[str, str]:
    """container -> image of a Start or of a workload's template."""
    if workload["kind"] == "Start":
        return {"": workload["spec"]["image"]}
    return {item["name"]: item["image"] for item in workload["spec"]["template"]["spec"]["containers"]}

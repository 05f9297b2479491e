# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A namespace in which the update and the start job have everything to do, and their passes in this process."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from integration.nspro_story import pull_secret
from integration.passes import Shop
from integration.workloads import Object, container, deployment, image_of, pods_of, rolled_out, stateful_set, until

from ansible_collections.kubesteward.core.plugins.module_utils import apply_starts, conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images import execution
from ansible_collections.kubesteward.core.plugins.module_utils.images.running import FAILING
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster
from ansible_collections.kubesteward.core.plugins.modules import (
    image_rollout,
    pod_image_id,
    registry_digest,
    start_apply,
)
from testbed import images

TEAM = {"team": "rights"}
MISSING = f"sha256:{'0' * 64}"
PATIENCE = 60
#: what the Update `all` looks at; every kind by a label, so that it is listed
FOLLOWED = {"Start": "web", "Deployment": "app", "StatefulSet": "db", "DaemonSet": "agent", "CronJob": "report"}


class Rehearsal(Cluster):
    """The product's client with dry runs for writes: the API server asks for the same rights, and nothing changes."""

    def _write(self, verb: str, path: str, what: str, dry_run: bool, query: Object) -> Object:
        if verb == "delete":
            # its options are read from the body alone
            query["body"]["dryRun"] = ["All"]
        return super()._write(verb, path, what, True, query)


def prepare(shop: Shop, admin: Cluster) -> None:
    """Workloads of every kind that run what their tag named, and a push since then that they do not run."""
    images.push(images.web_image(f"first {shop.repository}"), f"{shop.repository}:one")
    images.push(images.web_image(f"calm {shop.repository}"), f"{shop.repository}:calm")
    image = image_of(shop, "one")
    shop.kubectl("create", "-f", "-", stdin=pull_secret(shop.namespace))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pulling"}}
    web = shop.start("web", image=image)
    web["metadata"]["labels"] = TEAM
    pulls = {"imagePullSecrets": [{"name": "login"}]}
    shop.apply(
        {**account, **pulls},
        web,
        _of_team(deployment("app", container("app", image), pod=pulls)),
        # by its ServiceAccount
        _of_team(stateful_set("db", container("db", image), pod={"serviceAccountName": "pulling"})),
        _of_team(_daemon_set("agent", image)),
        _of_team(_cron_job("report", image)),
        deployment("calm", container("calm", image_of(shop, "calm"))),
        # waits for ever, since its one Pod cannot start
        stateful_set("stuck", container("stuck", f"{image.rpartition(':')[0]}@{MISSING}")),
    )
    shop.kubectl("create", "job", "report-1", "--from=cronjob/report", "-n", shop.namespace)
    applied(admin, shop.namespace, None)
    _wait(shop)
    shop.kubectl("patch", "statefulset", "stuck", "-n", shop.namespace, "-p", json.dumps(_mended(shop, image)))
    _expect_updates(shop)
    # an index, where an image was: whether it is for the nodes is for the Nodes to say
    second = images.web_image(f"second {shop.repository}", platform=images.host_platform())
    images.push(images.index_image([second]), f"{shop.repository}:one")


def _of_team(workload: Object) -> Object:
    workload["metadata"]["labels"] = {**workload["metadata"].get("labels", {}), **TEAM}
    return workload


def _daemon_set(name: str, image: str) -> Object:
    made = deployment(name, container(name, image))
    return {**made, "kind": "DaemonSet"}


def _cron_job(name: str, image: str) -> Object:
    pod = {"containers": [container(name, image)], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


def _wait(shop: Shop) -> None:
    rolled_out(shop, "deployment/web-sample", "deployment/app", "deployment/calm", "statefulset/db", "daemonset/agent")
    wait = [f"--timeout={PATIENCE}s", "-n", shop.namespace]
    shop.kubectl("wait", "pod", "--for=condition=Ready", "-l", "app=report", *wait)

    def is_stuck() -> bool:
        statuses = [status for pod in pods_of(shop, "stuck") for status in pod["status"].get("containerStatuses", [])]
        return any(_waits_for(status) in FAILING for status in statuses)

    assert until(is_stuck, PATIENCE), "the Pod of a missing image waits for nothing"


def _waits_for(status: Object) -> str:
    reason: str = (status["state"].get("waiting") or {}).get("reason", "")
    return reason


def _mended(shop: Shop, image: str) -> Object:
    """The StatefulSet as a roll that left the missing image writes it."""
    digest = images.inspect(f"{shop.repository}:one")
    repository = image.rpartition(":")[0]
    memory = {"reference": image, "digest": digest, "from": image, "at": conditions.now(), "left": [MISSING]}
    follow = {"kubesteward.io/follow": json.dumps({"stuck": memory})}
    spec = {"containers": [{"name": "stuck", "image": f"{repository}@{digest}"}]}
    return {"metadata": {"annotations": follow}, "spec": {"template": {"spec": spec}}}


def _expect_updates(shop: Shop) -> None:
    targets: list[Object] = [{"kind": kind, "selector": {"matchLabels": TEAM}} for kind in FOLLOWED]
    targets.append({"kind": "StatefulSet", "name": "stuck"})
    calm = [{"kind": "Deployment", "name": "calm"}]
    shop.apply(
        shop.update("all", {"targets": targets}),
        shop.update("done", {"targets": calm, "delete_flag": True}),
        # has no Deployment yet
        shop.start("fresh", image=image_of(shop, "calm")),
    )


@dataclass
class Steward:
    """Passes with the rights of one account; each returns what the API server refused."""

    shop: Shop
    cluster: Cluster
    done: execution.Pass | None = None

    def updates(self) -> t.Iterator[list[str]]:
        """The passes of the update job."""
        yield self.update("all")
        yield self.update("done")

    def starts(self) -> t.Iterator[list[str]]:
        """The passes of the start job: for all Starts, and without one."""
        namespace = self.shop.namespace
        yield _refused(lambda: applied(self.cluster, namespace, None))
        spec = {"name": "alone", "image": image_of(self.shop, "calm"), "replicas": 0}
        yield _refused(lambda: applied(self.cluster, namespace, spec))

    def update(self, name: str, **given: t.Any) -> list[str]:
        """One pass of the named Update, or of what `given` says, as the tasks of the role hand it on."""
        return _refused(lambda: self._pass({"update": name, **given} if name else given))

    def _pass(self, given: Object) -> list[str]:
        namespace, state = self.shop.namespace, given.pop("state", "present")
        running = pod_image_id.run(options(pod_image_id, namespace=namespace, **given), self.cluster)
        asked = {"registries": self.shop.testbed.registries(), "images": running["lookups"]}
        published = registry_digest.run(options(registry_digest, **asked), lambda: self.cluster)["images"]
        handed = {key: running[key] for key in ("update_resource", "missing")}
        handed.update(running=running["containers"], published=published, namespace=namespace, state=state)
        self.done = image_rollout.run(options(image_rollout, **handed), self.cluster, False, conditions.now())
        looked_up = [text for entry in published for text in entry["warnings"]]
        return [*self.done.errors, *self.done.warnings, *looked_up]

    def verdicts(self) -> dict[str, tuple[str, str]]:
        """container -> reason and message, of the last pass."""
        assert self.done
        return {entry["container"]: (verdict.reason, verdict.message) for entry, verdict in self.done.judged}


def options(module: t.Any, **given: t.Any) -> Object:
    """Checked options of a module."""
    checked = ArgumentSpecValidator(module.argument_spec()).validate(given)
    assert not checked.error_messages
    found: Object = checked.validated_parameters
    return found


def applied(cluster: Cluster, namespace: str, spec: Object | None) -> list[str]:
    """A pass of start_apply; its errors."""
    given = {"namespace": namespace, **({"spec": spec} if spec else {})}
    return apply_starts.run(cluster, options(start_apply, **given), False, conditions.now()).errors


def _refused(step: t.Callable[[], list[str]]) -> list[str]:
    try:
        return [text for text in step() if "forbidden" in text]
    except ApiError as exc:
        if exc.status != 403:
            raise
        return [str(exc)]


def first_refusal(passes: t.Iterator[list[str]]) -> list[str]:
    """Refusals of the first pass that has some."""
    return next((refused for refused in passes if refused), [])

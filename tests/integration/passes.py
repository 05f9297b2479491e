# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the playbooks on the testbed as a user does, and read what came of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import typing as t
import uuid
from dataclasses import dataclass
from pathlib import Path

from testbed import Testbed, images

ROOT = Path(__file__).resolve().parents[2]
AGENT = "kubesteward"
PASS_SECONDS = 120
ROLLOUT_SECONDS = 120
RECAP = re.compile(r"ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)")


@dataclass(frozen=True)
class Pass:
    """One run of a playbook."""

    output: str
    code: int
    seconds: float

    @property
    def changed(self) -> int:
        """`changed` of the recap."""
        found = RECAP.search(self.output)
        assert found, self.output
        return int(found[2])


@dataclass
class Shop:
    """One namespace with its Starts and Updates, and a repository that no other test uses."""

    testbed: Testbed
    kubectl: t.Callable[..., subprocess.CompletedProcess[str]]
    namespace: str

    def __post_init__(self) -> None:
        self.repository = f"tests/{uuid.uuid4().hex[:12]}"

    @property
    def image(self) -> str:
        """What manifests write for the repository's tag `latest`."""
        return self.testbed.image_name(f"{self.repository}:latest")

    def push(self, text: str, name: str = "latest") -> str:
        """Push a web server that answers `text`; its digest."""
        return images.push(images.web_image(f"{text} {self.repository}"), f"{self.repository}:{name}")

    def apply(self, *resources: dict[str, t.Any]) -> None:
        for resource in resources:
            self.kubectl("apply", "-n", self.namespace, "-f", "-", stdin=resource)

    def start(self, resource: str = "sample", **spec: t.Any) -> dict[str, t.Any]:
        return _resource("Start", resource, {"name": resource, "image": self.image, **spec})

    def update(self, name: str = "sample", spec: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        return _resource("Update", name, spec)

    def get(self, kind: str, name: str = "sample") -> dict[str, t.Any]:
        return json.loads(self.kubectl("get", kind, name, "-n", self.namespace, "-o", "json").stdout)

    def list(self, kind: str) -> list[dict[str, t.Any]]:
        return json.loads(self.kubectl("get", kind, "-n", self.namespace, "-o", "json").stdout)["items"]

    def flags(self) -> str:
        """The line that the article prints."""
        path = "jsonpath={..status.check_id},{..status.update}"
        return self.kubectl("get", "update", "-n", self.namespace, "-o", path).stdout

    def verdicts(self, name: str = "sample") -> dict[str, str]:
        """container -> `verdict/reason` of an Update's status."""
        found = self.get("update", name)["status"].get("images", [])
        return {image["container"]: f"{image['verdict']}/{image['reason']}" for image in found}

    def condition(self, kind: str, name: str = "sample") -> dict[str, t.Any]:
        found = self.get("update", name)["status"].get("conditions", [])
        return next((condition for condition in found if condition["type"] == kind), {})

    def events(self) -> set[str]:
        """Reasons of the Events that we wrote."""
        return {event["reason"] for event in self.list("events") if event["source"].get("component") == AGENT}

    def settled(self, name: str = "sample") -> None:
        """Wait for the rollout of a Start's Deployment, and for its old Pods to be gone from the count."""
        wait = f"--timeout={ROLLOUT_SECONDS}s"
        self.kubectl("rollout", "status", "-n", self.namespace, f"deployment/{name}-sample", wait)

    def running(self, name: str = "sample") -> set[str]:
        """Digests that the ready, not terminating Pods of a Start report."""
        found = set()
        for pod in self.list("pods"):
            if pod["metadata"]["labels"].get("app") != f"{name}-app" or "deletionTimestamp" in pod["metadata"]:
                continue
            found |= {status["imageID"].rpartition("@")[2] for status in pod["status"].get("containerStatuses", [])}
        return found

    def run(self, playbook: str, *arguments: str, expect: int = 0, **variables: t.Any) -> Pass:
        """Run kubesteward.core.<playbook> for the namespace."""
        given = {f"{playbook}_namespace": self.namespace, **variables}
        if playbook == "update":
            given.setdefault("update_registries", self.testbed.registries())
        command = [str(ROOT / ".venv/bin/ansible-playbook"), f"kubesteward.core.{playbook}", "-e", json.dumps(given)]
        began = time.monotonic()
        done = subprocess.run(
            [*command, *arguments],
            cwd=ROOT,
            env={**os.environ, "KUBECONFIG": str(self.testbed.kubeconfig), "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PASS_SECONDS,
            check=False,
        )
        found = Pass(done.stdout + done.stderr, done.returncode, time.monotonic() - began)
        assert found.code == expect, found.output
        return found


def _resource(kind: str, name: str, spec: dict[str, t.Any] | None) -> dict[str, t.Any]:
    body = {"apiVersion": "install.sios.nginx.testing/v1", "kind": kind, "metadata": {"name": name}}
    return body if spec is None else {**body, "spec": spec}


def writes(events: t.Iterable[t.Any]) -> list[str]:
    """Mutating requests of ours, dry runs aside."""
    found = [event for event in events if event.user_agent.startswith(AGENT) and not event.dry_run]
    return [f"{event.verb} {event.resource}/{event.subresource} {event.name}" for event in found]

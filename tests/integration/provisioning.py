# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ns_provision on the testbed as a playbook does, and read what came of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import typing as t
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from integration.passes import PASS_SECONDS, ROOT, writes

from testbed import Testbed
from testbed.audit import AuditLog

MODULE = "kubesteward.core.ns_provision"
GONE_SECONDS = 90
POLL_SECONDS = 0.5
Object = dict[str, t.Any]


@dataclass
class Answer:
    """What one call of the module returned for one namespace.

    :ivar result: everything it returned
    :ivar output: everything that was printed
    """

    result: Object
    output: str

    @property
    def entry(self) -> Object:
        """The entry of the only namespace."""
        (found,) = self.result["namespaces"]
        return found

    @property
    def state(self) -> str:
        return self.entry["state"]

    @property
    def operations(self) -> list[str]:
        """`action Kind/name` of what was done, or would be."""
        return [f"{item['action']} {item['kind']}/{item['name']}" for item in self.entry["operations"]]

    @property
    def diff(self) -> dict[str, tuple[str, str]]:
        """Header -> (before, after)."""
        return {item["after_header"]: (item["before"], item["after"]) for item in self.result["diff"]}


@dataclass
class Team:
    """A namespace that a team asks for, with a name that nobody else has.

    :ivar home: the namespace of the resource that asks, where there is one
    """

    testbed: Testbed
    kubectl: Callable[..., subprocess.CompletedProcess[str]]
    folder: Path
    home: str
    name: str = field(default_factory=lambda: f"test-team-{uuid.uuid4().hex[:10]}")

    def run(self, *, check: bool = False, started: bool = False, fails: bool = False, **options: t.Any) -> Answer:
        """One call of the module with exactly these options, in a playbook with `--diff`.

        :param started: the module is started; else it runs in the controller's process
        :param fails: it is expected to
        """
        book = self.folder / "play.yml"
        tasks = [
            {"name": "Provide", MODULE: options, "register": "found", "ignore_errors": True},
            {"name": "Show", "ansible.builtin.debug": {"msg": "RESULT {{ found | to_json }}"}},
        ]
        play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}
        book.write_text(yaml.safe_dump([play], sort_keys=False))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "KUBESTEWARD_"))}
        more = {"ANSIBLE_NOCOLOR": "1", "KUBESTEWARD_DIRECT": "0" if started else "1"}
        done = subprocess.run(
            [str(ROOT / ".venv/bin/ansible-playbook"), str(book), "--diff", *(["--check"] if check else [])],
            cwd=ROOT,
            env={**kept, **more, "K8S_AUTH_KUBECONFIG": str(self.testbed.kubeconfig)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PASS_SECONDS,
            check=False,
        )
        printed = done.stdout + done.stderr
        found = re.findall(r'"msg": ("RESULT .*")\n', printed)
        assert done.returncode == 0 and len(found) == 1, printed
        result = json.loads(json.loads(found[0]).removeprefix("RESULT "))
        assert bool(result.get("failed")) == fails, printed
        return Answer(result, printed)

    def provide(self, size: str = "small", **options: t.Any) -> Answer:
        """Ask for the team's namespace; the module does not fail for what it does not get."""
        own = ("check", "started", "fails", "state", "claim", "allowed_roles", "wait", "wait_timeout")
        around = {key: options.pop(key) for key in own if key in options}
        return self.run(namespaces=[{"name": self.name, "size": size, **options}], **around)

    def let_go(self, state: str = "absent", **options: t.Any) -> Answer:
        """Give the namespace back."""
        return self.run(namespaces=[{"name": self.name}], state=state, **options)

    @property
    def claim(self) -> Object:
        """The claim of the resource of the team's name."""
        return {"namespace": self.home, "name": self.name}

    def get(self, kind: str, name: str = "", where: str = "") -> Object:
        """An object of the team's namespace, or the Namespace itself; empty where there is none."""
        place = () if kind == "namespace" else ("--namespace", where or self.name)
        answer = self.kubectl("get", kind, name or self.name, *place, "-o", "json", "--ignore-not-found").stdout
        return json.loads(answer) if answer else {}

    def hard(self) -> dict[str, str]:
        """What the quota allows."""
        return self.get("resourcequota", f"{self.name}-quota")["spec"]["hard"]

    def labels(self) -> dict[str, str]:
        return self.get("namespace")["metadata"]["labels"]

    def marks(self) -> Object:
        """What the claim says; empty where there is none."""
        text = self.get("namespace")["metadata"].get("annotations", {}).get("kubesteward.io/claim")
        return json.loads(text) if text else {}

    def edit(self, kind: str, name: str, patch: t.Any, manager: str = "somebody", form: str = "merge") -> None:
        """Change an object as somebody else."""
        place = () if kind == "namespace" else ("--namespace", self.name)
        given = ("--type", form, "--field-manager", manager, "-p", json.dumps(patch))
        self.kubectl("patch", kind, name, *place, *given)

    def apply(self, resource: Object, where: str = "") -> None:
        self.kubectl("apply", "--namespace", where or self.name, "-f", "-", stdin=resource)

    def wait(self, what: str, ready: Callable[[], t.Any]) -> None:
        """Ask until it is so."""
        deadline = time.monotonic() + GONE_SECONDS
        while not ready():
            assert time.monotonic() < deadline, f"{what}: not so after {GONE_SECONDS} s"
            time.sleep(POLL_SECONDS)

    def wait_gone(self) -> None:
        self.wait(f"Namespace {self.name} is gone", lambda: not self.get("namespace"))

    def wait_account(self) -> None:
        """Until the cluster has made what a Pod needs."""
        self.wait("there is a default ServiceAccount", lambda: self.get("serviceaccount", "default"))

    def wait_counted(self) -> None:
        """Until the quota's status is that of its spec: before, nobody can say whether it may shrink."""

        def counted() -> bool:
            found = self.get("resourcequota", f"{self.name}-quota")
            return found["spec"]["hard"] == found.get("status", {}).get("hard")

        self.wait("the quota is counted", counted)


@dataclass
class Ledger:
    """Our writes for one team, from the audit log."""

    log: AuditLog
    team: Team
    began: int = 0

    def open(self) -> None:
        """From now on."""
        self.began = self.log.mark()

    def writes(self) -> list[str]:
        """`verb resource/subresource name` of each mutating request since `open`, dry runs aside."""
        events = self.log.since(self.began)
        name = self.team.name
        return writes(event for event in events if name in (event.namespace, event.name))


def pod(name: str, cpu: str, memory: str) -> Object:
    """A Pod that counts for the quota and never runs."""
    limits = {"limits": {"cpu": cpu, "memory": memory}}
    spec = {
        "schedulingGates": [{"name": "kubesteward.io/test"}],
        "containers": [{"name": "web", "image": "registry.invalid/web:1", "resources": limits}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def service(name: str) -> Object:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def pull_secret(name: str, content: str, shareable: bool = True) -> Object:
    labels = {"kubesteward.io/shareable": "true"} if shareable else {}
    auths = {"auths": {"registry.invalid": {"username": "team", "password": content}}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": labels},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": json.dumps(auths)},
    }

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-operator does for one resource, without the program: its extra vars, its run, its finalizer, its status.

operator = Operator(shop, tmp_path)          # as the shop's kubeconfig; a context manager
operator.pass_of("Update")                   # one run of the playbook, which must succeed; its events
operator.reconcile("Nspro", "team-a")        # the same with finalizer and conditions, as the operator writes them
operator.begin("Update").kill()              # a run that is ended half-way
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import os
import signal
import subprocess
import typing as t
import uuid
from dataclasses import dataclass
from pathlib import Path

import yaml
from integration.gate import Gate, credentials
from integration.passes import ROOT, Shop

from bench.reconcile import mark_unsafe

Object = dict[str, t.Any]
Events = list[Object]

RUN_SECONDS = 120
TIME = "%Y-%m-%dT%H:%M:%SZ"
KUBECONFIG = """---
apiVersion: v1
kind: Config
clusters:
- cluster: {{insecure-skip-tls-verify: true, server: "http://{owner}@localhost:{port}"}}
  name: proxy-server
contexts:
- context: {{cluster: proxy-server, user: admin/proxy-server}}
  name: {namespace}/proxy-server
current-context: {namespace}/proxy-server
preferences: {{}}
users:
- name: admin/proxy-server
  user: {{username: "{owner}", password: unused}}
"""


INVENTORY = "localhost ansible_connection=local ansible_python_interpreter={{ansible_playbook_python}}"


def watches(home: str) -> dict[str, Object]:
    """Of watches.yaml, by kind, as an operator in the namespace `home` reads them."""
    text = (ROOT / "watches.yaml").read_text().replace("${POD_NAMESPACE}", home)
    return {watch["kind"]: watch for watch in yaml.safe_load(text)}


def is_finalizing(resource: Object, watch: Object) -> bool:
    """Is the finalizer of the watch what keeps the resource?"""
    meta, finalizer = resource["metadata"], watch.get("finalizer")
    return bool(finalizer and meta.get("deletionTimestamp") and finalizer["name"] in meta.get("finalizers", []))


def extra_vars(resource: Object, watch: Object) -> Object:
    """As the operator builds them, later ones win: spec keys, the resource, the watch's vars, its finalizer's vars."""
    assert watch["markUnsafe"] is True
    assert watch["snakeCaseParameters"] is False
    meta, spec = resource["metadata"], resource.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    key = f"_{watch['group']}_{watch['kind'].lower()}".replace(".", "_").replace("-", "_")
    return {
        **mark_unsafe(spec),
        "ansible_operator_meta": {"namespace": meta["namespace"], "name": meta["name"]},
        key: mark_unsafe(resource),
        f"{key}_spec": mark_unsafe(spec),
        **watch.get("vars", {}),
        **(watch["finalizer"].get("vars", {}) if is_finalizing(resource, watch) else {}),
    }


def rebuilt(conditions: t.Iterable[Object]) -> list[Object]:
    """Conditions as the operator writes them back: what it does not know is dropped, other times become the present."""
    now = datetime.datetime.now(datetime.UTC).strftime(TIME)
    found = []
    for condition in conditions:
        kept = {key: condition[key] for key in ("type", "status", "ansibleResult") if key in condition}
        since = condition.get("lastTransitionTime", "")
        try:
            datetime.datetime.strptime(since, TIME)
        except ValueError:
            since = now
        texts = {key: condition.get(key, "") for key in ("reason", "message")}
        found.append({**kept, **texts, "lastTransitionTime": since})
    return found


def family(pid: int) -> list[int]:
    """A process and everything that it started: ansible-runner gives the playbook a session of its own."""
    found = [pid]
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in tasks.read_text().split():
            found += family(int(child))
    return found


@dataclass
class Run:
    """A run of ansible-runner that has begun."""

    process: subprocess.Popen[str]
    top: Path

    def kill(self) -> None:
        """End it at once, with everything that it started, as a node does that runs out of memory."""
        for pid in reversed(family(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait(self) -> str:
        """Until it has ended in whatever way; what it printed."""
        output, errors = self.process.communicate(timeout=RUN_SECONDS)
        return output + errors

    def finish(self) -> Events:
        """The job's events in order; fails where a task failed, even a rescued one, as the operator does."""
        output = self.wait()
        events = self.events()
        assert self.process.returncode == 0, output
        assert failed(events) == []
        assert any(event["event"] == "playbook_on_stats" for event in events)
        return events

    def events(self) -> Events:
        found = [json.loads(path.read_text()) for path in (self.top / "artifacts/pass/job_events").glob("*-*.json")]
        return sorted(found, key=lambda event: event["counter"])

    def text(self) -> str:
        """All that the run left on the disk, but for what it was given."""
        return "\n".join(path.read_text(errors="replace") for path in self.top.glob("artifacts/**/*") if path.is_file())


def failed(events: Events) -> Events:
    return [event for event in events if event["event"] in ("runner_on_failed", "runner_on_unreachable")]


def changed(events: Events) -> int:
    """`changed` of the recap."""
    stats = next(event for event in events if event["event"] == "playbook_on_stats")
    return sum(stats["event_data"]["changed"].values())


class Operator:
    """Does for the resources of a shop what the operator does, with the rights of the shop's kubeconfig.

    :ivar watches: of watches.yaml, by kind
    :ivar gate: its proxy
    """

    def __init__(self, shop: Shop, folder: Path, settings: Object | None = None) -> None:
        """:param settings: the administrator's variables, as `--ansible-args` gives them to every pass."""
        self.shop, self.folder, self.settings = shop, folder, settings or {}
        self.watches = watches("kubesteward-system")
        self.gate = Gate(shop.testbed.kubeconfig)

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_error: t.Any) -> None:
        self.gate.close()

    def begin(self, kind: str, name: str = "sample", resource: Object | None = None, **administrator: t.Any) -> Run:
        """Start a pass.

        :param resource: as the operator has read it; by default as it is now
        :param administrator: more variables of the watch
        """
        watch = self.watches[kind]
        watch = {**watch, "vars": {**watch.get("vars", {}), **self._registries(kind), **administrator}}
        resource = resource or self.shop.get(kind.lower(), name)
        top = self.folder / f"{kind}-{uuid.uuid4().hex[:6]}"
        kubeconfig = self.folder / f"{top.name}.kubeconfig"
        given = {"owner": credentials(resource), "port": self.gate.port, "namespace": self.shop.namespace}
        kubeconfig.write_text(KUBECONFIG.format(**given))
        access = {name: str(kubeconfig) for name in ("K8S_AUTH_KUBECONFIG", "KUBECONFIG")}
        for path, text in {**self._files(resource, watch), "env/envvars": json.dumps(access)}.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(text)
        paths = {
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
            "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
        }
        command = [str(ROOT / ".venv/bin/ansible-runner"), "run", str(top), "--rotate-artifacts", "3"]
        process = subprocess.Popen(
            [*command, "-p", "playbook.yaml", "-i", "pass"],
            cwd=self.folder,
            env={**os.environ, **paths, **access},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Run(process, top)

    def _files(self, resource: Object, watch: Object) -> dict[str, str]:
        """What the operator writes for ansible-runner, but for the access to the cluster."""
        files = {
            "env/extravars": json.dumps(extra_vars(resource, watch)),
            "env/settings": "{}",
            "inventory/hosts": INVENTORY,
            "project/playbook.yaml": (ROOT / watch["playbook"]).read_text(),
        }
        if self.settings:
            settings = self.folder / "settings.yml"
            settings.write_text(yaml.safe_dump(self.settings))
            files["env/cmdline"] = f"-e @{settings}"
        return files

    def _registries(self, kind: str) -> Object:
        known = kind == "Update" and "update_registries" not in self.settings
        return {"update_registries": self.shop.testbed.registries()} if known else {}

    def pass_of(self, kind: str, name: str = "sample", **administrator: t.Any) -> Events:
        """One pass, which must succeed."""
        return self.begin(kind, name, **administrator).finish()

    def reconcile(self, kind: str, name: str = "sample") -> Events:
        """A pass from its beginning to its end: finalizer, conditions, the run, conditions, finalizer."""
        resource, finalizer = self.shop.get(kind.lower(), name), self.watches[kind].get("finalizer")
        goes = bool(resource["metadata"].get("deletionTimestamp"))
        if finalizer and not goes:
            self.set_finalizers(kind, name, [finalizer["name"]])
        resource = self.mark(kind, name, "Running reconciliation")
        events = self.begin(kind, name, resource=resource).finish()
        if finalizer and goes:
            self.set_finalizers(kind, name, [])
        elif self.exists(kind, name):
            self.mark(kind, name, "Awaiting next reconciliation")
        return events

    def exists(self, kind: str, name: str = "sample") -> bool:
        asked = ("get", kind.lower(), name, "-n", self.shop.namespace, "--ignore-not-found", "-o", "name")
        return bool(self.shop.kubectl(*asked).stdout)

    def mark(self, kind: str, name: str, message: str) -> Object:
        """Write the operator's own condition, and all of the others as it rebuilds them; the resource after it."""
        resource = self.shop.get(kind.lower(), name)
        status = copy.deepcopy(resource.get("status") or {})
        now = datetime.datetime.now(datetime.UTC).strftime(TIME)
        theirs = {"type": "Running", "status": "True", "reason": "Running", "message": message}
        rest = [condition for condition in status.get("conditions", []) if condition["type"] != "Running"]
        status["conditions"] = [*rebuilt(rest), {**theirs, "lastTransitionTime": now}]
        self.as_the_operator("replace", "--subresource=status", "-f", "-", stdin={**resource, "status": status})
        return self.shop.get(kind.lower(), name)

    def set_finalizers(self, kind: str, name: str, finalizers: list[str]) -> None:
        """By an update of the whole resource, as the operator does it."""
        resource = self.shop.get(kind.lower(), name)
        resource["metadata"]["finalizers"] = finalizers
        self.as_the_operator("replace", "-f", "-", stdin=resource)

    def as_the_operator(self, *arguments: str, **more: t.Any) -> None:
        """Call kubectl with the operator's rights."""
        self.shop.kubectl("--kubeconfig", str(self.shop.testbed.kubeconfig), *arguments, **more)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass as ansible-operator makes it: a folder, ansible-runner, its events by a socket."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socketserver
import subprocess
import sys
import threading
import typing as t
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import BenchError
from bench.play import ROOT, SECONDS, environment
from testbed import Testbed

Object = dict[str, t.Any]
BIN = Path(sys.executable).parent
#: what the operator takes for the failure of a pass
FAILED = ("runner_on_failed", "runner_on_unreachable")
METRICS = "KUBESTEWARD_METRICS_URL"
INVENTORY = "localhost ansible_connection=local ansible_python_interpreter={{ansible_playbook_python}}"


class Events:
    """Receives what passes tell, as the operator does: events over a socket, counters by HTTP.

    :ivar told: events by pass, and counters as `metrics`
    :ivar metrics: URL for the counters, while they are received
    """

    def __init__(self, socket: Path) -> None:
        self.socket, self.metrics = socket, ""
        self.told: dict[str, list[Object]] = {}

    @contextlib.contextmanager
    def received(self) -> t.Iterator[None]:
        """Listen while the block runs."""
        told = self.told

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.setdefault(self.path.strip("/"), []).append(event)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_arguments: t.Any) -> None:
                """A socket's client has no address that could be printed."""

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

        with (
            Server(str(self.socket), Handler) as events,
            http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as counters,
            _served(events),
            _served(counters),
        ):
            self.metrics = f"http://127.0.0.1:{counters.server_port}/metrics"
            yield


@contextlib.contextmanager
def _served(server: socketserver.BaseServer) -> t.Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def shortcoming(events: t.Iterable[Object], unchanged: bool) -> str:
    """What a pass lacks of one that succeeded (and found nothing to do); empty where it is such a one."""
    found = list(events)
    failed = [event for event in found if event.get("event") in FAILED]
    if failed:
        return f"a task failed: {failed[0].get('stdout', '')}"
    stats = [event["event_data"] for event in found if event.get("event") == "playbook_on_stats"]
    if not stats:
        return "it never told that it ended"
    changed = sum(stats[0]["changed"].values())
    return f"changed={changed} instead of 0" if unchanged and changed else ""


@dataclass(frozen=True)
class Reconciler:
    """Makes passes.

    :ivar top: the folder that stands for the container's /tmp
    :ivar watches: by kind, of watches.yaml
    :ivar settings: the administrator's variables, given to every pass
    :ivar inside: gives the command line that runs another one where memory is counted
    :ivar container: of the manager's Deployment
    """

    top: Path
    bed: Testbed
    watches: t.Mapping[str, Object]
    settings: Object
    inside: t.Callable[..., list[str]]
    container: Object
    events: Events = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", Events(self.top / "events"))
        # once: a file that is being written is read as an empty one
        (self.top / "settings.json").write_text(json.dumps(self.settings))

    def folder(self, resource: Object) -> Path:
        """Of a resource, the same in every pass."""
        meta = resource["metadata"]
        return self.top / "ansible-operator" / resource["kind"] / meta["namespace"] / meta["name"]

    def run(self, resource: Object, unchanged: bool) -> None:
        """One pass.

        :raises BenchError: it failed, took too long, or changed something that was to be unchanged
        """
        ident = uuid.uuid4().hex
        watch, folder = self.watches[resource["kind"]], self.folder(resource)
        self._write(folder, resource, watch, ident)
        done = subprocess.run(
            self.inside(
                str(BIN / "ansible-runner"),
                "run",
                str(folder),
                "--rotate-artifacts",
                str(watch["maxRunnerArtifacts"]),
                *("-p", str(ROOT / watch["playbook"]), "-i", ident, *verbosity(self.container)),
            ),
            cwd=self.top,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        lacks = (
            f"exit code {done.returncode}"
            if done.returncode
            else shortcoming(self.events.told.get(ident, ()), unchanged)
        )
        if lacks:
            name = "/".join(folder.parts[-3:])
            raise BenchError(f"A pass of {name} did not do its work: {lacks}\n{done.stdout}{done.stderr}")

    def _write(self, folder: Path, resource: Object, watch: Object, ident: str) -> None:
        files = {
            "env/extravars": json.dumps(extra_vars(resource, watch)),
            "env/envvars": json.dumps(dict.fromkeys(("K8S_AUTH_KUBECONFIG", "KUBECONFIG"), str(self.bed.kubeconfig))),
            "env/settings": json.dumps({"runner_http_url": str(self.events.socket), "runner_http_path": f"/{ident}/"}),
            "env/cmdline": f"--extra-vars @{self.top / 'settings.json'}",
            "inventory/hosts": INVENTORY,
        }
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def _environment(self) -> dict[str, str]:
        home = self.top / ".ansible"
        own = {
            "ANSIBLE_HOME": str(home),
            "ANSIBLE_LOCAL_TEMP": str(home / "tmp"),
            "ANSIBLE_REMOTE_TEMP": str(home / "tmp"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        given = {name: value for name, value in variables(self.container).items() if name.startswith("ANSIBLE_")}
        if METRICS in variables(self.container):
            given[METRICS] = self.events.metrics
        return {**environment(self.bed), **own, **given}


def variables(container: Object) -> dict[str, str]:
    """Environment variables that a container has by their value."""
    return {item["name"]: item["value"] for item in container["env"] if "value" in item}


def verbosity(container: Object) -> list[str]:
    """What the operator tells ansible-runner of its `--ansible-verbosity`, 2 where nothing is said."""
    flag = "--ansible-verbosity="
    level = next((int(item.removeprefix(flag)) for item in container["args"] if item.startswith(flag)), 2)
    return [f"-{'v' * level}"] if level else []


def extra_vars(resource: Object, watch: Object) -> Object:
    """Variables of a pass as the operator builds them for a watch with `markUnsafe`, without `snakeCaseParameters`."""
    meta, spec = resource["metadata"], resource.get("spec", {})
    key = f"_{watch['group']}_{watch['kind'].lower()}".replace(".", "_").replace("-", "_")
    return {
        **mark_unsafe(spec),
        "ansible_operator_meta": {"namespace": meta["namespace"], "name": meta["name"]},
        key: mark_unsafe(resource),
        f"{key}_spec": mark_unsafe(spec),
        **watch.get("vars", {}),
    }


def mark_unsafe(value: t.Any) -> t.Any:
    """As the operator marks strings where a watch has `markUnsafe: true`."""
    if isinstance(value, dict):
        return {key: mark_unsafe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mark_unsafe(item) for item in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value

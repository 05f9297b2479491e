# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: `python -m testbed up|down|status`."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import typing as t

from testbed import cluster, health
from testbed import settings as s
from testbed.api import Api
from testbed.connection import Testbed, connect, external
from testbed.console import fail, say, table
from testbed.errors import TestbedError
from testbed.extras import EXTRAS, names_in
from testbed.processes import Process, children
from testbed.state import boot_id, load

PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def main() -> int:
    """Exit code 0, 1 for a testbed that is not ready, 2 for what the user has to change, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="testbed", description="A real Kubernetes cluster on this machine.")
    parser.add_argument("command", choices=("up", "down", "status"))
    parser.add_argument("--with", dest="wanted", default="", metavar="NAME,...", help=f"for up: {', '.join(EXTRAS)}")
    given = parser.parse_args()
    command = given.command
    # an ended `up` must clean behind itself, however it is asked to end
    signal.signal(signal.SIGTERM, _terminated)
    try:
        outside = external(os.environ)
        if outside is not None:
            return _external(command, outside)
        settings = s.from_environment(os.environ)
        if command == "status":
            return _status(settings)
        if command == "down":
            cluster.down(settings)
            return 0
        cluster.up(settings, names_in(given.wanted))
        _print_exports(connect())
        return 0
    except TestbedError as error:
        fail(str(error))
        return 2
    except subprocess.TimeoutExpired as error:
        fail(f"{error}. Is the machine very busy, or the network down?")
        return 2
    except KeyboardInterrupt:
        fail("interrupted")
        return 130


def _terminated(_signal: int, _frame: object) -> t.NoReturn:
    raise KeyboardInterrupt


def _external(command: str, given: Testbed) -> int:
    if command == "down":
        say("TESTBED_KUBECONFIG is set: that cluster is yours, nothing is stopped.")
        return 0
    say(f"TESTBED_KUBECONFIG is set: using the cluster of {given.kubeconfig}, nothing is started.")
    kubectl = ["kubectl", f"--kubeconfig={given.kubeconfig}", "--request-timeout=10s", "get", "--raw=/readyz"]
    try:
        ready = subprocess.run(kubectl, capture_output=True, timeout=20, check=False).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise TestbedError(f"`{shlex.join(kubectl)}` failed: {error}") from error
    say(table([("COMPONENT", "HEALTHY"), ("API server", "yes" if ready else "no")]))
    _print_exports(given)
    return 0 if ready else 1


def _status(settings: s.Settings) -> int:
    state = load(settings.state_file)
    if state is None or state.boot != boot_id():
        say(f"No testbed runs in {settings.home}. Start one with `make testbed-up`.")
        return 1
    try:
        api = Api(settings.kubeconfig)
    except FileNotFoundError:
        say("The testbed is starting." if state.processes else "The testbed did not start.")
        return 1
    good = {process.name: health.healthy(process, api) for process in state.processes}
    rows = [("COMPONENT", "PID", "PORT", "HEALTHY")]
    rows += [
        (process.name, _pid(process), str(process.port or "-"), "yes" if good[process.name] else "no")
        for process in state.processes
    ]
    rows += [(name, "-", "-", f"not asked for: make testbed-up WITH={name}") for name in EXTRAS if name not in good]
    say(table(rows))
    if not state.ready or not all(good.values()):
        say(f"Not ready. Logs: {settings.logs}")
        return 1
    _print_exports(connect())
    return 0


def _pid(process: Process) -> str:
    """Inside the node the recorded process only waits for the one that is meant."""
    if not process.alive():
        return "-"
    inside = children(process.pid)
    return str(inside[0] if inside else process.pid)


def _print_exports(found: Testbed) -> None:
    print(f"export KUBECONFIG={shlex.quote(str(found.kubeconfig))}")
    print(f"export TESTBED_REGISTRY={shlex.quote(found.registry)}")
    if found.mirrored and any(name in os.environ for name in PROXY_VARIABLES):
        for name in ("NO_PROXY", "no_proxy"):
            print(f'export {name}="127.0.0.1,{s.HOST_ADDRESS}${{{name}:+,${name}}}"')


if __name__ == "__main__":
    sys.exit(main())

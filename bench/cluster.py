# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bench needs of the cluster: manifests by kubectl, the status of many Pods by the API."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import subprocess
import time
import typing as t
import uuid

from bench.errors import BenchError
from bench.play import ROOT
from testbed import Testbed
from testbed.console import say

SECONDS = 120
WORKERS = 4
Object = dict[str, t.Any]


def kubectl(bed: Testbed, *arguments: str, stdin: t.Any = None) -> str:
    """Output of kubectl; `stdin` is sent as JSON.

    :raises BenchError: with what kubectl said
    """
    command = ["kubectl", f"--kubeconfig={bed.kubeconfig}", f"--request-timeout={SECONDS}s", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            input="" if stdin is None else json.dumps(stdin),
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
            check=False,
        )
    except FileNotFoundError as exc:
        raise BenchError("There is no kubectl: `make testbed-up` says how to get it.") from exc
    except subprocess.TimeoutExpired as exc:
        raise BenchError(f"kubectl {' '.join(arguments)} did not end within {2 * SECONDS} s") from exc
    if done.returncode:
        raise BenchError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def install_crds(bed: Testbed) -> None:
    """The CRDs of this checkout, served."""
    kubectl(bed, "apply", "--server-side", "--force-conflicts", "-k", "config/crd")
    kubectl(bed, "wait", "--for=condition=Established", f"--timeout={SECONDS}s", "-f", "config/crd/bases")


@contextlib.contextmanager
def namespace(bed: Testbed, purpose: str) -> t.Iterator[str]:
    """A new namespace that is deleted at the end, whatever happens; the deletion itself is not waited for."""
    name = f"bench-{purpose}-{uuid.uuid4().hex[:8]}"
    kubectl(bed, "create", "namespace", name)
    try:
        yield name
    finally:
        try:
            kubectl(bed, "delete", "namespace", name, "--wait=false")
        except BenchError as exc:
            # must not hide the error that brought us here
            say(f"Namespace {name} is still there: {exc}")


def wait_for(what: str, ready: t.Callable[[], bool]) -> None:
    """Ask every half second until it is so.

    :raises BenchError: it is not so after SECONDS
    """
    deadline = time.monotonic() + SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise BenchError(f"{what}: not so after {SECONDS} s")
        time.sleep(0.5)


def items(bed: Testbed, kind: str, where: str) -> list[Object]:
    """All objects of a kind in a namespace."""
    return json.loads(kubectl(bed, "get", kind, "--namespace", where, "--output=json"))["items"]


def write_statuses(bed: Testbed, where: str, statuses: t.Mapping[str, Object]) -> None:
    """Write the status of Pods, by name, as a kubelet would."""
    import kubernetes

    with kubernetes.config.new_client_from_config(str(bed.kubeconfig)) as client:
        core = kubernetes.client.CoreV1Api(client)

        def write(name: str) -> None:
            core.patch_namespaced_pod_status(name, where, {"status": statuses[name]}, _request_timeout=SECONDS)

        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for _done in pool.map(write, statuses):
                pass

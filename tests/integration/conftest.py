# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster with our CRDs, and a namespace for each test that wants one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.operator_passes import Operator
from integration.passes import Shop

import testbed
from testbed import cluster, settings

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
SECONDS = 60
FOLDER = Path(__file__).parent
# Files of which each test has a cluster to itself but for the CRDs: any worker may take any of their tests.
APART = {
    "test_as_operator.py",
    "test_author_limits.py",
    "test_crds.py",
    "test_holds.py",
    "test_molecule.py",
    "test_ns_claims.py",
    "test_ns_provision.py",
    "test_operator_hostile.py",
    "test_operator_interrupted.py",
    "test_operator_races.py",
    "test_operator_variables.py",
    "test_update_pass.py",
}
# They build the collection, or read what is built of it.
ARCHIVE = ("test_image.py", "test_bundle.py")
# Their deadlines pass while the others run.
FIRST = ("test_trials.py", "test_upgrade_passes.py")
# What they need may have to be built, which is done meanwhile.
LAST = ("test_kube_state_metrics.py", "test_alerts.py", "test_image.py", "test_bundle.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes long, or waits for what is being built, where that hurts least."""
    if all(item.path.is_relative_to(FOLDER) for item in items):
        items.sort(key=lambda item: _place(item.path.name))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Say what runs on one worker: the tests of a file, one after the other, but for those that stand apart.

    Not by pytest-xdist's groups: 3.8 writes them where pytest 9.2 does not look.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            name = Path(file).name
            if name in APART:
                return nodeid
            return "archive" if name in ARCHIVE else file

    return Scheduling(config, log)


def _place(name: str) -> int:
    if name in FIRST:
        return FIRST.index(name) - len(FIRST)
    return LAST.index(name) + 1 if name in LAST else 0


@pytest.fixture(scope="session")
def network_policies() -> None:
    """Network policies are enforced from now on; a cluster of the user's does that, or not, by itself."""
    if testbed.connect().mirrored:
        cluster.add(settings.from_environment(os.environ), ["network-policies"])


@pytest.fixture(scope="session")
def kubectl(pytestconfig: pytest.Config) -> Kubectl:
    """Call kubectl on the testbed: `kubectl("get", "pods", check=False)`; a dict as `stdin` is sent as JSON."""
    kubeconfig = str(testbed.connect().kubeconfig)

    def call(*arguments: str, stdin: str | dict[str, Any] = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["kubectl", "--kubeconfig", kubeconfig, f"--request-timeout={SECONDS}s", *arguments],
            cwd=pytestconfig.rootpath,
            input=stdin if isinstance(stdin, str) else json.dumps(stdin),
            capture_output=True,
            text=True,
            timeout=2 * SECONDS,
            check=False,
        )
        if check and done.returncode:
            pytest.fail(f"kubectl {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    return call


@pytest.fixture(scope="session")
def crds(kubectl: Kubectl) -> None:
    """The CRDs as `make install` puts them there, served."""
    kubectl("apply", "--server-side", "--force-conflicts", "-k", "config/crd")
    names = [f"crd/{plural}.install.sios.nginx.testing" for plural in ("starts", "updates")]
    names.append("crd/nspros.nspro.example.com")
    kubectl("wait", "--for=condition=Established", f"--timeout={SECONDS}s", *names)


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A new namespace, removed again without waiting for the end."""
    with _namespace(kubectl) as name:
        yield name


@pytest.fixture(scope="module")
def namespaces(kubectl: Kubectl) -> Iterator[Callable[[], str]]:
    """Makes namespaces for stories that several tests tell parts of: their deadlines run once for all of them."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(_namespace(kubectl))


@pytest.fixture
def shop(kubectl: Kubectl, namespace: str) -> Shop:
    """A team's namespace with Starts and Updates."""
    return Shop(testbed.connect(), kubectl, namespace)


@pytest.fixture
def operator(shop: Shop, tmp_path: Path) -> Iterator[Operator]:
    """Passes over the shop as ansible-operator makes them."""
    with Operator(shop, tmp_path) as made:
        yield made


@pytest.fixture
def team(kubectl: Kubectl) -> Iterator[str]:
    """The name of a namespace that a Nspro may get."""
    name = f"team-{uuid.uuid4().hex[:8]}"
    yield name
    kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@contextlib.contextmanager
def _namespace(kubectl: Kubectl) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:10]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")

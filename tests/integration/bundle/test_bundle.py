# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The OLM bundle as the tools of OLM and an API server see it. OLM itself is not there: its catalogs are images."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from integration import programs

# The first is about the resource's name alone: the rule names batch, not the batch/v1beta1 that was removed.
EXPECTED = ("Migrate the API(s) for cronjobs: ", 'The \\"operatorhub\\" validator is deprecated')


@pytest.fixture(scope="session")
def verify():
    """What operator-verify complains about in a bundle, a line each."""
    program = programs.verify()

    def call(folder: Path) -> list[str]:
        command = [program, "manifests", "--operatorhub_validate", "--object_validate", folder]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stderr.splitlines()

    return call


@pytest.fixture(scope="session")
def bundle(pytestconfig) -> Path:
    return pytestconfig.rootpath / "bundle"


@pytest.fixture(scope="session")
def csv(bundle) -> dict:
    return yaml.safe_load((bundle / "manifests/kubesteward.clusterserviceversion.yaml").read_text())


def test_tools_of_olm_find_nothing_wrong(verify, bundle):
    said = verify(bundle)
    assert [line for line in said if not any(text in line for text in EXPECTED)] == []
    # it did look: these two are told of every time
    assert len(said) == len(EXPECTED)


def test_tools_of_olm_would_find_what_is_wrong(verify, bundle, tmp_path):
    copy = shutil.copytree(bundle, tmp_path / "bundle")
    (copy / "manifests/starts.install.sios.nginx.testing.yaml").unlink()
    assert any("level=error" in line and "owned CRD" in line and "Kind=Start" in line for line in verify(copy))


@pytest.mark.usefixtures("crds")
def test_api_server_takes_what_olm_would_put_there(kubectl, namespace, bundle, csv):
    for path in sorted((bundle / "manifests").glob("*.yaml")):
        if path.name.endswith("clusterserviceversion.yaml"):
            continue
        kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-n", namespace, "-f", str(path))
    for sample in json.loads(csv["metadata"]["annotations"]["alm-examples"]):
        kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=sample)


def test_api_server_takes_the_rights_and_the_pod(kubectl, namespace, csv):
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    install = csv["spec"]["install"]["spec"]
    group = "rbac.authorization.k8s.io/v1"
    for kind, where in (("Role", "permissions"), ("ClusterRole", "clusterPermissions")):
        ((entry),) = install[where]
        role = {"apiVersion": group, "kind": kind, "metadata": {"name": namespace}, "rules": entry["rules"]}
        kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=role)
    (deployment,) = install["deployments"]
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "manager"}, "spec": deployment["spec"]}
    kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=made)
    template = deployment["spec"]["template"]
    # accounts are made by OLM, and a Pod is refused without
    kubectl("create", "serviceaccount", template["spec"]["serviceAccountName"], "-n", namespace)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "manager"}, "spec": template["spec"]}
    kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=pod)

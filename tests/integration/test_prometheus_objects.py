# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster with prometheus-operator takes config/prometheus as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from monitoring import programs


@pytest.fixture(scope="module")
def prometheus_operator(kubectl) -> Iterator[None]:
    """Its CRDs; those that were there before stay."""
    files = programs.custom_resource_definitions()
    there = kubectl("get", "crd", "-o", "name").stdout.split()
    ours = []
    for plural, path in files.items():
        name = f"{plural}.monitoring.coreos.com"
        if f"customresourcedefinition.apiextensions.k8s.io/{name}" not in there:
            kubectl("create", "-f", str(path))
            ours.append(name)
        kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{name}")
    yield
    if ours:
        kubectl("delete", "crd", "--wait=false", *ours)


@pytest.mark.usefixtures("prometheus_operator")
def test_a_server_side_dry_run_accepts_every_object(kubectl, namespace):
    rendered = kubectl("kustomize", "config/prometheus").stdout
    objects = list(yaml.safe_load_all(rendered))
    for item in objects:
        if "namespace" in item["metadata"]:
            item["metadata"]["namespace"] = namespace
    body = {"apiVersion": "v1", "kind": "List", "items": objects}
    done = kubectl("create", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-", stdin=body)
    assert sorted(line.partition("/")[0] for line in done.stdout.split()) == [
        "clusterrole.rbac.authorization.k8s.io",
        "configmap",
        "configmap",
        "prometheusrule.monitoring.coreos.com",
        "servicemonitor.monitoring.coreos.com",
    ]


@pytest.mark.usefixtures("prometheus_operator")
def test_it_would_refuse_a_field_that_does_not_exist(kubectl, namespace):
    """Or the test above could not fail."""
    body = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": "odd", "namespace": namespace},
        "spec": {"selector": {}, "endpoints": [{"port": "https", "tls": {}}]},
    }
    done = kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=body, check=False)
    assert done.returncode != 0
    assert 'unknown field "spec.endpoints[0].tls"' in done.stderr

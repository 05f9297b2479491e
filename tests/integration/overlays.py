# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's overlays with names of their own, so that a test really installs one beside others."""

from __future__ import annotations

import os
import typing as t
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from integration.passes import ROOT

import testbed
from hack import cluster, deploy, undeploy
from testbed import images

Object = dict[str, t.Any]
#: answers the probes; the manager's arguments follow and mean nothing to it
STAND_IN = ["/bin/busybox", "sh", "-c", "exec busybox httpd -f -p 6789 -h /www"]
CRD_PATCH = "$patch: delete\napiVersion: v1\nkind: CustomResourceDefinition\nmetadata: {name: any}\n"


def manager_image(runs: bool = True) -> str:
    """An image for the patched command below; its name for manifests. Without the pages that command fails at once."""
    pages = {f"www/{name}": b"ok\n" for name in ("healthz", "readyz")} if runs else None
    name = f"tests/{uuid.uuid4().hex[:12]}:1"
    images.push(images.command_image(["true"], files=pages), name)
    return testbed.connect().image_name(name)


@dataclass
class Installation:
    """config/default for the resources of one namespace, `home`, in a namespace of its own; the CRDs are left alone."""

    kubectl: t.Callable[..., t.Any]
    folder: Path
    home: str
    suffix: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        self.namespace = f"test-system-{self.suffix}"
        self.name = f"kubesteward-manager-{self.suffix}"
        watch = {"name": "manager", "env": [{"name": "WATCH_NAMESPACE", "value": self.home}], "command": STAND_IN}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kubesteward-manager"},
            "spec": {"template": {"spec": {"terminationGracePeriodSeconds": 2, "containers": [watch]}}},
        }
        labels = {"kubernetes.io/metadata.name": self.home}
        # the policy is of the whole cluster, where other tests have resources that it would refuse
        mine = [{"op": "add", "path": "/spec/matchResources", "value": {"namespaceSelector": {"matchLabels": labels}}}]
        self.write(
            resources=[os.path.relpath(ROOT / "config/default", self.folder)],
            namespace=self.namespace,
            nameSuffix=f"-{self.suffix}",
            patches=[
                {"target": {"kind": "Deployment"}, "patch": yaml.safe_dump(deployment)},
                {"target": {"kind": "ValidatingAdmissionPolicyBinding"}, "patch": yaml.safe_dump(mine)},
                {"target": {"kind": "CustomResourceDefinition"}, "patch": CRD_PATCH},
            ],
        )

    def write(self, **kustomization: t.Any) -> None:
        (self.folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))

    def add(self, item: Object) -> None:
        """One more object in the overlay."""
        (self.folder / "more.yaml").write_text(yaml.safe_dump(item))
        kustomization = yaml.safe_load((self.folder / "kustomization.yaml").read_text())
        self.write(**{**kustomization, "resources": [*kustomization["resources"], "more.yaml"]})

    def deploy(self, image: str, *more: str) -> int:
        return deploy.main(["--overlay", str(self.folder), "--image", image, "--seconds", "60", *more])

    def undeploy(self, *more: str) -> int:
        return undeploy.main(["--overlay", str(self.folder), *more])

    def there(self) -> list[str]:
        """What there is of the overlay, Namespaces too."""
        return [str(cluster.name_of(item)) for item in cluster.render(str(self.folder)) if self.find(item)]

    def find(self, item: Object) -> str:
        where = ["-n", item["metadata"]["namespace"]] if "namespace" in item["metadata"] else []
        kind, name = item["kind"], item["metadata"]["name"]
        return self.kubectl("get", kind, name, *where, "--ignore-not-found", "-o", "name").stdout.strip()

    def close(self) -> None:
        everything = {"apiVersion": "v1", "kind": "List", "items": cluster.render(str(self.folder))}
        # a test may have named a kind that nobody has
        self.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=everything, check=False)


@pytest.fixture
def installed(kubectl, namespace, tmp_path, monkeypatch) -> t.Iterator[Installation]:
    """An installation that is removed at the end, whatever has become of it."""
    monkeypatch.setenv("KUBECONFIG", str(testbed.connect().kubeconfig))
    found = Installation(kubectl, tmp_path, namespace)
    yield found
    found.close()

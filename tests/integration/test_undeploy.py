# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking the operator out of a real cluster: nothing is deleted, tags are back, no finalizer is left, twice is once."""

from __future__ import annotations

import json
import typing as t
import uuid

import pytest
from integration.nspro_story import nspro
from integration.overlays import Installation, installed, manager_image
from integration.passes import Shop

import testbed
from hack import cluster, undeploy, uninstall

__all__ = ["installed"]
pytestmark = pytest.mark.usefixtures("crds")

FINALIZERS = ["nspro.example.com/cleanup", "example.com/of-somebody-else"]
FOLLOW = "kubesteward.io/follow"


class Life(Shop):
    """What the operator would have done for a namespace: a Start and a Deployment are rolled, a team got its own."""

    def __init__(self, kubectl: t.Callable[..., t.Any], home: str) -> None:
        super().__init__(testbed.connect(), kubectl, home)
        self.team = f"test-team-{uuid.uuid4().hex[:8]}"

    def begin(self) -> None:
        self.push("v1")
        self.apply(self.start(), self.deployment("web"), self.update(spec={"targets": self.targets()}))
        self.run("start")
        self.settled()
        self.kubectl("rollout", "status", "-n", self.namespace, "deployment/web", "--timeout=120s")
        self.pushed = self.push("v2")
        self.run("update")
        # followed once, and looked at no more
        self.apply(self.update(spec={"targets": self.targets(), "containers": {"ignore": ["web"]}}))
        asked = nspro(self.namespace, self.team, managed=True)
        asked["metadata"]["finalizers"] = FINALIZERS
        self.apply(asked)
        self.run("nspro")

    def deployment(self, name: str) -> dict[str, t.Any]:
        labels = {"run": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": self.image}]}}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}

    def targets(self) -> list[dict[str, str]]:
        return [{"kind": "Start", "name": "sample"}, {"kind": "Deployment", "name": "web"}]

    def images(self) -> list[str]:
        """Of the Start, of its Deployment, and of the other one."""
        made = [self.get("deployment", name) for name in ("sample-sample", "web")]
        return [
            self.get("start")["spec"]["image"],
            *(x["spec"]["template"]["spec"]["containers"][0]["image"] for x in made),
        ]

    def followed(self) -> list[bool]:
        objects = [self.get("start"), self.get("deployment", "web")]
        return [FOLLOW in x["metadata"].get("annotations", {}) for x in objects]

    def finalizers(self) -> list[str]:
        return self.get("nspro", self.team)["metadata"].get("finalizers", [])

    def of_the_team(self, kind: str) -> list[str]:
        """Names of our objects in the team's Namespace."""
        ours = "app.kubernetes.io/managed-by=kubesteward"
        return self.kubectl("get", kind, "-n", self.team, "-l", ours, "-o", "name").stdout.split()

    def labels(self) -> dict[str, str]:
        return json.loads(self.kubectl("get", "namespace", self.team, "-o", "json").stdout)["metadata"]["labels"]

    def versions(self) -> list[str]:
        """The resourceVersion of everything that a second run could touch."""
        seen = [self.get("start"), self.get("update"), self.get("nspro", self.team)]
        seen += [self.get("deployment", name) for name in ("sample-sample", "web")]
        seen.append(json.loads(self.kubectl("get", "namespace", self.team, "-o", "json").stdout))
        # a rollout changes a Deployment's status until it is done, and nothing of its spec
        return [x["metadata"].get("generation") or x["metadata"]["resourceVersion"] for x in seen]

    def close(self) -> None:
        patch = ["--type=merge", "-p", '{"metadata":{"finalizers":null}}']
        self.kubectl("patch", "nspro", self.team, "-n", self.namespace, *patch, check=False)
        self.kubectl("delete", "namespace", self.team, "--wait=false", "--ignore-not-found")


@pytest.fixture
def life(kubectl, namespace) -> t.Iterator[Life]:
    found = Life(kubectl, namespace)
    yield found
    found.close()


def beside(installed: Installation) -> tuple[str, ...]:
    """A second operator of the same namespace, as kubectl names it."""
    item = cluster.manager_in(cluster.render(str(installed.folder)))
    item["metadata"] |= {"name": "rival", "namespace": installed.home}
    item["spec"]["paused"] = True
    installed.kubectl("create", "-f", "-", stdin=item)
    return "deployment/rival", "-n", installed.home


def stops_half_way(installed: Installation, life: Life, monkeypatch, capsys) -> None:
    """The Nspros' playbook fails: nothing of the operator is removed but the Deployment, and no finalizer."""
    really = undeploy.play

    def play(name: str, variables: dict[str, t.Any], dry_run: bool) -> str:
        return "it failed" if name == "nspro" else really(name, variables, dry_run)

    monkeypatch.setattr(undeploy, "play", play)
    assert installed.undeploy() == 1
    monkeypatch.setattr(undeploy, "play", really)
    assert "it failed" in capsys.readouterr().err
    assert f"{installed.namespace}/Deployment/{installed.name}" not in installed.there()
    assert f"{installed.namespace}/ServiceAccount/{installed.name}" in installed.there()
    assert life.finalizers() == FINALIZERS


def test_undeploy_lets_everything_go_and_deletes_nothing(installed, life, monkeypatch, capsys):
    life.begin()
    assert life.followed() == [True, True]
    assert all(image.endswith(life.pushed) for image in life.images()[::2])
    assert installed.deploy(manager_image()) == 0
    # playbooks would ask this one, and kubectl would not
    monkeypatch.setenv("K8S_AUTH_HOST", "https://127.0.0.1:1")
    everything, before = installed.there(), life.versions()

    # a rehearsal says it all and does nothing
    capsys.readouterr()
    assert installed.undeploy("--dry-run") == 0
    told = capsys.readouterr().out
    for text in (
        f"{life.namespace}/Deployment/web, {life.namespace}/Start/sample: would get their tags back",
        life.team,
        f"Namespace/{installed.namespace} would be deleted, if nothing else is in it",
    ):
        assert text in told
    assert (installed.there(), life.versions()) == (everything, before)

    stops_half_way(installed, life, monkeypatch, capsys)
    assert life.images() == [life.image] * 3
    assert life.followed() == [False, False]

    # what an administrator put there keeps the Namespace
    secret = ["kubesteward-registry-auth", "-n", installed.namespace]
    installed.kubectl("create", "secret", "generic", *secret, "--from-literal=a=b")
    assert installed.undeploy() == 0
    assert "secret/kubesteward-registry-auth" in capsys.readouterr().out
    assert installed.there() == [f"Namespace/{installed.namespace}"]
    # of others' finalizers none is touched
    assert life.finalizers() == FINALIZERS[1:]
    assert life.labels() == {"kubernetes.io/metadata.name": life.team}
    assert life.of_the_team("resourcequota,limitrange,networkpolicy,rolebinding") == []
    assert life.get("update")["metadata"]["name"] == "sample"

    installed.kubectl("delete", "secret", *secret)
    after = life.versions()
    assert installed.undeploy() == 0
    assert life.versions() == after
    assert installed.there() == []
    assert installed.kubectl("get", "crd", *cluster.CRDS.values(), "-o", "name").stdout.count("\n") == 3


def test_undeploy_can_keep_digests_and_namespaces(installed, life, capsys):
    life.begin()
    before = life.images()
    # of what is not installed, or is by another overlay, nothing is let go
    assert installed.undeploy() == 0
    told = capsys.readouterr().out
    assert "is not installed" in told
    assert "2 objects keep a digest in place of the tag" in told and "kubesteward.core.release" in told
    assert installed.deploy(manager_image()) == 0
    installed.kubectl("set", "env", f"deployment/{installed.name}", "-n", installed.namespace, "WATCH_NAMESPACE=other")
    assert installed.undeploy() == 1
    assert "watches other, which this overlay does not say" in capsys.readouterr().err
    assert (life.images(), life.followed(), life.finalizers()) == (before, [True, True], FINALIZERS)
    installed.kubectl(
        "set", "env", f"deployment/{installed.name}", "-n", installed.namespace, f"WATCH_NAMESPACE={life.namespace}"
    )
    rival = beside(installed)
    assert installed.undeploy() == 1
    assert "rival is another operator that works on the same" in capsys.readouterr().err
    assert f"{installed.namespace}/Deployment/{installed.name}" in installed.there()
    assert (life.images(), life.finalizers()) == (before, FINALIZERS)
    installed.kubectl("scale", *rival, "--replicas=0")
    assert installed.undeploy("--keep", "digests", "--keep", "namespaces") == 0
    assert life.images() == before
    assert life.followed() == [True, True]
    assert life.of_the_team("resourcequota") == [f"resourcequota/{life.team}-quota"]
    # without it nobody could delete the Nspro once the operator is gone
    assert life.finalizers() == FINALIZERS[1:]


def test_uninstall_names_what_would_go_and_deletes_nothing_by_itself(kubectl, namespace, monkeypatch, capsys):
    shop = Shop(testbed.connect(), kubectl, namespace)
    monkeypatch.setenv("KUBECONFIG", str(shop.testbed.kubeconfig))
    shop.apply(shop.start(), shop.update())
    # what others have in this cluster would be a reason to refuse before anything is named
    monkeypatch.setattr(uninstall, "refusals", lambda _found, _operators: [])
    assert uninstall.main([]) == 0
    told = capsys.readouterr()
    assert f"  {namespace}/sample" in told.out
    assert "CONFIRM=yes" in told.out
    assert told.err == ""
    assert shop.get("start") and shop.get("update")


def test_deployments_of_starts_can_outlive_them(kubectl, namespace, monkeypatch):
    shop = Shop(testbed.connect(), kubectl, namespace)
    monkeypatch.setenv("KUBECONFIG", str(shop.testbed.kubeconfig))
    shop.push("v1")
    shop.apply(shop.start())
    shop.run("start")
    before = shop.get("deployment", "sample-sample")
    assert before["metadata"]["ownerReferences"]
    uninstall.leave_deployments([shop.get("start")])
    assert shop.list("starts") == []
    after = shop.get("deployment", "sample-sample")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]

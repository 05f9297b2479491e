# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""config/ on a real API server: accepted, its Pod restricted, and `make deploy` brings it up or says why not."""

from __future__ import annotations

import copy
import json
import time
import typing as t

import pytest
import yaml
from integration.overlays import Installation, installed, manager_image

import testbed
from hack import cluster

__all__ = ["installed"]
pytestmark = pytest.mark.usefixtures("crds")

OVERLAYS = ["config/default", "config/single-namespace", "config/samples"]
SECONDS = 30
Object = dict[str, t.Any]


@pytest.fixture(autouse=True)
def to_the_testbed(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(testbed.connect().kubeconfig))


def moved(objects: list[Object], namespace: str) -> list[Object]:
    """The same in another namespace, since a dry run makes none."""
    copies = copy.deepcopy(objects)
    for item in copies:
        if "namespace" in item["metadata"]:
            item["metadata"]["namespace"] = namespace
    return copies


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_overlay_is_accepted(kubectl, namespace, overlay):
    objects = moved(cluster.render(overlay), namespace)
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    ask = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-n", namespace]
    answer = kubectl(*ask, "-f", "-", stdin=listed)
    assert len(answer.stdout.splitlines()) == len(objects)
    # kubectl says so of what a policy would refuse
    assert "would violate PodSecurity" not in answer.stderr


def without(*path: str | int) -> t.Callable[[Object], None]:
    def change(pod: Object) -> None:
        *way, last = path
        for key in way:
            pod = pod[key]
        del pod[last]

    return change


def on_the_host(pod: Object) -> None:
    pod["volumes"][0] = {"name": "tmp", "hostPath": {"path": "/tmp"}}


CONTAINER = ("containers", 0, "securityContext")
WEAKER = {
    "privilege escalation": without(*CONTAINER, "allowPrivilegeEscalation"),
    "capabilities": without(*CONTAINER, "capabilities"),
    "any user": without("securityContext", "runAsNonRoot"),
    "any system call": without("securityContext", "seccompProfile"),
    "folder of the node": on_the_host,
}


@pytest.fixture(scope="module")
def restricted(kubectl, namespaces) -> str:
    """A namespace that admits restricted Pods only, with what the manager's Pod refers to."""
    name = namespaces()
    kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    wanted = [x for x in cluster.render("config/default") if x["kind"] in ("ServiceAccount", "ConfigMap")]
    kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": moved(wanted, name)})
    return name


def manager(restricted: str, name: str) -> Object:
    """The Deployment of the overlay, by another name; its image is nowhere, which admission does not ask."""
    (item,) = moved([cluster.manager_in(cluster.render("config/default"))], restricted)
    item["metadata"]["name"] = name
    # an operator of the whole cluster would be one that other tests may not take theirs out beside
    (watched,) = [x for x in item["spec"]["template"]["spec"]["containers"][0]["env"] if x["name"] == "WATCH_NAMESPACE"]
    watched["value"] = restricted
    for labels in (item["spec"]["selector"]["matchLabels"], item["spec"]["template"]["metadata"]["labels"]):
        labels["app.kubernetes.io/instance"] = name
    return item


def until(seen: t.Callable[[], t.Any]) -> t.Any:
    deadline = time.monotonic() + SECONDS
    while not (found := seen()):
        assert time.monotonic() < deadline, "it was not seen in time"
        time.sleep(0.5)
    return found


def failure(kubectl, restricted: str, name: str) -> str:
    """What the ReplicaSet's controller was told when it made Pods."""
    item = json.loads(kubectl("get", "deployment", name, "-n", restricted, "-o", "json").stdout)
    found = [x for x in item.get("status", {}).get("conditions", []) if x["type"] == "ReplicaFailure"]
    return found[0]["message"] if found else ""


def test_its_pod_is_admitted_where_only_restricted_ones_are(kubectl, restricted):
    applied = kubectl("apply", "-f", "-", stdin=manager(restricted, "as-it-is"))
    assert "Warning" not in applied.stderr
    pods = ["get", "pods", "-n", restricted, "-l", "app.kubernetes.io/instance=as-it-is", "-o", "name"]
    assert until(lambda: kubectl(*pods).stdout)
    assert failure(kubectl, restricted, "as-it-is") == ""


@pytest.mark.parametrize("what", WEAKER)
def test_a_weaker_pod_would_be_refused_there(kubectl, restricted, what):
    name = what.replace(" ", "-")
    item = manager(restricted, name)
    WEAKER[what](item["spec"]["template"]["spec"])
    kubectl("apply", "-f", "-", stdin=item)
    assert 'violates PodSecurity "restricted' in until(lambda: failure(kubectl, restricted, name))
    pods = kubectl("get", "pods", "-n", restricted, "-l", f"app.kubernetes.io/instance={name}", "-o", "name").stdout
    assert pods == ""


def settings(installed: Installation) -> Object:
    name = f"kubesteward-settings-{installed.suffix}"
    text = installed.kubectl("get", "configmap", name, "-n", installed.namespace, "-o", "json").stdout
    return yaml.safe_load(json.loads(text)["data"]["settings.yml"])


def image_of(installed: Installation) -> str:
    text = installed.kubectl("get", "deployment", installed.name, "-n", installed.namespace, "-o", "json").stdout
    return json.loads(text)["spec"]["template"]["spec"]["containers"][0]["image"]


def test_deploy_changes_settings_that_only_the_overlay_wrote_and_a_dry_run_says_so(installed, capsys):
    image = manager_image()
    assert installed.deploy(image) == 0
    written = yaml.safe_load((installed.folder / "kustomization.yaml").read_text())
    patch = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kubesteward-settings", "namespace": "kubesteward-system"},
        "data": {"settings.yml": "update_timeout: 5\n"},
    }
    written["patches"].append({"patch": yaml.safe_dump(patch)})
    installed.write(**written)
    capsys.readouterr()
    assert installed.deploy(image, "--dry-run") == 0
    assert f"configmap/kubesteward-settings-{installed.suffix} serverside-applied" in capsys.readouterr().out
    assert "update_timeout" not in settings(installed)
    assert installed.deploy(image) == 0
    assert settings(installed) == {"update_timeout": 5}


def test_deploy_brings_it_up_keeps_what_the_administrator_wrote_and_says_why_it_is_not_ready(installed, capsys):
    assert installed.deploy(manager_image(), "--dry-run") == 0
    assert f"{installed.namespace}/Deployment/{installed.name} would be created" in capsys.readouterr().out
    assert installed.there() == []

    assert installed.deploy(manager_image()) == 0
    assert f"{installed.name} is ready" in capsys.readouterr().out
    pods = installed.kubectl("get", "pods", "-n", installed.namespace, "-o", "json").stdout
    (running,) = json.loads(pods)["items"]

    where = ["-n", installed.namespace, "--type=merge", "-p"]
    wanted = {"data": {"settings.yml": "update_allowed_registries: [registry.example.com]\n"}}
    installed.kubectl("patch", "configmap", f"kubesteward-settings-{installed.suffix}", *where, json.dumps(wanted))
    assert installed.deploy(manager_image(), "--dry-run") == 0
    assert "stays as somebody wrote it" in capsys.readouterr().out
    # to take over fields of others is not to take back what the administrator allows
    assert installed.deploy(manager_image(runs=False), "--seconds", "15", "--force") == 1
    told = capsys.readouterr()
    assert "stays as somebody wrote it" in told.out
    assert settings(installed) == {"update_allowed_registries": ["registry.example.com"]}
    assert "is not ready after 15 s" in told.err
    assert "terminated: Error, exit 1" in told.err
    assert "can't change directory to '/www'" in told.err
    # the one that works goes on
    name = running["metadata"]["name"]
    kept = json.loads(installed.kubectl("get", "pod", name, "-n", installed.namespace, "-o", "json").stdout)
    assert "deletionTimestamp" not in kept["metadata"]
    assert kept["status"]["containerStatuses"][0]["ready"] is True


def test_deploy_takes_nothing_from_others_unless_it_is_told_to(installed, capsys):
    image = manager_image()
    assert installed.deploy(image) == 0
    where = ["-n", installed.namespace]
    installed.kubectl("set", "image", f"deployment/{installed.name}", "manager=registry.example.com/other:1", *where)
    capsys.readouterr()
    # a dry run says what the real one does
    for more in (["--dry-run"], ["--seconds", "1"]):
        assert installed.deploy(image, *more) == 1
        told = capsys.readouterr().err
        assert "conflict" in told and "FORCE=yes" in told
    assert installed.deploy(image, "--dry-run", "--force") == 0
    assert image_of(installed) == "registry.example.com/other:1"
    assert installed.deploy(image, "--force") == 0
    assert image_of(installed) == image
    installed.kubectl("set", "env", f"deployment/{installed.name}", *where, "WATCH_NAMESPACE=other")
    capsys.readouterr()
    assert installed.deploy(image, "--seconds", "1") == 1
    assert f"watches other, and would watch {installed.home}" in capsys.readouterr().err


def test_deploy_applies_nothing_where_a_kind_is_missing(installed, capsys):
    installed.add({"apiVersion": "nowhere.example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}})
    assert installed.deploy(manager_image()) == 1
    told = capsys.readouterr().err
    assert "Nothing was applied" in told and "no kind Thing of nowhere.example.com/v1" in told
    # what such an overlay has besides can be taken out all the same
    installed.kubectl("create", "namespace", installed.namespace)
    account = f"kubesteward-manager-{installed.suffix}"
    installed.kubectl("create", "serviceaccount", account, "-n", installed.namespace)
    assert installed.undeploy() == 0
    assert installed.kubectl("get", "namespace", installed.namespace, "--ignore-not-found").stdout == ""

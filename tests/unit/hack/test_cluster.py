# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people are told who have no cluster, no kubectl or no tool that builds images; what an overlay really makes."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from hack import cluster
from hack.cluster import StopError


def test_who_names_no_cluster_is_told_so_once(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(StopError) as caught:
        cluster.kubectl("--server=http://127.0.0.1:1", "get", "namespaces")
    first, reason, remedy = str(caught.value).splitlines()
    assert first.endswith("get namespaces failed:")
    assert reason.startswith("The connection to the server 127.0.0.1:1 was refused")
    assert remedy.startswith("Point KUBECONFIG to the cluster")


@pytest.mark.parametrize(
    "text",
    [
        'Error from server (Forbidden): namespaces is forbidden: User "x" cannot list resource',
        'E1130 16:48:14.213601   27145 run.go:72] "command failed" err="must build at directory"',
        'E1130 16:48:09.403492   27020 memcache.go:265] "Unhandled Error" err="and nothing else"',
    ],
)
def test_other_words_stay_as_they_are(text):
    assert cluster.words(f"{text}\n") == text


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["install"], "no kubectl on PATH"),
        (["deploy"], "no kubectl on PATH"),
        (["image"], "No docker, podman or buildah on PATH"),
        (["image", "CONTAINER_TOOL=nerdctl --debug"], "no nerdctl on PATH"),
        (["run"], "ansible-operator is not on PATH"),
    ],
)
def test_a_program_that_is_missing_is_named(pytestconfig, tmp_path, target, message):
    # what these targets need is there already
    old = [word for name in ("build", ".cache/setup.stamp") for word in ("-o", name)]
    done = subprocess.run(
        [shutil.which("make"), *old, *target],
        cwd=pytestconfig.rootpath,
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert message in done.stderr


def test_an_operator_on_this_machine_opens_no_port_to_others_and_takes_more_flags(pytestconfig):
    variables = [f"ANSIBLE_OPERATOR={shutil.which('echo')}", "RUN_FLAGS=--ansible-args='-e @/a b.yml'"]
    command = ["make", "--silent", "-o", ".cache/setup.stamp", "run", *variables]
    done = subprocess.run(command, cwd=pytestconfig.rootpath, capture_output=True, text=True, timeout=60, check=True)
    flags = done.stdout.split()
    assert {flag for flag in flags if "bind-address" in flag} == {
        "--metrics-bind-address=127.0.0.1:8443",
        "--health-probe-bind-address=127.0.0.1:6789",
    }
    assert done.stdout.strip().endswith("--ansible-args=-e @/a b.yml")


def test_what_is_in_no_namespace_stays_so_in_an_overlay_with_one(tmp_path):
    folders = [os.path.relpath(cluster.ROOT / folder, tmp_path) for folder in ("config/admission", "config/manager")]
    (tmp_path / "kustomization.yaml").write_text(f"namespace: other\nresources: {folders}\n")
    objects = cluster.render(str(tmp_path))
    inside = {item["kind"] for item in objects if cluster.name_of(item).namespace == "other"}
    assert inside == {"ServiceAccount", "RoleBinding", "ConfigMap", "Service", "Deployment"}
    assert len([item for item in objects if item["kind"].startswith("ValidatingAdmission")]) == 2

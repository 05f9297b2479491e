# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed import binaries, packages, settings
from testbed.errors import TestbedError

MODULE = binaries.CRANE


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_program_in_the_cache_needs_no_go(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(binaries.shutil, "which", lambda *_args, **_options: None)
    path = put(tmp_path / MODULE.key / "crane")
    assert binaries.program_of(MODULE, "crane", tmp_path) == path


def test_without_go_the_remedy_is_named_and_nothing_is_made(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(binaries.shutil, "which", lambda *_args, **_options: None)
    with pytest.raises(TestbedError, match=r"install Go 1.25 or newer"):
        binaries.program_of(MODULE, "crane", tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_an_old_go_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(binaries.shutil, "which", lambda *_args, **_options: "/go")
    answer = SimpleNamespace(stdout="go version go1.19.8 linux/amd64", returncode=0)
    monkeypatch.setattr(binaries.subprocess, "run", lambda *_args, **_options: answer)
    with pytest.raises(TestbedError, match=r"go1.19.8 linux/amd64 is too old"):
        binaries.program_of(MODULE, "crane", tmp_path)


def test_a_failed_build_leaves_no_program(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(binaries, "_go", lambda: "/go")
    answer = SimpleNamespace(stderr="dial tcp: no route", returncode=1)
    monkeypatch.setattr(binaries.subprocess, "run", lambda *_args, **_options: answer)
    with pytest.raises(TestbedError, match="no route"):
        binaries.program_of(MODULE, "crane", tmp_path)
    assert not (tmp_path / MODULE.key / "crane").exists()


def test_what_is_missing_is_built_by_one_command_and_what_is_there_is_not(tmp_path: Path, monkeypatch) -> None:
    module = binaries.KUBERNETES
    put(tmp_path / module.key / "kubelet")
    commands = []

    def build(command, **_options):
        commands.append(command)
        for package in command[command.index("-o") + 2 :]:
            put(Path(command[command.index("-o") + 1]) / package.rpartition("/")[2])
        return SimpleNamespace(stderr="", returncode=0)

    monkeypatch.setattr(binaries, "_go", lambda: "/go")
    monkeypatch.setattr(binaries.subprocess, "run", build)
    for _again in range(2):
        found = binaries.programs_of(module, list(module.packages), tmp_path)
    assert all(path.exists() for path in found.values())
    (command,) = commands
    assert [part for part in command if part.startswith("k8s.io/kubernetes/cmd/")] == [
        module.packages[name] for name in module.packages if name != "kubelet"
    ]


def test_kubebuilder_assets_take_the_place_of_built_ones(tmp_path: Path) -> None:
    assets = {name: put(tmp_path / "assets" / name) for name in ("kube-apiserver", "etcd")}
    cache = tmp_path / "cache" / "kubesteward"
    for program in binaries.KUBERNETES.packages:
        if program != "kube-apiserver":
            put(cache / binaries.KUBERNETES.key / program)
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    found = binaries.kubernetes_programs(settings.from_environment(environ))
    assert {name: found[name] for name in assets} == assets
    assert found["kubelet"] == cache / binaries.KUBERNETES.key / "kubelet"


def test_incomplete_kubebuilder_assets_are_named(tmp_path: Path) -> None:
    put(tmp_path / "etcd")
    found = settings.from_environment({"KUBEBUILDER_ASSETS": str(tmp_path)})
    with pytest.raises(TestbedError, match=f"{tmp_path}/kube-apiserver cannot be run"):
        binaries.assets(found)


def test_missing_programs_name_their_packages_but_not_those_given(monkeypatch) -> None:
    monkeypatch.setattr(packages, "find", lambda program: None if program in ("etcd", "ipset") else Path(program))
    assert packages.missing() == ["etcd-server", "ipset"]
    assert packages.missing(["etcd"]) == ["ipset"]


def test_without_apt_the_packages_are_named(monkeypatch) -> None:
    monkeypatch.setattr(packages.shutil, "which", lambda *_args, **_options: None)
    with pytest.raises(TestbedError, match="ipset runc"):
        packages.install(["ipset", "runc"])


def test_services_are_kept_from_starting_only_while_installing(tmp_path: Path, monkeypatch) -> None:
    policy = tmp_path / "policy-rc.d"
    seen = []
    monkeypatch.setattr(packages, "POLICY", policy)
    monkeypatch.setattr(packages, "_apt", lambda *arguments: seen.append((arguments[1], policy.exists())))
    monkeypatch.setattr(packages, "_disable_services", lambda units: seen.append(("disable", units)))
    monkeypatch.setattr(packages.shutil, "which", lambda *_args, **_options: "/usr/bin/apt-get")
    packages.install(["ipset", "containerd"])
    assert seen == [("update", True), ("install", True), ("disable", ["containerd"])]
    assert not policy.exists()

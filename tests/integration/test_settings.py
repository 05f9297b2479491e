# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings' ConfigMap as every pass gets it: by --ansible-args of the manager, through the real ansible-runner."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import typing as t
from pathlib import Path

import pytest
from integration.nspro_story import nspro
from integration.operator_passes import Operator, extra_vars
from integration.passes import ROOT, Shop

import testbed
from hack import cluster

RUN_SECONDS = 120
TELL = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "TOLD {{ [update_allowed_registries, update_verification_seconds, ansible_operator_meta.name] | to_json }}"
"""


@pytest.fixture(scope="module")
def arguments() -> str:
    """What the Deployment hands to each run, with the file where the test has it."""
    (container,) = cluster.manager_in(cluster.render("config/default"))["spec"]["template"]["spec"]["containers"]
    flag = "--ansible-args="
    (found,) = [item.removeprefix(flag) for item in container["args"] if item.startswith(flag)]
    return found


def run(folder: Path, arguments: str, settings: str, **spec: t.Any) -> subprocess.CompletedProcess[str]:
    """One run as the operator makes it for an Update with that spec, even one that no schema would let through."""
    (folder / "settings.yml").write_text(settings)
    watch = {"group": "g", "kind": "Update", "markUnsafe": True, "snakeCaseParameters": False}
    resource = {"metadata": {"name": "sample", "namespace": "shop"}, "spec": spec}
    files = {
        "env/cmdline": arguments.replace("/etc/kubesteward/settings.yml", shlex.quote(str(folder / "settings.yml"))),
        "env/extravars": json.dumps(extra_vars(resource, watch)),
        "env/settings": "{}",
        "inventory/hosts": "localhost ansible_connection=local",
        "project/playbook.yaml": TELL,
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    bin_folder = ROOT / ".venv/bin"
    return subprocess.run(
        [str(bin_folder / "ansible-runner"), "run", str(folder), "-p", "playbook.yaml", "-i", "pass"],
        cwd=folder,
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def told(done: subprocess.CompletedProcess[str]) -> list[t.Any]:
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if "TOLD" in line)
    return json.loads(json.loads(line.partition(": ")[2]).removeprefix("TOLD "))


def test_settings_reach_a_pass_beside_what_the_resource_says(tmp_path, arguments):
    settings = "update_allowed_registries: [registry.example.com]\nupdate_verification_seconds: 90\n"
    done = run(tmp_path, arguments, settings, suspend=True)
    assert told(done) == [["registry.example.com"], 90, "sample"]


def test_only_the_schema_keeps_a_resource_from_a_setting(tmp_path, arguments):
    # why no key of a schema may be the name of a setting: see the unit tests of config/
    settings = "update_allowed_registries: [a]\nupdate_verification_seconds: 90\n"
    done = run(tmp_path, arguments, settings, update_allowed_registries=["b"])
    assert told(done)[:2] == [["b"], 90]


@pytest.mark.parametrize("settings", ["", "update_registries: ["])
def test_settings_that_are_no_mapping_end_a_pass_before_it_begins(tmp_path, arguments, settings):
    done = run(tmp_path, arguments, settings)
    assert done.returncode != 0
    assert "settings.yml" in done.stdout
    assert "TOLD" not in done.stdout


def test_names_that_the_administrator_reserves_are_reserved_beside_the_operators_own(
    kubectl, namespace, tmp_path, crds
):
    shop = Shop(testbed.connect(), kubectl, namespace)
    names = ["kubesteward-system", f"held-{namespace}"]
    with Operator(shop, tmp_path, settings={"nspro_reserved": ["held-*"]}) as operator:
        for name in names:
            shop.apply(nspro(namespace, name))
            operator.pass_of("Nspro", name)
    assert [shop.get("nspro", name)["status"]["phase"] for name in names] == ["Reserved", "Reserved"]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each Molecule scenario is a test. Each has namespaces of its own, so they run side by side with everything else."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from pytest_ansible.molecule import MoleculeScenario

import testbed

ROOT = Path(__file__).resolve().parents[2]


def scenarios():
    """One parameter for every folder below `molecule` that is a scenario."""
    names = sorted(path.parent.name for path in ROOT.glob("molecule/*/molecule.yml"))
    return [pytest.param(MoleculeScenario(name, ROOT, name), marks=marks(name), id=name) for name in names]


def marks(name):
    found = []
    if name == "operator":
        missing = not shutil.which(os.environ.get("ANSIBLE_OPERATOR") or "ansible-operator")
        reason = "molecule operator: ansible-operator is neither on PATH nor named by ANSIBLE_OPERATOR"
        found.append(pytest.mark.skipif(missing, reason=reason))
    return found


@pytest.fixture
def environment(monkeypatch, request, molecule_scenario):
    """What `make molecule` gives to Molecule."""
    if molecule_scenario.name == "isolation":
        # the only one that asks who reaches whom
        request.getfixturevalue("network_policies")
    monkeypatch.setenv("KUBECONFIG", str(testbed.connect().kubeconfig))
    # in a collection Molecule would look into extensions/ alone
    monkeypatch.setenv("MOLECULE_GLOB", "molecule/*/molecule.yml")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / '.cache/collections'}{os.pathsep}{ROOT / 'tests'}")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("molecule_scenario", scenarios())
def test_scenario(molecule_scenario):
    assert molecule_scenario.test().returncode == 0

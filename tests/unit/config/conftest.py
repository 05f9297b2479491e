# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository's own files, read once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture(scope="session")
def root(pytestconfig) -> Path:
    return pytestconfig.rootpath


@pytest.fixture(scope="session")
def crds(root) -> dict[str, dict]:
    """CustomResourceDefinitions by kind."""
    loaded = [yaml.safe_load(path.read_text()) for path in sorted((root / "config/crd/bases").glob("*.yaml"))]
    return {crd["spec"]["names"]["kind"]: crd for crd in loaded}


@pytest.fixture(scope="session")
def schemas(crds) -> dict[str, dict]:
    """The schema of each kind's only version."""
    return {kind: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for kind, crd in crds.items()}


@pytest.fixture(scope="session")
def watches(root) -> dict[str, dict]:
    """Watches by kind."""
    return {watch["kind"]: watch for watch in yaml.safe_load((root / "watches.yaml").read_text())}


@pytest.fixture(scope="session")
def rendered(root) -> Callable[[str], list[dict[str, Any]]]:
    """Objects that `kubectl kustomize` makes of a folder, each folder rendered once."""
    known: dict[str, list[dict[str, Any]]] = {}

    def render(folder: str) -> list[dict[str, Any]]:
        if folder not in known:
            command = ["kubectl", "kustomize", str(root / folder)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            known[folder] = list(yaml.safe_load_all(done.stdout))
        return known[folder]

    return render

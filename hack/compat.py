#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the unit tests and the tests of direct execution with the oldest and the newest Ansible that are supported.

Each has a Python of its own, so that these tests run once with every Python beside that of `make unit`. Property
tests get few examples here: many are for `make unit`, since what they look for is not in Ansible.
Each combination needs its Python, on PATH or under pyenv; one that is not there is named and not run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".cache" / "compat"
TOOLS = (
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "trustme",
    "cryptography",
    "jsonpatch",
    "jsonschema",
    "PyYAML",
    "ansible-runner==2.4.*",
)
TESTS = ("tests/unit/plugins", "tests/integration/test_direct.py")
INSTALL_SECONDS, TEST_SECONDS = 600, 900


@dataclass(frozen=True)
class Combination:
    """A Python and what is installed beside the test tools."""

    name: str
    python: str
    packages: tuple[str, ...]


COMBINATIONS = (
    # what the operator's base image has
    Combination("oldest", "3.12", ("ansible-core==2.18.*", "kubernetes==33.*", "requests==2.32.*")),
    Combination("newest", "3.13", ("ansible-core", "kubernetes!=36.0.0", "requests")),
)


def find_python(version: str) -> Path | None:
    """An interpreter of that version which runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(f"python{version}")
    candidates = [
        *([Path(on_path)] if on_path else []),
        *sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True),
    ]
    for candidate in candidates:
        works = subprocess.run([candidate, "-c", "import ensurepip"], capture_output=True, timeout=30, check=False)
        if works.returncode == 0:
            return candidate
    return None


def prepare(combination: Combination, python: Path) -> Path:
    """The virtual environment, made anew where its packages changed."""
    packages = (*combination.packages, *TOOLS)
    key = hashlib.sha256(repr((str(python), packages)).encode()).hexdigest()
    venv = VENVS / combination.name
    stamp = venv / "packages.sha256"
    if not stamp.is_file() or stamp.read_text() != key:
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([python, "-m", "venv", venv], check=True, timeout=INSTALL_SECONDS)
        pip = [str(venv / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, *packages], check=True, timeout=INSTALL_SECONDS)
        stamp.write_text(key)
    return venv


def run(combination: Combination, python: Path) -> bool:
    """True where every test passed."""
    try:
        venv = prepare(combination, python)
        version = subprocess.run(
            [venv / "bin/ansible", "--version"], capture_output=True, text=True, timeout=60, check=False
        ).stdout.partition("\n")[0]
        print(f"-- {combination.name}: Python {combination.python}, {version}", flush=True)
        environment = {**os.environ, "PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}
        # many of them wait for a time-out
        options = ("-q", "-m", "not long", "--numprocesses=2", "--hypothesis-profile=few", "-p", "no:cacheprovider")
        command = [str(venv / "bin/python"), "-m", "pytest", *options, *TESTS]
        return subprocess.run(command, cwd=ROOT, env=environment, timeout=TEST_SECONDS, check=False).returncode == 0
    except subprocess.TimeoutExpired as exc:
        print(f"-- {combination.name}: given up after {exc.timeout:.0f} s: {exc.cmd}", flush=True)
        return False


def main() -> int:
    found = {combination: find_python(combination.python) for combination in COMBINATIONS}
    # one after the other: tests of time-outs and deadlines do not bear a machine that two of them fill
    failed = [combination for combination, python in found.items() if python and not run(combination, python)]
    for combination in (combination for combination, python in found.items() if python is None):
        reason = f"there is no Python {combination.python} on PATH or under pyenv"
        print(f"SKIPPED [1] hack/compat.py: {combination.name}: {reason}")
    for combination in failed:
        print(f"failed: {combination.name}")
    return int(bool(failed) or not any(found.values()))


if __name__ == "__main__":
    sys.exit(main())

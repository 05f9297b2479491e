#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the unit tests and the tests of direct execution with the oldest and the newest Ansible that are supported.

Both run at the same time, each with a Python of its own, so that these tests run once with every Python beside that of
`make unit`. Property tests get few examples here: many are for `make unit`, since what they look for is not in Ansible.
Each combination needs its Python, on PATH or under pyenv; one that is not there is named and not run.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

Done = subprocess.CompletedProcess[str]

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".cache" / "compat"
TOOLS = (
    "pytest",
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


def run(combination: Combination, python: Path) -> tuple[bool, str]:
    """Whether every test passed, and what was said."""
    try:
        venv = prepare(combination, python)
        version = _output([venv / "bin/ansible", "--version"], 60).stdout.partition("\n")[0]
        environment = {**os.environ, "PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}
        # the caches of both would be one
        options = ("-q", "-m", "not long", "--hypothesis-profile=few", "-p", "no:cacheprovider")
        done = _output([venv / "bin/python", "-m", "pytest", *options, *TESTS], TEST_SECONDS, environment)
    except subprocess.TimeoutExpired as exc:
        return False, f"-- {combination.name}: given up after {exc.timeout:.0f} s: {exc.cmd}"
    head = f"-- {combination.name}: Python {combination.python}, {version}"
    return done.returncode == 0, f"{head}\n{done.stdout}"


def _output(command: list[Path | str], seconds: float, environ: dict[str, str] | None = None) -> Done:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )


def main() -> int:
    found = {combination: find_python(combination.python) for combination in COMBINATIONS}
    failed = []
    # one after the other: tests of time-outs and deadlines do not bear a machine that two of them fill
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = {
            pool.submit(run, combination, python): combination for combination, python in found.items() if python
        }
        for future in concurrent.futures.as_completed(running):
            passed, text = future.result()
            print(text, flush=True)
            if not passed:
                failed.append(running[future])
    for combination in (combination for combination, python in found.items() if python is None):
        reason = f"there is no Python {combination.python} on PATH or under pyenv"
        print(f"SKIPPED [1] hack/compat.py: {combination.name}: {reason}")
    for combination in failed:
        print(f"failed: {combination.name}")
    return int(bool(failed) or not any(found.values()))


if __name__ == "__main__":
    sys.exit(main())

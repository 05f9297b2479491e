#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare a checkout for work: `.venv` with every tool, and `.cache/collections` with kubernetes.core and a link to us.

Runs with the standard library alone. A second run with the same requirement files changes nothing and returns at once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
COLLECTIONS = ROOT / ".cache" / "collections"
KUBERNETES_CORE = COLLECTIONS / "ansible_collections" / "kubernetes" / "core"
SELF = COLLECTIONS / "ansible_collections" / "kubesteward" / "core"
STAMP = ROOT / ".cache" / "setup.stamp"
INPUTS = ("hack/setup.py", "requirements.txt", "tests/requirements.txt")

OLDEST, NEWEST = (3, 11), (3, 13)
# One version wherever it comes from, which is the image's too: the Python package carries the same.
KUBERNETES_CORE_VERSION = "6.2.0"
COMMUNITY_PACKAGE = "ansible==12.3.0"
INSTALL_SECONDS, GALAXY_SECONDS, GALAXY_ANSWER_SECONDS = 1500, 300, 5

# Asks the Galaxy server that ansible.cfg or the environment name, so that a proxy or a private Galaxy counts too.
GALAXY_ANSWERS = f"""
import urllib.request
from ansible import constants
urllib.request.urlopen(constants.GALAXY_SERVER, timeout={GALAXY_ANSWER_SECONDS - 1}).close()
"""


def main() -> None:
    """Do what is missing; exit with a message that names the remedy where that is impossible."""
    check_python()
    fingerprint = wanted()
    if STAMP.is_file() and STAMP.read_text() == fingerprint and is_complete():
        return
    STAMP.unlink(missing_ok=True)
    STAMP.parent.mkdir(exist_ok=True)
    make_environment()
    link_checkout()
    get_kubernetes_core()
    STAMP.write_text(fingerprint)
    say("ready: .venv and .cache/collections")


def check_python() -> None:
    version = sys.version_info[:2]
    if not OLDEST <= version <= NEWEST:
        stop(
            f"{sys.executable} is Python {version[0]}.{version[1]}; 3.{OLDEST[1]} to 3.{NEWEST[1]} are supported. "
            "Name another one: make setup PYTHON=python3.12"
        )


def wanted() -> str:
    """A fingerprint of all that decides what the environment holds; the checkout's place, since links are absolute."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}".encode())
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def is_complete() -> bool:
    return (VENV / "bin" / "ansible-playbook").is_file() and KUBERNETES_CORE.is_dir() and SELF.is_dir()


def make_environment() -> None:
    """A fresh `.venv`: an environment of another Python, or one that was moved, cannot be mended in place."""
    say(f"creating .venv with Python {sys.version.split()[0]}")
    shutil.rmtree(VENV, ignore_errors=True)
    # `python3` may be the one of the very environment that is about to be replaced.
    python = getattr(sys, "_base_executable", sys.executable)
    run([python, "-m", "venv", str(VENV)], 120, "Install Python's venv (Debian: apt-get install python3-venv).")
    say("installing tests/requirements.txt")
    run(
        [*pip(), "install", "--quiet", "--requirement", "tests/requirements.txt"],
        INSTALL_SECONDS,
        "Check that a Python package index answers (pip config list shows which one is asked).",
    )


def link_checkout() -> None:
    """Ansible and Python find a collection by its place only, so the checkout gets that place by a link."""
    SELF.parent.mkdir(parents=True, exist_ok=True)
    if SELF.is_symlink():
        SELF.unlink()
    SELF.symlink_to(ROOT, target_is_directory=True)


def get_kubernetes_core() -> None:
    shutil.rmtree(KUBERNETES_CORE, ignore_errors=True)
    if galaxy_answers():
        say(f"installing kubernetes.core {KUBERNETES_CORE_VERSION} from Galaxy")
        command = [str(VENV / "bin" / "ansible-galaxy"), "collection", "install", "--collections-path"]
        run(
            [*command, str(COLLECTIONS), f"kubernetes.core:=={KUBERNETES_CORE_VERSION}"],
            GALAXY_SECONDS,
            "Check the Galaxy server of ansible.cfg.",
        )
    else:
        say(f"Galaxy does not answer: taking kubernetes.core out of the package {COMMUNITY_PACKAGE}")
        unpack_from_community_package()
    if not (KUBERNETES_CORE / "MANIFEST.json").is_file():
        stop(f"kubernetes.core did not arrive in {KUBERNETES_CORE.relative_to(ROOT)}")


def galaxy_answers() -> bool:
    try:
        probe = subprocess.run(
            [str(VENV / "bin" / "python"), "-c", GALAXY_ANSWERS],
            cwd=ROOT,
            capture_output=True,
            timeout=GALAXY_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return probe.returncode == 0


def unpack_from_community_package() -> None:
    inside = "ansible_collections/kubernetes/core/"
    with tempfile.TemporaryDirectory(dir=STAMP.parent) as folder:
        run(
            [*pip(), "download", "--quiet", "--no-deps", "--dest", folder, COMMUNITY_PACKAGE],
            INSTALL_SECONDS,
            "Neither Galaxy nor a Python package index answers: put kubernetes.core into .cache/collections by hand.",
        )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(COLLECTIONS, [name for name in archive.namelist() if name.startswith(inside)])


def pip() -> list[str]:
    return [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]


def run(command: list[str], seconds: int, remedy: str) -> None:
    """Run in the checkout with its output shown; stop with the remedy when it fails or takes too long."""
    try:
        code = subprocess.run(command, cwd=ROOT, timeout=seconds, stdin=subprocess.DEVNULL, check=False).returncode
    except subprocess.TimeoutExpired:
        stop(f"no end after {seconds} s: {' '.join(command)}\n{remedy}")
    if code:
        stop(f"exit {code} of: {' '.join(command)}\n{remedy}")


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def stop(text: str) -> None:
    sys.exit(f"setup: {text}")


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main()

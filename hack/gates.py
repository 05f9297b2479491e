#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the collection as it is built with the tools that Ansible's registries use: sanity, galaxy or docs.

Each gate builds and unpacks for itself below `.cache/gates`, so that several may run at once; HOME is there too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
CACHE = ROOT / ".cache" / "gates"
INSTALLED = ROOT / ".cache" / "collections" / "ansible_collections" / "kubernetes"
SECONDS = 900
#: pep8 and changelog are ruff's and antsibull-changelog's; import asks that no file needs a library to be imported,
#: which the files that talk to registries, imported where they are used, are not written for
SKIPPED = ("changelog", "import", "pep8")
#: instead of one that is fetched from a host which a proxy may not let through
GET_PIP = "import ensurepip\nensurepip.bootstrap(upgrade=True)\n"
IMPORTER = "[galaxy-importer]\nrun_ansible_lint = false\ncheck_required_tags = true\n"
TROUBLE = re.compile(r"^(ERROR|WARNING|FATAL|CRITICAL|Traceback)")


class GateError(Exception):
    """A tool could not be run, in words for people."""


def main(arguments: list[str]) -> int:
    gates = {"sanity": sanity, "galaxy": galaxy, "docs": docs}
    if len(arguments) != 1 or arguments[0] not in gates:
        print(f"usage: gates.py {'|'.join(gates)}", file=sys.stderr)
        return 2
    name, began = arguments[0], time.monotonic()
    try:
        problems = gates[name](CACHE / name)
    except (GateError, subprocess.TimeoutExpired) as exc:
        problems = str(exc)
    if problems:
        print(problems)
    print(f"lint-{name}: {'FAILED' if problems else 'passed'} in {time.monotonic() - began:.0f} s")
    return int(bool(problems))


def sanity(folder: Path) -> str:
    """What `ansible-test sanity` says of the collection; empty where it finds nothing."""
    collection = unpack(folder, build(folder))
    cache = folder / "home" / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / f"get_pip_{pip_version().replace('.', '_')}.py").write_text(GET_PIP)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    skipped = [argument for name in SKIPPED for argument in ("--skip-test", name)]
    command = [str(BIN / "ansible-test"), "sanity", "--color", "no", "--python", version, *skipped]
    code, text = call(command, collection, folder)
    return lines(text, "plugins|roles|ERROR|FATAL") if code else ""


def galaxy(folder: Path) -> str:
    """Errors and warnings of the importer that Galaxy runs on what is uploaded."""
    archive = build(folder)
    settings = folder / "importer.cfg"
    settings.write_text(IMPORTER)
    command = [str(BIN / "python"), "-m", "galaxy_importer.main", str(archive)]
    # the importer names its own folder of collections; what PYTHONPATH has is found besides
    paths = {"GALAXY_IMPORTER_CONFIG": str(settings), "PYTHONPATH": str(beside(folder))}
    code, text = call(command, folder, folder, **paths)
    found = "\n".join(line for line in text.splitlines() if TROUBLE.match(line))
    return found or (text if code else "")


def docs(folder: Path) -> str:
    """What antsibull-docs, which makes the pages of docs.ansible.com, says of the plugins' and roles' documentation."""
    collection = unpack(folder, build(folder))
    options = ["--plugin-docs", "--skip-rstcheck", "--validate-collection-refs", "dependent"]
    # references to other collections are kubernetes.core's own, in the fragment that ours include
    command = [str(BIN / "antsibull-docs"), "lint-collection-docs", *options, "."]
    paths = {"ANSIBLE_COLLECTIONS_PATH": str(folder / "tree")}
    code, text = call(command, collection, folder, **paths)
    return text if code else ""


def build(folder: Path) -> Path:
    """The collection's archive, built anew."""
    output = folder / "dist"
    shutil.rmtree(output, ignore_errors=True)
    run([str(BIN / "ansible-galaxy"), "collection", "build", "--output-path", str(output)], ROOT, folder)
    (archive,) = output.glob("*.tar.gz")
    return archive


def unpack(folder: Path, archive: Path) -> Path:
    """The collection's folder in a tree of its own, with kubernetes.core beside it."""
    tree = beside(folder) / "ansible_collections"
    collection = tree / "kubesteward" / "core"
    collection.mkdir(parents=True)
    with tarfile.open(archive) as opened:
        opened.extractall(collection, filter="data")
    # both tools look at the files that git knows: none, where the checkout's .gitignore is what counts
    for place in (collection, tree / "kubernetes" / "core"):
        run(["git", "init", "--quiet"], place, folder)
        run(["git", "add", "--all", "--force"], place, folder)
    return collection


def beside(folder: Path) -> Path:
    """A new tree with kubernetes.core alone."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(INSTALLED, tree / "ansible_collections" / "kubernetes")
    return tree


def pip_version() -> str:
    """The pip that ansible-test wants for its virtual environments."""
    (source,) = ROOT.glob(".venv/lib/*/site-packages/ansible_test/_internal/python_requirements.py")
    found = re.search(r"\bpip='([0-9.]+)'", source.read_text())
    if not found:
        raise GateError(f"{source} names no version of pip any more; mend hack/gates.py.")
    return found[1]


def lines(text: str, wanted: str) -> str:
    return "\n".join(line for line in text.splitlines() if re.match(wanted, line)) or text


def run(command: list[str], folder: Path, home: Path) -> None:
    """:raises GateError: it fails."""
    code, text = call(command, folder, home)
    if code:
        raise GateError(f"{' '.join(command)} failed:\n{text}")


def call(command: list[str], folder: Path, home: Path, **more: str) -> tuple[int, str]:
    """Exit code, and what was printed to both streams."""
    (home / "home").mkdir(parents=True, exist_ok=True)
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "KUBECONFIG")}
    environment = {**clean, "HOME": str(home / "home"), "PATH": f"{BIN}:{os.environ['PATH']}", **more}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    # one that was killed says nothing
    silent = f"{Path(command[0]).name} ended with {done.returncode} and without a word"
    return done.returncode, done.stdout.strip() or (silent if done.returncode else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

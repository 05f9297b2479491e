#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the Python packages that the base image lacks, at the versions and checksums of a lock, into a folder.

Runs while the image is built, with the base image's Python. What is there already is neither upgraded nor downgraded:
where it is too old the build stops. ansible-operator's own base image lacks nothing, so nothing is fetched there.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

INSTALL_SECONDS = 600
Find = Callable[[str], metadata.Distribution | None]


def walk(requirements: Iterable[str], find: Find) -> tuple[list[str], list[str]]:
    """Names that are not installed, and sentences on what does not fit, the requirements of requirements too."""
    absent, wrong, seen = [], [], set()
    queue = list(requirements)
    while queue:
        requirement = Requirement(queue.pop(0))
        name = canonicalize_name(requirement.name)
        if (requirement.marker and not requirement.marker.evaluate({"extra": ""})) or str(requirement) in seen:
            continue
        seen.add(str(requirement))
        found = find(name)
        if found is None:
            absent.append(name)
        elif not requirement.specifier.contains(found.version, prereleases=True):
            wrong.append(f"{name} is {found.version}, needed is {requirement.specifier}")
        else:
            queue.extend(found.requires or [])
    return list(dict.fromkeys(absent)), wrong


def entries(lock: str) -> dict[str, str]:
    """Package name to its lines of the lock, checksums included."""
    found: dict[str, str] = {}
    name = ""
    for line in lock.splitlines(keepends=True):
        if start := re.match(r"([A-Za-z0-9._-]+)==", line):
            name = canonicalize_name(start[1])
            found[name] = line
        elif line.startswith(" ") and name:
            found[name] += line
    return found


def lines(text: str) -> list[str]:
    """The requirements of a requirements file, without comments."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def finder(folder: Path | None = None) -> Find:
    """Looks into the Python that runs, and below the folder that was installed to."""
    added = [str(path) for path in folder.rglob("*-packages")] if folder else []

    def find(name: str) -> metadata.Distribution | None:
        return next(iter(metadata.distributions(name=name, path=[*added, *sys.path])), None)

    return find


def install(text: str, folder: Path) -> None:
    """Have pip put exactly these into the folder, without bytecode, which would be tied to times that change."""
    with tempfile.TemporaryDirectory() as temporary:
        chosen = Path(temporary) / "chosen.txt"
        chosen.write_text(text)
        subprocess.run(
            [
                *pip(Path(temporary) / "venv"),
                *(
                    "install",
                    "--no-cache-dir",
                    "--no-deps",
                    "--require-hashes",
                    "--only-binary",
                    ":all:",
                    "--no-compile",
                ),
                *("--disable-pip-version-check", "--root-user-action", "ignore", "--root", str(folder)),
                *("--requirement", str(chosen)),
            ],
            check=True,
            timeout=INSTALL_SECONDS,
        )


def pip(temporary: Path) -> Sequence[str]:
    """The command of a pip: the base image's own, or one of a virtual environment that is thrown away."""
    if importlib.util.find_spec("pip"):
        return (sys.executable, "-m", "pip")
    subprocess.run([sys.executable, "-m", "venv", str(temporary)], check=True, timeout=INSTALL_SECONDS)
    return (str(temporary / "bin/python"), "-m", "pip", "--python", sys.executable)


def main(requirements: Path, lock: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    needed = lines(requirements.read_text())
    absent, wrong = walk(needed, finder())
    if not wrong and absent:
        print(f"the base image lacks {', '.join(absent)}", flush=True)
        find = finder()
        install("".join(text for name, text in entries(lock.read_text()).items() if find(name) is None), folder)
        absent, wrong = walk(needed, finder(folder))
        wrong += [f"{name} is missing in {lock.name}" for name in absent]
    if wrong:
        sys.exit(f"The base image does not fit: {'; '.join(wrong)}. Take another one: make image BASE_IMAGE=...")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

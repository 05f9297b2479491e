# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users receive: the built collection, the image's recipe, and one version and one requirement everywhere."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

FOR_USERS = (
    "CHANGELOG.md",
    "FILES.json",
    "LICENSE",
    "MANIFEST.json",
    "README.md",
    "changelogs/changelog.yaml",
    "changelogs/config.yaml",
    "changelogs/fragments/*",
    "config/*",
    "docs/*",
    "meta/*",
    "playbooks/*",
    "plugins/*",
    "requirements.txt",
    "requirements.yml",
    "roles/*",
)


@pytest.fixture(scope="module")
def galaxy(root) -> dict:
    return yaml.safe_load((root / "galaxy.yml").read_text())


@pytest.fixture(scope="module")
def built(root, tmp_path_factory) -> set[str]:
    """Names of the files in the collection that `ansible-galaxy collection build` makes."""
    folder = tmp_path_factory.mktemp("dist")
    command = [Path(sys.executable).with_name("ansible-galaxy"), "collection", "build", "--output-path", folder, root]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (archive,) = folder.glob("kubesteward-core-*.tar.gz")
    with tarfile.open(archive) as opened:
        return {member.name for member in opened.getmembers() if member.isfile()}


def test_built_collection_holds_what_users_need(root, built):
    tracked = {str(path.relative_to(root)) for path in (root / "plugins").rglob("*.py")}
    tracked |= {str(path.relative_to(root)) for path in (root / "config").rglob("*.yaml")}
    tracked |= {str(path.relative_to(root)) for name in ("playbooks", "roles") for path in (root / name).rglob("*.yml")}
    assert tracked - built == set()
    assert built >= {"playbooks/nspro.yml", "playbooks/release.yml", "playbooks/start.yml", "playbooks/update.yml"}
    assert built >= {"LICENSE", "README.md", "CHANGELOG.md", "meta/runtime.yml", "meta/execution-environment.yml"}


def test_built_collection_holds_nothing_else(built):
    assert {name for name in built if not any(fnmatch.fnmatch(name, pattern) for pattern in FOR_USERS)} == set()
    assert {name for name in built if "__pycache__" in name or name.endswith(".pyc")} == set()


def test_one_version_everywhere(root, galaxy):
    version = galaxy["version"]
    changelog = yaml.safe_load((root / "changelogs/changelog.yaml").read_text())
    assert version in changelog["releases"]
    assert re.search(rf"^IMG \?= \S+:{re.escape(version)}$", (root / "Makefile").read_text(), re.MULTILINE)


def test_one_requirement_everywhere(root, galaxy):
    required = yaml.safe_load((root / "requirements.yml").read_text())["collections"]
    assert {entry["name"]: entry["version"] for entry in required} == galaxy["dependencies"]
    assert (root / "requirements.txt").read_text() == (root / "meta/ee-requirements.txt").read_text()


def test_execution_environment_names_files_that_exist(root):
    named = yaml.safe_load((root / "meta/execution-environment.yml").read_text())["dependencies"]
    assert named.keys() == {"python", "system"}
    for name in named.values():
        assert (root / name).is_file(), name


def test_action_group_lists_every_module(root):
    groups = yaml.safe_load((root / "meta/runtime.yml").read_text())["action_groups"]
    modules = {path.stem for path in (root / "plugins/modules").glob("*.py") if path.stem != "__init__"}
    assert modules - set(groups["cluster"]) == set()


def copied(dockerfile: str) -> set[str]:
    """Sources of all COPY lines that are in the build context."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE)
    return {source.rstrip("/") for line in lines for source in line.split()[:-1]}


def test_image_copies_what_the_build_context_lets_through(root):
    allowed = [line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    sources = copied((root / "Dockerfile").read_text())
    assert len(sources) > 3
    assert {source for source in sources if not source.startswith("dist/") and not (root / source).exists()} == set()
    below = [path for rule in allowed for path in (rule, f"{rule}/*")]
    assert {source for source in sources if not any(fnmatch.fnmatch(source, rule) for rule in below)} == set()


def test_image_runs_as_the_operators_user(root):
    users = re.findall(r"^USER (\S+)$", (root / "Dockerfile").read_text(), re.MULTILINE)
    assert users[-1] == "1001"


def test_image_check_for_bytecode_finds_what_was_not_compiled(root, tmp_path):
    text = (root / "Dockerfile").read_text().replace("\\\n", "")
    (check,) = re.findall(r"^RUN python3 -c '([^']+)'$", text, re.MULTILINE)
    (tmp_path / "fresh.py").write_text("")
    check = check.replace("/usr/share/ansible/collections/ansible_collections/kubesteward/core/plugins", str(tmp_path))
    before = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=False)
    assert before.returncode == 1
    assert "fresh.py" in before.stderr
    subprocess.run([sys.executable, "-m", "compileall", "-q", tmp_path], check=True, timeout=60)
    after = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=False)
    assert (after.returncode, after.stderr) == (0, "")

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the image, what is not, and that it runs as anybody on a root that nobody can write to."""

from __future__ import annotations

import hashlib
import json
import re
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from integration.image import standin
from integration.image.buildah import opened

import testbed

ADDED = re.compile(r"(licenses|opt/ansible|usr/share/ansible/collections)(/|$)|usr/share/ansible$")
BYTECODE = re.compile(r"usr/(local/)?lib/.*/__pycache__(/.*\.pyc)?$")
# what OpenShift gives a Pod: a user without a name, in group 0
ANYBODY = "1000650000:0"
PULL_NOTHING = "registry.example.com/web:1"


def files(root: Path) -> dict[str, str]:
    """Every path below the root with its type, mode, owner and content or target."""
    found = {}
    for path in root.rglob("*"):
        state = path.lstat()
        content = ""
        if stat.S_ISLNK(state.st_mode):
            content = str(path.readlink())
        elif stat.S_ISREG(state.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(root))] = f"{stat.filemode(state.st_mode)} {state.st_uid}:{state.st_gid} {content}"
    return found


@pytest.fixture(scope="module")
def base_files(buildah, base) -> dict[str, str]:
    return files(buildah.mounted(base))


@pytest.fixture(scope="module")
def image_files(buildah, image) -> dict[str, str]:
    return files(buildah.mounted(image))


@pytest.fixture(scope="module")
def settled(base_files, image_files):
    """What the image has beside its base, or otherwise than it."""
    return {path: line for path, line in image_files.items() if base_files.get(path) != line}


def test_configuration_says_how_to_run_and_where_it_is_from(buildah, image, base, pytestconfig):
    config = buildah.inspect(image)["OCIv1"]["config"]
    assert (config["User"], config["WorkingDir"]) == ("1001", "/opt/ansible")
    assert "HOME=/opt/ansible" in config["Env"]
    version = yaml.safe_load((pytestconfig.rootpath / "galaxy.yml").read_text())["version"]
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["Labels"].items()}
    git = ["git", "log", "-1", "--format=%H %ct"]
    commit, seconds = subprocess.run(
        git, cwd=pytestconfig.rootpath, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert labels["title"] == "kubesteward"
    assert (labels["version"], labels["licenses"], labels["base.name"]) == (version, "GPL-3.0-or-later", base)
    assert labels["revision"].removesuffix("-dirty") == commit
    date = subprocess.run(["date", "-ud", f"@{seconds}", "+%FT%TZ"], capture_output=True, text=True, check=True)
    assert labels["created"] == date.stdout.strip()
    assert labels["source"].startswith("https://")


def test_nothing_is_added_but_what_runs(settled):
    assert {path for path in settled if not ADDED.match(path) and not BYTECODE.match(path)} == set()


def test_nothing_of_the_base_is_gone_or_changed(base_files, image_files):
    gone = {path for path in base_files if path not in image_files}
    changed = {path for path, line in base_files.items() if image_files.get(path, line) != line}
    assert (gone, changed) == (set(), set())


def test_added_files_can_be_read_by_everybody_and_written_by_nobody(settled):
    modes = {path: line.split()[0] for path, line in settled.items()}
    assert {path: mode for path, mode in modes.items() if mode not in ("drwxr-xr-x", "-rw-r--r--")} == {}


def test_what_the_operator_starts_from(inside, pytestconfig):
    ours = sorted(pytestconfig.rootpath.glob("watches*.yaml"))
    home = inside.root / "opt/ansible"
    assert {path.name: path.read_text() for path in home.glob("*.yaml")} == {
        path.name: path.read_text() for path in ours
    }
    for path in ours:
        for watch in yaml.safe_load(path.read_text()):
            assert (home / watch["playbook"]).is_file()


def test_collections_are_the_built_one_and_the_pinned_one(inside):
    listed = json.loads(inside.run("ansible-galaxy", "collection", "list", "--format=json").stdout)
    ((path, collections),) = listed.items()
    assert path == "/usr/share/ansible/collections/ansible_collections"
    assert collections.keys() == {"kubesteward.core", "kubernetes.core"}
    assert collections["kubernetes.core"]["version"] == "6.2.0"


def test_neither_pip_nor_a_compiler_is_left(inside):
    assert inside.run("python3", "-m", "pip", "--version", check=False).returncode == 1
    for program in ("gcc", "cc", "git", "pip", "pip3"):
        assert inside.run("which", program, check=False).returncode == 1, program


def test_every_module_and_role_is_documented_inside(inside, pytestconfig):
    plugins = pytestconfig.rootpath / "plugins/modules"
    modules = {f"kubesteward.core.{path.stem}" for path in plugins.glob("*.py") if path.stem != "__init__"}
    roles = {f"kubesteward.core.{path.name}" for path in (pytestconfig.rootpath / "roles").iterdir()}
    assert json.loads(inside.run("ansible-doc", "--json", *sorted(modules)).stdout).keys() == modules
    assert json.loads(inside.run("ansible-doc", "--json", "-t", "role", *sorted(roles)).stdout).keys() == roles


def test_every_playbook_is_understood_inside(inside):
    names = sorted(path.name for path in (inside.root / "opt/ansible/playbooks").iterdir())
    assert names == ["nspro.yml", "release.yml", "start.yml", "update.yml"]
    inside.run("ansible-playbook", "--syntax-check", *(f"playbooks/{name}" for name in names), user=ANYBODY)


@pytest.fixture
def tmp(tmp_path):
    """A folder for /tmp with a kubeconfig in it."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_bytes(testbed.connect().kubeconfig.read_bytes())
    kubeconfig.chmod(0o644)
    return folder


def give(inside, tmp, namespace, **options):
    """One pass of the Start playbook, its output."""
    variables = {"start_namespace": namespace, "start_name": "web", "start_image": PULL_NOTHING, "start_replicas": 0}
    command = ["ansible-playbook", "playbooks/start.yml", "-e", json.dumps(variables)]
    return inside.run(*command, tmp=tmp, KUBECONFIG="/tmp/kubeconfig", **options).stdout


@pytest.mark.parametrize("user", ["1001:0", ANYBODY])
def test_pass_runs_on_a_root_that_nobody_can_write_to(inside, tmp, kubectl, namespace, user):
    refused = inside.run("touch", "/opt/ansible/x", user=user, check=False).stderr
    assert "Read-only file system" in refused
    assert "changed=1" in give(inside, tmp, namespace, user=user)
    shown = json.loads(kubectl("get", "deployment", "web-sample", "-n", namespace, "-o", "json").stdout)
    assert [container["image"] for container in shown["spec"]["template"]["spec"]["containers"]] == [PULL_NOTHING]
    assert "changed=0" in give(inside, tmp, namespace, user=user)


def test_pass_compiles_nothing(inside, tmp, namespace):
    def bytecode():
        return {path: path.stat().st_mtime_ns for path in inside.root.rglob("*.pyc")}

    before = bytecode()
    assert len(before) > 500
    # root could write what is missing or out of date
    give(inside, tmp, namespace, user="0:0", writable=True)
    assert {str(path) for path, time in bytecode().items() if before.get(path) != time} == set()


def test_second_build_is_the_same(buildah, make_image, image, base, pytestconfig):
    again = make_image("localhost/kubesteward:again", base, umask=0o077)
    first, second = buildah.inspect(image), buildah.inspect(again)
    assert second["OCIv1"] == first["OCIv1"]
    assert second["FromImageDigest"] == first["FromImageDigest"]


def test_base_that_lacks_packages_is_given_them_and_keeps_its_own(buildah, make_image, base, tmp_path, pytestconfig):
    """Neither kubernetes nor pip is there: ensurepip gives one for the build alone, which fetches what is locked."""
    (tmp_path / "Dockerfile").write_text(
        f"FROM {base}\nUSER root\n"
        "RUN cd /usr/local/lib/python3*/dist-packages && rm -r kubernetes kubernetes-* websocket websocket_client-*\n"
        "USER 1001\n"
    )
    poor = "localhost/stand-in/poor:v1"
    buildah.build(poor, tmp_path)
    lock = pytestconfig.rootpath / "image/requirements.txt"
    standin.wheels(tmp_path / "wheels", "--no-deps", "--require-hashes", "--requirement", str(lock))
    (tmp_path / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    mounts = [f"--volume={tmp_path}/wheels:/wheels:ro", f"--volume={tmp_path}/pip.conf:/etc/pip.conf:ro"]
    image = opened(buildah, make_image("localhost/kubesteward:poor", poor, *mounts))
    listed = "import importlib.metadata as m; print(*sorted(f'{d.name}=={d.version}' for d in m.distributions()))"
    versions = set(image.run("python3", "-c", listed).stdout.split())
    assert {"kubernetes==33.1.0", "websocket-client==1.9.2", "requests==2.33.1"} <= versions
    assert image.run("python3", "-m", "pip", "--version", check=False).returncode == 1
    # 1: by nothing but its presence, whatever the times of files
    compiled = list(image.root.glob("usr/local/lib/python3*/dist-packages/kubernetes/__pycache__/*.pyc"))
    assert [path.read_bytes()[4] for path in compiled] == [1]


def test_base_that_is_too_old_is_refused(buildah, make_image, base, tmp_path):
    old = "kubernetes-24.2.0.dist-info"
    (tmp_path / "Dockerfile").write_text(
        f"FROM {base}\nUSER root\nRUN cd /usr/local/lib/python3*/dist-packages && mv kubernetes-33.1.0.dist-info {old}"
        f" && sed -i 's/^Version: .*/Version: 24.2.0/' {old}/METADATA\n"
    )
    buildah.build("localhost/stand-in/old:v1", tmp_path)
    with pytest.raises(RuntimeError, match=r"kubernetes is 24\.2\.0, needed is .*BASE_IMAGE="):
        make_image("localhost/kubesteward:old", "localhost/stand-in/old:v1")

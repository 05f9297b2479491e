#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lay out in dist/image what the image is made of, and print the arguments of its build.

All of it comes from the checkout, from the collection in dist/, and from the kubernetes.core that `make setup` fetched,
whose files are checked against a pinned checksum: so the build needs no Galaxy. Times are the commit's, modes fixed.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
CONTEXT = ROOT / "dist" / "image"
INSTALLED = ROOT / ".cache" / "collections" / "ansible_collections" / "kubernetes" / "core"
GIT_SECONDS = 30


class ImageError(Exception):
    """What is wrong with the parts of the image, and what to do."""


@dataclass(frozen=True)
class Pin:
    """A collection's version, and the SHA-256 of its FILES.json, which holds those of all its files."""

    version: str
    files_sha256: str


KUBERNETES_CORE = Pin("6.2.0", "64763e283b3515de0cb751b4cd3493e152eabb0b95ab7fac59ad518bec893709")
# The sources differ in what else they carry: documents, tests.
KEPT = ("LICENSE", "MANIFEST.json", "FILES.json", "PSF-license.txt", "README.md", "meta/", "plugins/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", help="what will build: docker, podman or buildah, with its options")
    tool = parser.parse_args().tool
    try:
        epoch = build_time(os.environ, git("log", "-1", "--format=%ct"))
        version = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
        files = {
            **below("collections/ansible_collections/kubernetes/core/", pinned(read_tree(INSTALLED), KUBERNETES_CORE)),
            **below("collections/ansible_collections/kubesteward/core/", sorted_manifest(read_collection(version))),
            **below("ansible/", {path.name: path.read_bytes() for path in ROOT.glob("watches*.yaml")}),
            **below("ansible/playbooks/", read_tree(ROOT / "playbooks")),
            "licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
        }
        write(CONTEXT, files, epoch)
    except ImageError as error:
        sys.exit(f"image: {error}")
    print(shlex.join(build_arguments(tool, version, revision(), epoch)))


def build_time(environ: Mapping[str, str], commit: str) -> int:
    """Seconds since 1970: SOURCE_DATE_EPOCH, else the time of the commit, else now."""
    text = environ.get("SOURCE_DATE_EPOCH") or commit or str(int(time.time()))
    if not text.isdecimal():
        raise ImageError(f"SOURCE_DATE_EPOCH is {text!r}: give seconds since 1970.")
    return int(text)


def revision() -> str:
    """The commit, marked where the checkout differs from it; `unknown` outside of Git."""
    commit = git("rev-parse", "HEAD")
    changed = git("status", "--porcelain")
    return f"{commit}{'-dirty' if changed else ''}" if commit else "unknown"


def git(*arguments: str) -> str:
    """What Git prints, or nothing where this is no repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def build_arguments(tool: str, version: str, commit: str, epoch: int) -> list[str]:
    """Arguments for `build`; each tool has its own way to be told the time of layers."""
    created = datetime.datetime.fromtimestamp(epoch, tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    values = {"VERSION": version, "REVISION": commit, "CREATED": created}
    if Path(shlex.split(tool)[0]).name == "docker":
        values["SOURCE_DATE_EPOCH"] = str(epoch)
        times = []
    else:
        times = ["--timestamp", str(epoch)]
    return times + [word for name, value in values.items() for word in ("--build-arg", f"{name}={value}")]


def below(folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {folder + name: content for name, content in files.items()}


def read_tree(folder: Path) -> dict[str, bytes]:
    """Files below a folder by their path in it, without bytecode."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def read_collection(version: str) -> dict[str, bytes]:
    """Files of the collection that `make build` made."""
    archive = ROOT / "dist" / f"kubesteward-core-{version}.tar.gz"
    if not archive.is_file():
        raise ImageError(f"{archive.relative_to(ROOT)} is missing: run make build.")
    with tarfile.open(archive) as opened:
        files = [member for member in opened.getmembers() if member.isfile()]
        contents = ((member.name, opened.extractfile(member)) for member in files)
        return {name: content.read() for name, content in contents if content is not None}


def pinned(files: Mapping[str, bytes], pin: Pin) -> dict[str, bytes]:
    """The files that are kept, when each is what the pin says; ImageError names those that are not."""
    if "FILES.json" not in files or "MANIFEST.json" not in files:
        raise ImageError("kubernetes.core is not in .cache/collections: run make setup.")
    version = json.loads(files["MANIFEST.json"])["collection_info"]["version"]
    if version != pin.version or sha256(files["FILES.json"]) != pin.files_sha256:
        raise ImageError(
            f"kubernetes.core in .cache/collections is {version}, and not the {pin.version} that hack/image.py pins: "
            "remove .cache/collections and run make setup, or change the pin."
        )
    listed = {entry["name"]: entry["chksum_sha256"] for entry in json.loads(files["FILES.json"])["files"]}
    listed |= {"FILES.json": pin.files_sha256, "MANIFEST.json": sha256(files["MANIFEST.json"])}
    kept = {name: content for name, content in files.items() if is_kept(name)}
    missing = [name for name, checksum in listed.items() if checksum and is_kept(name) and name not in kept]
    changed = [name for name, content in kept.items() if listed.get(name) != sha256(content)]
    if changed or missing:
        raise ImageError(
            "kubernetes.core in .cache/collections is not as it was published: "
            f"{', '.join(sorted(changed + missing)[:5])}. Remove .cache/collections and run make setup."
        )
    return kept


def is_kept(name: str) -> bool:
    return any(name.startswith(kept) if kept.endswith("/") else name == kept for kept in KEPT)


def sorted_manifest(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same with FILES.json in the order of names: Ansible writes it in the order of the file system."""
    listing = json.loads(files["FILES.json"])
    listing["files"].sort(key=lambda entry: entry["name"])
    text = json.dumps(listing, indent=1).encode()
    manifest = json.loads(files["MANIFEST.json"])
    manifest["file_manifest_file"]["chksum_sha256"] = sha256(text)
    return {**files, "FILES.json": text, "MANIFEST.json": json.dumps(manifest, indent=1).encode()}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write(folder: Path, files: Mapping[str, bytes], epoch: int) -> None:
    """Make the folder anew, readable by everybody whatever the umask, with one time everywhere."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)
    set_times([folder, *folder.rglob("*")], epoch)


def set_times(paths: Iterable[Path], epoch: int) -> None:
    for path in paths:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (epoch, epoch))


if __name__ == "__main__":
    main()

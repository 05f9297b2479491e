# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests remembered on disk by digest: a small folder, many writers, damaged files ignored.

Only what a digest fixes for ever is kept. What a tag names is never kept, so never answered from here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import stat
import tempfile
import threading
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import Child, Manifest
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import is_digest

MAX_FILES = 2000
MAX_FILE = 256 * 1024
_VERSION = 3
_SWEEP_EVERY = 100


def default_folder() -> str:
    """The folder below `XDG_CACHE_HOME`, or `~/.cache`; empty where there is no home."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "kubesteward", "manifests") if os.path.isabs(base) else ""


class DiskStore:
    """A store in a folder; one that cannot be used remembers nothing and never raises for it.

    :param max_files: the oldest files above this number are removed
    """

    def __init__(self, folder: str, max_files: int = MAX_FILES) -> None:
        self._folder, self._max_files = folder, max_files
        self._lock = threading.Lock()
        self._puts = 0
        self._checked: bool | None = None

    def get(self, digest: str) -> Manifest | None:
        """The manifest of `digest`; None where it is not kept, or its file is damaged (it is removed then)."""
        if not self._usable() or not is_digest(digest):
            return None
        path = self._path(digest)
        try:
            with open(path, "rb") as file:
                content = file.read(MAX_FILE + 1)
        except OSError:
            return None
        manifest = _decode(content, digest)
        with contextlib.suppress(OSError):
            if manifest is None:
                os.unlink(path)
            else:
                os.utime(path)
        return manifest

    def put(self, digest: str, manifest: Manifest) -> None:
        """Keep `manifest`."""
        content = _encode(manifest, digest)
        if not self._usable() or not is_digest(digest) or len(content) > MAX_FILE:
            return
        write_whole(self._path(digest), content)
        with self._lock:
            self._puts += 1
            due = self._puts % _SWEEP_EVERY == 1
        if due:
            self._sweep()

    def _usable(self) -> bool:
        with self._lock:
            if self._checked is None:
                self._checked = private_folder(self._folder)
            return self._checked

    def _path(self, digest: str) -> str:
        return os.path.join(self._folder, f"{digest.replace(':', '-')}.json")

    def _sweep(self) -> None:
        found = []
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found.append((entry.stat().st_mtime, entry.path))
        # room for what is put until the next sweep
        keep = max(0, self._max_files - _SWEEP_EVERY) if len(found) > self._max_files else len(found)
        for _age, path in sorted(found, reverse=True)[keep:]:
            with contextlib.suppress(OSError):
                os.unlink(path)


def write_whole(path: str, content: bytes) -> None:
    """Write a file that is there whole or not at all; where that cannot be, nothing happens."""
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(path))
        try:
            with open(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)


def private_folder(folder: str) -> bool:
    """Make `folder` where it is missing; True where nobody else can write to it."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.stat(folder)
    except OSError:
        return False
    # a folder that others can write to could tell us anything
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _seal(fields: t.Any, digest: str) -> str:
    return hashlib.sha256(json.dumps([digest, fields], sort_keys=True).encode()).hexdigest()


def _encode(manifest: Manifest, digest: str) -> bytes:
    fields = {
        **{field.name: getattr(manifest, field.name) for field in dataclasses.fields(Manifest)},
        "children": [dataclasses.astuple(child) for child in manifest.children],
    }
    return json.dumps({"version": _VERSION, "seal": _seal(fields, digest), "manifest": fields}).encode()


def _decode(content: bytes, digest: str) -> Manifest | None:
    try:
        data = json.loads(content)
        fields = data["manifest"]
        if data["version"] != _VERSION or data["seal"] != _seal(fields, digest):
            return None
        return Manifest(**{**fields, "children": tuple(Child(*child) for child in fields["children"])})
    except (ValueError, RecursionError, LookupError, TypeError):
        return None

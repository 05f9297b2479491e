# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps, in a private folder, what one author's registries were waited for: each pass is a process of its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import time
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.registry.cache import private_folder, write_whole
from ansible_collections.kubesteward.core.plugins.module_utils.registry.patience import MEMORY, Record

MAX_FILE = 64 * 1024
MAX_REGISTRIES = 200


class Waits:
    """The record of one author; one that cannot be kept is empty, and nothing is raised for it.

    :param folder: that of the cache; records are in a folder in it
    :param author: whose look-ups these are, e.g. the namespace of an Update
    """

    def __init__(self, folder: str, author: str) -> None:
        self._parent, self._folder = folder, os.path.join(folder, "waits")
        # an author's name is any text, and the name of a file is not
        self._path = os.path.join(self._folder, f"{hashlib.sha256(author.encode('utf-8', 'replace')).hexdigest()}.json")

    def read(self) -> Record:
        if not self._usable():
            return Record()
        try:
            with open(self._path, "rb") as file:
                return _decode(file.read(MAX_FILE + 1))
        except OSError:
            return Record()

    def write(self, before: Record, after: Record) -> None:
        """Keep what a call made of `before`, where that is something, and remove what nobody needs any more."""
        if after == before or not self._usable():
            return
        # another call may have written meanwhile
        kept = self.read().at(time.time())
        known = {name: since for name, since in kept.slow.items() if name not in before.slow or name in after.slow}
        slow = sorted({**after.slow, **known}.items(), key=lambda item: item[1])[-MAX_REGISTRIES:]
        spent = (*kept.spent, *after.spent[len(before.spent) :])[-MAX_REGISTRIES:]
        write_whole(self._path, json.dumps({"slow": dict(slow), "spent": spent}).encode())
        self._sweep()

    def _usable(self) -> bool:
        # the folder of the cache first: made on the way to this one it would have the rights of the umask
        return private_folder(self._parent) and private_folder(self._folder)

    def _sweep(self) -> None:
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat().st_mtime > 2 * MEMORY:
                        os.unlink(entry.path)


def _decode(content: bytes) -> Record:
    try:
        data = json.loads(content)
        slow = {str(name): _number(since) for name, since in data["slow"].items()}
        return Record(slow, tuple((_number(when), _number(seconds)) for when, seconds in data["spent"]))
    except (ValueError, OverflowError, RecursionError, LookupError, TypeError, AttributeError):
        return Record()


def _number(value: t.Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError("no time")
    return number

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credential helper programs (`docker-credential-*`): runs them, time-limited, once for each server in a call."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
import threading
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential, is_text

TIMEOUT = 10.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclasses.dataclass(frozen=True)
class HelperAsk:
    """A credential that the program `docker-credential-<helper>` is asked for."""

    helper: str
    server: str
    source: str
    #: what must not be printed: nothing is known before it is asked
    secrets: t.ClassVar[tuple[str, ...]] = ()


class Helpers:
    """Runs helpers and remembers their answers; for one call of the module."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self.timeout = timeout
        self._lock = threading.Lock()
        self._locks: dict[HelperAsk, threading.Lock] = {}
        self._known: dict[HelperAsk, tuple[Credential | None, str | None]] = {}

    def get(self, ask: HelperAsk, warnings: list[str]) -> Credential | None:
        """The helper's credential, None where it has none or fails; the failure is appended to `warnings`."""
        with self._lock:
            lock = self._locks.setdefault(ask, threading.Lock())
        with lock:
            if ask not in self._known:
                self._known[ask] = self._run(ask)
            credential, warning = self._known[ask]
        if warning:
            warnings.append(warning)
        return credential

    def _run(self, ask: HelperAsk) -> tuple[Credential | None, str | None]:
        where = f"{ask.source}: the credential helper {ask.helper}"
        if not _NAME.fullmatch(ask.helper):
            return None, f"{ask.source}: the name of a credential helper has characters that are not allowed"
        program = shutil.which(f"docker-credential-{ask.helper}")
        if program is None:
            return None, f"{where} is not installed (docker-credential-{ask.helper} is not in PATH)"
        try:
            done = subprocess.run(
                [program, "get"], input=ask.server.encode(), capture_output=True, timeout=self.timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return None, f"{where} did not answer within {self.timeout:g} s"
        except OSError as exc:
            return None, f"{where} cannot be started: {exc.strerror}"
        if done.returncode != 0:
            # by protocol the helper says so on stdout where it simply has nothing
            known_empty = b"credentials not found" in done.stdout
            return None, None if known_empty else f"{where} failed with exit status {done.returncode}"
        return _read_answer(done.stdout, ask, where)


def _read_answer(output: bytes, ask: HelperAsk, where: str) -> tuple[Credential | None, str | None]:
    try:
        data = json.loads(output)
        username, secret = data["Username"], data["Secret"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None, f"{where} gave an answer that is not one"
    if not is_text(username) or not is_text(secret):
        return None, f"{where} gave an answer that is not one"
    source = f"{ask.source} (helper {ask.helper})"
    if username == "<token>":
        return Credential(source, identity_token=secret), None
    return Credential(source, username, secret), None

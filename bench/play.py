# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One measured run: a whole ansible-playbook process, and the proof that it did its work."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import BenchError
from testbed import Testbed
from testbed.settings import HOST_ADDRESS

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "bench" / "out"
SECONDS = 300

_RECAP = re.compile(r"^localhost +: (.*)$", re.MULTILINE)
_CURRENT = re.compile(r"\bcurrent +digest_equal\b")
#: would change what is measured, or where it goes
_FOREIGN = ("ANSIBLE_", "K8S_AUTH_", "KUBECONFIG", "KUBESTEWARD_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")

Beside = t.Callable[[int], t.ContextManager[t.Any]]


@dataclass(frozen=True)
class Expected:
    """What the output of an unchanged run shows.

    :ivar counts: counters of the play's recap, e.g. `{"skipped": 3}`
    :ivar current: number of verdicts `current` with the reason `digest_equal`
    :ivar texts: what has to be in the output literally
    """

    counts: t.Mapping[str, int] = field(default_factory=dict)
    current: int = 0
    texts: tuple[str, ...] = ()


def shortcoming(output: str, expected: Expected) -> str:
    """What a run's output lacks of what is expected; empty where it is all there."""
    found = _RECAP.search(output)
    if found is None and expected.counts:
        return "it has no recap of localhost"
    recap = {key: int(value) for key, value in (pair.split("=") for pair in (found.group(1) if found else "").split())}
    for name, count in expected.counts.items():
        if recap.get(name) != count:
            return f"its recap says {name}={recap.get(name)} instead of {count}"
    current = len(_CURRENT.findall(output))
    if current != expected.current:
        return f"it has {current} verdicts `current digest_equal` instead of {expected.current}"
    for text in expected.texts:
        if text not in output:
            return f"it does not say {text!r}"
    return ""


@dataclass(frozen=True)
class Play:
    """A playbook with its extra variables, as a user types it in the checkout."""

    name: str
    arguments: tuple[str, ...]
    expected: Expected
    environment: t.Mapping[str, str]

    def run(self, unchanged: bool = True, beside: Beside = contextlib.nullcontext) -> float:
        """Seconds of one process; its output is added to bench/out/NAME.log.

        :param unchanged: whether the output must be that of a pass with nothing to do
        :param beside: gives what is entered while the process runs, by its id
        :raises BenchError: it failed, took too long, or did not do its work
        """
        log = OUT / f"{self.name}.log"
        began = time.perf_counter()
        code, output = self._finished(beside)
        seconds = time.perf_counter() - began
        with log.open("a") as file:
            file.write(f"{output}\n{seconds:.3f} s, exit {code}\n")
        lacks = f"exit code {code}" if code else ""
        if unchanged and not lacks:
            lacks = shortcoming(output, self.expected)
        if lacks:
            raise BenchError(f"A run of {self.name} did not do its work: {lacks}; see {log.relative_to(ROOT)}")
        return seconds

    def _finished(self, beside: Beside) -> tuple[int, str]:
        """Exit code and output of the process."""
        with subprocess.Popen(
            [Path(sys.executable).with_name("ansible-playbook"), *self.arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                with beside(process.pid):
                    output, _none = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired as exc:
                raise BenchError(f"{self.name} did not end within {SECONDS} s") from exc
            finally:
                # one that has ended is left alone
                process.kill()
        return process.returncode, output


def environment(bed: Testbed, base: t.Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of every run: the testbed's cluster, and nothing of the caller's that changes Ansible."""
    kept = {name: value for name, value in base.items() if not name.startswith(_FOREIGN)}
    kept["K8S_AUTH_KUBECONFIG"] = str(bed.kubeconfig)
    around = ["127.0.0.1", *([HOST_ADDRESS] if bed.mirrored else [])]
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = ",".join([*around, *filter(None, [base.get(name)])])
    return kept

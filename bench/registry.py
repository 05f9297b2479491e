# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Group `registry`: 1,000 distinct references on one registry, looked up by us and by the tools people use.

Ours is the rate of the module's own `elapsed`; its start-up is a measure of its own. The others run as people use them:
one process for each reference, eight at a time. A run counts only if every digest is the one that was pushed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from bench import many
from bench.errors import BenchError
from bench.play import ROOT, SECONDS, environment
from testbed import Testbed, binaries, packages
from testbed import settings as testbed_settings
from testbed.console import step

NAMES = ("registry_1000", "registry_1000_startup", "crane_1000", "skopeo_200", "wrk_manifests")
MANY = 1000
# skopeo takes minutes for all of them
SAMPLE = 200
AT_ONCE = 8
WRK_SECONDS = 3
ACCEPT = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
Pushed = t.Sequence[tuple[str, str]]


@contextlib.contextmanager
def prepared(bed: Testbed) -> t.Iterator[dict[str, t.Any]]:
    """What is run, by name, over a registry that holds the images.

    :raises BenchError: a program is missing
    """
    missing = [program for program in ("wrk", "skopeo") if shutil.which(program) is None]
    if missing:
        packages.install(missing)
    with step(f"{MANY} images in the registry"):
        pushed = [(_at_registry(image, bed), digest) for image, digest in many.push(bed, MANY)]
    crane = str(binaries.crane(testbed_settings.from_environment(os.environ)))
    env = environment(bed)
    with tempfile.TemporaryDirectory(prefix="kubesteward-bench-") as folder:
        registries = [] if bed.mirrored else bed.registries()
        with step(f"{MANY} references to 10 images are 10 requests"):
            Ours(pushed[:10] * (MANY // 10), 10, registries, env, Path(folder) / "few.json").run()
        ours = Ours(pushed, MANY, registries, env, Path(folder) / "arguments.json")
        yield {
            "registry_1000": ours,
            "registry_1000_startup": Startup(ours),
            "crane_1000": PerImage(pushed, [crane, "digest", "--insecure"], env),
            "skopeo_200": PerImage(pushed[:SAMPLE], _SKOPEO, env, prefix="docker://"),
            "wrk_manifests": Wrk(bed.registry, pushed, env, Path(folder) / "wrk.lua"),
        }


_SKOPEO = ["skopeo", "inspect", "--tls-verify=false", "--format={{.Digest}}"]


def _at_registry(image: str, bed: Testbed) -> str:
    return f"{bed.registry}/{image.partition('/')[2]}"


def _run(command: t.Sequence[str], env: t.Mapping[str, str], stdin: str = "") -> str:
    """Output of a program.

    :raises BenchError: it failed or took too long
    """
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=env, input=stdin, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise BenchError(f"{Path(command[0]).name} did not end within {SECONDS} s") from exc
    if done.returncode:
        raise BenchError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
    return done.stdout


@dataclass
class Ours:
    """The module in a process of its own, as Ansible starts it.

    :ivar requests: the HEADs that must be all that was asked
    :ivar startup: seconds of the last run that were not spent on look-ups
    """

    pushed: Pushed
    requests: int
    registries: t.Sequence[t.Mapping[str, t.Any]]
    environment: t.Mapping[str, str]
    arguments: Path
    startup: float = field(default=0.0, init=False)

    def run(self, unchanged: bool = True) -> float:
        """References per second."""
        images = [image for image, _digest in self.pushed]
        given = {"images": images, "registries": self.registries, "cache_dir": ""}
        self.arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": given}))
        env = {**self.environment, "PYTHONPATH": str(ROOT / ".cache" / "collections")}
        began = time.perf_counter()
        output = _run([sys.executable, "plugins/modules/registry_digest.py", str(self.arguments)], env)
        seconds = time.perf_counter() - began
        result = json.loads(output)
        check([entry.get("digest", "") for entry in result["images"]], self.pushed, "registry_digest")
        if result["requests_made"] != self.requests:
            raise BenchError(f"registry_digest made {result['requests_made']} requests instead of {self.requests}")
        self.startup = seconds - result["elapsed"]
        return len(self.pushed) / float(result["elapsed"])


@dataclass(frozen=True)
class Startup:
    """What the last run of `ours` took beside its look-ups."""

    ours: Ours

    def run(self, unchanged: bool = True) -> float:
        """Seconds."""
        return self.ours.startup


@dataclass(frozen=True)
class PerImage:
    """A program that is started for each reference and prints its digest."""

    pushed: Pushed
    command: t.Sequence[str]
    environment: t.Mapping[str, str]
    prefix: str = ""

    def run(self, unchanged: bool = True) -> float:
        """References per second."""
        lines = "".join(f"{self.prefix}{image}\n" for image, _digest in self.pushed)
        began = time.perf_counter()
        output = _run(["xargs", f"-P{AT_ONCE}", "-n1", *self.command], self.environment, lines)
        seconds = time.perf_counter() - began
        # eight processes print in no fixed order, and a line and its end not always together
        by_digest = sorted(self.pushed, key=lambda pair: pair[1])
        check(sorted(_DIGEST.findall(output)), by_digest, Path(self.command[0]).name)
        return len(self.pushed) / seconds


def check(digests: t.Sequence[str], pushed: Pushed, who: str) -> None:
    """:raises BenchError: where a digest is missing or another than the one that was pushed"""
    wrong = [image for (image, digest), found in zip(pushed, digests, strict=False) if digest != found]
    if wrong or len(digests) != len(pushed):
        raise BenchError(f"{who} gave {len(digests)} digests for {len(pushed)} references; wrong first: {wrong[:3]}")


@dataclass(frozen=True)
class Wrk:
    """The registry's own limit: wrk asks for the same manifests. With GET, since wrk waits for the body of a HEAD."""

    registry: str
    pushed: Pushed
    environment: t.Mapping[str, str]
    script: Path

    def run(self, unchanged: bool = True) -> float:
        """Requests per second."""
        self.script.write_text(lua([_path(image) for image, _digest in self.pushed]))
        command = ["wrk", "-t1", f"-c{AT_ONCE}", f"-d{WRK_SECONDS}s", "-s", str(self.script), f"http://{self.registry}"]
        return rate(_run(command, self.environment))


def _path(image: str) -> str:
    repository, _colon, tag = image.partition("/")[2].rpartition(":")
    return f"/v2/{repository}/manifests/{tag}"


def lua(paths: t.Sequence[str]) -> str:
    """A script for wrk that asks for `paths` in turn."""
    listed = ",\n".join(json.dumps(path) for path in paths)
    return f"""local paths = {{{listed}}}
local number = 0
request = function()
  number = number % #paths + 1
  return wrk.format("GET", paths[number], {{["Accept"] = "{ACCEPT}"}})
end
"""


def rate(output: str) -> float:
    """Requests per second in what wrk prints.

    :raises BenchError: where answers were errors, or there were none
    """
    found = re.search(r"^Requests/sec: +([0-9.]+)$", output, re.MULTILINE)
    refused = re.search(r"^ *(Non-2xx or 3xx responses|Socket errors):.*$", output, re.MULTILINE)
    if found is None or float(found[1]) == 0 or refused:
        raise BenchError(f"wrk did not get the manifests: {(refused[0] if refused else output).strip()}")
    return float(found[1])

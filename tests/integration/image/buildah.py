# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images by buildah in a storage of its own, and commands inside of them: no user namespaces, no daemon needed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BUILD_SECONDS, SECONDS = 600, 120
# Arguments: root, what becomes /tmp, ro or rw, user, home, command. All mounts end with the process.
INSIDE = """set -eu
root=$1 tmp=$2 mode=$3 user=$4 home=$5
shift 5
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --bind "$tmp" "$root/tmp"
[ "$mode" = rw ] || mount -o remount,bind,ro "$root"
exec chroot --userspec="$user" "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$home" "$@"
"""


@dataclass(frozen=True)
class Buildah:
    """A storage below `folder`, removed with it, kept by `driver`."""

    folder: Path
    driver: str = "vfs"

    @property
    def command(self) -> list[str]:
        places = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run")]
        return ["buildah", *places, "--storage-driver", self.driver]

    def __call__(self, *arguments: str, seconds: int = BUILD_SECONDS) -> str:
        """What the command prints on stdout."""
        return run([*self.command, *arguments], seconds).stdout.strip()

    def build(self, image: str, context: Path, *arguments: str) -> None:
        self("build", "--isolation=chroot", "--quiet", "--pull=never", *arguments, "--tag", image, str(context))

    def inspect(self, image: str) -> dict[str, Any]:
        """The image's manifest digest (`FromImageDigest`), configuration (`OCIv1`) and more."""
        return json.loads(self("inspect", "--type=image", image))

    def mounted(self, image: str) -> Path:
        """The root file system of a new working container."""
        return Path(self("mount", self("from", "--pull=never", image)))


def in_folder(folder: Path) -> Buildah:
    """With overlay where this file system can be one, else by copies, which take minutes on a busy disk."""
    fast = Buildah(folder / "overlay", "overlay")
    try:
        fast("info", seconds=SECONDS)
    except RuntimeError:
        return Buildah(folder / "copies")
    return fast


@dataclass(frozen=True)
class Inside:
    """An image's root file system, and how its configuration says to start something in it."""

    root: Path
    environment: Mapping[str, str]
    home: str

    def run(
        self,
        *command: str,
        user: str = "1001:0",
        tmp: Path | None = None,
        writable: bool = False,
        check: bool = True,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run on a root that nobody can write to, but for /tmp, with this machine's network and nothing else of it."""
        with tempfile.TemporaryDirectory() as empty:
            place = tmp or Path(empty)
            place.chmod(0o1777)
            mode = "rw" if writable else "ro"
            wrapped = ["unshare", "--mount", "--propagation=private", "/bin/sh", "-c", INSIDE, "inside"]
            arguments = [str(self.root), str(place), mode, user, self.home, *command]
            return run([*wrapped, *arguments], SECONDS, {**self.environment, **environment}, check=check)


def opened(buildah: Buildah, image: str) -> Inside:
    """A new working container of the image, to run commands in and to look at its files."""
    config = buildah.inspect(image)["OCIv1"]["config"]
    environment = dict(entry.split("=", 1) for entry in config["Env"])
    return Inside(buildah.mounted(image), environment, config["WorkingDir"])


def run(
    command: Sequence[str], seconds: int, environment: Mapping[str, str] | None = None, *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run it; RuntimeError with the end of what it said where it fails."""
    done = subprocess.run(
        command,
        env=dict(environment) if environment is not None else None,
        cwd="/" if environment is not None else os.getcwd(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if check and done.returncode:
        said = (done.stdout + done.stderr)[-4000:]
        raise RuntimeError(f"exit {done.returncode} of {' '.join(command)[-500:]}\n{said}")
    return done

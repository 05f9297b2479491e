# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for ansible-operator's base image where no image registry is reached: Debian's Python, and what the base
image has from PyPI, laid out as there: user 1001 of group 0, its home /opt/ansible, no pip, no collections.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed.console import step

SUITE, PYTHON = "bookworm", "3.11"
PACKAGES = (
    "ansible-core==2.18.18",
    "ansible-runner==2.4.3",
    "ansible-runner-http==1.0.0",
    "kubernetes==33.1.0",
    "requests==2.33.1",
    "requests-unixsocket==0.4.1",
)
UNWANTED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
SECONDS = 900
# What the base image's own recipe does beside installing packages.
LAY_OUT = """set -eu
python3 -m venv /tmp/pip
/tmp/pip/bin/pip --python /usr/bin/python3 install --quiet --no-index --find-links /tmp/wheels \
  --break-system-packages --root-user-action=ignore {packages}
rm -rf /tmp/pip /tmp/wheels /usr/lib/python3*/EXTERNALLY-MANAGED
touch /etc/hosts /etc/resolv.conf
mkdir -p /etc/ansible /opt/ansible/.ansible/tmp
echo 'localhost ansible_connection=local' >/etc/ansible/hosts
cat >/etc/ansible/ansible.cfg <<'EOF'
[defaults]
roles_path = /opt/ansible/roles
library = /usr/share/ansible/openshift
EOF
echo 'ansible:x:1001:0:ansible user:/opt/ansible:/sbin/nologin' >>/etc/passwd
chown -R 1001:0 /opt/ansible
chmod -R ug+rwx /opt/ansible
"""
RECIPE = """FROM scratch
ADD rootfs.tar /
ENV HOME=/opt/ansible USER_NAME=ansible USER_UID=1001 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /opt/ansible
USER 1001
"""


def archive(cache: Path) -> Path:
    """The root file system as a tar archive in the cache, made where it is missing: about two minutes, once."""
    made_of = (SUITE, PYTHON, PACKAGES, UNWANTED, LAY_OUT, platform.machine())
    key = hashlib.sha256(repr(made_of).encode()).hexdigest()[:12]
    folder = cache / f"operator-base-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rootfs.tar"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with step(f"make a stand-in for the operator's base image (once; kept in {folder})"):
                _make(path)
    return path


def wheels(folder: Path, *arguments: str) -> None:
    """Fetch wheels for the stand-in's Python with this machine's own pip settings."""
    machine = [f"--platform=manylinux_{glibc}_{platform.machine()}" for glibc in ("2_17", "2_28", "2_34")]
    target = ["--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp", *machine]
    _run(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), *target, *arguments)


def _make(path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as temporary:
        root = Path(temporary) / "root"
        options = ["--quiet", "--variant=essential", "--include=python3,python3-venv", "--format=directory"]
        unwanted = [f"--dpkgopt=path-exclude={pattern}" for pattern in UNWANTED]
        _run("mmdebstrap", *options, *unwanted, SUITE, str(root))
        wheels(root / "tmp/wheels", *PACKAGES)
        _run("chroot", str(root), "/bin/sh", "-c", LAY_OUT.format(packages=" ".join(PACKAGES)))
        for left in (*(root / "var/cache").iterdir(), *(root / "tmp").iterdir(), *(root / "dev").iterdir()):
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        unfinished = path.with_suffix(".unfinished")
        _run("tar", "--create", "--numeric-owner", f"--file={unfinished}", f"--directory={root}", ".")
        unfinished.replace(path)


def _run(*command: str) -> None:
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(
            f"exit {done.returncode} of {' '.join(command)[:300]}\n{(done.stdout + done.stderr)[-3000:]}"
        )

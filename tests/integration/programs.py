# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests here need built once: by the first that asks for it, or beforehand by `python -m integration.programs`."""

from __future__ import annotations

import os
import sys
import typing as t
from pathlib import Path

from integration.image import standin
from monitoring import programs as monitoring

from testbed import binaries, extras, packages, settings
from testbed.console import fail
from testbed.errors import TestbedError

#: program -> Debian package: what builds images, and the base that they are built on
IMAGE_TOOLS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "unshare": "util-linux"}


class Here(binaries.Module):
    """Like the testbed's modules, with its go.mod beside the tests of the bundle."""

    @property
    def folder(self) -> Path:
        return Path(__file__).resolve().parent / "bundle" / self.name


VERIFY = Here("verify", {"operator-verify": "github.com/operator-framework/api/cmd/operator-verify"})


def verify() -> Path:
    """Path of the program with which OLM looks at a bundle."""
    return binaries.program_of(VERIFY, "operator-verify", _settings().cache)


def base_image() -> Path:
    """Path of the archive that stands in for the operator's base image."""
    lacking = [package for program, package in IMAGE_TOOLS.items() if packages.find(program) is None]
    if lacking:
        packages.install(lacking)
    return standin.archive(_settings().cache)


def _settings() -> settings.Settings:
    return settings.from_environment(os.environ)


#: in the order in which they are waited for
EVERYTHING: tuple[t.Callable[[], object], ...] = (
    lambda: extras.prepare(_settings(), extras.EXTRAS),
    lambda: binaries.crane(_settings()),
    lambda: monitoring.path_of(monitoring.KUBE_STATE_METRICS),
    lambda: monitoring.path_of(monitoring.PROMTOOL),
    monitoring.custom_resource_definitions,
    base_image,
    verify,
)


def main() -> int:
    """Build all of it; one that fails hides no other."""
    failed = 0
    for build in EVERYTHING:
        try:
            build()
        except (TestbedError, RuntimeError, AssertionError) as error:
            failed += 1
            fail(str(error))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

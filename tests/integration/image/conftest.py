# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's image as `make image` builds it, on a stand-in for the base image."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator

import pytest
from integration import programs
from integration.image import standin
from integration.image.buildah import BUILD_SECONDS, Buildah, Inside, in_folder, opened, run

BASE = "localhost/stand-in/ansible-operator:v1"
Make = Callable[..., str]


@pytest.fixture(scope="session")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    programs.base_image()
    program = in_folder(tmp_path_factory.mktemp("buildah"))
    yield program
    # what working containers have mounted goes with them
    program("rm", "--all")
    shutil.rmtree(program.folder)


@pytest.fixture(scope="session")
def base(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of the stand-in for the base image."""
    archive = programs.base_image()
    recipe = tmp_path_factory.mktemp("base") / "Dockerfile"
    recipe.write_text(standin.RECIPE)
    buildah.build(BASE, archive.parent, "--file", str(recipe))
    return BASE


@pytest.fixture(scope="session")
def make_image(buildah: Buildah, pytestconfig: pytest.Config) -> Make:
    """`make image` from a base image: `make_image("name", base, *flags)`; flags are buildah's."""

    def call(name: str, base: str, *flags: str, umask: int = 0o022) -> str:
        variables = {
            "CONTAINER_TOOL": shlex.join(buildah.command),
            "BASE_IMAGE": base,
            "IMG": name,
            "BUILD_FLAGS": shlex.join(["--isolation=chroot", "--pull=never", *flags]),
        }
        command = ["make", "--no-print-directory", "image", *(f"{key}={value}" for key, value in variables.items())]
        before = os.umask(umask)
        try:
            run(["env", f"--chdir={pytestconfig.rootpath}", *command], BUILD_SECONDS)
        finally:
            os.umask(before)
        return name

    return call


@pytest.fixture(scope="session")
def image(make_image: Make, base: str) -> str:
    """Name of the image on a base image that lacks nothing."""
    return make_image("localhost/kubesteward:test", base)


@pytest.fixture(scope="session")
def inside(buildah: Buildah, image: str) -> Inside:
    return opened(buildah, image)

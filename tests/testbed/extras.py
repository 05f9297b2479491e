# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components that only some tests need: built and started when they are asked for, e.g. `make testbed-up WITH=...`."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from testbed import binaries, components
from testbed.errors import TestbedError
from testbed.settings import Settings


@dataclass(frozen=True)
class Extra:
    """`program` of `module` is built; `component` says how it is started. The component has the name of the extra."""

    module: binaries.Module
    program: str
    component: t.Callable[[Settings, Path], components.Component]


EXTRAS = {"network-policies": Extra(binaries.KUBE_ROUTER, "kube-router", components.network_policies)}


def names_in(text: str) -> tuple[str, ...]:
    """Names of a list with commas, each once; TestbedError for one that is none."""
    names = tuple(dict.fromkeys(name for name in text.replace(" ", ",").split(",") if name))
    unknown = [name for name in names if name not in EXTRAS]
    if unknown:
        raise TestbedError(f"There is no component {', '.join(unknown)} to add; there are: {', '.join(EXTRAS)}.")
    return names


def prepare(settings: Settings, names: t.Iterable[str]) -> dict[str, components.Component]:
    """Components by name, their programs built where they are missing, which takes minutes."""
    found = {}
    for name in names:
        extra = EXTRAS[name]
        found[name] = extra.component(settings, binaries.program_of(extra.module, extra.program, settings.cache))
    return found

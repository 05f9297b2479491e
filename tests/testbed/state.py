# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered about the running testbed: one JSON file, replaced as a whole."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import asdict, dataclass, field
from pathlib import Path

from testbed.errors import TestbedError
from testbed.processes import Process

FORMAT = 1


@dataclass(frozen=True)
class State:
    """`key` of the checkout that started it, `ready` once a Pod has run, `kernel`: settings to put back."""

    key: str
    port_base: int
    boot: str
    ready: bool = False
    kernel: dict[str, str] = field(default_factory=dict)
    processes: tuple[Process, ...] = ()
    instance: int = 0

    def dump(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1)

    @classmethod
    def parse(cls, text: str) -> State | None:
        """None for a file that another version wrote or that is not ours: then the marks of the processes decide."""
        try:
            data = json.loads(text)
        except ValueError:
            return None
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            return None
        try:
            data["processes"] = tuple(Process(**process) for process in data["processes"])
            return cls(**data)
        except (KeyError, TypeError):
            return None


def boot_id() -> str:
    """Changes with every boot: a state of another boot describes no running process."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def load(path: Path) -> State | None:
    """The state, or None where there is none or it cannot be understood."""
    try:
        return State.parse(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise TestbedError(f"{path} cannot be read: run this as root.") from error


def save(path: Path, state: State) -> None:
    """Write through a second file, so that a kill leaves the old state or the new one."""
    second = path.with_suffix(".new")
    second.write_text(state.dump())
    os.replace(second, path)


def port_of(state: State, name: str) -> int | None:
    return next((process.port for process in state.processes if process.name == name), None)


def by_name(processes: t.Iterable[Process]) -> dict[str, Process]:
    return {process.name: process for process in processes}

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Platforms as texts, `os[(version)]/arch[/variant]`: one spelling of each, and which ones a node takes. Pure.

The rules are those of containerd's default matcher: amd64 takes 386 after its own, arm64 takes 32 bit arm.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError

_TEXT = re.compile(r"([a-z0-9_.-]+)(?:\(([0-9.]*)\))?/([a-z0-9_.-]+)(?:/([a-z0-9_.-]+))?")
_ARCHITECTURES = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64", "i386": "386"}
_VARIANTS = {"armhf": "v7", "armel": "v6"}
#: Windows Server releases from the first one on that runs containers of the release before it
_STABLE_WINDOWS = (20348, 26100)


class Platform(t.NamedTuple):
    """One platform, normalised; `version` is Windows's, empty where it does not matter or nobody says it."""

    system: str
    architecture: str
    variant: str = ""
    version: str = ""

    def __str__(self) -> str:
        system = f"{self.system}({self.version})" if self.version else self.system
        return "/".join(part for part in (system, self.architecture, self.variant) if part)


def parse_platform(text: str) -> str:
    """Check and normalise `os[(version)]/arch[/variant]` as containerd does, e.g. `linux/aarch64` is `linux/arm64`.

    :raises StewardError: reason `invalid_reference`
    """
    platform = _read(text)
    if platform is None:
        raise StewardError(
            f"platform {text!r} is not os/arch or os/arch/variant, e.g. linux/arm64", reason="invalid_reference"
        )
    return str(platform)


def normal_platform(text: str) -> str:
    """One spelling of a platform: other names of architectures replaced, default variants left out."""
    return str(_read(text) or text)


def with_version(platform: str, version: str) -> str:
    """`windows/amd64` and `10.0.20348` as one text."""
    system, slash, rest = platform.partition("/")
    return f"{system}({version}){slash}{rest}" if slash and version else platform


def rank(offered: str, node: str) -> int | None:
    """How good what is `offered` is for a node, 0 the best; None where the node does not take it.

    An architecture alone is of the node's system.
    """
    wants = _read(node)
    have = _read(offered if "/" in offered or wants is None else f"{wants.system}/{offered}")
    if have is None or wants is None or have.system != wants.system or not _versions_fit(have, wants):
        return None
    taken = _taken(wants.architecture, wants.variant)
    key = have.architecture, have.variant
    return taken.index(key) if key in taken else None


def _read(text: str) -> Platform | None:
    match = _TEXT.fullmatch(text.lower())
    if not match:
        return None
    system, version, architecture, variant = (part or "" for part in match.groups())
    return Platform(system, *_architecture(architecture, variant), version)


def _architecture(name: str, variant: str) -> tuple[str, str]:
    if name in _VARIANTS:
        return "arm", _VARIANTS[name]
    name = _ARCHITECTURES.get(name, name)
    if variant[:1].isdigit():
        variant = f"v{variant}"
    variant = {"v8.0": "v8", "v9.0": "v9"}.get(variant, variant)
    if name == "386" or (name, variant) in (("arm64", "v8"), ("amd64", "v1")):
        variant = ""
    return name, "v7" if name == "arm" and not variant else variant


def _taken(architecture: str, variant: str) -> list[tuple[str, str]]:
    """Architectures and variants that run there, best first."""
    number = variant.removeprefix("v")
    if architecture == "amd64":
        older = _down_from(number, 2)
        return [*((architecture, name) for name in older), (architecture, ""), ("386", "")]
    if architecture == "arm":
        return [(architecture, name) for name in _down_from(number, 5) or [variant]]
    if architecture == "arm64":
        found = _arm64_variants(number or "8")
        return [*((architecture, name) for name in found), *_taken("arm", "v8")] if found else []
    return [(architecture, variant)]


def _down_from(number: str, lowest: int) -> list[str]:
    """`v3`, `v2`, ... `lowest`; empty where it is no small number."""
    return [f"v{n}" for n in range(int(number), lowest - 1, -1)] if number.isdecimal() and len(number) < 3 else []


def _arm64_variants(number: str) -> list[str]:
    """Of 9.x all of 9 up to it and of 8 up to 8.(x+5); of 8.x all up to it."""
    major, _dot, rest = number.partition(".")
    if major not in ("8", "9") or not (rest or "0").isdecimal() or len(rest) > 2:
        return []
    minor = int(rest or 0)
    names = [f"v{major}.{n}" for n in range(minor, 0, -1)]
    if major == "8":
        return [*names, ""]
    return [*names, "v9", *(f"v8.{n}" for n in range(min(minor + 5, 9), 0, -1)), ""]


def _versions_fit(have: Platform, wants: Platform) -> bool:
    """Windows containers run on their own build, on newer hosts also on that of the release before."""
    if wants.system != "windows" or not have.version or not wants.version:
        return True
    image, host = _build(have.version), _build(wants.version)
    if image is None or host is None or image[:2] != host[:2]:
        return host is None
    if host[2] < _STABLE_WINDOWS[0]:
        return image[2] == host[2]
    oldest = max((build for build in _STABLE_WINDOWS if build < host[2]), default=_STABLE_WINDOWS[0])
    return oldest <= image[2] <= host[2]


def _build(version: str) -> tuple[int, int, int] | None:
    parts = version.split(".")[:3]
    if len(parts) < 3 or not all(part.isdecimal() and len(part) < 6 for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])

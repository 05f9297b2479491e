# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wanted of a look-up, and what it answers. Pure data."""

from __future__ import annotations

import dataclasses

from ansible_collections.kubesteward.core.plugins.module_utils.registry import comparison, facts


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What to read beside the top-level digest.

    :ivar platforms: those whose config digest is wanted
    :ivar expect: digests for which nothing more is read
    :ivar verify: prove that any other digest can be pulled
    :ivar compare: digests of the repository whose children are wanted too, and whether they are still there
    """

    children: bool = False
    config: bool = False
    platforms: tuple[str, ...] = ()
    expect: frozenset[str] = frozenset()
    verify: bool = False
    compare: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Found:
    """The answer to a query.

    :ivar pullable: None where nobody asked; `pullable_msg` says why it is not
    :ivar compared: what was found out about those of `Wanted.compare`; None where nothing was asked
    :ivar unread: children or config were wanted, and not read to spare the registry's rate limit
    """

    digest: str
    media_type: str
    facts: facts.Facts | None = None
    pullable: bool | None = None
    pullable_msg: str | None = None
    compared: comparison.Compared | None = None
    unread: bool = False

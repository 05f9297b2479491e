# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that others wrote, for messages, statuses and Events. Pure."""

from __future__ import annotations

#: characters of a message
MESSAGE = 1024
#: characters of a name, e.g. of an image: the longest valid one has less
NAME = 512


def cut(text: str, most: int = MESSAGE) -> str:
    """A text of at most `most` characters: of a longer one the beginning, and how long it is."""
    if len(text) <= most:
        return text
    end = f"... ({len(text)} characters)"
    return text[: most - len(end)] + end

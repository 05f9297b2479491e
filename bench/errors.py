# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stops a bench."""

from __future__ import annotations


class BenchError(Exception):
    """A measure that cannot be taken; the message says what is wrong and what to do."""

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one failure of the testbed that is meant for people."""

from __future__ import annotations


class TestbedError(Exception):
    """What is wrong, where, and what to do about it; the command line prints it and exits with 2."""

    __test__ = False

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes that every module of the collection documents."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check_mode and return changed status prediction without modifying target.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in check_mode), when in diff mode.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second run reports no change.
  direct:
    support: full
    description:
      - Runs in the controller's own process where the target is the controller itself (connection V(local) and the
        controller's interpreter), which saves starting a Python for it.
      - The environment variable E(KUBESTEWARD_DIRECT) set to V(0) on the controller turns this off.
"""

    READS = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: This module only reads.
  diff_mode:
    support: N/A
    details: This module changes nothing.
  idempotent:
    support: full
    details: This module changes nothing.
"""

    WRITES = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: Writes are sent as server-side dry runs, so that admission of the cluster is asked as well.
  diff_mode:
    support: full
  idempotent:
    support: full
"""

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Kubernetes cluster and registry on this machine, for tests, demo and bench.

Run `python -m testbed up|down|status`; in tests `testbed.connect()`, `testbed.images` and `testbed.audit`.
"""

from __future__ import annotations

from testbed.connection import Testbed, connect
from testbed.errors import TestbedError

__all__ = ["Testbed", "TestbedError", "connect"]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every unit test; `make test-long` sets KUBESTEWARD_LONG, for more examples of property tests."""

from __future__ import annotations

import os

from hypothesis import settings

# what unit tests say of the testbed is about the usual one, whichever is in use
os.environ.pop("TESTBED_INSTANCE", None)

# no deadline for one example: a busy machine would make it fail
# the quick ones are the same every time, so that a change is judged by what it changed; the long ones look for new ones
settings.register_profile("quick", max_examples=200, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=2000, deadline=None)
# for `make compat`
settings.register_profile("few", max_examples=20, deadline=None, derandomize=True)
settings.load_profile("long" if os.environ.get("KUBESTEWARD_LONG") else "quick")

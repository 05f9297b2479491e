# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Push an image whose program ends at once to repository:tag, the only argument, and print its digest."""

from __future__ import annotations

import sys

from testbed import images
from testbed.connection import connect

print(images.push(images.exiting_image(sys.argv[1]), sys.argv[1], connect().registry))

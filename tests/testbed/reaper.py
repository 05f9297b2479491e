# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""First process of the node's namespaces: reaps orphans; when it dies, the kernel ends everything in there.

Run by path with `python -I -S`, so it imports nothing of the package.
"""

from __future__ import annotations

import os
import time


def main() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.2)


if __name__ == "__main__":
    main()

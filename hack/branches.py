#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""branches.py REPORT.json PERCENT: fail where fewer branches are covered; coverage's own limit counts lines as well."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(report: str, least: str) -> None:
    covered = json.loads(Path(report).read_text())["totals"]["percent_branches_covered"]
    if covered < float(least):
        sys.exit(f"{covered:.2f} % of the branches are covered, {least} % are wanted")
    print(f"{covered:.2f} % of the branches are covered")


if __name__ == "__main__":
    main(*sys.argv[1:])

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limit on covered branches really stops a build."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("covered", "code"), [(90.0, 0), (89.99, 1)])
def test_limit(pytestconfig, tmp_path, covered, code):
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"totals": {"percent_branches_covered": covered, "percent_covered": 100.0}}))
    command = [sys.executable, pytestconfig.rootpath / "hack/branches.py", report, "90"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert f"{covered:.2f} % of the branches" in done.stdout + done.stderr

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""promtool reads the alerts, and each fires where it should and nowhere else."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from integration.passes import ROOT
from monitoring import programs

RULES = ROOT / "config/prometheus/rules.yaml"
CASES = ROOT / "tests/monitoring/alerts.yaml"
SECONDS = 120


@pytest.fixture(scope="module")
def promtool() -> Path:
    return programs.path_of(programs.PROMTOOL)


def run(promtool: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(promtool), *arguments], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The rules as Prometheus is given them, and the cases beside them."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(yaml.safe_load(RULES.read_text())["spec"]))
    (tmp_path / "alerts.yaml").write_text(CASES.read_text())
    return tmp_path


def test_promtool_finds_nothing_wrong_with_the_rules(promtool, folder):
    done = run(promtool, folder, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_case_holds(promtool, folder):
    done = run(promtool, folder, "test", "rules", "alerts.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_case_where_it_fires_and_one_where_it_does_not():
    alerts = {rule["alert"] for group in yaml.safe_load(RULES.read_text())["spec"]["groups"] for rule in group["rules"]}
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


def test_the_queries_of_the_dashboard_are_queries(promtool, tmp_path):
    """promtool parses no dashboards: each query is made the expression of a rule."""
    dashboard = json.loads((ROOT / "config/prometheus/dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 30
    plain = [re.sub(r"\$__rate_interval", "5m", query).replace("$namespace", "shop") for query in queries]
    assert not [query for query in plain if "$" in query]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(plain)]
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = run(promtool, tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "queries.yaml")
    assert done.returncode == 0, done.stdout + done.stderr

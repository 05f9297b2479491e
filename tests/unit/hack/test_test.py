# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner behind `make test`: nothing that failed may count as passed."""

from __future__ import annotations

import importlib.util
import sys
import time

import pytest


@pytest.fixture
def runner(pytestconfig, tmp_path, monkeypatch):
    """hack/test.py in a folder whose Makefile has targets with known ends."""
    spec = importlib.util.spec_from_file_location("hack_test", pytestconfig.rootpath / "hack/test.py")
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name
    monkeypatch.setitem(sys.modules, "hack_test", module)
    spec.loader.exec_module(module)
    (tmp_path / "Makefile").write_text(
        "good:\n\t@echo '==== 3 passed in 0.1s ===='\n"
        "bad:\n\t@echo why it failed; exit 3\n"
        "slow:\n\t@sleep 60\n"
        "part:\n\t@echo 'SKIPPED [1] tests/test_a.py:46: operator: no program'\n"
        "\t@echo 'SKIPPED [2] tests/test_b.py: no root'\n"
        "testbed-status:\n\t@exit $(RUNNING)\n"
        "testbed-down:\n\t@touch taken-down\n"
    )
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    for name in ("MAKEFLAGS", "MFLAGS", "TESTBED_KUBECONFIG", "KEEP_TESTBED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RUNNING", "0")
    return module


def steps(runner, *rows):
    return tuple(runner.Step(*row) for row in rows)


def test_all_passed(runner, monkeypatch, capsys):
    monkeypatch.setattr(runner, "STEPS", steps(runner, ("a", "good", 20), ("b", "good", 20, "a")))
    assert runner.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 passed, 0 failed"
    assert lines.count("==== 3 passed in 0.1s ====") == 2
    assert not any("\x1b" in line for line in lines)


def test_what_a_step_left_out_is_told_with_its_reason_and_counted(runner, monkeypatch, capsys):
    monkeypatch.setattr(runner, "STEPS", steps(runner, ("a", "good", 20), ("b", "part", 20)))
    assert runner.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 passed, 0 failed, 3 skipped"
    assert [
        line for line in lines if line.endswith("; skipped: operator: no program; skipped: no root; skipped: no root")
    ]


def test_failure_shows_its_log_and_hides_no_later_step(runner, monkeypatch, capsys):
    monkeypatch.setattr(runner, "STEPS", steps(runner, ("a", "bad", 20), ("b", "good", 20)))
    assert runner.main() == 1
    out = capsys.readouterr().out
    assert "why it failed" in out
    assert "The logs are in logs/" in out
    assert out.splitlines()[-1] == "1 passed, 1 failed"
    assert "why it failed" in (runner.LOGS / "a.log").read_text()


def test_step_whose_precondition_failed_counts_as_failed(runner, monkeypatch, capsys):
    rows = (("a", "bad", 20), ("b", "good", 20, "a"), ("c", "good", 20, "b"))
    monkeypatch.setattr(runner, "STEPS", steps(runner, *rows))
    assert runner.main() == 1
    out = capsys.readouterr().out
    assert "not run: it needs a, which failed" in out
    assert "not run: it needs b, which failed" in out
    assert out.splitlines()[-1] == "0 passed, 3 failed"


def test_step_is_given_up_after_its_time(runner, capsys):
    runner.LOGS.mkdir()
    began = time.monotonic()
    (outcome,) = runner.run_all(steps(runner, ("a", "slow", 1)))
    assert outcome.why == "given up after 1 s"
    assert time.monotonic() - began < 15
    assert "given up after 1 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environ", "status", "down"),
    [
        ({}, "0", False),
        ({}, "1", True),
        ({"KEEP_TESTBED": "1"}, "1", False),
        ({"TESTBED_KUBECONFIG": "/cluster"}, "1", False),
    ],
)
def test_only_a_testbed_that_was_not_there_before_is_taken_down(runner, monkeypatch, capsys, environ, status, down):
    monkeypatch.setattr(runner, "STEPS", steps(runner, ("a", "good", 20)))
    monkeypatch.setenv("RUNNING", status)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert runner.main() == 0
    assert (runner.ROOT / "taken-down").exists() == down
    assert "taking the testbed down failed" not in capsys.readouterr().out


def test_old_logs_do_not_pass_for_new_ones(runner, monkeypatch, capsys):
    runner.LOGS.mkdir()
    (runner.LOGS / "gone.log").write_text("old")
    monkeypatch.setattr(runner, "STEPS", steps(runner, ("a", "good", 20)))
    runner.main()
    assert [path.name for path in runner.LOGS.iterdir()] == ["a.log"]
    assert capsys.readouterr().out

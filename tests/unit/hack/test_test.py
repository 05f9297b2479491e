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
        "talks:\n\t@echo beginning; sleep 2; echo end\n"
        "first:\n\t@touch one; for i in $$(seq 100); do test -e two && exit 0; sleep 0.1; done; exit 4\n"
        "second:\n\t@touch two; for i in $$(seq 100); do test -e one && exit 0; sleep 0.1; done; exit 4\n"
        "testbed-status:\n\t@test $(RUNNING) != 1 || echo 'No testbed runs in /x.'; exit $(RUNNING)\n"
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
    (outcome,) = runner.Run(steps(runner, ("a", "slow", 1))).all()
    assert outcome.why == "given up after 1 s"
    assert time.monotonic() - began < 15
    assert "given up after 1 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environ", "status", "down"),
    [
        ({}, "0", False),
        ({}, "1", True),
        # one that starts just now
        ({}, "3", False),
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


def test_lanes_run_side_by_side_and_the_steps_of_one_in_turn(runner, monkeypatch, capsys):
    rows = (("a", "first", 20, None, "x"), ("b", "second", 20, None, "y"), ("c", "good", 20, "b", "x"))
    monkeypatch.setattr(runner, "STEPS", steps(runner, *rows))
    assert runner.main() == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "3 passed, 0 failed"
    assert [line.split()[0] for line in out.splitlines()[-5:-2]] == ["a", "b", "c"]


def test_a_failing_lane_hides_no_other_and_who_waits_for_it_is_told(runner, monkeypatch, capsys):
    rows = (("a", "bad", 20, None, "x"), ("b", "good", 20, "a", "y"), ("c", "good", 20, None, "z"))
    monkeypatch.setattr(runner, "STEPS", steps(runner, *rows))
    assert runner.main() == 1
    out = capsys.readouterr().out
    assert "not run: it needs a, which failed" in out
    assert out.splitlines()[-1] == "1 passed, 2 failed"


def test_a_fault_of_the_runner_counts_as_a_failed_step(runner, monkeypatch, capsys):
    def broken(self, step, log):
        raise OSError("no more processes")

    monkeypatch.setattr(runner.Run, "follow", broken)
    monkeypatch.setattr(runner, "STEPS", steps(runner, ("a", "good", 20), ("b", "good", 20, "a", "y")))
    assert runner.main() == 1
    out = capsys.readouterr().out
    assert "no more processes" in out
    assert out.splitlines()[-1] == "0 passed, 2 failed"


def test_it_is_told_beforehand_how_long_a_step_takes_and_meanwhile_what_it_does(runner, monkeypatch, capsys):
    monkeypatch.setattr(runner, "PATIENCE", 0.5)
    monkeypatch.setattr(runner, "STEPS", (runner.Step("a", "talks", 20, minutes="7"),))
    assert runner.main() == 0
    out = capsys.readouterr().out
    assert "-- a (log: logs/a.log, about 7 min on two cores)" in out
    assert "   a for 0 min: beginning" in out


def test_an_interrupt_ends_every_lane_and_begins_nothing_more(runner, monkeypatch):
    rows = (("a", "slow", 50, None, "x"), ("b", "slow", 50, None, "y"), ("c", "good", 20, "b", "x"))
    run = runner.Run(steps(runner, *rows))
    runner.LOGS.mkdir()

    def interrupt():
        if len(run.began) == 2:
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(runner, "PATIENCE", 0)
    monkeypatch.setattr(run, "at_work", interrupt)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run.all()
    assert time.monotonic() - began < 15
    assert {name: bool(outcome.why) for name, outcome in run.outcomes.items()} == {"a": True, "b": True, "c": True}
    assert "c" not in run.began

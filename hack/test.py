#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every check one after the other, each into a log of its own, and end with a table of times.

A step that fails does not hide the later ones; a step whose precondition failed counts as failed, never as passed.
Tests that were left out for a reason of this machine, pytest's lines with SKIPPED, are in the table and counted.
A testbed that was not there before is taken down again; KEEP_TESTBED=1 leaves it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "logs"
TAIL_LINES = 40
# Closing lines of pytest, coverage and ansible-lint, shown for steps that pass too.
SUMMARY = re.compile(r"^(=+ .*\b(passed|failed|errors?)\b.* =+|TOTAL .*%|Passed: .*|.* % of the branches .*)$")
# How many for a reason, where, and the reason.
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.+)$")
ESCAPES = re.compile(r"\x1b(\[[0-9;]*[A-Za-z]|\]8;[^\x1b\x07]*(\x1b\\|\x07)?)")
GREEN, RED, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


@dataclass(frozen=True)
class Step:
    """A make target; `seconds` is when it is given up, `needs` the name of a step that must have passed."""

    name: str
    target: str
    seconds: int
    needs: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How a step ended; `why` is empty when it passed, `skipped` says what of it was left out, and why."""

    step: Step
    seconds: float
    why: str = ""
    skipped: tuple[str, ...] = ()


STEPS = (
    Step("lint", "lint", 900),
    Step("unit", "unit", 900),
    Step("compat", "compat", 1800),
    Step("testbed", "testbed-up", 2700),
    Step("integration", "integration", 3600, needs="testbed"),
)


def main() -> int:
    """Return the exit code: 0 when every step passed."""
    LOGS.mkdir(exist_ok=True)
    for old in LOGS.glob("*.log"):
        old.unlink()
    down_at_the_end = must_take_down(os.environ)
    try:
        outcomes = run_all(STEPS)
    finally:
        if down_at_the_end:
            take_down()
    print("\n".join(table(outcomes)))
    return int(any(outcome.why for outcome in outcomes))


def must_take_down(environ: Mapping[str, str]) -> bool:
    if "TESTBED_KUBECONFIG" in environ or environ.get("KEEP_TESTBED"):
        return False
    status = subprocess.run(
        ["make", "--no-print-directory", "testbed-status"], cwd=ROOT, capture_output=True, timeout=120, check=False
    )
    return status.returncode != 0


def take_down() -> None:
    log = LOGS / "testbed-down.log"
    code = follow(Step("testbed-down", "testbed-down", 300), log)
    if code:
        print(f"taking the testbed down failed, see {log.relative_to(ROOT)}; try: make testbed-down", flush=True)


def run_all(steps: Iterable[Step]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for step in steps:
        failed = {outcome.step.name for outcome in outcomes if outcome.why}
        if step.needs in failed:
            outcome = Outcome(step, 0.0, f"not run: it needs {step.needs}, which failed")
        else:
            outcome = run_step(step)
        outcomes.append(outcome)
        print(verdict(outcome), flush=True)
    return outcomes


def run_step(step: Step) -> Outcome:
    """Run one step and show its closing lines, or the end of its log where it failed."""
    log = LOGS / f"{step.name}.log"
    print(f"-- {step.name} (log: {log.relative_to(ROOT)})", flush=True)
    began = time.monotonic()
    code = follow(step, log)
    seconds = time.monotonic() - began
    lines = ESCAPES.sub("", log.read_text(errors="replace")).splitlines()
    shown = [line for line in lines if SUMMARY.match(line)] if code == 0 else lines[-TAIL_LINES:]
    for line in shown:
        print(line, flush=True)
    why = {0: "", None: f"given up after {step.seconds} s"}.get(code, f"exit {code}")
    return Outcome(step, seconds, why, left_out(lines))


def left_out(lines: Iterable[str]) -> tuple[str, ...]:
    """Why tests were skipped, the same reason once for each of them."""
    return tuple(found[2] for found in map(SKIPPED.match, lines) if found for _ in range(int(found[1])))


def follow(step: Step, log: Path) -> int | None:
    """The exit code of `make TARGET`, or None when it was given up; only what it started is ended."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["make", "--no-print-directory", "--keep-going", step.target],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=step.seconds)
        except subprocess.TimeoutExpired:
            end(process)
            return None
        except BaseException:
            end(process)
            raise


def end(process: subprocess.Popen[bytes]) -> None:
    """End the step's process group: politely first, so that it can tidy up."""
    for number, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
        os.killpg(process.pid, number)
        try:
            process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        return


def verdict(outcome: Outcome) -> str:
    word = f"FAILED ({outcome.why})" if outcome.why else "passed"
    if sys.stdout.isatty():
        word = f"{RED if outcome.why else GREEN}{word}{PLAIN}"
    skipped = "".join(f"; skipped: {what}" for what in outcome.skipped)
    return f"{outcome.step.name:<12} {outcome.seconds:7.1f} s  {word}{skipped}"


def table(outcomes: list[Outcome]) -> list[str]:
    """Lines for people, and a plain last one that counts the steps."""
    failed = sum(bool(outcome.why) for outcome in outcomes)
    total = sum(outcome.seconds for outcome in outcomes)
    lines = ["", *map(verdict, outcomes), f"{'together':<12} {total:7.1f} s"]
    if failed:
        lines.append(f"The logs are in {LOGS.relative_to(ROOT)}/")
    skipped = sum(len(outcome.skipped) for outcome in outcomes)
    return [*lines, f"{len(outcomes) - failed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

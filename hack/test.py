#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every check, each into a log of its own, and end with a table of times.

Steps of one lane run in turn, lanes side by side: while a cluster is built and started, style and unit tests
are checked. A step that fails does not hide the others; a step whose precondition failed counts as failed, never as
passed. Tests that were left out for a reason of this machine, pytest's lines with SKIPPED, are in the table and
counted. A testbed that was not there before is taken down again; KEEP_TESTBED=1 leaves it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "logs"
TAIL_LINES = 40
# Between lines that say what is being done.
PATIENCE = 120
# Closing lines of pytest, coverage and ansible-lint, shown for steps that pass too.
SUMMARY = re.compile(r"^(=+ .*\b(passed|failed|errors?)\b.* =+|TOTAL .*%|Passed: .*|.* % of the branches .*)$")
# How many for a reason, where, and the reason.
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.+)$")
ESCAPES = re.compile(r"\x1b(\[[0-9;]*[A-Za-z]|\]8;[^\x1b\x07]*(\x1b\\|\x07)?)")
GREEN, RED, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"


@dataclass(frozen=True)
class Step:
    """A make target; `seconds` is when it is given up, `needs` the name of a step that must have passed.

    `minutes`: about how long it takes on two cores, for people to read; `again`: once what it builds is there.
    """

    name: str
    target: str
    seconds: int
    needs: str | None = None
    lane: str = "checks"
    minutes: str = ""
    again: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a step ended; `why` is empty when it passed, `skipped` says what of it was left out, and why."""

    step: Step
    seconds: float
    why: str = ""
    skipped: tuple[str, ...] = ()


STEPS = (
    Step("lint", "lint", 900, minutes="1"),
    Step("unit", "unit", 1800, minutes="4"),
    Step("compat", "compat", 2700, minutes="5"),
    Step("testbed", "testbed-up", 2700, lane="cluster", minutes="10", again="0"),
    Step("integration", "integration", 3600, needs="testbed", lane="cluster", minutes="10"),
    # what integration tests ask for; those that need none of it begin before
    Step("programs", "programs", 2700, needs="testbed", lane="programs", minutes="8", again="0"),
)


def main() -> int:
    """Return the exit code: 0 when every step passed."""
    LOGS.mkdir(exist_ok=True)
    for old in LOGS.glob("*.log"):
        old.unlink()
    down_at_the_end = must_take_down(os.environ)
    began = time.monotonic()
    try:
        outcomes = Run(STEPS).all()
    finally:
        if down_at_the_end:
            take_down()
    print("\n".join(table(outcomes, time.monotonic() - began)))
    return int(any(outcome.why for outcome in outcomes))


def must_take_down(environ: Mapping[str, str]) -> bool:
    if "TESTBED_KUBECONFIG" in environ or environ.get("KEEP_TESTBED"):
        return False
    status = subprocess.run(
        ["make", "--no-print-directory", "testbed-status"], cwd=ROOT, capture_output=True, timeout=120, check=False
    )
    # one that starts just now, or has a moment's trouble, is somebody's too
    return status.returncode != 0 and b"No testbed runs" in status.stdout + status.stderr


def take_down() -> None:
    log = LOGS / "testbed-down.log"
    code = Run(()).follow(Step("testbed-down", "testbed-down", 300), log)
    if code:
        print(f"taking the testbed down failed, see {log.relative_to(ROOT)}; try: make testbed-down", flush=True)


class Run:
    """Steps in their lanes, a thread for each lane."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = tuple(steps)
        self.outcomes: dict[str, Outcome] = {}
        self.began: dict[str, float] = {}
        self._ended = {step.name: threading.Event() for step in self.steps}
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def all(self) -> list[Outcome]:
        """Run them; an interrupt ends what runs, and nothing more is begun."""
        lanes = [threading.Thread(target=self._lane, args=(name,)) for name in {step.lane: 0 for step in self.steps}]
        for lane in lanes:
            lane.start()
        try:
            told = time.monotonic()
            for lane in lanes:
                while lane.is_alive():
                    lane.join(0.2)
                    if time.monotonic() > told + PATIENCE:
                        told = time.monotonic()
                        say("".join(f"   {line}\n" for line in self.at_work()).rstrip())
        except BaseException:
            self.stop()
            for lane in lanes:
                lane.join()
            raise
        return [self.outcomes[step.name] for step in self.steps]

    def at_work(self) -> list[str]:
        """What runs, for how long, and the last line that it wrote."""
        lines = []
        for step in self.steps:
            if step.name in self.began and step.name not in self.outcomes:
                minutes = (time.monotonic() - self.began[step.name]) / 60
                written = ESCAPES.sub("", log_of(step).read_text(errors="replace")).split("\n")
                last = next((line.strip() for line in reversed(written) if line.strip()), "")
                lines.append(f"{step.name} for {minutes:.0f} min: {last[:90]}")
        return lines

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._processes)
        for process in running:
            end(process)

    def _lane(self, lane: str) -> None:
        for step in (step for step in self.steps if step.lane == lane):
            try:
                outcome = self._outcome(step)
            # a fault of this file itself is the step's, and no reason to leave those who wait for it waiting
            except Exception as exc:
                outcome = Outcome(step, 0.0, f"not finished: {exc!r}")
            self.outcomes[step.name] = outcome
            self._ended[step.name].set()

    def _outcome(self, step: Step) -> Outcome:
        if step.needs:
            self._ended[step.needs].wait()
        if self._stopped:
            return Outcome(step, 0.0, "not run: interrupted")
        if step.needs and self.outcomes[step.needs].why:
            outcome = Outcome(step, 0.0, f"not run: it needs {step.needs}, which failed")
            say(verdict(outcome))
            return outcome
        return self._run(step)

    def _run(self, step: Step) -> Outcome:
        """Run one step and show its closing lines, or the end of its log where it failed."""
        log = log_of(step)
        log.touch()
        again = f", {step.again} once it is built" if step.again else ""
        about = f", about {step.minutes} min on two cores{again}" if step.minutes else ""
        say(f"-- {step.name} (log: {log.relative_to(ROOT)}{about})")
        began = self.began[step.name] = time.monotonic()
        code = self.follow(step, log)
        seconds = time.monotonic() - began
        lines = ESCAPES.sub("", log.read_text(errors="replace")).splitlines()
        shown = [line for line in lines if SUMMARY.match(line)] if code == 0 else lines[-TAIL_LINES:]
        why = {0: "", None: f"given up after {step.seconds} s"}.get(code, f"exit {code}")
        outcome = Outcome(step, seconds, why, left_out(lines))
        say("\n".join([*shown, verdict(outcome)]))
        return outcome

    def follow(self, step: Step, log: Path) -> int | None:
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
            with self._lock:
                self._processes.add(process)
                stopped = self._stopped
            try:
                if stopped:
                    end(process)
                return process.wait(timeout=step.seconds)
            except subprocess.TimeoutExpired:
                end(process)
                return None
            except BaseException:
                end(process)
                raise
            finally:
                with self._lock:
                    self._processes.discard(process)


def log_of(step: Step) -> Path:
    return LOGS / f"{step.name}.log"


def say(text: str) -> None:
    """In one write: lanes must not mix their lines."""
    if text:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def left_out(lines: Iterable[str]) -> tuple[str, ...]:
    """Why tests were skipped, the same reason once for each of them."""
    return tuple(found[2] for found in map(SKIPPED.match, lines) if found for _ in range(int(found[1])))


def end(process: subprocess.Popen[bytes]) -> None:
    """End the step's process group: politely first, so that it can tidy up."""
    for number, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
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


def table(outcomes: list[Outcome], seconds: float) -> list[str]:
    """Lines for people, and a plain last one that counts the steps; `seconds` passed in all."""
    failed = sum(bool(outcome.why) for outcome in outcomes)
    lines = ["", *map(verdict, outcomes), f"{'together':<12} {seconds:7.1f} s"]
    if failed:
        lines.append(f"The logs are in {LOGS.relative_to(ROOT)}/")
    skipped = sum(len(outcome.skipped) for outcome in outcomes)
    return [*lines, f"{len(outcomes) - failed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")]


def interrupted(_signal: int, _frame: object) -> t.NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line: `python -m bench [--only NAME,...] [--repeats N]`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import typing as t

from bench import catalog, cluster, many, ns_create, ns_unchanged, operator, passes, registry, results, sweep, workloads
from bench.errors import BenchError
from bench.play import OUT, ROOT
from bench.rounds import alternate
from testbed import Testbed, TestbedError, connect
from testbed import cluster as testbed_cluster
from testbed import settings as testbed_settings
from testbed.console import fail, say, step, table

REPEATS = 11
#: by group, what takes measures: `NAMES`, and `prepared`, which gives what is run by name
GROUPS: t.Mapping[str, tuple[t.Any, ...]] = {
    "pass": (passes, workloads, sweep, ns_unchanged),
    "images": (many,),
    "registry": (registry,),
    "creation": (ns_create,),
    "operator": (operator,),
}
# a round of thousands of look-ups, or of hundreds of namespaces, takes long and is a mean already
MOST_REPEATS = {"registry": 5, "creation": 3, "operator": 4}
_GREEN, _RED, _END = "\033[32m", "\033[31m", "\033[0m"


class Run(t.Protocol):
    """Something that can be measured again and again."""

    def run(self, unchanged: bool = True) -> float: ...


def main() -> int:
    """Exit code 0, 1 where a requirement was not met, 2 where it could not be measured, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="bench", description="What a pass costs, measured on the testbed.")
    parser.add_argument("--only", default="", metavar="NAME,...", help="these, and what they are compared with")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N", help="rounds, default %(default)s")
    options = parser.parse_args()
    # an ended bench must clean up behind itself, however it is asked to end
    signal.signal(signal.SIGTERM, _terminated)
    try:
        if options.repeats < 1:
            raise BenchError(f"--repeats is {options.repeats}; give 1 or more")
        measures = catalog.select(options.only)
        samples = measure_all(found_testbed(), measures, options.repeats)
    except (BenchError, TestbedError) as exc:
        fail(str(exc))
        return 2
    except KeyboardInterrupt:
        fail("interrupted")
        return 130
    return report(measures, samples)


def _terminated(_signal: int, _frame: object) -> t.NoReturn:
    raise KeyboardInterrupt


def found_testbed() -> Testbed:
    """The testbed that runs, or a new one."""
    try:
        return connect()
    except TestbedError as exc:
        say(f"{exc} Doing that now.")
        testbed_cluster.up(testbed_settings.from_environment(os.environ))
        return connect()


def measure_all(bed: Testbed, measures: t.Sequence[catalog.Measure], repeats: int) -> dict[str, list[float]]:
    """Seconds, or a rate, of every round, by measure that is taken."""
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob("*.log"):
        old.unlink()
    with step("custom resource definitions"):
        cluster.install_crds(bed)
    samples: dict[str, list[float]] = {}
    for group, members in catalog.groups(measures).items():
        taken = [measure.name for measure in members if measure.taken]
        rounds = min(repeats, MOST_REPEATS.get(group, repeats))
        with contextlib.ExitStack() as stack:
            plays: dict[str, Run] = {}
            for source in GROUPS[group]:
                if not set(taken).isdisjoint(source.NAMES):
                    plays |= stack.enter_context(source.prepared(bed))
            most = {measure.name: measure.rounds for measure in members if measure.rounds}
            samples.update(measure_group({name: plays[name] for name in taken}, rounds, most))
    return samples


def measure_group(plays: t.Mapping[str, Run], repeats: int, most: t.Mapping[str, int]) -> dict[str, list[float]]:
    """One warm-up of each play, then alternating rounds; `most` are the rounds of those that take long."""
    with step(f"warm up {', '.join(plays)}"):
        for play in plays.values():
            play.run(unchanged=False)
    with step(f"{repeats} alternating rounds of {', '.join(plays)}"):
        return alternate({name: play.run for name, play in plays.items()}, repeats, _progress(repeats), most)


def _progress(repeats: int) -> t.Callable[[int], None]:
    def told(number: int) -> None:
        if sys.stderr.isatty():
            print(f"   round {number}/{repeats}", end="\r", file=sys.stderr, flush=True)

    return told


def report(measures: t.Sequence[catalog.Measure], samples: results.Samples) -> int:
    """Print the table, write results.json, and return the exit code."""
    entries = [results.entry(measure, samples) for measure in measures]
    path = OUT / "results.json"
    path.write_text(json.dumps(entries, indent=2) + "\n")
    pairs = list(zip(measures, entries, strict=True))
    heading, *lines = table([results.HEADINGS, *(results.row(*pair) for pair in pairs)]).splitlines()
    met = [results.is_met(measure.limit, entry) for measure, entry in pairs]
    print(heading)
    for line, verdict in zip(lines, met, strict=True):
        print(_painted(line, verdict))
    say(f"written to {path.relative_to(ROOT)}; what the plays said is beside it")
    return int(False in met)


def _painted(line: str, met: bool | None) -> str:
    if met is None or not sys.stdout.isatty():
        return line
    return f"{_GREEN if met else _RED}{line}{_END}"


if __name__ == "__main__":
    sys.exit(main())

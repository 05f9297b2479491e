# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Group `creation`: 200 new namespaces with ns_provision; 10 with the loop, which would take minutes for all.

Both are told in seconds per namespace. What was made stays until the end of the group: its deletion would slow down
the runs that follow.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from bench import ns
from bench.play import Play
from testbed import Testbed
from testbed.console import step

MANY, FEW = 200, 10
WARM_UP = 2
OURS, THEIRS, WRITES = "ns_200_create", "ns_10_create_k8s_module", "ns_create_writes"
NAMES = (OURS, THEIRS, WRITES)
Make = t.Callable[[t.Sequence[str]], Play]


@dataclass
class Created:
    """Makes new namespaces in each run; see `ns.Counted`.

    :ivar made: names of all that were made
    """

    make: Make
    count: int
    bed: Testbed
    made: list[str]
    writes: int | None = field(default=None, init=False)

    def run(self, unchanged: bool = True) -> float:
        """Seconds per namespace; a warm-up makes few.

        :raises BenchError: one of them is not complete afterwards
        """
        wanted = ns.names(self.count if unchanged else WARM_UP)
        # before they are made, so that they are deleted however this ends
        self.made += wanted
        log = ns.Log(self.bed)
        mark = log.mark()
        seconds = self.make(wanted).run()
        self.writes = log.most_writes(mark, wanted)
        ns.objects(self.bed, wanted)
        return seconds / len(wanted)


@contextlib.contextmanager
def prepared(bed: Testbed) -> t.Iterator[dict[str, Created | ns.Writes]]:
    """What is run, by name."""
    made = ns.names(1)
    with tempfile.TemporaryDirectory(prefix="kubesteward-bench-") as name:
        folder = Path(name)
        try:
            with step("a namespace whose objects the loop makes, too"):
                ns.provision(OURS, bed, made, folder, changed=1).run()
                pattern = ns.objects(bed, made)

            def ours(wanted: t.Sequence[str]) -> Play:
                return ns.provision(OURS, bed, wanted, folder, changed=1)

            def theirs(wanted: t.Sequence[str]) -> Play:
                objects = [item for new in wanted for item in renamed(pattern, made[0], new)]
                return ns.loop(THEIRS, bed, objects, folder, changed=1)

            first = Created(ours, MANY, bed, made)
            yield {OURS: first, THEIRS: Created(theirs, FEW, bed, made), WRITES: ns.Writes(first)}
        finally:
            ns.delete(bed, made)


def renamed(objects: t.Sequence[ns.Object], old: str, new: str) -> list[ns.Object]:
    """The same objects of another namespace."""
    return json.loads(json.dumps(objects).replace(old, new))

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""20 namespaces as they should be: nothing is left to do, neither for ns_provision nor for the loop."""

from __future__ import annotations

import contextlib
import tempfile
import typing as t
from pathlib import Path

from bench import ns
from bench.errors import BenchError
from bench.play import Play
from testbed import Testbed
from testbed.console import step

MANY = 20
OURS, THEIRS, WRITES = "ns_20_unchanged", "ns_20_unchanged_k8s_module", "ns_unchanged_writes"
NAMES = (OURS, THEIRS, WRITES)


@contextlib.contextmanager
def prepared(bed: Testbed) -> t.Iterator[dict[str, Play | ns.Watched | ns.Writes]]:
    """The plays, by name, over namespaces where nothing is left to do."""
    wanted = ns.names(MANY)
    with tempfile.TemporaryDirectory(prefix="kubesteward-bench-") as name:
        folder = Path(name)
        try:
            with step(f"{MANY} namespaces by size"):
                made = ns.Watched(ns.provision(OURS, bed, wanted, folder, changed=1), wanted, ns.Log(bed))
                made.run()
                objects = ns.objects(bed, wanted)
            if made.writes == 0:
                raise BenchError("the audit log has nothing of what was made: no writes in it would say nothing")
            ours = ns.Watched(ns.provision(OURS, bed, wanted, folder), wanted, ns.Log(bed))
            yield {OURS: ours, THEIRS: ns.loop(THEIRS, bed, objects, folder), WRITES: ns.Writes(ours)}
        finally:
            ns.delete(bed, wanted)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured of a pass over 500 workloads."""

from __future__ import annotations

from bench import workloads
from bench.memory import Peak
from bench.play import Expected, Play


def test_memory_is_that_of_the_run_that_was_timed(monkeypatch):
    def run(self, unchanged, beside):
        assert beside == watched.peak.watching
        watched.peak.kib = 1000 * 1000
        return 1.5

    monkeypatch.setattr(Play, "run", run)
    watched = workloads.Watched(Play("x", (), Expected(), {}), Peak())
    assert watched.run() == 1.5
    assert workloads.Memory(watched).run() == 1024.0

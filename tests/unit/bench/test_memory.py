# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory is that of all processes of a run which are alive at the same time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench import memory
from bench.errors import BenchError

KIB = 1024
#: a process that needs little and has children that need much, one after the other or together
PARENT = """
import subprocess, sys
def child(size):
    code = f"held = b'x' * {{size}}; import time; time.sleep(0.3)"
    return subprocess.Popen([sys.executable, "-c", code])
first = child(64 * 1024 * 1024)
{wait}
second = child(64 * 1024 * 1024)
first.wait()
second.wait()
"""


def made(proc, pid, peak, children=()):
    task = proc / str(pid) / "task" / str(pid)
    task.mkdir(parents=True)
    (task / "children").write_text(" ".join(map(str, children)))
    (proc / str(pid) / "status").write_text(f"Name:\tpython\nVmPeak:\t  9 kB\nVmHWM:\t  {peak} kB\nVmRSS:\t  1 kB\n")


def test_a_tree_is_a_process_with_its_children_and_theirs(tmp_path):
    made(tmp_path, 1, 100, [2, 3])
    made(tmp_path, 2, 20, [4])
    made(tmp_path, 4, 5)
    made(tmp_path, 5, 7)
    # 3 has ended in the meantime
    assert sorted(memory.tree(1, tmp_path)) == [1, 2, 3, 4]
    assert [memory.peak_of(pid, tmp_path) for pid in (1, 2, 3, 4)] == [100, 20, 0, 5]


def test_the_peak_is_the_most_of_any_moment(tmp_path):
    made(tmp_path, 1, 100, [2])
    made(tmp_path, 2, 50)
    peak = memory.Peak(tmp_path)
    with peak.watching(1):
        _until(lambda: peak.kib == 150)
        (tmp_path / "1" / "task" / "1" / "children").write_text("")
        (tmp_path / "1" / "status").write_text("VmHWM:\t  120 kB\n")
    assert peak.kib == 150


def test_a_kernel_that_does_not_tell_ends_the_bench(tmp_path):
    with pytest.raises(BenchError, match="does not tell the memory"), memory.Peak(tmp_path).watching(1):
        pass


@pytest.mark.parametrize(("wait", "least", "most"), [("first.wait()", 70, 128), ("", 134, 256)])
def test_children_count_while_they_are_alive(wait, least, most):
    peak = memory.Peak()
    with subprocess.Popen([sys.executable, "-c", PARENT.format(wait=wait)]) as process, peak.watching(process.pid):
        process.wait(30)
    assert least * KIB < peak.kib < most * KIB


def test_this_process_has_a_peak():
    assert memory.peak_of(os.getpid()) > KIB


def _until(ready):
    import time

    end = time.monotonic() + 5
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.005)

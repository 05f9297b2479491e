# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory of a control group is read as a kubelet reads it, in either version."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time

import pytest

from bench import cgroup
from bench.errors import BenchError

MIB = 1024 * 1024
V1 = "5:cpu,cpuacct:/\n4:memory:/job/1\n0::/\n"


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_file_pages_that_nobody_used_twice_do_not_count(tmp_path):
    write(tmp_path / "two", memory__current="1000\n", memory__stat="anon 700\ninactive_file 200\nactive_file 100\n")
    assert cgroup.Group(tmp_path / "two").working_set() == 800
    stat = "inactive_file 1\ntotal_inactive_file 300\n"
    write(tmp_path / "one", memory__usage_in_bytes="1000\n", memory__stat=stat)
    assert cgroup.Group(tmp_path / "one").working_set() == 700


def test_a_group_that_does_not_tell_ends_the_bench(tmp_path):
    with pytest.raises(BenchError, match="which needs root and a writable memory control group"):
        cgroup.Group(tmp_path).working_set()


def test_the_peak_is_the_most_of_any_moment(tmp_path):
    write(tmp_path, memory__current="100\n", memory__stat="inactive_file 0\n")
    group = cgroup.Group(tmp_path)
    with group.watching():
        (tmp_path / "memory.current").write_text("500\n")
        end = time.monotonic() + 5
        while group.peak != 500:
            assert time.monotonic() < end
            time.sleep(0.005)
        (tmp_path / "memory.current").write_text("200\n")
    assert group.peak == 500


def test_groups_are_made_below_our_own_or_at_the_top(tmp_path):
    write(tmp_path / "memory/job/1")
    assert cgroup.parent(tmp_path, V1) == tmp_path / "memory/job/1"
    # in a container the path is one of the machine outside
    assert cgroup.parent(tmp_path, V1.replace("/job/1", "/elsewhere")) == tmp_path / "memory"
    write(tmp_path / "two", cgroup__controllers="cpu memory\n", cgroup__subtree_control="cpu memory\n")
    assert cgroup.parent(tmp_path / "two", "0::/user.slice\n") == tmp_path / "two"


def test_a_machine_that_counts_no_memory_ends_the_bench(tmp_path):
    with pytest.raises(BenchError, match="names no memory control group"):
        cgroup.parent(tmp_path, "1:cpu:/\n0::/\n")
    write(tmp_path, cgroup__controllers="cpu memory\n", cgroup__subtree_control="cpu\n")
    with pytest.raises(BenchError, match="subtree_control lacks `memory`"):
        cgroup.parent(tmp_path, "0::/\n")
    (tmp_path / "own").write_text("1:memory:/\n")
    with pytest.raises(BenchError, match="needs root"), cgroup.made(tmp_path / "none", tmp_path / "own"):
        pass


def test_what_runs_in_a_group_is_counted_with_its_children():
    hold = "import time; held = b'x' * (64 * 1024 * 1024); time.sleep(1)"
    fork = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}], check=True)"
    with contextlib.ExitStack() as stack:
        try:
            group = stack.enter_context(cgroup.made())
        except BenchError as exc:
            pytest.skip(str(exc))
        with group.watching():
            subprocess.run(group.command(sys.executable, "-c", fork), check=True, timeout=60)
        assert 64 * MIB < group.peak < 128 * MIB
    assert not group.folder.exists()

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls at the same time: order, errors, and an interrupt that waits for nobody."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.concurrency import run_concurrently


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_results_are_in_the_order_of_the_items(count):
    assert run_concurrently(lambda item: item * 2, range(count), 8) == [item * 2 for item in range(count)]


def test_as_many_run_at_the_same_time_as_there_are_workers():
    barrier = threading.Barrier(4, timeout=10)
    run_concurrently(lambda _item: barrier.wait(), range(8), 4)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_is_raised_after_all_have_been_worked_on(kind):
    seen = []

    def work(item):
        seen.append(item)
        if item == 1:
            raise kind("of the second")

    with pytest.raises(kind, match="of the second"):
        run_concurrently(work, range(20), 4)
    assert sorted(seen) == list(range(20))


def test_after_an_interrupt_nothing_is_begun_and_the_process_ends():
    script = """
        import signal, time
        from ansible_collections.kubesteward.core.plugins.module_utils.concurrency import run_concurrently

        begun = []

        def work(item):
            begun.append(item)
            time.sleep(60)

        def late(_number, _frame):
            raise TimeoutError

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            run_concurrently(work, range(12), 4)
        except TimeoutError:
            print(sorted(begun))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(
        command,
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("[0, 1, 2, 3]\n", 0), done.stderr

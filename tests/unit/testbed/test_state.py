# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from testbed import processes, state
from testbed.processes import Process

STATE = state.State("key", 16400, "boot", True, {"vm/x": "1"}, (Process("etcd", 1, 2, 3, "http://x"),))


def test_a_state_survives_the_file(tmp_path: Path) -> None:
    state.save(tmp_path / "state.json", STATE)
    assert state.load(tmp_path / "state.json") == STATE
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_saving_replaces(tmp_path: Path) -> None:
    state.save(tmp_path / "state.json", STATE)
    state.save(tmp_path / "state.json", replace(STATE, ready=False))
    assert state.load(tmp_path / "state.json") == replace(STATE, ready=False)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"format": 99, "processes": []}', '{"format": 1, "processes": []}', '{"format": 1}'),
        STATE.dump().replace('"pid"', '"pidd"'),
        STATE.dump()[:-20],
    ],
)
def test_what_is_not_a_state_of_this_version_is_none(text: str) -> None:
    assert state.State.parse(text) is None


def test_a_missing_file_is_no_state(tmp_path: Path) -> None:
    assert state.load(tmp_path / "none" / "state.json") is None


def test_a_process_with_blanks_and_brackets_in_its_name_is_parsed() -> None:
    fields = " ".join(["S", "7", *(str(number) for number in range(5, 25))])
    assert processes.parse_stat(f"12 (a) b (c)) {fields}\n") == ("S", 7, 22)


def test_a_reused_pid_is_not_the_process() -> None:
    started = processes.start_time(os.getpid())
    assert started is not None
    assert Process("me", os.getpid(), started, None, None).alive()
    assert not Process("me", os.getpid(), started + 1, None, None).alive()


def test_marked_processes_are_found_by_their_folder_and_ended(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    process = processes.spawn("sleeper", ["sleep", "60"], tmp_path, None, None, {})
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        assert processes.marked(tmp_path) == {process.pid: str(tmp_path)}
        assert processes.marked(tmp_path / "other") == {}
        processes.kill(processes.marked(tmp_path))
        assert not process.alive()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_spawned_process_inherits_nothing_secret_and_logs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    (tmp_path / "logs").mkdir()
    process = processes.spawn("env", ["sh", "-c", "env; exec sleep 60"], tmp_path, None, None, {"EXTRA": "1"})
    try:
        log = tmp_path / "logs" / "env.log"
        for _attempt in range(100):
            if "PATH=" in log.read_text() and log.read_text().endswith("\n"):
                break
            processes.time.sleep(0.02)
        assert "EXTRA=1" in processes.tail(log, 50)
        assert "proxy.example" not in log.read_text()
    finally:
        processes.kill([process.pid])

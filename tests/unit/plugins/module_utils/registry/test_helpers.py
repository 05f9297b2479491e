# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
import threading

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.registry.helpers import HelperAsk, Helpers
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    manifest,
    one,
    serving,
)

MARKER = "m4rk3r-s3cret"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes `docker-credential-test` of a shell script."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def make(script):
        path = tmp_path / "docker-credential-test"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


def ask(name="test", server="r.example", **given):
    warnings: list[str] = []
    return Helpers(**given).get(HelperAsk(name, server, "auth_file x"), warnings), warnings


def test_the_helper_is_asked_for_the_server_and_its_answer_used(program):
    program('read server; echo "{\\"ServerURL\\":\\"x\\",\\"Username\\":\\"$1-$server\\",\\"Secret\\":\\"s\\"}"')
    found, warnings = ask()
    assert (found.username, found.password) == ("get-r.example", "s")
    assert found.source == "auth_file x (helper test)"
    assert not warnings


def test_a_token_of_a_helper_is_an_identity_token(program):
    program('echo \'{"Username":"<token>","Secret":"id"}\'')
    assert ask()[0].identity_token == "id"


def test_a_helper_that_has_nothing_is_no_problem(program):
    program('echo "credentials not found in native keychain"; exit 1')
    assert ask() == (None, [])


@pytest.mark.parametrize(
    ("script", "what"),
    [
        (f"echo {MARKER} >&2; echo {MARKER}; exit 3", "exit status 3"),
        (f"echo {MARKER}", "not one"),
        (f'echo \'{{"Username":1,"Secret":"{MARKER}"}}\'', "not one"),
        ("echo '[]'", "not one"),
    ],
)
def test_a_failing_helper_is_named_and_nothing_of_it_shown(program, script, what):
    program(script)
    found, (warning,) = ask()
    assert found is None
    assert what in warning
    assert "auth_file x" in warning
    assert MARKER not in warning


def test_a_helper_that_hangs_is_ended(program):
    program("exec sleep 30")
    found, (warning,) = ask(timeout=0.2)
    assert found is None
    assert "0.2 s" in warning


def test_a_helper_that_is_not_installed_or_not_a_program(program):
    assert "not installed" in ask("missing")[1][0]
    assert "not allowed" in ask("../evil")[1][0]
    program("").write_bytes(b"\x7fELF")
    assert "cannot be started" in ask()[1][0]


def test_a_helper_runs_once_for_all_threads(program, tmp_path):
    program(f'echo x >> {tmp_path}/runs; echo \'{{"Username":"u","Secret":"s"}}\'')
    shared, item = Helpers(), HelperAsk("test", "r.example", "x")
    threads = [threading.Thread(target=shared.get, args=(item, [])) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "runs").read_text() == "x\n"


def test_a_helper_of_the_configuration_opens_the_registry(program):
    program('echo \'{"Username":"u","Secret":"s"}\'')

    def asks(asked):
        if asked.authorization == "Basic dTpz":
            return content(tags={"t": manifest()})(asked)
        return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})

    with serving(asks) as server:
        found = one(f"{server.host}/app:t", auth_config={"credHelpers": {server.host: "test"}})
    assert (found["state"], found["credential_source"]) == ("found", "auth_config (helper test)")

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct execution happens only where the controller is the target; an integration test compares the results."""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import sys
import types
from pathlib import Path

import pytest
from ansible import constants
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import VaultLib, VaultSecret
from ansible.plugins.shell.sh import ShellModule
from ansible.template import Templar
from monitoring.fake_operator import FakeOperator

from ansible_collections.kubesteward.core.plugins.plugin_utils import direct

ROOT = Path(__file__).parents[4]
MODULE = "kubesteward.core.registry_digest"


class Action(direct.DirectAction):
    MODULE = MODULE


def action(
    transport="local", become=None, async_val=0, delegate_to=None, variables=None, environment=None, arguments=None
):
    """An action plugin for such a task."""
    connection = types.SimpleNamespace(transport=transport, become=become, _shell=ShellModule())
    task = types.SimpleNamespace(
        async_val=async_val,
        delegate_to=delegate_to,
        args=arguments or {},
        action=MODULE,
        environment=environment,
        check_mode=False,
    )
    templar = Templar(loader=DataLoader(), variables=variables or {})
    return Action(task, connection, types.SimpleNamespace(), DataLoader(), templar, None)


@pytest.fixture(autouse=True)
def no_settings_of_the_developer(monkeypatch):
    for name in ("KUBESTEWARD_DIRECT", "KUBESTEWARD_METRICS_URL", "ANSIBLE_PYTHON_INTERPRETER"):
        monkeypatch.delenv(name, raising=False)


def is_direct(variables=None, **task):
    variables = variables or {"ansible_python_interpreter": sys.executable}
    return action(variables=variables, **task)._is_direct(variables)


def test_a_local_task_is_run_directly():
    assert is_direct()


@pytest.mark.parametrize(
    "task",
    [{"transport": "ssh"}, {"transport": "community.docker.docker"}, {"become": object()}, {"async_val": 30}],
)
def test_another_target_or_user_or_a_task_in_the_background_is_started(task):
    assert not is_direct(**task)


@pytest.mark.parametrize("value", ["0", "no", "False", "off"])
def test_the_environment_turns_it_off(monkeypatch, value):
    monkeypatch.setenv("KUBESTEWARD_DIRECT", value)
    assert not is_direct()


@pytest.mark.parametrize(
    ("interpreter", "expected"),
    [
        (sys.executable, True),
        (str(Path(sys.executable).parent / "python"), True),
        ("auto", True),
        ("auto_silent", True),
        ("/no/such/python", False),
        ("python3", False),
    ],
)
def test_only_the_controllers_own_python_is_direct(interpreter, expected):
    assert is_direct({"ansible_python_interpreter": interpreter}) is expected


def test_the_same_file_in_another_environment_is_another_python(tmp_path):
    link = tmp_path / "python"
    link.symlink_to(os.path.realpath(sys.executable))
    assert not is_direct({"ansible_python_interpreter": str(link)})


def test_an_interpreter_named_by_the_environment_counts(monkeypatch):
    monkeypatch.setenv("ANSIBLE_PYTHON_INTERPRETER", "/no/such/python")
    assert not is_direct({"some": "variable"})
    monkeypatch.setenv("ANSIBLE_PYTHON_INTERPRETER", sys.executable)
    assert is_direct({"some": "variable"})


def test_a_delegated_task_asks_for_the_interpreter_of_its_target():
    own = {"ansible_python_interpreter": sys.executable}
    other = {"ansible_python_interpreter": "/no/such/python"}
    assert not is_direct({**own, "ansible_delegated_vars": {"there": other}}, delegate_to="there")
    assert is_direct({**other, "ansible_delegated_vars": {"there": own}}, delegate_to="there")


@pytest.mark.parametrize("async_val", [0, 30])
def test_what_is_not_direct_starts_the_module(monkeypatch, async_val):
    started = []

    def execute(self, **how):
        started.append(how)
        return {"changed": False, "started": True}

    monkeypatch.setattr(direct.ActionBase, "run", lambda self, tmp, task_vars: {})
    monkeypatch.setattr(direct.ActionBase, "_execute_module", execute)
    variables = {"ansible_python_interpreter": "/no/such/python"}
    assert action(async_val=async_val, variables=variables).run(None, variables)["started"] is True
    assert started == [
        {"module_name": MODULE, "module_args": {}, "task_vars": variables, "wrap_async": bool(async_val)}
    ]


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONPATH": "/srv"},
        {"LD_PRELOAD": "/srv/lib.so"},
        {"OPENSSL_CONF": "/srv/openssl.cnf"},
        {"NOT A NAME": "1"},
        {"A=B": "1"},
        {"NUL": "a\0b"},
    ],
)
def test_an_environment_that_only_a_new_process_can_have_starts_the_module(monkeypatch, environment):
    monkeypatch.setattr(direct.ActionBase, "run", lambda self, tmp, task_vars: {})
    monkeypatch.setattr(direct.ActionBase, "_execute_module", lambda self, **how: {"started": True})
    variables = {"ansible_python_interpreter": sys.executable}
    assert action(variables=variables, environment=environment).run(None, variables)["started"] is True


@pytest.mark.parametrize(
    ("given", "text"), [(False, "False"), (5, "5"), (0.5, "0.5"), (None, "None"), ("yes", "yes"), ("", "")]
)
def test_the_environment_is_text_as_for_a_module_that_is_started(given, text):
    made = action(environment=[{"K8S_AUTH_VERIFY_SSL": given}])
    assert made._environment() == {"K8S_AUTH_VERIFY_SSL": text}
    assert ShellModule().env_prefix(K8S_AUTH_VERIFY_SSL=given) == f"K8S_AUTH_VERIFY_SSL={shlex.quote(text)}"


@pytest.fixture
def in_files(tmp_path):
    """Writes a file where a role has its files, and makes an action that looks there with a vault password."""

    def make(name, content, given=None, transport="local", option="kubeconfig"):
        (tmp_path / "files").mkdir()
        loader = DataLoader()
        loader.set_basedir(str(tmp_path))
        secret = VaultSecret(b"open sesame")
        loader.set_vault_secrets([("default", secret)])
        encrypted = VaultLib([("default", secret)]).encrypt(content.encode(), secret)
        (tmp_path / "files" / name).write_bytes(encrypted)
        made = action(transport, arguments={option: given or name})
        made._loader = loader
        made._task.get_search_path = lambda: [str(tmp_path)]
        return made

    return make


@pytest.mark.parametrize("option", ["kubeconfig", "auth_file"])
def test_a_file_of_the_role_is_found_and_decrypted(in_files, option):
    found = in_files("access", "plain text", option=option)._arguments()[option]
    assert Path(found).read_text() == "plain text"


def test_what_was_decrypted_for_a_task_goes_with_it_and_the_encrypted_file_stays(in_files, tmp_path):
    made = in_files("config", "plain text")
    found = made._arguments()
    made._forget(found)
    assert not Path(found["kubeconfig"]).exists()
    assert (tmp_path / "files" / "config").exists()
    made._forget({"kubeconfig": str(tmp_path / "files" / "config"), "auth_file": None})
    assert (tmp_path / "files" / "config").exists()


def test_each_of_several_kubeconfigs_is_found(in_files, tmp_path):
    other = tmp_path / "other"
    other.write_text("other")
    first, second = in_files("config", "one", f"config{os.pathsep}{other}")._arguments()["kubeconfig"].split(os.pathsep)
    assert (Path(first).read_text(), second) == ("one", str(other))


def test_files_of_another_machine_are_not_looked_for_on_the_controller(in_files):
    assert in_files("config", "one", transport="ssh")._arguments() == {"kubeconfig": "config"}


@pytest.mark.parametrize("given", ["no/such/file", {"kind": "Config"}, "$HOME/config"])
def test_what_is_no_file_of_the_controller_is_left_to_the_module(in_files, given):
    assert in_files("config", "one", given)._arguments() == {"kubeconfig": given}


def test_every_module_has_an_action_of_its_name():
    modules = {path.stem for path in (ROOT / "plugins/modules").glob("*.py") if path.stem != "__init__"}
    assert {path.stem for path in (ROOT / "plugins/action").glob("*.py") if path.stem != "__init__"} == modules
    for name in modules:
        assert f'MODULE = "kubesteward.core.{name}"' in (ROOT / f"plugins/action/{name}.py").read_text()


@pytest.mark.parametrize("enabled", [True, False])
def test_no_cycles_are_searched_for_meanwhile_and_what_was_set_is_set_again(enabled):
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(KeyError), direct._without_cycle_collector():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


RESULT = {"changed": False, "digest": "sha256:1", "requests_made": 2}


@pytest.fixture
def counting(monkeypatch, tmp_path):
    """Runs a task that is directly done, or started, with a result; its result and the warnings of its controller."""

    def run(is_direct, url=None, result=RESULT):
        if url:
            monkeypatch.setenv("KUBESTEWARD_METRICS_URL", url)
        monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "ansible-local-1"))
        monkeypatch.setattr(direct.ActionBase, "run", lambda self, tmp, task_vars: {})
        monkeypatch.setattr(direct.ActionBase, "_execute_module", lambda self, **how: dict(result))
        monkeypatch.setattr(Action, "_run_here", lambda self, arguments, environment, task_vars: dict(result))
        variables = {"ansible_python_interpreter": sys.executable if is_direct else "/no/such/python"}
        task = action(variables=variables)
        warnings = []
        task._display = types.SimpleNamespace(warning=warnings.append)
        return task.run(None, variables), warnings

    return run


@pytest.mark.parametrize("is_direct", [True, False])
def test_what_a_call_did_is_posted_where_the_environment_says(counting, is_direct):
    with contextlib.closing(FakeOperator()) as operator:
        for _ in range(2):
            assert counting(is_direct, operator.url) == (RESULT, [])
    assert operator.values["kubesteward_registry_requests_total"] == 4
    assert operator.values["kubesteward_rolls_total"] == 0


@pytest.mark.parametrize("is_direct", [True, False])
def test_what_cannot_be_posted_is_a_warning_and_changes_no_result(counting, is_direct):
    result, warnings = counting(is_direct, "http://registry.example.com/metrics")
    assert result == RESULT
    (warning,) = warnings
    assert warning.startswith("Counters were not posted: KUBESTEWARD_METRICS_URL must be of this machine")


def test_a_result_that_cannot_be_counted_is_a_warning(counting):
    odd = {"changed": False, "images": "hidden"}
    result, warnings = counting(True, "http://127.0.0.1:1/metrics", odd)
    assert (result, len(warnings)) == (odd, 1)


def test_without_the_variable_nothing_is_posted(counting, tmp_path):
    assert counting(True) == (RESULT, [])
    assert list(tmp_path.iterdir()) == []

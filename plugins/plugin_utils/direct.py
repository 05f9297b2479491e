# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct execution: a module's own `main()` in the controller's process.

Starting a Python per module is what a pass costs, not its work. Where the target is the controller itself, the module
runs in the task's worker (a fork of the controller, so nothing it does to its process outlives the task); in every
other case the module is started as usual. KUBESTEWARD_DIRECT=0 in the controller's environment always starts it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import io
import itertools
import json
import os
import re
import sys
import typing as t
from pathlib import Path

from ansible import constants
from ansible.errors import AnsibleFileNotFound
from ansible.module_utils import basic
from ansible.plugins.action import ActionBase

from ansible_collections.kubesteward.core.plugins.plugin_utils import bytecode

_PROFILE = "legacy"
_UTILS = "ansible_collections.kubesteward.core.plugins.module_utils"
_LOCAL = ("local", "ansible.builtin.local")
#: what Python or the dynamic linker read at their start only, so that this process would not notice
_READ_AT_THE_START = re.compile("PYTHON|LD_|OPENSSL_CONF$")
#: options that name files of the controller, wherever Ansible looks for files of roles and plays
_FILES = ("kubeconfig", "auth_file")
_SAME_INTERPRETER = ("", "auto", "auto_silent", "auto_legacy", "auto_legacy_silent")


def preload(*names: str) -> None:
    """Import before the controller forks its workers what the modules in them need: each would import it again.

    :param names: of files in module_utils, or of libraries; what is not there the module itself has words for
    """
    if _is_off():
        return
    bytecode.keep()
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"{_UTILS}{name}" if name.startswith(".") else name)


def _is_off() -> bool:
    return os.environ.get("KUBESTEWARD_DIRECT", "1").lower() in ("0", "no", "false", "off")


class DirectAction(ActionBase):
    """Base of our action plugins; a subclass names its module, a fully qualified collection name."""

    MODULE: t.ClassVar[str]
    _supports_check_mode = True
    _supports_async = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        task_vars = task_vars or {}
        result = super().run(tmp, task_vars)
        arguments = self._arguments()
        environment = self._environment()
        try:
            result.update(self._carry_out(arguments, environment, task_vars))
        finally:
            if not self._task.async_val:
                self._forget(arguments)
        url = os.environ.get("KUBESTEWARD_METRICS_URL")
        if url:
            self._count(url, result)
        return result

    def _carry_out(
        self, arguments: dict[str, t.Any], environment: dict[str, str], task_vars: dict[str, t.Any]
    ) -> dict[str, t.Any]:
        """The module's result, from here or from a process of its own."""
        if self._is_direct(task_vars) and all(itertools.starmap(_is_plain_variable, environment.items())):
            return self._run_here(arguments, environment, task_vars)
        started: dict[str, t.Any] = self._execute_module(
            module_name=self.MODULE,
            module_args=arguments,
            task_vars=task_vars,
            wrap_async=bool(self._task.async_val),
        )
        return started

    def _forget(self, arguments: t.Mapping[str, t.Any]) -> None:
        """Remove what was decrypted for this task; the loader removes only what it made itself."""
        for option in _FILES:
            path = arguments.get(option)
            if isinstance(path, str):
                for each in path.split(os.pathsep):
                    self._loader.cleanup_tmp_file(each)

    def _count(self, url: str, result: t.Mapping[str, t.Any]) -> None:
        """Post what the call adds to counters; what cannot be posted is told, and changes no result."""
        bytecode.keep()
        from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
        from ansible_collections.kubesteward.core.plugins.plugin_utils import counters, posting

        # the run's own folder lies in the one that all runs have
        folder = Path(constants.DEFAULT_LOCAL_TMP).parent
        try:
            counts = counters.of_result(self.MODULE, result, self._task.args, bool(self._task.check_mode))
            posting.post(url, counts, counters.COUNTERS, folder)
        except StewardError as exc:
            # the controller shows the same text once, however many tasks say it
            self._display.warning(f"Counters were not posted: {exc}")

    def _is_direct(self, task_vars: t.Mapping[str, t.Any]) -> bool:
        if _is_off():
            return False
        if self._connection.transport not in _LOCAL:
            return False
        if self._task.async_val or self._connection.become:
            return False
        interpreter = self._interpreter(task_vars)
        return interpreter in _SAME_INTERPRETER or _same_python(interpreter, sys.executable)

    def _interpreter(self, task_vars: t.Mapping[str, t.Any]) -> str:
        """The Python that the target's variables, the environment or ansible.cfg name; empty where none does."""
        delegate = self._task.delegate_to
        variables = task_vars["ansible_delegated_vars"][delegate] if delegate else task_vars
        named = constants.config.get_config_value("INTERPRETER_PYTHON", variables=variables)
        return str(self._templar.template(named) or "").strip()

    def _arguments(self) -> dict[str, t.Any]:
        """The task's arguments; files of the controller are found and decrypted as kubernetes.core does it."""
        arguments = dict(self._task.args)
        for option in _FILES:
            path = arguments.get(option)
            if path and isinstance(path, str) and self._connection.transport in _LOCAL:
                arguments[option] = os.pathsep.join(map(self._found_file, path.split(os.pathsep)))
        return arguments

    def _found_file(self, path: str) -> str:
        """Path of the file in plain text; as it was given where there is none, which the module has words for."""
        try:
            return self._loader.get_real_file(self._find_needle("files", path), decrypt=True)
        except AnsibleFileNotFound:
            return path

    def _environment(self) -> dict[str, str]:
        """The task's environment, as texts as Ansible makes them for a module that it starts."""
        given: dict[t.Any, t.Any] = {}
        self._compute_environment_string(given)
        return {str(name): str(value) for name, value in given.items()}

    def _run_here(
        self, arguments: dict[str, t.Any], environment: dict[str, str], task_vars: dict[str, t.Any]
    ) -> dict[str, t.Any]:
        self._update_module_args(self.MODULE, arguments, task_vars)
        bytecode.keep()
        namespace, collection, name = self.MODULE.split(".")
        output = io.StringIO()
        with (
            _added_to_environment(environment),
            _module_arguments(arguments),
            _module_side(),
            _without_cycle_collector(),
            contextlib.redirect_stdout(output),
            contextlib.suppress(SystemExit),
        ):
            module = importlib.import_module(f"ansible_collections.{namespace}.{collection}.plugins.modules.{name}")
            module.main()
        answer = {"stdout": output.getvalue(), "stderr": "", "rc": 0}
        if "profile" in inspect.signature(self._parse_returned_data).parameters:
            return _cleaned(self._parse_returned_data(answer, _PROFILE))
        return _cleaned(self._parse_returned_data(answer))


def _is_plain_variable(name: str, value: str) -> bool:
    """Whether this process can take it over as a process that a shell starts would."""
    return name.isidentifier() and name.isascii() and not _READ_AT_THE_START.match(name) and "\0" not in value


def _cleaned(parsed: t.Any) -> dict[str, t.Any]:
    """The result without Ansible's internal keys; ansible-core 2.21 parses into an object of its own."""
    if isinstance(parsed, dict):
        from ansible.vars.clean import remove_internal_keys

        remove_internal_keys(parsed)
        return parsed
    parsed.remove_internal_keys()
    return parsed.as_result_dict(for_round_trip=True)


def _same_python(left: str, right: str) -> bool:
    """python and python3 of one folder are the same; links of two virtual environments to one file are not."""
    left, right = os.path.abspath(left), os.path.abspath(right)
    try:
        return os.path.dirname(left) == os.path.dirname(right) and os.path.samefile(left, right)
    except OSError:
        return False


@contextlib.contextmanager
def _without_cycle_collector() -> t.Iterator[None]:
    """Spare a process that ends with the task the search for cycles through all of Ansible, for each list it reads."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _module_side() -> t.ContextManager[t.Any]:
    """Let warnings go into the result, as a module's do: on the controller's side they would go to the display only."""
    internal = sys.modules.get("ansible.module_utils._internal")
    if internal is None or not hasattr(internal, "is_controller"):
        return contextlib.nullcontext()
    return _replaced(internal, "is_controller", False)


@contextlib.contextmanager
def _replaced(owner: t.Any, name: str, value: t.Any) -> t.Iterator[None]:
    """An attribute with another value for a while; unittest.mock does this too, but imports asyncio for it."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextlib.contextmanager
def _added_to_environment(variables: t.Mapping[str, str]) -> t.Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _module_arguments(arguments: dict[str, t.Any]) -> t.Iterator[None]:
    """Give arguments to the next AnsibleModule as the module wrapper of this ansible-core would."""
    wrapped = {"ANSIBLE_MODULE_ARGS": arguments}
    with contextlib.ExitStack() as stack:
        if hasattr(basic, "_ANSIBLE_PROFILE"):
            from ansible.module_utils.common.json import Direction, get_module_encoder

            encoder = get_module_encoder(_PROFILE, Direction.CONTROLLER_TO_MODULE)
            blob = json.dumps(wrapped, cls=encoder)
            stack.enter_context(_replaced(basic, "_ANSIBLE_PROFILE", _PROFILE))
        else:
            from ansible.parsing.ajson import AnsibleJSONEncoder

            blob = json.dumps(wrapped, cls=AnsibleJSONEncoder, vault_to_text=True)
        stack.enter_context(_replaced(basic, "_ANSIBLE_ARGS", blob.encode()))
        yield

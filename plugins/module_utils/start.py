# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How every module of this collection begins. Importable by any Python 3, so that an old one is told what it lacks."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import typing as t

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

OLDEST_PYTHON = (3, 11)
#: what of a kubeconfig's `users[].user` is secret, at any depth; the rest are names, paths and certificates
_SECRETS = frozenset(("token", "password", "client-key-data", "config", "proxy-url"))
#: flags of a credential plugin whose values are secret
_SECRET_FLAG = re.compile("--?[a-z-]*(secret|token|key|pass|cred)[a-z-]*", re.IGNORECASE)
#: names of environment variables of a credential plugin whose values are not: a list of secret ones is never whole
_HARMLESS = re.compile("(AWS_(DEFAULT_)?(PROFILE|REGION)|HOME|PATH|LANG|CLOUDSDK_CORE_PROJECT|KUBERNETES_EXEC_INFO)")


def require(*libraries: str) -> None:
    """End the module, with a failure that names the remedy, where this Python is too old or lacks a library.

    Called before anything is imported that needs them: a traceback of an import names neither host nor remedy.
    """
    problem = missing(sys.version_info[:2], libraries)
    if problem:
        sys.stdout.write(json.dumps({"failed": True, "changed": False, "msg": problem}) + "\n")
        raise SystemExit(1)


def missing(version: tuple[int, ...], libraries: t.Iterable[str]) -> str:
    """What this Python lacks and what to do about it, or an empty text."""
    remedy = "set ansible_python_interpreter to another Python"
    if version < OLDEST_PYTHON:
        needed = ".".join(map(str, OLDEST_PYTHON))
        found = ".".join(map(str, version))
        return f"Python {needed} or newer is needed on the target; {sys.executable} is {found}: {remedy}"
    absent = [name for name in libraries if importlib.util.find_spec(name) is None]
    if absent:
        names = " ".join(absent)
        return f"{sys.executable} has no Python library {names}: install it (pip install {names}), or {remedy}"
    return ""


def hide_secrets_alone(module: AnsibleModule) -> None:
    """Of a kubeconfig that is given as a dictionary hide what is secret.

    Ansible hides every text of an option with no_log, names such as that of the cluster among them, wherever it stands
    in the result.
    """
    kubeconfig = module.params.get("kubeconfig")
    if isinstance(kubeconfig, dict):
        module.no_log_values -= set(_texts(kubeconfig)) - set(_texts(_other_secrets(module)))
        module.no_log_values |= set(_secrets(kubeconfig))


def _other_secrets(module: AnsibleModule) -> list[t.Any]:
    """Values of the other options that are secret, as a whole or in part."""
    hidden = [name for name, option in module.argument_spec.items() if option.get("no_log") and name != "kubeconfig"]
    return [module.params.get(name) for name in [*hidden, "proxy_headers"]]


def _texts(value: t.Any) -> t.Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _secrets(value: t.Any) -> t.Iterator[str]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _secrets(item)
    if not isinstance(value, dict):
        return
    is_harmless = _HARMLESS.fullmatch(str(value.get("name") or "")) is not None
    yield from _secret_arguments(value.get("args"))
    for key, item in value.items():
        yield from _texts(item) if key in _SECRETS or (key == "value" and not is_harmless) else _secrets(item)


def _secret_arguments(value: t.Any) -> t.Iterator[str]:
    """Values of secret flags: `--client-secret=value`, or the argument behind `--client-secret`."""
    arguments = [str(item) for item in value] if isinstance(value, list) else []
    for number, argument in enumerate(arguments):
        flag, equals, given = argument.partition("=")
        if _SECRET_FLAG.fullmatch(flag):
            yield from [argument, given] if equals else arguments[number + 1 : number + 2]

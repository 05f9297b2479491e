# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an author of resources could try: extra keys everywhere, a text in every place, images that lead away."""

from __future__ import annotations

import copy
import typing as t
from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from integration.passes import ROOT

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Answer,
    Asked,
    Reply,
)
from testbed.api import Api

Object = dict[str, t.Any]
Path = tuple[str | int, ...]

KINDS = ("start", "update", "nspro")
#: what Ansible, the operator or the administrator decides
EXTRA: Object = {
    "ansible_python_interpreter": "/bin/false",
    "ansible_connection": "ssh",
    "ansible_shell_executable": "/bin/false",
    "ansible_operator_meta": {"namespace": "kube-system", "name": "other"},
    "vars": {"ansible_python_interpreter": "/bin/false"},
    "environment": {"PATH": "/nowhere"},
    "become": True,
    "delegate_to": "other",
    "update_registries": [{"prefix": "quay.io", "location": "127.0.0.1:1", "insecure": True}],
    "update_allowed_registries": ["*"],
    "nspro_allowed_roles": ["cluster-admin"],
    "nspro_reserved": [],
}


def sample(kind: str) -> Object:
    """The resource that has every option."""
    found: Object = yaml.safe_load((ROOT / f"config/samples/every_option_{kind}.yaml").read_text())
    return found


def schema(kind: str) -> Object:
    """Schema of its spec."""
    files = {"start": "install.sios.nginx.testing_starts", "update": "install.sios.nginx.testing_updates"}
    name = files.get(kind, "nspro.example.com_nspros")
    crd = yaml.safe_load((ROOT / f"config/crd/bases/{name}.yaml").read_text())
    found: Object = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def with_extra(value: t.Any, about: Object) -> t.Any:
    """`value` with the extra keys in every object that has fields; maps of free keys are left alone."""
    if isinstance(value, list):
        return [with_extra(item, about["items"]) for item in value]
    if isinstance(value, dict) and "properties" in about:
        return {**{key: with_extra(item, about["properties"][key]) for key, item in value.items()}, **EXTRA}
    return value


def places(value: t.Any, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Where a text can be: paths of strings, and with True those of keys."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), True
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*path, number))
    elif isinstance(value, str):
        yield path, False


def put(spec: Object, path: Path, is_key: bool, text: str) -> Object:
    """A copy of the spec with the text in that place."""
    made = copy.deepcopy(spec)
    holder: t.Any = made
    for step in path[:-1]:
        holder = holder[step]
    if is_key:
        holder[text] = holder.pop(path[-1])
    else:
        holder[path[-1]] = text
    return made


def stored(api: Api, resource: Object, namespace: str) -> Object | None:
    """Spec as the API server stores it where nobody asks for strictness, by a dry run; None where it is refused."""
    group, version = resource["apiVersion"].split("/")
    plural = f"{resource['kind'].lower()}s"
    query = "dryRun=All&fieldValidation=Ignore"
    path = f"/apis/{group}/{version}/namespaces/{namespace}/{plural}?{query}"
    code, answer = api.request("POST", path, resource)
    assert code in (201, 422), answer
    return answer["spec"] if code == 201 else None


def name_of_place(path: Path, is_key: bool) -> str:
    """`access[].role`, or `labels{}` for the keys of a map."""
    steps = ["[]" if isinstance(step, int) else f".{step}" for step in (path[:-1] if is_key else path)]
    return "".join(steps).lstrip(".") + ("{}" if is_key else "")


def free_places(api: Api, kind: str, text: str, namespace: str) -> dict[str, Object]:
    """Places of a kind where the API server takes any text -> a resource that has it there."""
    found: dict[str, Object] = {}
    whole = sample(kind)
    for path, is_key in places(whole["spec"]):
        resource = {**whole, "spec": put(whole["spec"], path, is_key, text)}
        spec = stored(api, resource, namespace)
        if spec is not None and text in texts(spec):
            found[name_of_place(path, is_key)] = resource
    return found


def texts(value: t.Any) -> Iterator[str]:
    """Every string in it, keys included."""
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


@dataclass(frozen=True)
class Lure:
    """A registry that the administrator allows, and that somebody else runs: by the repository it leads elsewhere."""

    away: str

    def __call__(self, asked: Asked) -> Reply:
        if "/redirect/" in asked.path:
            return Reply(307, {"Location": f"http://{self.away}/latest/meta-data"})
        if "/realm/" in asked.path:
            return Reply(401, {"WWW-Authenticate": f'Bearer realm="http://{self.away}/token",service="s"'})
        if "/private/" in asked.path:
            return Reply(401, {"WWW-Authenticate": 'Basic realm="private"'})
        return Reply(404)


ANSWER: Answer = Lure("169.254.169.254")

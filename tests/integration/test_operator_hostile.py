# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources that were written to do harm, as far as the API server takes them, and passes over them."""

from __future__ import annotations

import json
import re
import typing as t
import uuid
from pathlib import Path

import pytest
import yaml
from integration.operator_passes import Operator, changed, failed
from integration.passes import ROOT, Shop

pytestmark = pytest.mark.usefixtures("crds")

Object = dict[str, t.Any]
CRDS = {
    "Start": "install.sios.nginx.testing_starts.yaml",
    "Update": "install.sios.nginx.testing_updates.yaml",
    "Nspro": "nspro.example.com_nspros.yaml",
}
#: where a rule beside the schema wants more than one field
WHOLE = {
    "access[]": {"role": "view", "users": ["somebody"]},
    "targets[]": {"kind": "Start", "name": "sample"},
}
#: and what has to stand beside a field
BESIDE = {"access[].users": {"role": "view"}, "targets[].selector": {"kind": "Start"}}
#: one of them fits every pattern of the schemas
PLAIN = ("a", "1", "linux/amd64", "latest", "10.0.0.0/8", "")


@pytest.fixture
def marker() -> t.Iterator[Path]:
    """A file that a template would make; its path is short enough for every string of the schemas."""
    path = Path("/tmp") / uuid.uuid4().hex[:8]
    yield path
    path.unlink(missing_ok=True)


def schema_of(kind: str) -> Object:
    crd = yaml.safe_load((ROOT / "config/crd/bases" / CRDS[kind]).read_text())
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def resource(kind: str, name: str, spec: t.Any, **meta: t.Any) -> Object:
    version = "nspro.example.com/v1alpha1" if kind == "Nspro" else "install.sios.nginx.testing/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def least(schema: Object) -> t.Any:
    """Any value of a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    if schema["type"] == "object":
        return {key: least(schema["properties"][key]) for key in schema.get("required", ())}
    if schema["type"] == "array":
        return [least(schema["items"])]
    if schema["type"] == "string":
        return next(text for text in PLAIN if re.match(schema.get("pattern", ""), text))
    return {"boolean": False, "integer": schema.get("minimum", 1)}[schema["type"]]


def places(schema: Object, text: str, path: str = "") -> t.Iterator[tuple[str, t.Any]]:
    """(path, value) for every string of a schema, keys of maps among them: a value with `text` there."""
    if schema.get("x-kubernetes-int-or-string") or schema.get("type") == "string":
        yield path, text
    elif schema["type"] == "array":
        yield from ((where, [value]) for where, value in places(schema["items"], text, f"{path}[]"))
    elif "additionalProperties" in schema:
        inner = schema["additionalProperties"]
        yield f"{path}.<key>", {text: least(inner)}
        yield from ((where, {"key": value}) for where, value in places(inner, text, f"{path}.<value>"))
    elif schema["type"] == "object":
        around = {key: least(schema["properties"][key]) for key in schema.get("required", ())}
        for key, inner in schema.get("properties", {}).items():
            for where, value in places(inner, text, f"{path}.{key}".lstrip(".")):
                more = WHOLE.get(path) if not isinstance(value, dict) else None
                yield where, {**around, **(more or {}), **BESIDE.get(f"{path}.{key}", {}), key: value}


def accepted(shop: Shop, kind: str, text: str) -> dict[str, Object]:
    """Specs by the path of their bad string: those that the API server takes."""
    found = {}
    for where, spec in places(schema_of(kind), text):
        asked = resource(kind, "asked", spec)
        options = ("create", "--dry-run=server", "-n", shop.namespace, "-f", "-")
        done = shop.kubectl(*options, stdin=asked, check=False)
        if done.returncode == 0:
            found[where] = spec
        else:
            # it is this string that it does not take
            assert "is invalid" in done.stderr and re.sub(r"\[\]|\.<\w+>", "", where).split(".")[-1] in done.stderr
    return found


#: strings that the schemas leave open
OPEN = {
    "Start": {"image", "resources.limits.<key>", "resources.requests.<key>"},
    "Update": {"targets[].selector.matchLabels.<key>"},
    "Nspro": {
        *(f"{name}.<key>" for name in ("quota", "labels", "annotations", "networkPolicy.fromNamespaces[]")),
        *(f"limitRange.{name}.<key>" for name in ("default", "defaultRequest", "max", "min")),
        *(f"access[].{name}" for name in ("role", "users[]", "groups[]")),
        *("networkPolicy.toNamespaces[].<key>", "annotations.<value>"),
    },
}


def merged(specs: t.Iterable[Object]) -> Object:
    """One spec with all of them."""
    whole: Object = {}
    for spec in specs:
        for key, value in spec.items():
            before = whole.get(key)
            if isinstance(value, dict) and isinstance(before, dict):
                whole[key] = merged([before, value])
            elif isinstance(value, list) and isinstance(before, list):
                whole[key] = [*before, *value]
            else:
                whole[key] = value
    return whole


@pytest.mark.parametrize("kind", sorted(OPEN))
def test_no_string_of_a_resource_is_run_as_a_template(shop, operator, marker, team, kind):
    text = "{{ lookup('pipe', 'touch " + str(marker) + "') }}"
    found = accepted(shop, kind, text)
    assert found.keys() == OPEN[kind]
    name = team if kind == "Nspro" else "hostile"
    shop.apply(resource(kind, name, merged(found.values()), annotations={"example.com/note": text}))
    told = told_by(operator, kind, name)
    assert not marker.exists()
    # it is told what is wrong with it, as it was written
    assert str(marker) in told


def told_by(operator: Operator, kind: str, name: str) -> str:
    """What a pass that comes to its end tells of a bad resource: in its status, or as why it failed."""
    run = operator.begin(kind, name)
    printed = run.wait()
    events = run.events()
    assert any(event["event"] == "playbook_on_stats" for event in events), printed
    why = [event["event_data"]["res"]["msg"] for event in failed(events)]
    status = operator.shop.get(kind.lower(), name).get("status", {})
    why += [x["message"] for x in status.get("conditions", []) if x["status"] != "True"]
    assert "Traceback" not in " ".join(why)
    return " ".join(why)


#: keys of a map that mean something to Ansible where it reads variables
MEANT = ("__ansible_vault", "__ansible_unsafe", "__ansible_type", "ansible_python_interpreter", "{{ 1 }}", "__proto__")


def test_keys_that_ansible_knows_are_keys(shop, operator, team):
    notes = dict.fromkeys(MEANT, "$ANSIBLE_VAULT;1.1;AES256\n6162")
    shop.apply(resource("Nspro", team, {"nssize": "small", "annotations": notes}))
    assert "annotations" in told_by(operator, "Nspro", team)


LONG = "\u00e9\u4e16\U0001f600\u202e\u0007x" * 80


def test_long_and_strange_strings_are_told_of(shop, operator, team):
    shop.push("v1")
    shop.apply(
        shop.start(),
        resource("Start", "strange", {"name": "strange", "image": LONG}),
        resource("Update", "all", {}),
        resource("Nspro", team, {"nssize": "small", "annotations": {f"example.com/{n}": LONG for n in range(64)}}),
    )
    for name in ("sample", "strange"):
        operator.pass_of("Start", name)
    shop.settled()
    operator.pass_of("Update", "all")
    assert shop.verdicts("all") == {
        "sample-sample": "current/digest_equal",
        "strange-sample": "unknown/invalid_reference",
    }
    operator.pass_of("Nspro", team)
    annotations = json.loads(shop.kubectl("get", "namespace", team, "-o", "json").stdout)["metadata"]["annotations"]
    assert [annotations[f"example.com/{number}"] for number in range(64)] == [LONG] * 64


def test_huge_maps_are_survived(shop, operator, team):
    """As large as the schemas allow: 200 targets of 32 labels, and more annotations than a Namespace may have."""
    labels = {f"example.com/{'k' * 50}{number}": "v" * 63 for number in range(31)}
    targets = [{"kind": "Deployment", "selector": {"matchLabels": {**labels, "n": str(n)}}} for n in range(200)]
    containers = {"ignore": [f"c{number}" for number in range(100)]}
    notes = {f"example.com/{number}": "\u4e16" * 2048 for number in range(64)}
    for asked in (
        resource("Update", "huge", {"targets": targets, "containers": containers}),
        resource("Nspro", team, {"nssize": "small", "annotations": notes}),
    ):
        # not applied: the annotation of kubectl's would be too long
        shop.kubectl("create", "-n", shop.namespace, "-f", "-", stdin=asked)
    operator.pass_of("Update", "huge")
    assert shop.get("update", "huge")["status"]["counts"]["current"] == 0
    assert "annotations" in told_by(operator, "Nspro", team)


NOTHING: dict[str, list[t.Any]] = {
    "Start": [{}, None, {"name": None, "image": None, "replicas": None, "resources": None, "imagePullSecrets": None}],
    "Update": [{}, None, {"targets": None, "containers": None, "rollback": None, "platforms": None, "suspend": None}],
    "Nspro": [{"nssize": "small", "quota": None, "access": None, "labels": None, "adoption": None}],
}


@pytest.mark.parametrize("kind", sorted(NOTHING))
def test_null_and_nothing_mean_the_defaults(shop, operator, team, kind):
    for number, spec in enumerate(NOTHING[kind]):
        name = team if kind == "Nspro" else f"nothing-{number}"
        asked = resource(kind, name, spec)
        applied = shop.kubectl("apply", "-n", shop.namespace, "-f", "-", stdin=asked, check=False)
        if applied.returncode:
            assert "is invalid" in applied.stderr
            continue
        operator.pass_of(kind, name)
        assert shop.get(kind.lower(), name)["status"]["observedGeneration"] == 1
    assert changed(operator.pass_of(kind, team if kind == "Nspro" else "nothing-0")) >= 0

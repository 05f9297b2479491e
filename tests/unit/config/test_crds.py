# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRDs without a cluster: closed and structural, complete, and wide enough for what is written into them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator

import jsonschema
import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils import starts

TYPES = {"object", "array", "string", "integer", "boolean"}
KINDS = ("Nspro", "Start", "Update")
GROUPS = {"Nspro": "nspro.example.com", "Start": "install.sios.nginx.testing", "Update": "install.sios.nginx.testing"}
SMALLEST = {"Nspro": {"nssize": "small"}, "Start": {}, "Update": {}}
VERSIONS = {"Nspro": "v1alpha1", "Start": "v1", "Update": "v1"}


def nodes(schema: dict, path: str = "") -> Iterator[tuple[str, dict]]:
    """Every schema below and including the given one, with its path."""
    yield path or "(root)", schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def closed(schema: dict) -> dict:
    """The schema as kubectl's strict validation reads it: an unknown key is an error."""
    result = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if "properties" in schema:
        result["properties"] = {name: closed(child) for name, child in schema["properties"].items()}
        result["additionalProperties"] = False
    if "items" in schema:
        result["items"] = closed(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = closed(schema["additionalProperties"])
    return result


def errors(schema: dict, instance: dict) -> list[str]:
    """What is wrong with a resource, as "path: validator" lines; its metadata is the API server's business."""
    instance = {key: value for key, value in instance.items() if key != "metadata"}
    validator = jsonschema.Draft202012Validator(closed(schema))
    return [f"{'.'.join(map(str, error.path))}: {error.validator}" for error in validator.iter_errors(instance)]


@pytest.mark.parametrize("kind", KINDS)
def test_schema_is_structural_and_closed(schemas, kind):
    for path, node in nodes(schemas[kind]):
        assert "x-kubernetes-preserve-unknown-fields" not in node, path
        if node.get("x-kubernetes-int-or-string"):
            assert "type" not in node, path
            continue
        assert node["type"] in TYPES, path
        if node["type"] == "array":
            assert "items" in node, path
        elif node["type"] == "object" and path != ".metadata":
            assert bool(node.get("properties")) != ("additionalProperties" in node), path


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(schemas, kind):
    undescribed = [path for path, node in nodes(schemas[kind]) if not node.get("description", "").endswith(".")]
    # The API server describes metadata itself and takes nothing but its type.
    assert undescribed == [".metadata"]
    assert schemas[kind]["properties"]["metadata"] == {"type": "object"}


@pytest.mark.parametrize("kind", KINDS)
def test_everything_a_user_writes_is_bounded(schemas, kind):
    for path, node in nodes(schemas[kind]["properties"]["spec"], ".spec"):
        if node.get("type") == "string":
            assert "enum" in node or "maxLength" in node, path
        elif node.get("type") == "integer":
            assert {"minimum", "maximum"} <= node.keys(), path
        elif node.get("type") == "array":
            assert "maxItems" in node, path
        elif "additionalProperties" in node:
            assert "maxProperties" in node, path


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_satisfy_their_own_schema(schemas, kind):
    with_default = [(path, node) for path, node in nodes(schemas[kind]) if "default" in node]
    assert with_default
    for path, node in with_default:
        assert list(jsonschema.Draft202012Validator(closed(node)).iter_errors(node["default"])) == [], path


def defaulted(schema: dict, value: dict) -> dict:
    """The defaults that the API server fills in."""
    for name, child in schema.get("properties", {}).items():
        if name not in value and "default" in child:
            value[name] = copy.deepcopy(child["default"])
        if isinstance(value.get(name), dict):
            defaulted(child, value[name])
    return value


@pytest.mark.parametrize("resource", [{}, {"spec": {}}])
def test_a_start_without_a_spec_has_every_default_that_the_role_reads(schemas, resource):
    found = defaulted(schemas["Start"], resource)["spec"]
    assert found["image"] == "quay.io/k_nakajima/nginx-sample:latest"
    deployment = starts.desired({"metadata": {}, "spec": found}, "shop")
    assert deployment["metadata"]["name"] == "nginx-sample"


def test_defaults_of_an_update(schemas):
    spec = schemas["Update"]["properties"]["spec"]["properties"]
    assert {name: node["default"] for name, node in spec.items() if "default" in node} == {
        "delete_flag": False,
        "suspend": False,
        "dryRun": False,
        "stableForSeconds": 0,
        "maxConcurrent": 10,
    }
    rollback = spec["rollback"]["properties"]
    assert (rollback["enabled"]["default"], rollback["progressDeadlineSeconds"]["default"]) == (True, 600)


def test_status_reads_false_false_before_the_first_pass_and_when_the_operator_was_first(schemas):
    status = schemas["Update"]["properties"]["status"]
    assert status["default"] == {"check_id": False, "update": False}
    assert [status["properties"][name]["default"] for name in ("check_id", "update")] == [False, False]


def test_defaults_of_a_start(schemas):
    spec = schemas["Start"]["properties"]["spec"]["properties"]
    assert {name: node["default"] for name, node in spec.items() if "default" in node} == {
        "name": "nginx",
        "image": "quay.io/k_nakajima/nginx-sample:latest",
        "replicas": 1,
        "port": 8080,
        "readiness": "tcp",
    }


def test_longest_name_of_a_start_leaves_room_for_the_container(schemas):
    name = schemas["Start"]["properties"]["spec"]["properties"]["name"]
    assert name["maxLength"] + len("-sample") <= 63


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_status_subresource(crds, kind):
    crd = crds[kind]
    assert crd["metadata"]["name"] == f"{kind.lower()}s.{GROUPS[kind]}"
    assert crd["spec"]["group"] == GROUPS[kind]
    assert crd["spec"]["scope"] == "Namespaced"
    (version,) = crd["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == (VERSIONS[kind], True, True)
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", KINDS)
def test_printer_columns_name_fields_that_exist(crds, schemas, kind):
    known = {path for path, _node in nodes(schemas[kind])} | {".metadata.creationTimestamp"}
    for column in crds[kind]["spec"]["versions"][0]["additionalPrinterColumns"]:
        path = re.sub(r'\[\?\(@\.type=="\w+"\)\]', "[]", column["jsonPath"])
        assert path in known, column


@pytest.mark.parametrize("kind", KINDS)
def test_conditions_merge_by_type_and_hold_what_the_operator_writes(schemas, kind):
    conditions = schemas[kind]["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    of_the_operator = {
        "type": "Running",
        "status": "True",
        "reason": "Successful",
        "message": "Awaiting next reconciliation",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "ansibleResult": {
            "ok": 3,
            "changed": 0,
            "skipped": 1,
            "failures": 0,
            "completion": "2026-01-02T03:04:05.123456",
        },
    }
    assert errors(schemas[kind], {"spec": SMALLEST[kind], "status": {"conditions": [of_the_operator]}}) == []


def test_samples_are_valid(root, schemas):
    samples = [path for path in (root / "config/samples").glob("*.yaml") if path.name != "kustomization.yaml"]
    assert len(samples) >= 8
    for path in samples:
        resource = yaml.safe_load(path.read_text())
        assert resource["apiVersion"] == f"{GROUPS[resource['kind']]}/{VERSIONS[resource['kind']]}"
        assert errors(schemas[resource["kind"]], resource) == [], path.name


def test_samples_of_the_kustomization_are_the_articles(root):
    listed = yaml.safe_load((root / "config/samples/kustomization.yaml").read_text())["resources"]
    samples = [yaml.safe_load((root / "config/samples" / name).read_text()) for name in listed]
    nspros = {sample["metadata"]["name"]: sample["spec"] for sample in samples if sample["kind"] == "Nspro"}
    assert nspros == {
        "np": {"nssize": "large", "managed": True},
        "small-ns": {"nssize": "small"},
        "large-ns": {"nssize": "large"},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_samples_show_every_option(root, schemas, kind):
    def options(schema: dict, path: str = "") -> set[str]:
        return {path for path, _node in nodes(schema, path)}

    def used(value: object, path: str = "") -> set[str]:
        if isinstance(value, dict):
            return {path}.union(*(used(child, f"{path}.{name}") for name, child in value.items()))
        if isinstance(value, list):
            return {path}.union(*(used(child, f"{path}[]") for child in value))
        return {path}

    sample = yaml.safe_load((root / f"config/samples/every_option_{kind.lower()}.yaml").read_text())
    maps = {path for path in options(schemas[kind]["properties"]["spec"], "spec") if path.endswith("{}")}
    assert options(schemas[kind]["properties"]["spec"], "spec") - used(sample["spec"], "spec") - maps == set()


@pytest.mark.parametrize("spec", [None, {}, {"delete_flag": False}, {"delete_flag": True}])
def test_articles_update_is_valid(schemas, spec):
    update = {"apiVersion": "install.sios.nginx.testing/v1", "kind": "Update", "metadata": {"name": "update-sample"}}
    assert errors(schemas["Update"], update | ({} if spec is None else {"spec": spec})) == []


REFUSED = [
    ("Update", {"ansible_python_interpreter": "/tmp/x"}, ["spec: additionalProperties"]),
    ("Update", {"delete_flag": "false"}, ["spec.delete_flag: type"]),
    ("Update", {"targets": [{"kind": "Pod", "name": "web"}]}, ["spec.targets.0.kind: enum"]),
    ("Update", {"targets": [{"name": "web"}]}, ["spec.targets.0: required"]),
    ("Update", {"targets": [{"kind": "Start", "name": "{{ web }}"}]}, ["spec.targets.0.name: pattern"]),
    ("Update", {"targets": [{"kind": "Start", "selector": {}}]}, ["spec.targets.0.selector: minProperties"]),
    ("Update", {"platforms": ["linux"]}, ["spec.platforms.0: pattern"]),
    ("Update", {"stableForSeconds": -1}, ["spec.stableForSeconds: minimum"]),
    ("Update", {"rollback": {"progressDeadlineSeconds": 5}}, ["spec.rollback.progressDeadlineSeconds: minimum"]),
    ("Update", {"maxConcurrent": 0}, ["spec.maxConcurrent: minimum"]),
    ("Nspro", {"nssize": "huge"}, ["spec.nssize: enum"]),
    ("Nspro", {"managed": True}, ["spec: required"]),
    ("Nspro", {"nssize": "small", "managed": "true"}, ["spec.managed: type"]),
    ("Nspro", {"nssize": "small", "quota": {"limits.cpu": "-1"}}, ["spec.quota.limits.cpu: pattern"]),
    ("Nspro", {"nssize": "small", "quota": {"limits.cpu": "lots"}}, ["spec.quota.limits.cpu: pattern"]),
    ("Nspro", {"nssize": "small", "access": [{"users": ["alice"]}]}, ["spec.access.0: required"]),
    ("Nspro", {"nssize": "small", "pullSecrets": [{"name": "../other"}]}, ["spec.pullSecrets.0.name: pattern"]),
    (
        "Nspro",
        {"nssize": "small", "networkPolicy": {"fromNamespaces": [{}]}},
        ["spec.networkPolicy.fromNamespaces.0: minProperties"],
    ),
    (
        "Nspro",
        {"nssize": "small", "networkPolicy": {"ports": [{"port": 0}]}},
        ["spec.networkPolicy.ports.0.port: minimum"],
    ),
    ("Nspro", {"nssize": "small", "podSecurity": {"enforce": "strict"}}, ["spec.podSecurity.enforce: enum"]),
    ("Nspro", {"nssize": "small", "labels": {"team": "{{ a }}"}}, ["spec.labels.team: pattern"]),
    ("Nspro", {"nssize": "small", "adoption": "Sometimes"}, ["spec.adoption: enum"]),
    ("Nspro", {"nssize": "small", "ansible_python_interpreter": "/tmp/x"}, ["spec: additionalProperties"]),
    ("Start", {"name": "Shop"}, ["spec.name: pattern"]),
    ("Start", {"name": "a" * 55}, ["spec.name: maxLength"]),
    ("Start", {"image": ""}, ["spec.image: minLength"]),
    ("Start", {"replicas": -1}, ["spec.replicas: minimum"]),
    ("Start", {"port": 0}, ["spec.port: minimum"]),
    ("Start", {"readiness": "http"}, ["spec.readiness: enum"]),
    ("Start", {"resources": {"limits": {"memory": "lots"}}}, ["spec.resources.limits.memory: pattern"]),
    ("Start", {"resources": {"limits": {"memory": True}}}, ["spec.resources.limits.memory: anyOf"]),
]


@pytest.mark.parametrize(("kind", "spec", "expected"), REFUSED)
def test_bad_specs_are_refused(schemas, kind, spec, expected):
    assert errors(schemas[kind], {"spec": spec}) == expected


def test_a_target_has_not_both_a_name_and_a_selector(schemas):
    (rule,) = schemas["Update"]["properties"]["spec"]["properties"]["targets"]["items"]["x-kubernetes-validations"]
    assert rule["rule"] == "!(has(self.name) && has(self.selector))"


def test_kustomization_lists_every_base(root):
    listed = yaml.safe_load((root / "config/crd/kustomization.yaml").read_text())["resources"]
    assert set(listed) == {f"bases/{path.name}" for path in (root / "config/crd/bases").iterdir()}

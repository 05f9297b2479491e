# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide the examples of a case and compare with what they expect.

An example without steps and without an Update goes through the pure functions: Pods to containers, the verdict, the
patch. Others are passes over a cluster in memory. `expect` has, all but `written` optional:

* `verdict`, `reason`, `candidate` of the one container, `message`, a part of it; several have them below `containers`
* `written`: the image that the container's object got; absent means that it must be the same as before
* `seen`: keys of pod_image_id's container, `after`: part of the patched object, `answer`: of registry_digest's entry
* `requests`: lines that the registry was asked
* of a pass: `writes` and `events` (reasons) in order, `warnings`, a part of each, parts of the Update's `status`, and
  its `conditions`, {type: status or reason}
* `refused`: the fields of the objects that their CRDs do not take
* `error`: a part of the message that ends image_rollout
* a null in a mapping means that there is no such key
"""

from __future__ import annotations

import contextlib
import copy
import functools
import typing as t
from pathlib import Path

import jsonpatch
import jsonpointer
import jsonschema
import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import (
    inventory,
    judge,
    rollout,
    running,
    snapshot,
)
from ansible_collections.kubesteward.core.plugins.module_utils.images.verdict import Policy, Verdict
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError
from ansible_collections.kubesteward.core.plugins.modules import image_rollout
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.builders import NAMESPACE, NOW
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.cases import examples
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.fake_cluster import (
    FakeCluster,
    one_pass,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry import fakeserver

Object = dict[str, t.Any]
Judged = t.Sequence[tuple[t.Mapping[str, t.Any], Verdict]]

_CRDS = Path(__file__).parents[6] / "config/crd/bases"
#: of metadata, what changes with every write
_MOVES = ("annotations", "generation", "resourceVersion")
_REPLIES = {"verdict", "reason", "candidate", "message", "written", "seen"}
_OF_A_PASS = {"writes", "events", "warnings", "status", "conditions"}
_KNOWN = _REPLIES | _OF_A_PASS | {"containers", "after", "answer", "requests", "refused", "error"}


def check(fixture: str) -> None:
    """Every example of a fixture comes out as it expects."""
    for example in examples.load(fixture):
        check_example(example)


def check_example(example: examples.Example) -> None:
    """One example comes out as it expects."""
    if "refused" in example.expect:
        _compare(example.expect, example.where, refused=_refused(example.objects))
    elif "error" in example.expect:
        _compare({}, example.where)
        _check_parts([example.expect["error"]], [_error(example)], example.where)
    elif example.lookup is not None:
        entries, asked = _ask(example, [example.lookup])
        _compare(example.expect, example.where, answer=entries[0], requests=asked)
    elif example.steps or any(item["kind"] == "Update" for item in example.objects):
        _passes(example)
    else:
        _decision(example)


def _decision(example: examples.Example) -> None:
    found = _containers(example.objects)
    entries, asked = list(example.registry or ()), None
    if example.registry is None:
        entries, asked = _ask(example, inventory.lookups(found))
    nodes = snapshot.read_platforms(FakeCluster(*(x for x in example.objects if x["kind"] == "Node")))
    judged = judge.judge(found, entries, Policy(), {}, NOW, lambda: nodes)
    before = {_key(item): item for item in example.objects}
    after = dict(before)
    for roll in rollout.plan(judged, NOW):
        key = roll.owner["kind"], roll.owner["name"]
        operations = rollout.patch(roll, before[key])
        assert operations is not None, f"{example.where}: the patch found another image than the verdict"
        after[key] = jsonpatch.apply_patch(before[key], operations)
    _check_images_alone(before, after, example.where)
    answer = entries[0] if entries else {}
    _compare(example.expect, example.where, judged, before, after, answer=answer, requests=asked)


@functools.cache
def schemas() -> dict[str, jsonschema.Draft202012Validator]:
    """The schema of each of our kinds."""
    found = {}
    for path in _CRDS.glob("*.yaml"):
        spec = yaml.safe_load(path.read_text())["spec"]
        schema = spec["versions"][0]["schema"]["openAPIV3Schema"]
        found[spec["names"]["kind"]] = jsonschema.Draft202012Validator(schema)
    return found


def _refused(objects: t.Iterable[Object]) -> list[str]:
    return [error.json_path for item in objects for error in schemas()[item["kind"]].iter_errors(item)]


def _error(example: examples.Example) -> str:
    """How image_rollout ends that was handed the example's objects' containers, spoilt, and its registry."""
    params = {"namespace": NAMESPACE, "state": "present", "update": None, "update_resource": None, "missing": []}
    params.update(dry_run=False, delete_flag=None, rollback=None, published=list(example.registry or ()))
    params["running"] = [examples.merge(item, example.spoil) for item in _containers(example.objects)]
    cluster = FakeCluster(*example.objects)
    with pytest.raises(StewardError) as caught:
        image_rollout.run(params, cluster, False, NOW)
    assert cluster.writes == [], f"{example.where}: {cluster.writes}"
    return str(caught.value)


def _containers(objects: t.Iterable[Object]) -> list[Object]:
    sorted_in: dict[str, list[Object]] = {"starts": [], "workloads": [], "pods": [], "revisions": []}
    places = {
        "Start": "starts",
        "Pod": "pods",
        **dict.fromkeys(("ReplicaSet", "ControllerRevision", "Job"), "revisions"),
    }
    nodes = []
    for item in objects:
        if item["kind"] == "Node":
            nodes.append(item)
        else:
            sorted_in[places.get(item["kind"], "workloads")].append(item)
    seen = snapshot.Snapshot(**{key: tuple(value) for key, value in sorted_in.items()})
    found = inventory.containers(seen, {}, NAMESPACE)
    inventory.add_platforms(found, lambda: snapshot.read_platforms(FakeCluster(*nodes)), ())
    return found


def _ask(example: examples.Example, lookups: t.Sequence[Object]) -> tuple[list[Object], list[str]]:
    """What registry_digest makes of the example's HTTP answers, and what it asked."""
    with fakeserver.serving(_registry(example)) as server:
        rules = [{"prefix": "registry.example", "location": server.host, "insecure": True}]
        found = fakeserver.look_up(images=list(lookups), registries=rules)
        return found["images"], server.lines


def _registry(example: examples.Example) -> fakeserver.Answer:
    tags = {tag: example.bodies[name] for tag, name in example.serves.items()}
    otherwise = fakeserver.content(*(example.bodies.values() if tags else ()), tags=tags)

    def answer(asked: fakeserver.Asked) -> fakeserver.Reply:
        for item in example.http:
            method, path = item["request"].split()
            is_meant = method in (asked.method, "ANY") and path in (asked.path, "*")
            if is_meant and item.get("accept", "") in asked.headers.get("accept", ""):
                body = example.bodies[item["body"]] if "body" in item else b""
                # without a length the answer of a HEAD has none at all
                return fakeserver.Reply(item["status"], item.get("headers") or {}, body, length="body" in item)
        return otherwise(asked)

    return answer


def _passes(example: examples.Example) -> None:
    cluster = FakeCluster(*example.objects)
    workloads = [item for item in example.objects if item["kind"] in snapshot.WORKLOADS]
    update = next((item["metadata"]["name"] for item in example.objects if item["kind"] == "Update"), None)
    params = {} if update else {"workloads": [{"kind": x["kind"], "name": x["metadata"]["name"]} for x in workloads]}
    registry = example.registry or ()
    for number, step in enumerate(example.steps or ({"expect": example.expect},), 1):
        where = f"{example.where}, step {number}"
        unknown = set(step) - {"what", "at", "change", "gone", "fail", "registry", "update", "expect"}
        assert not unknown, f"{where}: unknown keys {sorted(unknown)}"
        _change(cluster, step)
        registry = step.get("registry", registry)
        cluster.writes.clear()
        cluster.events.clear()
        before = _by_key(cluster)
        with _failing(cluster, step.get("fail") or ()):
            by_image = {entry["image"]: entry for entry in registry}
            done = one_pass(cluster, by_image, step.get("update", update), now=step.get("at", NOW), **params)
        assert done.errors == [], f"{where}: {done.errors}"
        after = _by_key(cluster)
        _check_images_alone(before, after, where)
        told = {"writes": cluster.writes, "warnings": done.warnings, "status": done.status}
        told["conditions"] = _conditions(done.status or {}, step["expect"].get("conditions") or {})
        events = [event["reason"] for event in cluster.events]
        _compare(step["expect"], where, done.judged, before, after, events=events, **told)


def _conditions(status: Object, expected: Object) -> Object:
    """Of each condition its status, or its reason where that is expected."""
    found = {item["type"]: (item["status"], item["reason"]) for item in status.get("conditions") or ()}
    return {kind: reason if expected.get(kind) == reason else value for kind, (value, reason) in found.items()}


def _change(cluster: FakeCluster, step: Object) -> None:
    """What others did before the pass of a step."""
    for name in step.get("gone") or ():
        kind, _slash, name = name.partition("/")
        del cluster.objects[(kind, NAMESPACE, name)]
    for item in step.get("change") or ():
        key = (item["kind"], NAMESPACE, (item.get("metadata") or {}).get("name", "web"))
        if key in cluster.objects:
            cluster.put(examples.merge(cluster.objects[key], item))
        else:
            known = [x for x in cluster.objects.values() if x["kind"] != "Namespace"]
            cluster.put(examples.complete([item], known)[0])


@contextlib.contextmanager
def _failing(cluster: FakeCluster, lines: t.Sequence[str]) -> t.Iterator[None]:
    """Writes that the API server refuses, `verb Kind`."""

    def refuse(verb: str, target: t.Any) -> None:
        if f"{verb} {target.kind}" in lines:
            raise ApiError(f"Could not {verb} {target}: forbidden", 403)

    cluster.before_write = refuse
    yield
    cluster.before_write = lambda verb, target: None


def _key(item: Object) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


def _by_key(cluster: FakeCluster) -> dict[tuple[str, str], Object]:
    return {_key(item): copy.deepcopy(item) for item in cluster.objects.values()}


def _check_images_alone(before: t.Mapping[t.Any, Object], after: t.Mapping[t.Any, Object], where: str) -> None:
    """Whatever a case is about: a workload or Start keeps everything but images and our annotations."""
    for key in before.keys() & after.keys():
        if key[0] in snapshot.WORKLOADS or key[0] == "Start":
            assert _without_images(after[key]) == _without_images(before[key]), f"{where}: more than images changed"


def _without_images(item: Object) -> Object:
    item = copy.deepcopy(item)
    if item["kind"] == "Start":
        item["spec"].pop("image", None)
    else:
        spec = running.pod_template(item)["spec"]
        for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
            container.pop("image", None)
    metadata = {key: value for key, value in item["metadata"].items() if key not in _MOVES}
    kept = item["metadata"].get("annotations") or {}
    return {**item, "metadata": metadata, "kept": {k: v for k, v in kept.items() if "kubesteward" not in k}}


def _compare(
    expect: Object,
    where: str,
    judged: Judged = (),
    before: t.Mapping[t.Any, Object] | None = None,
    after: t.Mapping[t.Any, Object] | None = None,
    **told: t.Any,
) -> None:
    unknown = set(expect) - _KNOWN
    assert not unknown, f"{where}: unknown expectations {sorted(unknown)}"
    for name, value in told.items():
        if name == "warnings":
            _check_parts(expect.get(name) or [], value, where)
        elif name in expect:
            matches(expect[name], value, f"{where}: {name}")
    missing = (
        set(expect) - _REPLIES - {"containers", "after"} - {key for key, value in told.items() if value is not None}
    )
    assert not missing, f"{where}: nothing tells {sorted(missing)}"
    if before is None or after is None:
        return
    for name, part in (expect.get("after") or {}).items():
        matches(part, after[tuple(name.split("/"))], f"{where}: {name}")
    wanted = expect.get("containers") or {judged[0][0]["container"] if judged else "": expect}
    by_name = {container["container"]: (container, verdict) for container, verdict in judged}
    assert sorted(wanted) == sorted(by_name), f"{where}: containers {sorted(by_name)}"
    for name, reply in wanted.items():
        _compare_container(reply, *by_name[name], before, after, f"{where}: {name}")


def _check_parts(parts: t.Sequence[str], texts: t.Sequence[str], where: str) -> None:
    assert len(parts) == len(texts), f"{where}: warnings {list(texts)}"
    for part, text in zip(parts, texts, strict=True):
        assert part in text, f"{where}: {part!r} is not in {text!r}"


def _compare_container(
    reply: Object,
    container: t.Mapping[str, t.Any],
    verdict: Verdict,
    before: t.Mapping[t.Any, Object],
    after: t.Mapping[t.Any, Object],
    where: str,
) -> None:
    told = f"{where}: {verdict}"
    assert {"verdict", "reason"} <= reply.keys(), f"{where}: verdict and reason are to be expected"
    assert (verdict.verdict, verdict.reason) == (reply["verdict"], reply["reason"]), told
    if "candidate" in reply:
        assert verdict.candidate == reply["candidate"], told
    assert reply.get("message", "") in verdict.message, told
    matches(reply.get("seen") or {}, container, where)
    owner = rollout.owner_of(container["workload"])
    key = owner["kind"], owner["name"]
    images = [jsonpointer.resolve_pointer(objects[key], f"{container['path']}/image") for objects in (before, after)]
    assert images[1] == reply.get("written", images[0]), f"{where}: the image is {images[1]}, it was {images[0]}"
    assert ("written" in reply) == (images[0] != images[1]), f"{where}: what is written was there already"


def matches(expected: t.Any, actual: t.Any, where: str) -> None:
    """Of a mapping the given keys, lists and anything else as a whole."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            assert value is None or key in actual, f"{where} has no {key}: {actual}"
            matches(value, actual.get(key), f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list | tuple):
        assert len(expected) == len(actual), f"{where} is {actual}"
        for number, (item, other) in enumerate(zip(expected, actual, strict=True)):
            matches(item, other, f"{where}[{number}]")
    else:
        assert expected == actual, f"{where} is {actual!r}, not {expected!r}"

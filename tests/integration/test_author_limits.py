# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an author of resources cannot make the operator do.

Run a template, change the interpreter, read Secrets of another namespace, reach an address that the administrator has
not allowed, or give anybody more rights. Passes are run as the operator runs them, with the rights of an administrator:
they must not be all that stops them.
"""

from __future__ import annotations

import json
import typing as t
import uuid
from pathlib import Path

import pytest
from integration import hostile
from integration.accounts import connect
from integration.nspro_story import Story, nspro, pull_secret
from integration.operator_passes import Operator
from integration.passes import Shop
from integration.workloads import container, deployment, until

import testbed
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import serving
from testbed.api import Api

pytestmark = pytest.mark.usefixtures("crds")

PASSWORD = "s3cret-of-others"
DIGEST = f"sha256:{'d' * 64}"
TEAM = {"team": "hostile"}
#: every place of the schemas where any text is taken; all the others have a form
FREE = {
    "start": {"image", "resources.limits{}", "resources.requests{}"},
    "update": {"targets[].selector.matchLabels{}"},
    "nspro": {
        "access[].role",
        "access[].users[]",
        "access[].groups[]",
        "annotations{}",
        "annotations.example.com/contact",
        "labels{}",
        "limitRange.default{}",
        "limitRange.defaultRequest{}",
        "limitRange.max{}",
        "limitRange.min{}",
        "networkPolicy.fromNamespaces[]{}",
        "networkPolicy.toNamespaces[]{}",
        "quota{}",
    },
}


@pytest.fixture(scope="module")
def api() -> Api:
    return Api(testbed.connect().kubeconfig)


@pytest.fixture
def other(kubectl, namespaces) -> str:
    """Another team's namespace, with a Secret."""
    name = namespaces()
    kubectl("create", "-f", "-", stdin=pull_secret(name, "login", PASSWORD))
    return name


# --- templates, the interpreter, and everything else that is Ansible's


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_no_key_beside_the_schema_is_stored_anywhere_in_a_spec(api, kind):
    whole = hostile.sample(kind)
    more = {**whole, "spec": hostile.with_extra(whole["spec"], hostile.schema(kind))}
    assert more["spec"].keys() > whole["spec"].keys()
    kept = hostile.stored(api, whole, "default")
    assert kept
    assert hostile.stored(api, more, "default") == kept


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_every_place_that_takes_any_text_is_known(api, kind):
    assert hostile.free_places(api, kind, "{{ 1 + 1 }}", "default").keys() == FREE[kind]


@pytest.fixture
def marker() -> t.Iterator[Path]:
    """A file that a template would make; its path is short enough for every string of the schemas."""
    path = Path("/tmp") / uuid.uuid4().hex[:8]
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_a_template_in_any_place_is_text(shop, api, tmp_path, marker, kind):
    text = "{{ lookup('pipe', 'touch " + str(marker) + "') }}"
    resources = hostile.free_places(api, kind, text, "default")
    for number, resource in enumerate(resources.values()):
        if kind == "start":
            # of one name only the first would be looked at
            resource["spec"]["name"] = f"shop-{number}"
        shop.apply({**resource, "metadata": {"name": f"{shop.namespace}-{number}"}})
    try:
        # one by one as the module reads them, and the last one as the operator hands it on
        printed = run(shop, kind)
        with Operator(shop, tmp_path) as operator:
            begun = operator.begin(kind.capitalize(), f"{shop.namespace}-{len(resources) - 1}")
            begun.process.communicate(timeout=120)
            events = json.dumps(begun.events())
    finally:
        shop.kubectl("delete", kind, "--all", "-n", shop.namespace)
        shop.kubectl("delete", "namespace", "--ignore-not-found", *created(shop, len(resources)), "--wait=false")
    assert "playbook_on_stats" in events
    assert str(marker) in printed
    assert not marker.exists()


def run(shop: Shop, kind: str) -> str:
    """The playbook from the command line for all of them, as loud as it can; a resource of nonsense may fail it."""
    try:
        return shop.run(kind, "-vvv").output
    except AssertionError as failed:
        return str(failed)


def created(shop: Shop, count: int) -> list[str]:
    return [f"{shop.namespace}-{number}" for number in range(count)]


# --- addresses


def unscheduled(name: str, image: str, **pod: t.Any) -> dict[str, t.Any]:
    """A Deployment whose Pod never gets a node: nobody but we looks at its image."""
    made = deployment(name, container("app", image), pod={"nodeSelector": {"no": "such"}, **pod})
    made["metadata"]["labels"].update(TEAM)
    return made


def verdicts(shop: Shop) -> dict[str, str]:
    found = shop.get("update")["status"]["images"]
    return {image["workload"].partition("/")[2]: f"{image['reason']}: {image.get('message')}" for image in found}


def look(shop: Shop, folder: Path, **settings: t.Any) -> tuple[dict[str, str], Operator, str]:
    """Verdicts of a pass over every workload of the team, the operator that ran it, and all that the run left."""
    apps = {item["metadata"]["name"] for item in shop.list("deployments")}
    assert until(lambda: {pod["metadata"]["labels"]["app"] for pod in shop.list("pods")} >= apps, 60)
    shop.apply(shop.update(spec={"targets": [{"kind": "Deployment", "selector": {"matchLabels": TEAM}}]}))
    with Operator(shop, folder, {"update_registries": shop.testbed.registries(), **settings}) as operator:
        begun = operator.begin("Update")
        begun.finish()
        return verdicts(shop), operator, begun.text()


def follows(reference: str, image: str) -> dict[str, t.Any]:
    """Annotations as a roll of ours writes them, but written by hand."""
    memory = {"reference": reference, "digest": DIGEST, "from": reference, "at": "2026-01-02T15:04:05Z"}
    assert image.endswith(DIGEST)
    return {"kubesteward.io/follow": json.dumps({"app": memory})}


def test_only_what_the_administrator_allows_is_asked(shop, tmp_path):
    with serving(hostile.ANSWER) as allowed, serving(hostile.ANSWER) as strange:
        followed = unscheduled("followed", f"{strange.host}/team/app@{DIGEST}")
        followed["metadata"]["annotations"] = follows(f"{strange.host}/team/app:1", f"{strange.host}/team/app@{DIGEST}")
        shop.apply(
            unscheduled("image", f"{strange.host}/team/app:1"),
            followed,
            unscheduled("beside", f"{allowed.host}.example/team/app:1"),
            unscheduled("allowed", f"{allowed.host}/team/app:1"),
        )
        found, _operator, _left = look(shop, tmp_path, update_allowed_registries=["quay.io", allowed.host])
        assert strange.asked == []
        assert len(allowed.asked) > 0
    assert {name: text.partition(":")[0] for name, text in found.items()} == {
        "image": "forbidden_registry",
        "followed": "forbidden_registry",
        "beside": "invalid_reference",
        "allowed": "not_found",
    }


#: as an image may name it; a name that leads there is a unit test's, since nobody here answers for names
LINK_LOCAL = {
    "plain": "169.254.169.254/team/app:1",
    "port": "169.254.169.254:80/team/app:1",
    "mapped": "[::ffff:a9fe:a9fe]:80/team/app:1",
    "compatible": "[::a9fe:a9fe]:80/team/app:1",
    "translated": "[64:ff9b::a9fe:a9fe]:80/team/app:1",
    "six": "[fe80::1]:80/team/app:1",
    "number": "2852039166:80/team/app:1",
    "octal": "0251.0376.0251.0376/team/app:1",
    "name": "metadata.google.internal/team/app:1",
    "cloud": "100.100.100.200/team/app:1",
}


def test_a_link_local_address_is_refused_though_everything_is_allowed(shop, tmp_path):
    with serving(hostile.ANSWER) as lure:
        workloads = [unscheduled(name, image) for name, image in LINK_LOCAL.items()]
        shop.kubectl("create", "-n", shop.namespace, "-f", "-", stdin=pull_secret(shop.namespace))
        secret = {"imagePullSecrets": [{"name": "login"}]}
        workloads += [unscheduled(name, f"{lure.host}/{name}/app:1", **secret) for name in ("redirect", "realm")]
        shop.apply(*workloads)
        found, _operator, _left = look(shop, tmp_path, update_allowed_registries=["*"])
    assert {found.pop("redirect").partition(":")[0], found.pop("realm").partition(":")[0]} == {
        "forbidden_registry",
        "unauthorized",
    }
    assert {name: text.partition(":")[0] for name, text in found.items()} == dict.fromkeys(
        LINK_LOCAL, "forbidden_registry"
    )


# --- Secrets


def test_no_secret_of_another_namespace_is_read_by_an_update(shop, other, tmp_path):
    path = f"../../{other}/secrets/login"
    shop.kubectl("create", "-n", shop.namespace, "-f", "-", stdin=pull_secret(shop.namespace, "own", PASSWORD))
    with serving(hostile.ANSWER) as private:
        image = f"{private.host}/private/app:1"
        shop.apply(
            unscheduled("named", image, imagePullSecrets=[{"name": "login"}]),
            unscheduled("path", image, imagePullSecrets=[{"name": path}]),
            unscheduled("slash", image, imagePullSecrets=[{"name": f"{other}/login"}]),
            # its own is read, and it is for another registry
            unscheduled("own", image, imagePullSecrets=[{"name": "own"}]),
        )
        found, operator, left = look(shop, tmp_path)
        assert [asked.authorization for asked in private.asked if asked.authorization] == []
    assert {name: text.partition(":")[0] for name, text in found.items()} == dict.fromkeys(found, "unauthorized")
    assert len(found) == 4
    read = {asked.path for asked in operator.gate.seen if "secrets" in asked.path}
    assert read == {f"/api/v1/namespaces/{shop.namespace}/secrets/{name}" for name in ("login", "own")}
    # nor anything else; of the cluster only the platforms of its nodes could be asked for
    elsewhere = {asked.path for asked in operator.gate.seen if f"/namespaces/{shop.namespace}/" not in asked.path}
    assert elsewhere <= {"/api/v1/nodes"}
    assert PASSWORD not in left


# --- more rights


ROLES = ("cluster-admin", "system:node", "kubesteward-nspro", "admin ", "Admin")
STRANGERS = ("system:masters", "system:authenticated", "system:unauthenticated", "system:serviceaccounts")


@pytest.fixture
def admin() -> Cluster:
    return connect(testbed.connect().kubeconfig)


def attacks(home: str, other: str) -> dict[str, dict[str, t.Any]]:
    """Nspros by name; all of them ask for what nobody may have."""
    fresh = (f"{home}-{number}" for number in range(100))
    specs: list[dict[str, t.Any]] = [{"access": [{"role": role, "users": ["mallory"]}]} for role in ROLES]
    specs += [{"access": [{"role": "view", "groups": [group]}]} for group in STRANGERS]
    specs += [{"access": [{"role": "view", "users": ["system:anonymous"]}]}]
    specs += [{"labels": labels} for labels in ({"app": "infra"}, {"kubernetes.io/metadata.name": "kube-system"})]
    specs += [{"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}]
    specs += [
        {"annotations": {"kubesteward.io/claim": "{}"}},
        {"annotations": {"operator-sdk/primary-resource": "a/b"}},
    ]
    specs += [{"quota": {"../x": 1}}, {"quota": {"a b": "1"}}]
    found = {next(fresh): spec for spec in specs}
    mine = {"access": [{"role": "admin", "users": ["mallory"]}], "adoption": "Always", "deletion": "Delete"}
    return {**found, **dict.fromkeys((home, other, "kube-system", "default", "openshift-x", "kube-x"), mine)}


def test_a_nspro_gives_nobody_what_its_author_must_not_have(shop, other, admin):
    home = shop.namespace
    before = {name: admin.get("v1", "Namespace", None, name) for name in (home, other, "kube-system", "default")}
    asked = attacks(home, other)
    shop.apply(*(nspro(home, name, **spec) for name, spec in asked.items()))
    story = Story(admin, admin, home)
    story.run(nspros={"namespace": home}, reserved=["kubesteward-system"])
    phases = {item["metadata"]["name"]: item["status"]["phase"] for item in shop.list("nspro")}
    assert phases.keys() == asked.keys()
    assert {name: phase for name, phase in phases.items() if phase not in ("Invalid", "Reserved", "Conflict")} == {}
    # nor by going again: what a Nspro does not have, it does not take with it
    assert story.run(nspros={"namespace": home, "all": True}, state="absent") == []
    for name in asked:
        there = admin.get("v1", "Namespace", None, name)
        assert there == before.get(name), name
    bound = [item for item in admin.find("rbac.authorization.k8s.io/v1", "RoleBinding", None) if "mallory" in str(item)]
    assert bound == []


def test_a_nspro_copies_no_secret_of_others_and_none_that_is_not_to_be_shared(shop, other, admin):
    home = shop.namespace
    kept = pull_secret(home, "kept", PASSWORD)
    del kept["metadata"]["labels"]
    opaque = {**pull_secret(home, "opaque", PASSWORD), "type": "Opaque"}
    for secret in (kept, opaque):
        admin.create(secret)
    for name in (f"../../{other}/secrets/login", f"{other}/login", "Login"):
        with pytest.raises(ApiError, match=r"spec\.pullSecrets"):
            admin.apply(nspro(home, f"{home}-x", pullSecrets=[{"name": name}]))
    story = Story(admin, admin, home)
    try:
        story.write(pullSecrets=[{"name": name} for name in ("login", "kept", "opaque")])
        story.run(nspros={"namespace": home})
        story.until_default_account()
        story.run(nspros={"namespace": home})
        assert admin.find("v1", "Secret", story.name) == []
        message = json.dumps(shop.get("nspro", story.name)["status"])
        assert PASSWORD not in message
        for name in ("login", "kept", "opaque"):
            assert name in message
    finally:
        story.remove()

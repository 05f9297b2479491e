# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The OLM bundle is what `make bundle` makes of config/, and says what config/ says."""

from __future__ import annotations

import base64
import json
import re

import pytest
import yaml

from hack import bundle, bundle_csv


@pytest.fixture(scope="module")
def made(pytestconfig) -> dict[str, str]:
    image = re.search(r"^IMG \?= (\S+)$", (pytestconfig.rootpath / "Makefile").read_text(), re.MULTILINE)[1]
    return bundle.files(pytestconfig.rootpath, image)


@pytest.fixture(scope="module")
def csv(made) -> dict:
    return yaml.safe_load(made["bundle/manifests/kubesteward.clusterserviceversion.yaml"])


def test_committed_bundle_is_what_make_bundle_writes(made, pytestconfig):
    root = pytestconfig.rootpath
    there = [path for path in (root / "bundle").rglob("*") if path.is_file()] + [root / "bundle.Dockerfile"]
    committed = {str(path.relative_to(root)): path.read_text() for path in there}
    assert committed == made, "run make bundle and commit bundle/ and bundle.Dockerfile"


def test_every_manifest_is_one_document(made):
    """OLM reads the first document of a file; a comment before its mark would be one."""
    manifests = {name: text for name, text in made.items() if name.endswith(".yaml")}
    assert {name: text[:4] for name, text in manifests.items() if not text.startswith("---\n")} == {}
    assert {name: len(list(yaml.safe_load_all(text))) for name, text in manifests.items()} == dict.fromkeys(
        manifests, 1
    )


def test_every_kind_has_an_example_and_its_crd(made, csv):
    examples = json.loads(csv["metadata"]["annotations"]["alm-examples"])
    owned = csv["spec"]["customresourcedefinitions"]["owned"]
    assert (
        {example["kind"] for example in examples} == {entry["kind"] for entry in owned} == {"Nspro", "Start", "Update"}
    )
    assert {f"bundle/manifests/{entry['name']}.yaml" for entry in owned} < made.keys()


def test_rights_of_the_operator_are_those_that_config_binds(csv, pytestconfig):
    """No more and no less than config/default gives; in the whole cluster only what one namespace is not enough for."""
    config = pytestconfig.rootpath / "config"
    bound = {
        binding["roleRef"]["name"]
        for folder in ("default", "manager")
        for binding in bundle.load(config / folder)
        if binding["kind"].endswith("RoleBinding")
    }
    rules = [
        rule for role in bundle.load(config / "rbac") if role["metadata"]["name"] in bound for rule in role["rules"]
    ]
    install = csv["spec"]["install"]["spec"]
    given = [rule for where in ("permissions", "clusterPermissions") for rule in install[where][0]["rules"]]
    assert sorted(map(json.dumps, bundle_csv.distinct(rules))) == sorted(set(map(json.dumps, given)))
    local = [rule for rule in install["permissions"][0]["rules"] if "secrets" in rule["resources"]]
    assert local == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]


def test_deployment_is_the_managers_and_watches_what_olm_says(csv, pytestconfig):
    (deployment,) = csv["spec"]["install"]["spec"]["deployments"]
    (manager,) = (
        each for each in bundle.load(pytestconfig.rootpath / "config/manager") if each["kind"] == "Deployment"
    )
    pod, original = deployment["spec"]["template"]["spec"], manager["spec"]["template"]["spec"]
    assert deployment["name"] == manager["metadata"]["name"]
    changed = ("env", "image")
    (container,), (before,) = pod["containers"], original["containers"]
    assert {key: value for key, value in container.items() if key not in changed} == {
        key: value for key, value in before.items() if key not in changed
    }
    environment = {entry["name"]: entry for entry in container["env"]}
    assert environment["WATCH_NAMESPACE"] == {"name": "WATCH_NAMESPACE", "valueFrom": bundle_csv.TARGETS}
    assert container["image"] == csv["metadata"]["annotations"]["containerImage"]


def test_settings_of_the_administrator_win_over_the_bundles(made, csv):
    """A later source of a projected volume wins. An upgrade writes the bundle's own anew and leaves the others."""
    (deployment,) = csv["spec"]["install"]["spec"]["deployments"]
    (settings,) = (each for each in deployment["spec"]["template"]["spec"]["volumes"] if each["name"] == "settings")
    first, second = settings["projected"]["sources"][:2]
    assert first == {"configMap": {"name": "kubesteward-settings-defaults"}}
    assert second == {"configMap": {"name": "kubesteward-settings", "optional": True}}
    defaults = yaml.safe_load(made["bundle/manifests/kubesteward-settings-defaults_configmap.yaml"])
    assert defaults["metadata"] == {"name": "kubesteward-settings-defaults"}
    assert yaml.safe_load(defaults["data"]["settings.yml"])


def test_what_people_see(csv, pytestconfig):
    (icon,) = csv["spec"]["icon"]
    assert base64.b64decode(icon["base64data"]) == (pytestconfig.rootpath / "config/manifests/icon.svg").read_bytes()
    version = yaml.safe_load((pytestconfig.rootpath / "galaxy.yml").read_text())["version"]
    assert (csv["spec"]["version"], csv["metadata"]["name"]) == (version, f"kubesteward.v{version}")
    modes = {mode["type"]: mode["supported"] for mode in csv["spec"]["installModes"]}
    assert modes == dict.fromkeys(("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"), True)


def test_labels_of_the_image_are_the_annotations(made):
    annotations = yaml.safe_load(made["bundle/metadata/annotations.yaml"])["annotations"]
    labels = dict(re.findall(r"^LABEL (\S+)=(\S+)$", made["bundle.Dockerfile"], re.MULTILINE))
    assert labels == annotations


@pytest.mark.parametrize(
    ("path", "schema", "shown"),
    [
        ("replicas", {"type": "integer"}, ["podCount"]),
        ("port", {"type": "integer"}, ["number"]),
        ("suspend", {"type": "boolean"}, ["booleanSwitch"]),
        ("size", {"type": "string", "enum": ["small", "large"]}, ["select:small", "select:large"]),
        ("resources", {"type": "object"}, ["resourceRequirements"]),
        ("targets", {"type": "array"}, []),
    ],
)
def test_how_a_field_is_entered(path, schema, shown):
    assert bundle_csv.entered(path, schema) == [f"urn:alm:descriptor:com.tectonic.ui:{each}" for each in shown]


def test_words_of_a_field():
    assert bundle_csv.title("stableForSeconds") == "Stable for seconds"
    assert bundle_csv.title("delete_flag") == "Delete flag"
    assert bundle_csv.first_sentence("One image.\n Two images.") == "One image."


def test_binding_of_a_role_that_is_not_there_is_named():
    binding = {"metadata": {"name": "b"}, "roleRef": {"name": "gone"}}
    with pytest.raises(bundle_csv.BundleError, match=r"b binds gone, which is not in config/rbac"):
        bundle_csv.rights_of([], [], [binding])

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Python that is too old or lacks a library is told, and what of a kubeconfig is hidden."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from ansible.module_utils import basic

from ansible_collections.kubesteward.core.plugins.module_utils import start
from ansible_collections.kubesteward.core.plugins.modules import pod_image_id, registry_digest
from ansible_collections.kubesteward.core.tests.unit.plugins.modules.test_registry_digest import patch_module_args

PLUGINS = Path(__file__).parents[4] / "plugins"
MODULES = sorted((PLUGINS / "modules").glob("*.py"))


@pytest.mark.parametrize("version", [(3, 8), (3, 9), (3, 10)])
def test_an_old_python_is_told_what_is_needed_and_how_to_choose_it(version):
    told = start.missing(version, ["requests"])
    assert "3.11" in told
    assert ".".join(map(str, version)) in told
    assert sys.executable in told
    assert "ansible_python_interpreter" in told


def test_a_missing_library_is_named_with_the_python_that_lacks_it():
    told = start.missing((3, 11), ["json", "no_such_library"])
    assert "no_such_library" in told
    assert "json" not in told
    assert sys.executable in told


def test_nothing_is_said_where_nothing_is_missing():
    assert start.missing((3, 11), ["json"]) == start.missing((4, 0), []) == ""


def test_what_is_missing_ends_the_module_as_a_failure(capsys):
    with pytest.raises(SystemExit):
        start.require("no_such_library")
    answer = json.loads(capsys.readouterr().out)
    assert answer["failed"] is True
    assert "no_such_library" in answer["msg"]


@pytest.mark.parametrize("path", [*MODULES, PLUGINS / "module_utils/start.py"], ids=lambda path: path.stem)
def test_the_oldest_python_that_ansible_starts_a_module_with_understands_its_text(path):
    ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_checks_its_python_before_it_imports_anything_else(path):
    body = [
        node
        for node in ast.parse(path.read_text()).body
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__") and not isinstance(node, ast.Assign)
    ]
    assert [ast.unparse(node).partition("(")[0] for node in body[:2]] == [
        "from ansible_collections.kubesteward.core.plugins.module_utils import start",
        "start.require",
    ]


def kubeconfig(**user):
    return {
        "current-context": "shop",
        "contexts": [{"name": "shop", "context": {"cluster": "prod", "user": "me", "namespace": "shop"}}],
        "clusters": [{"name": "prod", "cluster": {"server": "https://prod.example.com"}}],
        "users": [{"name": "me", "user": user}],
    }


def hidden(spec, **params):
    """What a module of these parameters hides in its result."""
    with patch_module_args(params):
        module = basic.AnsibleModule(argument_spec=spec)
    start.hide_secrets_alone(module)
    return module.no_log_values


def of_pods(**user):
    return hidden(pod_image_id.argument_spec(), namespace="shop", kubeconfig=kubeconfig(**user))


@pytest.mark.parametrize(
    "user",
    [
        {"token": "s3cret"},
        {"password": "s3cret", "username": "admin"},
        {"client-key-data": "s3cret", "client-certificate-data": "public", "client-certificate": "/etc/tls.crt"},
        {"auth-provider": {"name": "oidc", "config": {"id-token": "s3cret"}}},
        {"auth-provider": {"name": "oidc", "config": {"refresh-token": "s3cret"}}},
        {"exec": {"command": "get-token", "env": [{"name": "GITHUB_PAT", "value": "s3cret"}]}},
        {"exec": {"command": "kubelogin", "args": ["get-token", "--oidc-client-secret", "s3cret", "--for=prod"]}},
        {"exec": {"command": "aws", "args": ["eks", "get-token"], "env": [{"name": "GH", "value": "s3cret"}]}},
    ],
)
def test_of_a_kubeconfig_in_a_map_only_what_is_secret_is_hidden(user):
    assert of_pods(**user) == {"s3cret"}


@pytest.mark.parametrize("name", ["AWS_PROFILE", "AWS_DEFAULT_REGION", "HOME"])
def test_a_plain_variable_of_a_credential_plugin_is_not_hidden(name):
    assert of_pods(exec={"command": "get-token", "env": [{"name": name, "value": "prod"}]}) == set()


def test_a_secret_flag_is_hidden_with_its_value():
    given = of_pods(exec={"command": "kubelogin", "args": ["get-token", "--token=s3cret", "--cluster=prod"]})
    assert given == {"--token=s3cret", "s3cret"}


def test_a_password_in_the_address_of_a_proxy_is_hidden():
    config = kubeconfig()
    config["clusters"][0]["cluster"]["proxy-url"] = "http://me:s3cret@proxy"
    assert hidden(pod_image_id.argument_spec(), namespace="shop", kubeconfig=config) == {"http://me:s3cret@proxy"}


@pytest.mark.parametrize("user", [[], "me", 5, None, {"token": ["a1b2", {"x": "c3d4"}]}])
def test_a_map_of_another_shape_is_no_error(user):
    config = kubeconfig()
    config["users"] = user
    hidden(pod_image_id.argument_spec(), namespace="shop", kubeconfig=config)


def test_a_path_is_hidden_as_before_and_other_secrets_stay_hidden():
    assert hidden(pod_image_id.argument_spec(), namespace="shop", kubeconfig="/etc/kube") == {"/etc/kube"}
    found = hidden(
        registry_digest.argument_spec(), image="a", username="me", password="prod", kubeconfig=kubeconfig(token="t0ken")
    )
    assert found == {"prod", "t0ken"}


def test_the_account_of_the_registry_is_not_that_of_the_cluster():
    given = {"image": "a", "username": "registry", "password": "s3cret", "host": "https://prod", "api_key": "t0ken"}
    options = registry_digest.cluster_options(given)
    assert options["host"] == "https://prod"
    assert options["api_key"] == "t0ken"
    assert not {"username", "password"} & set(options)

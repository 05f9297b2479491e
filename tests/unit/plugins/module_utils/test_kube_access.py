# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to the API server: what configures it, and what is said where it cannot be made."""

from __future__ import annotations

import builtins
import os
import types

import kubernetes
import pytest
import urllib3
from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as k8s

from ansible_collections.kubesteward.core.plugins.module_utils import kube, kube_access
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster

SECRET = "c2VjcmV0LXRva2Vu"


def module(**params):
    return types.SimpleNamespace(params=params)


def test_the_connection_is_the_one_that_the_options_name(monkeypatch):
    for name in ("K8S_AUTH_HOST", "K8S_AUTH_API_KEY", "K8S_AUTH_KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    seen = []

    def answer(self, method, url, **query):
        seen.append((method, url, query["headers"], query["timeout"]))
        return types.SimpleNamespace(
            status=200, reason="OK", data=b'{"kind": "Pod"}', headers={}, getheaders=dict, getheader=lambda *_: None
        )

    monkeypatch.setattr(urllib3.PoolManager, "request", answer)
    options = {"host": "https://127.0.0.1:6443/", "api_key": SECRET, "impersonate_user": "someone"}
    cluster = Cluster.connect(module(**options))
    assert seen == []
    cluster.get("v1", "Pod", "shop", "p")
    ((method, url, headers, timeout),) = seen
    assert (method, url) == ("GET", "https://127.0.0.1:6443/api/v1/namespaces/shop/pods/p")
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert headers["Impersonate-User"] == "someone"
    assert headers["User-Agent"] == kube_access.USER_AGENT
    assert (timeout.connect_timeout, timeout.read_timeout) == kube.TIMEOUT


def test_a_missing_library_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "kubernetes":
            raise ImportError(f"No module named {name!r}")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(StewardError, match="kubernetes"):
        Cluster.connect(module())


def test_a_missing_kubeconfig_says_what_to_set(monkeypatch):
    def nothing(_auth):
        raise kubernetes.config.ConfigException("Invalid kube-config file. No configuration found.")

    monkeypatch.setattr(k8s, "_create_configuration", nothing)
    with pytest.raises(StewardError) as caught:
        Cluster.connect(module())
    assert "No configuration found" in str(caught.value)
    assert "kubeconfig" in str(caught.value)
    assert "K8S_AUTH_KUBECONFIG" in str(caught.value)


@pytest.mark.parametrize("variable", [None, "K8S_AUTH_KUBECONFIG", "KUBECONFIG"])
@pytest.mark.parametrize("names", [["nowhere"], ["nowhere", "neither"]])
def test_a_kubeconfig_that_is_not_there_is_named(tmp_path, monkeypatch, variable, names):
    for name in ("K8S_AUTH_HOST", "K8S_AUTH_KUBECONFIG", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    paths = [str(tmp_path / name) for name in names]
    if variable:
        monkeypatch.setenv(variable, os.pathsep.join(paths))
    with pytest.raises(StewardError) as caught:
        Cluster.connect(module() if variable else module(kubeconfig=os.pathsep.join(paths)))
    assert all(path in str(caught.value) for path in paths)


def test_a_kubeconfig_of_ansible_vault_that_nobody_decrypted_is_named(tmp_path, monkeypatch):
    path = tmp_path / "config"
    path.write_text("$ANSIBLE_VAULT;1.1;AES256\n6162\n")
    monkeypatch.setenv("K8S_AUTH_KUBECONFIG", str(path))
    with pytest.raises(StewardError, match="Ansible Vault") as caught:
        Cluster.connect(module())
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("version", ["36.0.0", "36.0.1"])
def test_the_client_that_sends_no_token_is_named_where_the_server_wants_one(monkeypatch, version):
    def refuse(*_what, **_query):
        exc = kubernetes.client.exceptions.ApiException(status=401, reason="Unauthorized")
        exc.body = '{"message": "Unauthorized"}'
        raise exc

    monkeypatch.setattr(kubernetes, "__version__", version)
    with pytest.raises(ApiError) as caught:
        Cluster(kube_access.with_one_error(refuse)).get("v1", "Pod", "shop", "p")
    assert ("36.0.0" in str(caught.value)) is (version == "36.0.0")


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"token: abc\nfoo: [", "in {path}, line 2"), (b"\x00\x01", "{path}")],
)
def test_a_kubeconfig_that_cannot_be_read_is_named_and_not_quoted(tmp_path, content, told):
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(StewardError) as caught:
        Cluster.connect(module(kubeconfig=str(path)))
    assert str(caught.value).startswith("The kubeconfig cannot be read: ")
    assert told.format(path=path) in str(caught.value)
    assert "abc" not in str(caught.value)
    assert "\n" not in str(caught.value)

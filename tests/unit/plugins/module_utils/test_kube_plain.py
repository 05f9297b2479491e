# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plain kubeconfig is used directly; whatever is not plain is left to the official client."""

from __future__ import annotations

import base64
import concurrent.futures
import copy
import http.server
import json
import threading

import pytest
import urllib3
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils import kube_plain

NAMES = {"kubeconfig": "kubeconfig", "context": "context", "host": "host", "validate_certs": "verify_ssl"}
CONFIG = {
    "current-context": "here",
    "contexts": [
        {"name": "here", "context": {"cluster": "c", "user": "u"}},
        {"name": "there", "context": {"cluster": "c", "user": "other"}},
    ],
    "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/", "certificate-authority": "ca.pem"}}],
    "users": [
        {"name": "u", "user": {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"}},
        {"name": "other", "user": {"token": "secret-token\n"}},
    ],
}


@pytest.fixture
def kubeconfig(tmp_path):
    (tmp_path / "ca.pem").write_text("AUTHORITY")
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(CONFIG))
    return path


def find(params, **environ):
    return kube_plain.find(params, NAMES, environ)


def test_paths_are_relative_to_the_file_and_data_is_decoded(kubeconfig):
    assert find({"kubeconfig": str(kubeconfig)}) == kube_plain.Access(
        "https://10.0.0.1:6443", True, "AUTHORITY", b"CERT", b"KEY", ""
    )


def test_the_file_may_come_from_the_environment(kubeconfig):
    expected = find({"kubeconfig": str(kubeconfig)})
    assert find({}, K8S_AUTH_KUBECONFIG=str(kubeconfig)) == expected
    assert find({"kubeconfig": None}, KUBECONFIG=str(kubeconfig)) == expected


def test_another_context_with_a_token(kubeconfig):
    access = find({"kubeconfig": str(kubeconfig), "context": "there"})
    assert access.authorization == "Bearer secret-token"
    assert "secret-token" not in repr(access)


@pytest.mark.parametrize(
    ("params", "environ", "verify"),
    [
        ({"validate_certs": False}, {}, False),
        ({}, {"K8S_AUTH_VERIFY_SSL": "no"}, False),
        ({}, {"K8S_AUTH_VALIDATE_CERTS": "yes"}, True),
    ],
)
def test_verification_as_kubernetes_core_has_it(kubeconfig, params, environ, verify):
    assert find({"kubeconfig": str(kubeconfig), **params}, **environ).verify is verify


@pytest.mark.parametrize(
    ("params", "environ"),
    [
        ({"host": "https://elsewhere"}, {}),
        ({}, {"K8S_AUTH_HOST": "https://elsewhere"}),
        ({}, {"HTTPS_PROXY": "http://proxy"}),
        ({"kubeconfig": {"a": "dictionary"}}, {}),
        ({"kubeconfig": "/one:/two"}, {}),
        ({"kubeconfig": "/does/not/exist"}, {}),
        ({"context": "unknown"}, {}),
    ],
)
def test_anything_else_is_left_to_the_official_client(kubeconfig, params, environ):
    assert find({"kubeconfig": str(kubeconfig), **params}, **environ) is None


def test_a_service_account_comes_before_the_default_file(kubeconfig):
    assert find({}, KUBECONFIG=str(kubeconfig), KUBERNETES_SERVICE_HOST="10.0.0.1") is None


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("users", "exec", {"command": "aws"}),
        ("users", "auth-provider", {"name": "oidc"}),
        ("users", "tokenFile", "/token"),
        ("users", "as", "somebody"),
        ("clusters", "proxy-url", "http://proxy"),
        ("clusters", "tls-server-name", "name"),
        ("clusters", "certificate-authority-data", "not base64!"),
    ],
)
def test_what_is_not_understood_is_left_to_the_official_client(kubeconfig, section, key, value):
    config = copy.deepcopy(CONFIG)
    config[section][0][section[:-1]][key] = value
    kubeconfig.write_text(yaml.safe_dump(config))
    assert find({"kubeconfig": str(kubeconfig)}) is None


@pytest.fixture
def server():
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 5

        def do_PATCH(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((self.path, dict(self.headers), body))
            content = json.dumps({"message": "no"}).encode()
            self.send_response(409 if "refuse" in self.path else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", seen
        httpd.shutdown()
        thread.join()


def client(url):
    authorization = f"Basic {base64.b64encode(b'me:pw').decode()}"
    access = kube_plain.Access(url, True, authorization=authorization)
    return kube_plain.PlainClient(access, "kubesteward/test", urllib3.Retry(total=0))


def test_a_request_has_the_names_and_headers_of_the_api(server):
    url, seen = server
    query = {"dry_run": "All", "force_conflicts": True, "label_selector": None, "field_manager": "kubesteward"}
    content = {"body": [{"op": "test"}], "content_type": "application/json-patch+json"}
    client(url).request("patch", "/api/v1/pods", _request_timeout=(1, 5), **query, **content)
    (path, headers, body) = seen[0]
    assert path == "/api/v1/pods?dryRun=All&fieldManager=kubesteward&force=true"
    assert headers["Content-Type"] == "application/json-patch+json"
    assert headers["Authorization"] == "Basic bWU6cHc="
    assert headers["User-Agent"] == "kubesteward/test"
    assert json.loads(body) == [{"op": "test"}]


def test_what_is_no_success_is_refused_with_its_body(server):
    with pytest.raises(kube_plain.RefusedError, match="409 Conflict") as caught:
        client(server[0]).request("patch", "/refuse", _request_timeout=(1, 5), body={})
    assert json.loads(caught.value.body) == {"message": "no"}


def test_eight_threads_keep_their_connections():
    connections, together = [], threading.Barrier(8, timeout=10)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            super().setup()
            connections.append(self.client_address)

        def do_GET(self):
            # answered only when eight requests are under way
            together.wait()
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        # theirs wait for more requests until the process ends
        httpd.daemon_threads = True
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        ours = client(f"http://127.0.0.1:{httpd.server_port}")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for _round in range(3):
                list(pool.map(lambda number: ours.request("get", "/", _request_timeout=(5, 10)), range(8)))
        httpd.shutdown()
        thread.join()
    assert len(connections) == 8


@pytest.mark.parametrize(
    "text", ["plain", "caf\u00e9", "\u4e16", "\U0001f600", "\x7f\x85\u009f\ufeff\ufffe", "\\ud83d\\ude00", "\a"]
)
def test_what_is_applied_is_yaml_and_json(text):
    body = kube_plain.as_yaml({"note": text})
    assert json.loads(body) == yaml.safe_load(body) == {"note": text}

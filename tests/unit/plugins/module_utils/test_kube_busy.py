# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API server that is busy or broken is asked again: 429 after a short pause, whatever the request."""

from __future__ import annotations

import http.server
import json
import threading
import time
import types

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.kube import ApiError, Cluster, Reference

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
CALLS = {
    "get": lambda cluster: cluster.get("v1", "Namespace", None, "team-a"),
    "post": lambda cluster: cluster.create(NAMESPACE),
    "patch": lambda cluster: cluster.json_patch(Reference("v1", "Namespace", None, "team-a"), []),
    "delete": lambda cluster: cluster.delete(Reference("v1", "Namespace", None, "team-a"), "uid"),
}


@pytest.fixture
def busy(tmp_path, monkeypatch):
    """A server that refuses `left` requests; and a Cluster that talks to it."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "KUBECONFIG", "K8S_AUTH_HOST", "K8S_AUTH_KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    state = types.SimpleNamespace(left=0, seen=[], status=429, pause="1")

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 5
        protocol_version = "HTTP/1.1"

        def answer(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.seen.append(time.monotonic())
            state.left -= 1
            status = state.status if state.left >= 0 else 200
            content = json.dumps(NAMESPACE if status == 200 else {"message": "too many requests"}).encode()
            self.send_response(status)
            if status != 200 and state.pause is not None:
                self.send_header("Retry-After", state.pause)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def __getattr__(self, name):
            if not name.startswith("do_"):
                raise AttributeError(name)
            return self.answer

        def log_message(self, format, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{httpd.server_port}"}}],
            "users": [{"name": "u", "user": {"token": "token"}}],
        }
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(config))
        state.cluster = Cluster.connect(types.SimpleNamespace(params={"kubeconfig": str(path)}))
        yield state
        httpd.shutdown()
        thread.join()


@pytest.mark.parametrize("verb", CALLS)
def test_a_busy_api_server_is_asked_again_after_the_time_it_names(busy, verb):
    busy.left = 1
    CALLS[verb](busy.cluster)
    first, second = busy.seen
    assert second - first >= 0.95


def test_one_that_stays_busy_is_told_and_not_asked_for_ever(busy):
    busy.left = 99
    with pytest.raises(ApiError, match="Namespace team-a: too many requests") as caught:
        CALLS["post"](busy.cluster)
    assert caught.value.status == 429
    assert len(busy.seen) == 4


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("pause", ["6", "3600", "Fri, 31 Dec 2199 23:59:59 GMT"])
def test_a_long_pause_is_not_waited_for(busy, verb, pause):
    busy.left, busy.pause = 99, pause
    began = time.monotonic()
    with pytest.raises(ApiError) as caught:
        CALLS[verb](busy.cluster)
    assert (caught.value.status, len(busy.seen)) == (429, 1)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("pause", ["1", "3600", None])
def test_what_may_have_been_carried_out_is_not_asked_again(busy, verb, pause):
    busy.left, busy.pause, busy.status = 1, pause, 503
    with pytest.raises(ApiError) as caught:
        CALLS[verb](busy.cluster)
    assert (caught.value.status, len(busy.seen)) == (503, 1)


@pytest.mark.parametrize("pause", ["soon", "-1", "9" * 5000, "", None])
def test_a_pause_that_is_no_number_is_as_none(busy, pause):
    busy.left, busy.pause = 1, pause
    CALLS["get"](busy.cluster)
    assert len(busy.seen) == 2


def test_one_long_pause_does_not_end_the_tries_of_later_requests(busy):
    busy.left, busy.pause = 1, "3600"
    with pytest.raises(ApiError):
        CALLS["get"](busy.cluster)
    busy.left, busy.pause = 1, "1"
    CALLS["get"](busy.cluster)
    assert len(busy.seen) == 3

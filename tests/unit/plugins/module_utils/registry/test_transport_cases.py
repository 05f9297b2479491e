# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redirects, proxies, TLS, rate limits, retries."""

from __future__ import annotations

import json
import ssl
import threading
import time

import pytest
import trustme

from ansible_collections.kubesteward.core.plugins.module_utils.registry import connections, transport
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Tls
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    FakeRegistry,
    Reply,
    child,
    content,
    index,
    look_up,
    manifest,
    one,
    serving,
    sha256,
)

BODY = manifest()
GOOD = content(tags={"t": BODY, "u": BODY})


@pytest.fixture
def naps(monkeypatch):
    """Seconds that the client slept, without sleeping them."""
    slept: list[float] = []
    clock = [0.0]

    def sleep(seconds):
        slept.append(seconds)
        clock[0] += seconds

    real = transport.Client.__init__

    def init(self, *args, **kwargs):
        real(self, *args, **{"clock": lambda: time.monotonic() + clock[0], "sleep": sleep, **kwargs})

    monkeypatch.setattr(transport.Client, "__init__", init)
    return slept


def wants_basic(asked):
    return GOOD(asked) if asked.authorization else Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})


def test_a_redirect_to_another_port_carries_no_credential():
    with serving(GOOD) as other:

        def away(asked):
            return (
                Reply(307, {"Location": f"http://{other.host}{asked.path}"})
                if asked.authorization
                else wants_basic(asked)
            )

        with serving(away) as server:
            found = one(f"{server.host}/app:t", username="u", password="p")
        assert [asked.authorization for asked in other.asked] == [None]
    assert found["digest"] == sha256(BODY)


def test_a_redirect_on_the_same_host_keeps_the_credential():
    def moved(asked):
        if asked.path == "/elsewhere/manifests/t":
            return wants_basic(asked)
        return Reply(308, {"Location": "/elsewhere/manifests/t"}) if asked.authorization else wants_basic(asked)

    with serving(moved) as server:
        assert one(f"{server.host}/app:t", username="u", password="p")["state"] == "found"
        assert server.asked[-1].authorization


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data", "forbidden_registry"),
        ("http://metadata.google.internal/", "forbidden_registry"),
        ("file:///etc/passwd", "forbidden_registry"),
        ("http://[bad", "forbidden_registry"),
        ("/v2/app/manifests/t", "unreachable"),
    ],
)
def test_redirects_that_lead_nowhere_good_are_not_followed(location, reason):
    with serving(lambda asked: Reply(302, {"Location": location})) as server:
        assert one(f"{server.host}/app:t")["reason"] == reason


def test_a_token_server_cannot_send_a_posted_credential_on():
    def answer(asked):
        if asked.method == "POST":
            return Reply(307, {"Location": f"http://localhost:{asked.headers['host'].split(':')[1]}/other"})
        return Reply(401, {"WWW-Authenticate": f'Bearer realm="http://{asked.headers["host"]}/token"'})

    with serving(answer) as server:
        found = one(f"{server.host}/app:t", auth_config={"auths": {server.host: {"identitytoken": "secret-id"}}})
        assert not any(asked.path == "/other" for asked in server.asked)
    assert found["reason"] == "unauthorized"


def test_an_address_is_checked_on_the_open_connection(monkeypatch):
    monkeypatch.setattr(connections, "is_forbidden", lambda name: name == "127.0.0.1")
    with serving(GOOD) as server:
        found = one(f"localhost:{server.host.split(':')[1]}/app:t")
        assert not server.asked
    assert found["reason"] == "forbidden_registry"


@pytest.mark.parametrize(
    ("no_proxy", "host", "direct"),
    [
        (".svc,10.0.0.0/8", "10.1.2.3:5000", True),
        (".svc,10.0.0.0/8", "registry.ns.svc", True),
        (".svc,10.0.0.0/8", "11.1.2.3", False),
        ("fd00::/8", "[fd00::5]:5000", True),
        ("fd00::/8", "[fe00::5]:5000", False),
        ("", "localhost:5000", True),
        ("*", "quay.io", True),
        ("bad/range,quay.io", "quay.io", True),
    ],
)
def test_no_proxy_knows_suffixes_and_ranges(monkeypatch, no_proxy, host, direct):
    monkeypatch.setenv("HTTPS_PROXY", "http://user:pw@proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    proxies = connections.environment_proxies(f"https://{host}")
    assert (not proxies.get("https")) is direct


def test_a_proxy_is_used_and_its_password_never_shown(monkeypatch):
    with serving(lambda asked: GOOD(asked)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:pr0xypw@{proxy.host}")
        monkeypatch.setenv("NO_PROXY", "")
        registries = [{"prefix": "r.example", "insecure": True}]
        monkeypatch.setenv("HTTPS_PROXY", "http://user:pr0xypw@127.0.0.1:1")
        found = one("r.example/app:t", registries=registries, retries=1)
        assert proxy.asked[0].headers["proxy-authorization"].startswith("Basic ")
        refused = one("q.example/app:t", retries=1)
    assert found["state"] == "found"
    assert refused["reason"] == "unreachable"
    assert "pr0xypw" not in json.dumps([found, refused])


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def secure(authority):
    """A registry over TLS with a certificate of a private CA."""
    server = FakeRegistry(GOOD)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
    yield server
    server.close()


def test_a_private_ca_is_trusted_where_it_is_given(authority, secure, tmp_path):
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    registries = [{"prefix": secure.host, "ca_cert": str(path)}]
    assert one(f"{secure.host}/app:t", registries=registries)["digest"] == sha256(BODY)


def test_an_unknown_ca_is_a_tls_error_that_names_the_host(secure):
    found = one(f"{secure.host}/app:t", registries=[{"prefix": secure.host, "validate_certs": True}])
    assert found["reason"] == "tls_error"
    assert "certificate verify failed" in found["msg"]
    assert secure.host in found["msg"]


@pytest.mark.parametrize("option", [{"validate_certs": False}, {"insecure": True}])
def test_unverified_tls_is_explicit_and_for_one_registry(secure, option):
    assert one(f"{secure.host}/app:t", registries=[{"prefix": secure.host, **option}])["state"] == "found"
    other = [{"prefix": "other.example", **option}, {"prefix": secure.host, "validate_certs": True}]
    assert one(f"{secure.host}/app:t", registries=other)["reason"] == "tls_error"


def test_a_ca_file_that_cannot_be_read_is_named():
    found = one("r.example/app:t", registries=[{"prefix": "r.example", "ca_cert": "/nonexistent/ca.pem"}])
    assert found["reason"] == "tls_error"
    assert "/nonexistent/ca.pem" in found["msg"]


def test_a_long_pause_is_not_slept_and_holds_for_every_image_of_the_host(naps):
    with serving(lambda asked: Reply(429, {"Retry-After": "30"})) as server:
        found = look_up(images=[f"{server.host}/app:{n}" for n in range(5)], concurrency=1)["images"]
        assert len(server.asked) == 1
    assert {entry["reason"] for entry in found} == {"rate_limited"}
    assert all(25 <= entry["retry_after"] <= 30 for entry in found)
    assert sum(naps) == 0


def test_a_short_pause_is_slept_and_the_request_repeated(naps):
    answers = [Reply(429, {"Retry-After": "2"})]
    with serving(lambda asked: answers.pop() if answers else GOOD(asked)) as server:
        assert one(f"{server.host}/app:t")["state"] == "found"
    assert 1.5 < sum(naps) < 3.5


def test_a_limit_without_a_time_is_repeated_a_few_times_only(naps):
    with serving(lambda asked: Reply(429)) as server:
        assert one(f"{server.host}/app:t")["reason"] == "rate_limited"
        assert len(server.asked) == 3


def test_one_check_is_one_head():
    with serving(GOOD) as server:
        assert one(f"{server.host}/app:t")["requests_made"] == 1
        assert server.lines == ["HEAD /v2/app/manifests/t"]


def test_nothing_is_fetched_with_get_for_a_digest_alone():
    with serving(GOOD) as server:
        look_up(images=[f"{server.host}/app:t", f"{server.host}/app:u"])
        assert {asked.method for asked in server.asked} == {"HEAD"}


def test_the_same_reference_with_the_same_credentials_is_one_look_up():
    with serving(GOOD) as server:
        images = [f"{server.host}/app:t", {"image": f"{server.host}/app:t"}] * 50
        result = look_up(images=images, auth_config={"auths": {server.host: {"username": "u", "password": "p"}}})
        assert len(server.asked) == result["requests_made"] == 1
    assert len(result["images"]) == 100
    assert {entry["digest"] for entry in result["images"]} == {sha256(BODY)}


def test_few_pulls_left_stop_optional_requests_and_are_shown():
    top = index(child(BODY))
    good = content(BODY, tags={"t": top})

    def scarce(asked):
        reply = good(asked)
        return Reply(reply.status, {**reply.headers, "ratelimit-remaining": "3;w=21600"}, reply.body)

    with serving(scarce) as server:
        found = one(f"{server.host}/app:t", resolve=["children"])
        assert len(server.asked) == 1
    assert (found["digest"], found["ratelimit_remaining"]) == (sha256(top), 3)
    assert any("3 more pulls" in warning for warning in found["warnings"])


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_failures_are_repeated_a_few_times(naps, status):
    answers = [Reply(status), Reply(status)]
    with serving(lambda asked: answers.pop() if answers else GOOD(asked)) as server:
        assert one(f"{server.host}/app:t")["state"] == "found"
    with serving(lambda asked: Reply(status)) as server:
        found = one(f"{server.host}/app:t")
        assert len(server.asked) == 3
    assert found["reason"] == "unreachable"
    assert len(naps) == 4
    assert all(0.1 < nap < 0.6 for nap in naps)


def test_a_failure_of_a_registry_that_may_be_plain_http_is_not_one_of_tls(naps):
    with serving(lambda asked: Reply(503)) as server:
        registries = [{"prefix": "r.example", "location": server.host, "insecure": True}]
        found = one("r.example/app:t", registries=registries)
        assert len(server.asked) == 3
    assert (found["reason"], found["status"]) == ("unreachable", 503)


def test_a_body_that_breaks_off_is_asked_for_again(naps):
    broken = [True]

    def answer(asked):
        if asked.method == "GET" and broken:
            broken.pop()
            return Reply(200, {"Content-Type": "application/json"}, BODY[:20], broken=True)
        return content(tags={"t": BODY}, headers=False)(asked)

    with serving(answer) as server:
        assert one(f"{server.host}/app:t")["digest"] == sha256(BODY)


def test_a_refused_connection_is_unreachable_at_once_for_all_that_follow(naps):
    found = look_up(images=[f"127.0.0.1:1/app:{n}" for n in range(10)], concurrency=1)
    assert {entry["reason"] for entry in found["images"]} == {"unreachable"}
    assert "refuses the connection" in found["images"][0]["msg"]
    assert found["requests_made"] == 3


def test_a_name_that_does_not_resolve_is_unreachable(naps):
    found = one("registry.invalid/app:t", retries=1)
    assert found["reason"] == "unreachable"


def test_channels_are_shared_by_threads():
    client = transport.Client()
    found: list[transport.Channel] = []
    threads = [
        threading.Thread(target=lambda: found.append(client.channel("https://r.example", Tls()))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert len({id(channel) for channel in found}) == 1


def test_a_client_certificate_is_shown_to_its_registry_only(authority, tmp_path):
    server = FakeRegistry(GOOD)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
    own = authority.issue_cert("client.example")
    paths = {name: tmp_path / f"{name}.pem" for name in ("ca_cert", "client_cert", "client_key")}
    authority.cert_pem.write_to_path(paths["ca_cert"])
    own.private_key_pem.write_to_path(paths["client_key"])
    own.cert_chain_pems[0].write_to_path(paths["client_cert"])
    given = {name: str(path) for name, path in paths.items()}
    try:
        assert one(f"{server.host}/app:t", registries=[{"prefix": server.host, **given}])["state"] == "found"
        del given["client_cert"], given["client_key"]
        assert (
            one(f"{server.host}/app:t", registries=[{"prefix": server.host, **given}], retries=1)["state"] == "unknown"
        )
    finally:
        server.close()

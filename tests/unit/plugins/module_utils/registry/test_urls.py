# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is checked is what is connected to: URLs that registries name, and where names lead."""

from __future__ import annotations

import json
import socket

import pytest
import urllib3

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import addresses, challenge, redirects, urls
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    manifest,
    one,
    serving,
    sha256,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.test_transport import sending

BODY = manifest()
GOOD = content(tags={"t": BODY})


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("https://R.Example/v2/", "https://r.example", "/v2/"),
        ("https://r.example:443/v2/?a=b#c", "https://r.example", "/v2/?a=b"),
        ("http://r.example:80", "http://r.example", "/"),
        ("http://r.example:8080?x", "http://r.example:8080", "/?x"),
        ("https://[FD00::1]:5000/x", "https://[fd00::1]:5000", "/x"),
        ("https://user:pw@r.example/x", "https://r.example", "/x"),
        ("https://my_registry.internal./x", "https://my_registry.internal.", "/x"),
        ("https://10.0.0.5/x", "https://10.0.0.5", "/x"),
        ("http://r.example:/x", "http://r.example", "/x"),
        ("https://r.example/a[1]\\b@c", "https://r.example", "/a[1]\\b@c"),
    ],
)
def test_a_url_of_a_host_is_read(text, origin, target):
    url = urls.read(text)
    assert (url.origin, url.target) == (origin, target)
    assert urls.read(str(url)) == url


NO_HOST = [
    "http://127.0.0.1:8888\\[::1]/x",
    "http://r.example\\@127.0.0.1/x",
    "http://127.0.0.1\\.r.example/x",
    "http://r.example[::1]/x",
    "http://r.example:80[::1]/x",
    "http://[::1/x",
    "http://[::1]r.example/x",
    "http://[fe80::1%25eth0]/x",
    "http://[v1.x]/x",
    "http://%6cocalhost/x",
    "http://a@b@127.0.0.1/x",
    "http://r example/x",
    "http://r.example\t/x",
    "http://r.example/x y",
    "http://\uff11\uff12\uff17.0.0.1/x",
    "http://\u24db\u24de\u24d2\u24d0\u24dbhost/x",
    "http://r.example:\u0661/x",
    "http://r.example:99999/x",
    "http://r.example:-1/x",
    "http://:80/x",
    "http:///x",
    "http:r.example/x",
    "http:/r.example/x",
    "file:///etc/passwd",
    "r.example",
    "",
    f"http://{'a' * 300}/",
    f"http://r.example/{'a' * 20000}",
]


# read as relative to what was asked, and as such harmless: the host stays the same
RELATIVE = {"http://r.example\t/x", "http:///x"}


@pytest.mark.parametrize("text", NO_HOST)
def test_what_parsers_may_read_differently_is_no_url(text):
    assert urls.read(text) is None


@pytest.mark.parametrize(
    "text", [text for text in NO_HOST if text.startswith("http://") and text.isascii() and not RELATIVE & {text}]
)
def test_a_redirect_or_token_server_that_is_no_url_is_refused(text):
    with pytest.raises(StewardError) as hop:
        redirects.redirected(sending("http://r.example/v2/"), text)
    assert hop.value.reason == "forbidden_registry"
    with pytest.raises(StewardError) as realm:
        challenge.check_realm(text, "http://r.example")
    assert realm.value.reason == "unauthorized"


HERE = [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "operator.localhost",
    "operator.localhost.",
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.255.255.254",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
]


@pytest.mark.parametrize("host", HERE)
@pytest.mark.parametrize("port", ["", ":8888"])
def test_this_machine_is_known_in_every_notation(host, port):
    assert addresses.is_here(f"{host}{port}")
    with pytest.raises(StewardError) as hop:
        redirects.redirected(sending("http://r.example/v2/"), f"http://{host}{port}/x")
    assert hop.value.reason == "forbidden_registry"
    with pytest.raises(StewardError) as realm:
        challenge.check_realm(f"https://{host}{port}/token", "https://r.example")
    assert realm.value.reason == "unauthorized"


@pytest.mark.parametrize(
    "host", ["r.example", "localhost.example", "mylocalhost", "128.0.0.1", "[fd00::1]", "127.0.0.1.nip.example"]
)
def test_other_hosts_are_not_taken_for_this_machine(host):
    assert not addresses.is_here(host)
    assert redirects.redirected(sending("http://r.example/v2/"), f"http://{host}/x").url.host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "[::]", "[::ffff:0.0.0.0]", "169.254.1.1", "[fe80::1]", "224.0.0.1"])
def test_addresses_that_are_nobody_s_are_refused_also_where_the_registry_is_here(host):
    with pytest.raises(StewardError) as hop:
        redirects.redirected(sending("http://127.0.0.1/v2/", here=True), f"http://{host}/x")
    assert hop.value.reason == "forbidden_registry"


@pytest.fixture
def names(monkeypatch):
    """Names that lead to servers on loopback; a connection to one of them says that its peer is what stands here."""
    peers: dict[str, str] = {}
    real = urllib3.util.connection.create_connection

    class Led(socket.socket):
        peer = ""

        def getpeername(self):
            return (self.peer, 80)

    def connect(address, timeout=None, *_more, **_options):
        host, port = address
        if host not in peers:
            return real(address, timeout)
        led = Led(socket.AF_INET)
        led.peer = peers[host]
        led.settimeout(timeout)
        led.connect(("127.0.0.1", port))
        return led

    monkeypatch.setattr(urllib3.util.connection, "create_connection", connect)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    return peers


def port_of(server):
    return server.host.rpartition(":")[2]


def ask(server, name="r.example", **given):
    host = f"{name}:{port_of(server)}"
    return one(f"{host}/app:t", registries=[{"prefix": host, "insecure": True}], retries=1, **given)


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "0.0.0.0", "fe80::1%eth0"])
@pytest.mark.parametrize("way", ["redirect", "token", "redirect of a token server"])
def test_a_name_that_leads_to_this_machine_gets_no_request(names, peer, way):
    names.update({"r.example": "203.0.113.5", "inside.example": peer})
    with serving(GOOD) as inside:
        target = f"http://inside.example:{port_of(inside)}/api/v1/secrets"

        def answer(asked):
            if way == "redirect" or asked.path == "/token":
                return Reply(307, {"Location": target})
            # plain http is followed on the registry's own host only, so the name must be the registry's
            realm = (
                f"http://r.example:{port_of(inside)}/t" if way == "token" else f"http://{asked.headers['host']}/token"
            )
            if way == "token":
                names["r.example"] = peer
            return Reply(401, {"WWW-Authenticate": f'Bearer realm="{realm}"'})

        with serving(answer) as server:
            found = ask(server)
        assert inside.asked == []
    assert found["reason"] in ("forbidden_registry", "unauthorized")
    assert "nothing is sent there" in found["msg"]


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
def test_a_registry_of_any_name_may_be_on_this_machine_itself(names, peer):
    names["r.example"] = peer
    with serving(GOOD) as server:
        assert ask(server)["digest"] == sha256(BODY)


def test_a_registry_that_only_a_name_puts_here_leads_to_nothing_else_here(names):
    names.update({"r.example": "127.0.0.1", "inside.example": "127.0.0.1"})
    with serving(GOOD) as inside:
        for host in ("127.0.0.1", "inside.example", "r.example"):
            location = f"http://{host}:{port_of(inside)}/v2/app/manifests/t"
            with serving(lambda asked, location=location: Reply(307, {"Location": location})) as server:
                assert ask(server)["reason"] == "forbidden_registry"
        assert inside.asked == []


@pytest.mark.parametrize(
    "peers", [("203.0.113.5", "127.0.0.1"), ("127.0.0.1", "203.0.113.5"), ("203.0.113.5", "::1")], ids=" then ".join
)
def test_a_name_that_changes_between_here_and_elsewhere_is_found_out(names, peers):
    names["r.example"] = peers[0]

    def answer(asked):
        names["r.example"] = peers[1]
        if asked.method == "HEAD":
            return Reply(307, {"Location": "/api/v1/namespaces/shop/secrets/login", "Connection": "close"})
        return GOOD(asked)

    with serving(answer) as server:
        found = ask(server)
        assert [asked.path for asked in server.asked] == ["/v2/app/manifests/t"]
    assert found["reason"] == "forbidden_registry"
    assert f"r.example:{port_of(server)}" in found["msg"]
    assert "nothing is sent there" in found["msg"]


def test_a_registry_elsewhere_may_redirect_elsewhere(names):
    names.update({"r.example": "203.0.113.5", "cdn.example": "203.0.113.6"})
    with serving(GOOD) as cdn:
        location = f"http://cdn.example:{port_of(cdn)}/v2/app/manifests/t"
        with serving(lambda asked: Reply(307, {"Location": location})) as server:
            assert ask(server)["digest"] == sha256(BODY)


@pytest.mark.parametrize("registry", ["127.0.0.1", "localhost"])
def test_a_registry_on_this_machine_may_lead_to_it_by_any_name(names, registry):
    names.update({"storage.example": "127.0.0.1"})
    with serving(GOOD) as storage:
        location = f"http://storage.example:{port_of(storage)}/v2/app/manifests/t"
        with serving(lambda asked: Reply(307, {"Location": location})) as server:
            assert one(f"{registry}:{port_of(server)}/app:t")["digest"] == sha256(BODY)


def test_a_proxy_on_this_machine_is_the_administrator_s_and_redirects_to_it_are_refused_all_the_same(monkeypatch):
    def through(asked):
        if "127.0.0.1:8888" in asked.path or "127.0.0.1:8888" in asked.headers["host"]:
            return Reply(200, {}, b"the operator's own")
        if asked.headers["host"] == "away.example":
            return Reply(307, {"Location": "http://127.0.0.1:8888/api"})
        return GOOD(asked)

    with serving(through) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.host}")
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("NO_PROXY", "")
        registries = [{"prefix": name, "insecure": True} for name in ("r.example", "away.example")]
        found = one("r.example/app:t", registries=registries, retries=1)
        refused = one("away.example/app:t", registries=registries, retries=1)
        hosts = {asked.headers["host"] for asked in proxy.asked}
    assert found["state"] == "found"
    assert refused["reason"] == "forbidden_registry"
    assert hosts == {"r.example", "away.example"}


def test_what_no_proxy_names_is_connected_to_directly_and_tested(names, monkeypatch):
    names.update({"r.example": "203.0.113.5", "inside.example": "127.0.0.1"})
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "r.example,inside.example")
    with serving(GOOD) as inside:
        location = f"http://inside.example:{port_of(inside)}/x"
        with serving(lambda asked: Reply(307, {"Location": location})) as server:
            assert ask(server)["reason"] == "forbidden_registry"
            assert len(server.asked) == 1
        assert inside.asked == []


@pytest.mark.parametrize(
    "location",
    ["//127.0.0.1:{port}/x", "\\\\127.0.0.1:{port}/x", "/\\127.0.0.1:{port}/x", "http:/\\127.0.0.1:{port}/x"],
)
def test_relative_redirects_lead_to_no_host_that_was_not_checked(names, location):
    names["r.example"] = "203.0.113.5"
    with (
        serving(GOOD) as inside,
        serving(lambda asked: Reply(307, {"Location": location.format(port=port_of(inside))})) as server,
    ):
        found = ask(server)
        assert inside.asked == []
    assert found["state"] == "unknown"


def test_the_port_that_a_scheme_has_anyway_is_the_same_host():
    moved = redirects.redirected(sending("https://r.example/v2/"), "https://R.example:443/v2/x")
    assert "Authorization" in moved.headers
    assert str(moved.url) == "https://r.example/v2/x"


def test_a_long_location_is_not_repeated_in_the_message(names):
    names["r.example"] = "203.0.113.5"
    with serving(lambda asked: Reply(307, {"Location": f"http://127.0.0.1/{'x' * 5000}"})) as server:
        assert len(json.dumps(ask(server))) < 2000

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registries, images and Secrets of somebody who means harm: no crash, hang or leak."""

from __future__ import annotations

import gzip
import json
import re
import socket
import string
import threading
import time
import tracemalloc

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import addresses, challenge, protocol, redirects
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Tls, endpoints, read_rules
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import MAX_MANIFEST, read_manifest
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import parse
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    child,
    content,
    index,
    manifest,
    one,
    serving,
    sha256,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.test_transport import sending

BODY = manifest()
GOOD = content(tags={"t": BODY})
MARKER = "m4rk3r-s3cret"
# as a host of a reference may be spelled
LEGAL = re.compile(r"[A-Za-z0-9.]*[A-Za-z0-9]|\[[0-9a-f:]+\]")
METADATA = [
    "169.254.169.254",
    "169.254.169.254.",
    "2852039166",
    "0xa9fea9fe",
    "0XA9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.16689662",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::a9fe:a9fe]",
    "[::169.254.169.254]",
    "[2002:a9fe:a9fe::1]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fd00:ec2::254]",
    "%31%36%39.254.169.254",
    "metadata.google.internal.",
    "0",
    "[::]",
]


@pytest.mark.parametrize("host", METADATA)
def test_a_metadata_address_is_known_in_every_notation(host):
    assert addresses.is_forbidden(addresses.split_host(host)[0])
    with pytest.raises(StewardError) as realm:
        challenge.check_realm(f"https://{host}/token", "https://r.example")
    assert realm.value.reason == "unauthorized"
    with pytest.raises(StewardError) as hop:
        redirects.redirected(sending("https://r.example/v2/"), f"https://{host}/x")
    assert hop.value.reason == "forbidden_registry"


@pytest.mark.parametrize("host", [host for host in METADATA if LEGAL.fullmatch(host)])
def test_a_metadata_address_is_no_mirror_no_location_and_no_registry(host):
    for rule in ({"prefix": "r.example", "location": host}, {"prefix": "r.example", "mirror": [{"location": host}]}):
        with pytest.raises(StewardError, match="metadata"):
            read_rules([rule])
    # with a port it is a host for certain, whatever it looks like
    with pytest.raises(StewardError) as caught:
        endpoints(parse(f"{host}:80/app"), ())
    assert caught.value.reason == "forbidden_registry"


@pytest.mark.parametrize("peer", ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254"])
def test_a_name_that_leads_to_a_metadata_address_gets_no_request(monkeypatch, peer):
    """Whatever the name server says, and however often it changes its mind: the open connection counts."""

    class Led(socket.socket):
        def getpeername(self):
            return peer, 80

    def connect(address, timeout, *_more, **_options):
        led = Led(socket.AF_INET)
        led.settimeout(timeout)
        led.connect(address)
        return led

    monkeypatch.setattr(urllib3.util.connection, "create_connection", connect)
    with serving(GOOD) as server:
        found = one(f"{server.host}/app:t")
        assert server.lines == []
    assert (found["state"], found["reason"]) == ("unknown", "forbidden_registry")
    assert "nothing is sent there" in found["msg"]


@pytest.mark.parametrize(
    "name", ["r.example", "10.0.0.1", "fd00::1", "0xregistry", "1.2.3.4.5", "2001:db8::1", "a" * 99]
)
def test_other_names_are_not_mistaken_for_them(name):
    assert not addresses.is_forbidden(name)


@pytest.mark.parametrize(
    "target", ["https://127.0.0.1/x", "https://localhost:6443/x", "https://[::1]/x", "https://127.1/"]
)
def test_a_registry_elsewhere_does_not_lead_to_what_listens_here(target):
    with pytest.raises(StewardError) as caught:
        redirects.redirected(sending("https://r.example/v2/"), target)
    assert caught.value.reason == "forbidden_registry"
    assert redirects.redirected(sending("http://127.0.0.1:5000/v2/", here=True), "http://127.0.0.1:5001/").headers == {
        "Accept": "a"
    }


@pytest.mark.parametrize(
    "where",
    [
        "http://exa mple/",
        "http://[::1",
        "//",
        "http:///x",
        "http://a..b/",
        f"http://{'a' * 70}.example/",
        "http://\xe9.example/",
        "http://x:99999/",
        "http://x:abc/",
        "\x01",
        "http://user:pw@127.0.0.1:1/",
        "gopher://x/",
        "http://127.0.0.1:1\\@r.example/",
    ],
)
def test_a_location_or_realm_that_is_none_is_an_answer_and_no_crash(where):
    for reply in (Reply(302, {"Location": where}), Reply(401, {"WWW-Authenticate": f'Bearer realm="{where}"'})):
        with serving(lambda asked, reply=reply: reply) as server:
            found = one(f"{server.host}/app:t", username="u", password=MARKER, retries=1, timeout=1.0)
            assert [asked.authorization for asked in server.asked] == [None] * len(server.asked)
        assert found["reason"] in ("unreachable", "unauthorized", "forbidden_registry", "tls_error")
        assert MARKER not in json.dumps(found)


@pytest.mark.parametrize("header", ['Bearer realm="http://{host}/token"', 'Basic realm="r"'])
def test_who_was_redirected_to_gets_no_credential_by_a_challenge_of_its_own(header):
    def thief(asked):
        if asked.path == "/token":
            return Reply(200, {}, b'{"token":"x"}')
        return Reply(401, {"WWW-Authenticate": header.format(host=asked.headers["host"])})

    with (
        serving(thief) as other,
        serving(lambda asked: Reply(307, {"Location": f"http://{other.host}{asked.path}"})) as server,
    ):
        found = one(f"{server.host}/app:t", username="u", password=MARKER)
        asked = [*other.asked, *server.asked]
    assert found["reason"] == "unauthorized"
    # at most a token that it gave itself, to everybody
    assert {item.authorization for item in asked} <= {None, "Bearer x"}
    assert {item.authorization for item in asked if item.path == "/token"} <= {None}
    assert {item.authorization for item in server.asked} == {None}


def test_scopes_without_end_are_not_followed():
    count = [0]

    def endless(asked):
        if asked.path == "/token":
            return Reply(200, {}, b'{"token":"x"}')
        count[0] += 1
        return Reply(
            401, {"WWW-Authenticate": f'Bearer realm="http://{asked.headers["host"]}/token",scope="s{count[0]}"'}
        )

    with serving(endless) as server:
        found = one(f"{server.host}/app:t")
    assert found["reason"] == "unauthorized"
    assert found["requests_made"] < 15


@pytest.mark.parametrize(
    "entry",
    [
        {"registrytoken": f"{MARKER}\r\nX-Evil: 1"},
        {"registrytoken": f"{MARKER}\u20ac"},
        {"username": "\ud800", "password": MARKER},
        {"username": "u", "password": f"{MARKER}\ud800"},
        {"identitytoken": f"{MARKER}\udfff"},
    ],
)
def test_a_credential_that_cannot_be_sent_is_a_named_problem(entry):
    def asks(asked):
        header = f'Bearer realm="http://{asked.headers["host"]}/token"'
        return GOOD(asked) if asked.authorization else Reply(401, {"WWW-Authenticate": header})

    with serving(asks) as server:
        found = one(f"{server.host}/app:t", auth_config={"auths": {server.host: entry}})
        assert all(asked.authorization is None for asked in server.asked)
        assert not any("x-evil" in asked.headers for asked in server.asked)
    assert found["reason"] == "unauthorized"
    assert "auth_config: " in found["msg"]
    assert MARKER not in json.dumps(found)


def test_an_explicit_password_of_any_text_is_sent_as_it_is():
    with serving(
        lambda asked: GOOD(asked) if asked.authorization else Reply(401, {"WWW-Authenticate": "Basic"})
    ) as server:
        found = one(f"{server.host}/app:t", username="u\r\nX-Evil: 1", password="\udc80")
        assert not any("x-evil" in asked.headers for asked in server.asked)
    assert found["state"] == "found"


@pytest.mark.parametrize("name", ["ratelimit-remaining", "Content-Length", "Retry-After", "Docker-Content-Digest"])
@pytest.mark.parametrize("value", ["\xb2", "9" * 5000, "-1", "", "1e9;w=1"])
def test_headers_of_nonsense_are_no_crash(name, value):
    def odd(asked):
        good = GOOD(asked)
        return Reply(good.status, {**good.headers, name: value}, good.body, length=name != "Content-Length")

    with serving(odd) as server:
        found = one(f"{server.host}/app:t", retries=1)
    assert found["state"] == "found" or found["reason"] in (
        "unreachable",
        "not_a_manifest",
        "digest_mismatch",
        "too_large",
    )


@pytest.mark.parametrize(
    "header",
    ["," * 8192, "a " * 4096, " " * 8192, 'a b="' + "\\" * 8000, "a " + " " * 8000 + "=", 'a b="x"' * 1200, "=" * 8192],
)
def test_a_challenge_is_read_in_no_time(header):
    started = time.process_time()
    challenge.parse(header)
    assert time.process_time() - started < 0.3


def test_a_link_is_read_in_no_time():
    answer = protocol.Response(200, {"link": "<" * 65000}, b'{"tags":["a"]}', "https://r.example/v2/app/tags/list")
    steps = protocol.list_tags("app")
    next(steps)
    started = time.process_time()
    with pytest.raises(StopIteration):
        steps.send(answer)
    assert time.process_time() - started < 0.5


def packed(body, encoding="gzip"):
    def answer(asked):
        if asked.method == "HEAD":
            return Reply(200, {"Content-Type": "application/json"})
        return Reply(200, {"Content-Type": "application/json", "Content-Encoding": encoding}, body)

    return answer


def test_a_packed_manifest_is_unpacked_and_hashed():
    with serving(packed(gzip.compress(BODY))) as server:
        assert one(f"{server.host}/app:t")["digest"] == sha256(BODY)


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (gzip.compress(BODY)[:-9], "gzip", "unreachable"),
        (BODY, "gzip", "unreachable"),
        (gzip.compress(gzip.compress(BODY)), "gzip, gzip", "not_a_manifest"),
        (BODY, "br", "not_a_manifest"),
    ],
)
def test_a_packed_manifest_that_cannot_be_unpacked_is_told(body, encoding, reason):
    with serving(packed(body, encoding)) as server:
        assert one(f"{server.host}/app:t", retries=1)["reason"] == reason


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_body_without_end_takes_no_memory(encoding):
    huge = b"0" * (40 * MAX_MANIFEST)
    body = gzip.compress(huge, 1) if encoding == "gzip" else huge
    with serving(packed(body, encoding)) as server:
        tracemalloc.start()
        try:
            found = one(f"{server.host}/app:t", retries=1)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert found["reason"] == "too_large"
    assert most < 5 * MAX_MANIFEST


def test_continuing_for_ever_is_given_up():
    release = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))

    def go_on():
        connection, _address = server.accept()
        with connection:
            while not release.wait(0.05):
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    found = one(f"127.0.0.1:{server.getsockname()[1]}/app:t", timeout=0.5)
    release.set()
    thread.join()
    server.close()
    assert found["reason"] == "unreachable"
    assert found["elapsed"] < 2


def test_what_is_printed_of_an_image_is_not_its_author_s_choice():
    odd = child(BODY)
    odd.update(platform={"os": "linux\x1b[2J", "architecture": "amd64"}, mediaType="x\x1b[31m", size=True)
    long = child(manifest("d"), f"linux/{'a' * 100}")
    fine = child(manifest("e"), "linux/arm64/v8", mediaType="application/vnd.oci.image.manifest.v1+json")
    found = read_manifest(index(odd, long, fine), "", "app:t").children
    assert [(item.platform, item.media_type, item.size) for item in found[:1]] == [("", "", None)]
    assert [item.platform for item in found] == ["", "", "linux/arm64/v8"]
    with serving(
        lambda asked: Reply(200, {"Content-Type": "x\x1b[31m/json", "Docker-Content-Digest": sha256(BODY)})
    ) as server:
        refused = one(f"{server.host}/app:t")
    assert refused["reason"] == "not_a_manifest"
    assert "\x1b" not in refused["msg"]


@given(st.one_of(st.text(), st.text(alphabet=string.printable), st.from_regex(r"[a-z./:@\r\n %?#]*")))
def test_a_reference_puts_nothing_into_a_request_but_itself(text):
    try:
        reference = parse(text)
    except StewardError:
        return
    path = protocol.manifest_path(reference.repository, reference.identifier)
    assert set(path) <= set(string.ascii_letters + string.digits + "/._-:")
    assert set(reference.registry) <= set(string.ascii_letters + string.digits + ".-:[]")


def test_a_proxy_of_the_environment_that_is_no_url_is_named_as_what_it_is(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://u:{MARKER}@[::1")
    monkeypatch.setenv("NO_PROXY", "")
    found = one("r.example/app:t", retries=1)
    assert found["reason"] == "unreachable"
    assert "proxy of the environment" in found["msg"]
    assert MARKER not in json.dumps(found)


def test_redirected_settings_are_no_way_to_another_host():
    moved = redirects.redirected(sending("https://r.example/v2/", Tls(verify=False)), "https://r.example:444/")
    assert moved.tls.verify


@pytest.mark.parametrize(
    ("kind", "lie"),
    [
        ("application/vnd.oci.image.index.v1+json", b'{"schemaVersion":1,"config":{"mediaType":"x"},"manifests":[]}'),
        ("application/vnd.docker.distribution.manifest.v1+json", b'{"schemaVersion":1}'),
        ("application/vnd.docker.distribution.manifest.v1+prettyjws", b'{"schemaVersion":2,"manifests":[]}'),
    ],
)
def test_what_one_registry_serves_under_a_digest_is_not_what_another_one_has(tmp_path, kind, lie):
    body = index(child(BODY))
    digest, wanted = sha256(body), ["children"]

    def answer(asked):
        headers = {"Docker-Content-Digest": digest, "Content-Type": "application/vnd.oci.image.index.v1+json"}
        return Reply(200, headers if asked.method == "HEAD" else {**headers, "Content-Type": kind}, lie)

    with serving(answer) as liar, serving(content(BODY, body, tags={"t": body})) as honest:
        told = one({"image": f"{liar.host}/app:t", "resolve": wanted}, cache_dir=str(tmp_path))
        found = one({"image": f"{honest.host}/app:t", "resolve": wanted}, cache_dir=str(tmp_path))
    assert told["state"] == "unknown"
    assert [x["digest"] for x in found["children"]] == [sha256(BODY)]
    assert not found["artifact"]

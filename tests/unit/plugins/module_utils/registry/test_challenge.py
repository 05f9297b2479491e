# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import challenge as ch
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential


def test_a_challenge_without_service_gives_a_token_request_without_it():
    (found,) = ch.parse('Bearer realm="https://eu-docker.pkg.dev/v2/token"')
    (request,) = ch.token_requests(found, "repository:a/b:pull", None)
    assert request.url == "https://eu-docker.pkg.dev/v2/token?scope=repository:a/b:pull"


def test_a_comma_within_a_scope_is_kept():
    (found,) = ch.parse('Bearer realm="https://x/t",scope="repository:a/b:pull,push",service="s"')
    assert found.get("scope") == "repository:a/b:pull,push"
    assert found.get("service") == "s"


def test_the_realm_of_basic_is_only_text():
    (found,) = ch.parse('Basic realm="Registry Realm"')
    assert (found.scheme, found.get("realm")) == ("basic", "Registry Realm")
    assert ch.choose([found]) == found


@pytest.mark.parametrize(
    ("header", "schemes", "chosen"),
    [
        ('Negotiate, Basic realm="r", Bearer realm="https://t"', ["negotiate", "basic", "bearer"], "bearer"),
        ('bEaReR REALM = "https://t" , Service="a\\"b"', ["bearer"], "bearer"),
        ("Bearer realm=https://t,service=s", ["bearer"], "bearer"),
        ('Bearer realm="https://t" service="s"', ["bearer"], "bearer"),
        ('Negotiate abcd==, Basic realm="x"', ["negotiate", "basic"], "basic"),
        ('Bearer service="s"', ["bearer"], None),
        ('Digest realm="x", nonce="y"', ["digest"], None),
        ("", [], None),
        (",,,", [], None),
        ('Bearer realm="https://t', ["bearer"], "bearer"),
    ],
)
def test_odd_challenges(header, schemes, chosen):
    found = ch.parse(header)
    assert [item.scheme for item in found] == schemes
    picked = ch.choose(found)
    assert (picked.scheme if picked else None) == chosen
    if chosen == "bearer":
        assert picked.get("realm") == "https://t"


@pytest.mark.parametrize(
    ("realm", "registry"),
    [
        ("https://auth.docker.io/token", "https://registry-1.docker.io"),
        ("https://gitlab.example/jwt/auth", "https://registry.gitlab.example:5050"),
        ("https://10.0.0.5/token", "https://r.example"),
        ("http://r.example:5001/token", "http://r.example:5000"),
        ("http://localhost:5001/token", "http://127.0.0.1:5000"),
        ("http://[::1]:5001/token", "http://127.0.0.1:5000"),
    ],
)
def test_realms_that_are_followed(realm, registry):
    ch.check_realm(realm, registry)


@pytest.mark.parametrize(
    "realm",
    [
        "http://r.example/token",
        "http://other.example/token",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00:ec2::254]/x",
        "https://[::ffff:169.254.169.254]/x",
        "https://metadata.google.internal/x",
        "https://100.100.100.200/x",
        "https://[fe80::1]/x",
        "https://0.0.0.0/x",
        "https://localhost:6443/token",
        "https://127.0.0.1/token",
        "https://[::1]:8443/token",
        "https://127.1/token",
        "file:///etc/passwd",
        "ftp://r.example/x",
        "https://user:pw@auth.example/token",
        "https:///token",
        "https://[/token",
        "https://auth.example:99999/token",
        "token",
        "",
    ],
)
def test_realms_that_are_refused(realm):
    with pytest.raises(StewardError) as caught:
        ch.check_realm(realm, "https://r.example")
    assert caught.value.reason == "unauthorized"
    assert "pw" not in str(caught.value)


def test_plain_http_to_the_own_host_is_only_for_plain_http_registries():
    with pytest.raises(StewardError):
        ch.check_realm("http://169.254.169.254/token", "http://169.254.169.254")
    with pytest.raises(StewardError):
        ch.check_realm("http://other.example/token", "http://r.example")


def test_an_identity_token_is_posted_as_a_refresh_token():
    (found,) = ch.parse('Bearer realm="https://acr.example/oauth2/token",service="acr.example"')
    (request,) = ch.token_requests(found, "repository:a:pull", Credential("s", identity_token="id+token"))
    assert request.authorization is None
    assert request.url == "https://acr.example/oauth2/token"
    assert "grant_type=refresh_token" in request.form
    assert "refresh_token=id%2Btoken" in request.form
    assert "service=acr.example" in request.form


def test_a_password_beside_it_is_tried_where_the_server_knows_no_post():
    (found,) = ch.parse('Bearer realm="https://acr.example/t"')
    requests = ch.token_requests(found, "", Credential("s", "u", "p", identity_token="id"))
    assert [bool(request.form) for request in requests] == [True, False]


def test_credentials_go_to_the_realm_as_basic():
    (found,) = ch.parse('Bearer realm="https://t/token?a=b"')
    (request,) = ch.token_requests(found, "x", Credential("s", "u", "p"))
    assert request.authorization == "Basic dTpw"
    assert request.url == "https://t/token?a=b&scope=x"


@pytest.mark.parametrize(
    ("body", "value", "lifetime"),
    [
        (b'{"token":"t","expires_in":300}', "t", 300),
        (b'{"access_token":"a"}', "a", 60),
        (b'{"token":"t","access_token":"a","expires_in":1}', "t", 60),
        (b'{"token":"t","expires_in":"soon"}', "t", 60),
        (b'{"token":"t","expires_in":NaN}', "t", 60),
        (b'{"token":"t","expires_in":1e12}', "t", 43200),
    ],
)
def test_tokens_live_for_a_minute_at_least(body, value, lifetime):
    token = ch.read_token(body)
    assert (token.value, token.lifetime) == (value, lifetime)


def test_printing_a_token_shows_no_value():
    assert "XYZ" not in repr(ch.read_token(b'{"token":"XYZ"}'))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"token":1}', b'{"token":"a\\r\\nX: y"}', b'{"token":""}', b"[" * 99999]
)
def test_answers_without_a_usable_token(body):
    assert ch.read_token(body) is None


@given(st.text(max_size=300) | st.text('Bearer Basic realm="https://x",\\= ', max_size=200))
def test_any_header_parses_without_an_unexpected_exception(header):
    for item in ch.parse(header):
        assert item.scheme == item.scheme.lower()
    picked = ch.choose(ch.parse(header))
    if picked is not None and picked.scheme == "bearer":
        try:
            ch.check_realm(picked.get("realm"), "https://r.example")
        except StewardError as exc:
            assert exc.reason == "unauthorized"
        else:
            ch.token_requests(picked, "s", None)


token_text = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
value_text = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)


@given(
    st.lists(
        st.tuples(token_text, st.dictionaries(token_text, value_text, min_size=1, max_size=3)), min_size=1, max_size=3
    )
)
def test_a_printed_challenge_parses_to_itself(items):
    def quote(text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    header = ", ".join(
        f"{scheme} " + ", ".join(f"{name}={quote(value)}" for name, value in parameters.items())
        for scheme, parameters in items
    )
    assert [(item.scheme, dict(item.parameters)) for item in ch.parse(header)] == items

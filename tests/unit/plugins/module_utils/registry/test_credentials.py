# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import (
    Credential,
    harmless_texts,
    helper_for,
    matching,
    read_config,
    read_secret,
)

MARKER = "m4rk3r-s3cret"


def config(*keys, **more):
    return read_config({"auths": {key: {"username": key, "password": "p"} for key in keys}, **more}, "test")


def users(found):
    return [credential.username for credential in found]


@pytest.mark.parametrize("key", ["https://index.docker.io/v1/", "docker.io", "index.docker.io", "registry-1.docker.io"])
def test_every_key_of_docker_hub_is_used(key):
    assert users(matching([config(key)], "registry-1.docker.io", "org/app")) == [key]


def test_a_key_of_docker_hub_is_for_no_other_host():
    assert not matching([config("https://index.docker.io/v1/")], "r.example", "org/app")


def test_the_port_of_a_key_counts():
    assert users(matching([config("h", "h:5000")], "h:5000", "a")) == ["h:5000"]
    assert users(matching([config("h", "h:5000")], "h", "a")) == ["h"]


def test_the_longest_path_comes_first_and_others_do_not_match():
    found = matching([config("r.example", "r.example/a", "r.example/b", "r.example/b/x")], "r.example", "b/x")
    assert users(found) == ["r.example/b/x", "r.example/b", "r.example"]


@pytest.mark.parametrize(
    ("pattern", "host", "fits"),
    [
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "a.b.example.com", False),
        ("*k8s.io", "myk8s.io", True),
        ("*k8s.io", "registry.k8s.io", False),
        ("*.*.example.com", "a.b.example.com", True),
        ("*.example.com:5000", "a.example.com:5000", True),
        ("*.example.com", "a.example.com:5000", False),
    ],
)
def test_wildcards_hold_within_one_label(pattern, host, fits):
    assert bool(matching([config(pattern)], host, "app")) is fits


def test_a_literal_host_comes_before_a_pattern():
    assert users(matching([config("*.example.com", "a.example.com")], "a.example.com", "x")) == [
        "a.example.com",
        "*.example.com",
    ]


def test_both_forms_work_and_auth_wins():
    auth = base64.b64encode(b"u1:p:1").decode()
    plain = read_config({"auths": {"h": {"username": "u", "password": "p"}}}, "s")
    only = read_config({"auths": {"h": {"auth": auth.rstrip("=")}}}, "s")
    both = read_config({"auths": {"h": {"auth": auth, "username": "u", "password": "p"}}}, "s")
    assert [(c.username, c.password) for c in matching([plain], "h", "a")] == [("u", "p")]
    assert [(c.username, c.password) for c in matching([only], "h", "a")] == [("u1", "p:1")]
    assert [(c.username, c.password) for c in matching([both], "h", "a")] == [("u1", "p:1")]


def test_all_that_match_are_tried_in_the_order_of_their_sources():
    first, second = read_config({"auths": {"h": {"username": "1", "password": "p"}}}, "a"), config("h/app")
    assert users(matching([first, second], "h", "app")) == ["1", "h/app"]


def test_a_dockercfg_has_no_auths_around_it():
    assert users(matching([read_config({"h": {"username": "u", "password": "p"}}, "s")], "h", "a")) == ["u"]


def secret(content, kind="kubernetes.io/dockerconfigjson", key=".dockerconfigjson"):
    return {"type": kind, "data": {key: base64.b64encode(content.encode()).decode()}}


def test_both_kinds_of_secrets_are_read():
    new = read_secret(secret('{"auths":{"h":{"username":"u","password":"p"}}}'), "ns", "a")
    old = read_secret(
        secret('{"h":{"username":"o","password":"p"}}', "kubernetes.io/dockercfg", ".dockercfg"), "ns", "b"
    )
    assert users(matching([new, old], "h", "x")) == ["u", "o"]
    assert [c.source for c in matching([new, old], "h", "x")] == ["secret ns/a", "secret ns/b"]


def test_a_secret_cannot_name_helper_programs():
    read = read_secret(secret('{"credsStore":"evil","credHelpers":{"h":"evil"}}'), "ns", "a")
    assert helper_for(read, "h") is None


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {"type": "Opaque", "data": {"x": MARKER}},
        {"type": "kubernetes.io/dockerconfigjson"},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": f"%%%{MARKER}"}},
        secret(MARKER),
        secret(f'"{MARKER}"'),
        secret(f'{{"auths": "{MARKER}"}}'),
        secret(f'{{"auths": {{"{MARKER}": 1}}}}'),
        secret(f'{{"auths": {{"h": {{"auth": "{MARKER}"}}}}}}'),
        secret(f'{{"auths": {{"h": {{"username": ["{MARKER}"]}}}}}}'),
        secret(f'{{"auths": {{"h:{MARKER}": {{"username": "{MARKER}"}}}}}}'),
        secret("[" * 100_000),
    ],
)
def test_a_broken_secret_is_named_and_nothing_of_it_shown(broken):
    read = read_secret(broken, "ns", "pull")
    assert read.problems
    assert all("ns/pull" in problem for problem in read.problems)
    assert MARKER not in "".join(read.problems)
    assert not read.entries


def test_printing_a_credential_shows_its_source_only():
    shown = repr(Credential("secret ns/a", MARKER, MARKER, MARKER, MARKER))
    assert MARKER not in shown
    assert "ns/a" in shown


def test_one_broken_entry_leaves_the_others():
    read = read_config({"auths": {"a": 1, "h": {"username": "u", "password": "p"}}}, "s")
    assert users(matching([read], "h", "x")) == ["u"]
    assert read.problems


def test_helpers_are_found_by_host_and_the_store_is_for_all():
    read = config(credHelpers={"r.example": "gcloud"}, credsStore="pass")
    assert helper_for(read, "r.example") == ("gcloud", "r.example")
    assert helper_for(read, "other.example:5000") == ("pass", "other.example:5000")
    assert helper_for(read, "registry-1.docker.io") == ("pass", "https://index.docker.io/v1/")
    assert helper_for(config(), "r.example") is None


def test_words_that_are_no_secrets_stay_readable():
    content = {
        "auths": {"h": {"username": "team", "password": "pw"}, "q": {"username": "same", "auth": "same"}, "x": 1},
        "credsStore": "pass",
        "credHelpers": {"r": "gcloud"},
    }
    assert harmless_texts(content) == {"team", "pass", "gcloud"}
    assert harmless_texts("text") == harmless_texts(None) == harmless_texts({"auths": 1, "credHelpers": 1}) == set()


json_value = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["auths", "auth", "username", "password", "h", "h:1", "://", "[", "credHelpers"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_value, st.sampled_from(["h", "h:1", "[::1]:5", "registry-1.docker.io"]))
def test_any_json_is_read_without_an_unexpected_exception(data, host):
    read = read_config(json.dumps(data), "src")
    assert all(problem.startswith("src") for problem in read.problems)
    for credential in matching([read], host, "a/b"):
        assert credential.source == "src"
    helper_for(read, host)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_without_an_unexpected_exception(data):
    read_config(data, "src")
    read_secret(
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": base64.b64encode(data).decode()}},
        "n",
        "s",
    )

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import Reference, is_digest, parse

D = "sha256:" + "a" * 64
D512 = "sha512:" + "b" * 128


def test_a_private_host_gets_no_library_and_tag_and_digest_leave_the_path():
    found = parse(f"reg.example.com/app:1@{D}")
    assert (found.registry, found.repository, found.tag, found.digest) == ("reg.example.com", "app", "1", D)


@pytest.mark.parametrize(
    "text",
    [
        "nginx",
        "docker.io/nginx",
        "index.docker.io/library/nginx",
        "registry-1.docker.io/library/nginx:latest",
        "library/nginx",
    ],
)
def test_every_form_of_docker_hub_is_one(text):
    found = parse(text)
    assert (found.registry, found.repository, found.tag) == ("registry-1.docker.io", "library/nginx", "latest")
    assert found == parse("nginx")
    assert found.at(D) == f"docker.io/library/nginx@{D}"


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag"),
    [
        ("localhost:5000/app", "localhost:5000", "app", "latest"),
        ("host:5000/a/b:1", "host:5000", "a/b", "1"),
        ("localhost/app", "localhost", "app", "latest"),
        ("a/b:1", "registry-1.docker.io", "a/b", "1"),
        ("Upper/app", "upper", "app", "latest"),
        ("[::1]:5000/app:x", "[::1]:5000", "app", "x"),
        ("10.0.0.1/app", "10.0.0.1", "app", "latest"),
    ],
)
def test_the_first_part_is_a_host_only_with_dot_colon_or_localhost(text, registry, repository, tag):
    found = parse(text)
    assert (found.registry, found.repository, found.tag) == (registry, repository, tag)


def test_a_tag_with_a_digest_follows_the_tag_and_keeps_the_digest():
    found = parse(f"repo:1.2@{D}")
    assert (found.tag, found.digest, found.identifier, found.pinned) == ("1.2", D, "1.2", False)


def test_a_digest_alone_is_pinned_and_no_error():
    found = parse(f"repo@{D}")
    assert (found.tag, found.identifier, found.pinned) == (None, D, True)


def test_sha512_is_a_digest():
    assert parse(f"r.example/app@{D512}").digest == D512
    assert is_digest(D512)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "reference"),
        ("https://r.example/app", "reference"),
        ("docker-pullable://app@" + D, "reference"),
        ("a" * 64, "repository"),
        ("App", "repository"),
        ("r.example/App", "repository"),
        ("r.example/a..b", "repository"),
        ("r.example/-a", "repository"),
        ("r.example/a//b", "repository"),
        ("r.example/", "repository"),
        ("r.example/" + "a" * 256, "repository"),
        ("app ", "repository"),
        ("app\n", "repository"),
        ("app:", "tag"),
        ("app:a b", "tag"),
        ("app:-a", "tag"),
        ("app:" + "a" * 129, "tag"),
        ("app:latest\n", "tag"),
        ("app@", "digest"),
        ("app@sha256:abc", "digest"),
        ("app@sha256:" + "A" * 64, "digest"),
        ("app@md5:" + "a" * 32, "digest"),
        (f"app@{D}@{D}", "digest"),
        ("host:0/app", "registry"),
        ("host:65536/app", "registry"),
        ("host:٣/app", "registry"),
        ("a_b.example/app", "registry"),
        ("user@host/app", "digest"),
        (None, "reference"),
    ],
)
def test_invalid_references_name_the_part_that_is_wrong(text, part):
    with pytest.raises(StewardError) as caught:
        parse(text)
    assert caught.value.reason == "invalid_reference"
    assert caught.value.context["part"] == part


atom = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=8)
component = (
    st.builds(lambda a, sep, b: f"{a}{sep}{b}", atom, st.sampled_from([".", "_", "__", "-", "---"]), atom) | atom
)
domain = st.sampled_from(
    ["docker.io", "localhost", "localhost:5000", "r.example", "R.Example:443", "[fe80::1]:5000", "10.1.2.3"]
)
tag = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=1).flatmap(
    lambda first: st.text(string.ascii_letters + string.digits + "_.-", max_size=20).map(lambda rest: first + rest)
)
digest = st.one_of(
    st.text("0123456789abcdef", min_size=64, max_size=64).map(lambda text: f"sha256:{text}"),
    st.text("0123456789abcdef", min_size=128, max_size=128).map(lambda text: f"sha512:{text}"),
)


@given(domain, st.lists(component, min_size=2, max_size=4), st.none() | tag, st.none() | digest)
def test_parse_and_print_are_inverse(host, parts, tag_text, digest_text):
    if tag_text is None and digest_text is None:
        tag_text = "latest"
    reference = Reference(host, "/".join(parts), tag_text, digest_text)
    assert parse(str(reference)) == reference


@given(st.text(max_size=80) | st.text("abA:/@.-_[]0123456789", max_size=80))
def test_any_text_parses_to_what_prints_the_same_or_is_refused(text):
    try:
        reference = parse(text)
    except StewardError as exc:
        assert exc.reason == "invalid_reference"
        assert exc.context["part"] in ("reference", "registry", "repository", "tag", "digest")
    else:
        assert parse(str(reference)) == reference

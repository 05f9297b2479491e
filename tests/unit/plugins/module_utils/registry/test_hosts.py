# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.addresses import (
    is_forbidden,
    is_loopback,
    split_host,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import endpoints, is_allowed, read_rules
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import parse
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    manifest,
    one,
    serving,
    sha256,
)


def places(image, *rules):
    return [
        (place.schemes[0], place.host, place.repository, place.mirror)
        for place in endpoints(parse(image), read_rules(rules))
    ]


@pytest.mark.parametrize(
    "image", ["localhost:5000/app", "127.0.0.1:5000/app", "127.9.9.9/app", "[::1]:5000/app", "localhost/app"]
)
def test_loopback_is_plain_http_without_being_told(image):
    assert places(image)[0][0] == "http"


@pytest.mark.parametrize("image", ["nginx", "r.example/app", "10.0.0.1:5000/app", "localhost.example/app"])
def test_everything_else_is_https(image):
    assert places(image)[0][0] == "https"


def test_a_loopback_registry_with_a_certificate_option_is_https():
    assert places("localhost:5000/app", {"prefix": "localhost:5000", "ca_cert": "/x"})[0][0] == "https"


def test_location_takes_the_place_of_the_prefix():
    rule = {"prefix": "quay.io/team", "location": "mirror.corp:5000/quay"}
    assert places("quay.io/team/app:1", rule) == [("https", "mirror.corp:5000", "quay/app", False)]
    assert places("quay.io/teams/app:1", rule) == [("https", "quay.io", "teams/app", False)]


def test_mirrors_come_before_the_registry_itself():
    rule = {
        "prefix": "docker.io",
        "mirror": [{"location": "127.0.0.1:5001"}, {"location": "m.corp/hub", "insecure": True}],
    }
    assert places("nginx", rule) == [
        ("http", "127.0.0.1:5001", "library/nginx", True),
        ("https", "m.corp", "hub/library/nginx", True),
        ("https", "registry-1.docker.io", "library/nginx", False),
    ]


def test_the_longest_prefix_wins_and_wildcards_hold_for_names_below():
    short, long, wild = (
        {"prefix": p, "location": f"{n}.corp"} for n, p in enumerate(["r.example", "r.example/a", "*.example"])
    )
    assert places("r.example/a/b", short, long, wild)[0][1:3] == ("1.corp", "b")
    assert places("r.example/x", short, long, wild)[0][1:3] == ("0.corp", "x")
    assert places("q.r.example/x", short, long, wild)[0][1:3] == ("2.corp", "x")
    assert places("example/x", wild)[0][1] == "registry-1.docker.io"


def test_insecure_is_for_its_prefix_only():
    rules = read_rules([{"prefix": "r.example", "insecure": True}])
    (own,), (other,) = endpoints(parse("r.example/a"), rules), endpoints(parse("q.example/a"), rules)
    assert (own.schemes, own.tls.verify) == (("https", "http"), False)
    assert (other.schemes, other.tls.verify) == (("https",), True)


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ({}, "needs 'prefix'"),
        ({"prefix": "https://r.example"}, "URL scheme"),
        ({"location": "r example"}, "not host"),
        ({"prefix": "r.example", "mirror": [{"location": ""}]}, "mirror[0].location"),
        ({"prefix": "r.example", "location": "169.254.169.254"}, "link-local"),
    ],
)
def test_wrong_rules_are_named_by_their_index(rule, what):
    with pytest.raises(StewardError) as caught:
        read_rules([{"prefix": "fine.example"}, rule])
    assert "registries[1]" in str(caught.value)
    assert what in str(caught.value)


def test_a_mirror_of_one_repository_needs_its_path():
    with pytest.raises(StewardError, match="needs its path"):
        places("r.example/app", {"prefix": "r.example/app", "mirror": [{"location": "m.corp"}]})


@pytest.mark.parametrize(
    "image", ["169.254.169.254/latest", "metadata.google.internal/x", "[fe80::1]/x", "[::ffff:a9fe:a9fe]/x"]
)
def test_a_metadata_address_is_no_registry(image):
    found = one(image)
    assert (found["reason"], found["requests_made"]) == ("forbidden_registry", 0)


@pytest.mark.parametrize(
    ("pattern", "image", "fits"),
    [
        ("*", "anything.example/x", True),
        ("docker.io", "nginx", True),
        ("registry-1.docker.io", "nginx", True),
        ("docker.io/library", "nginx", True),
        ("docker.io/library/*", "nginx", True),
        ("docker.io/team", "nginx", False),
        ("r.example/team", "r.example/teams/app", False),
        ("r.example/team/", "r.example/team/app", True),
        ("*.example", "r.example/app", True),
        ("*.example", "a.r.example/app", False),
        ("r.example", "r.example:5000/app", False),
        ("r.example:5000", "r.example:5000/app", True),
        ("R.Example", "r.example/app", True),
        ("r.example", "r.example.evil/app", False),
    ],
)
def test_allowed_registries(pattern, image, fits):
    assert is_allowed(parse(image), [pattern]) is fits


def test_forbidden_is_told_before_any_request():
    with serving(content()) as server:
        found = one(f"{server.host}/app:t", allowed_registries=["quay.io"])
        none = one(f"{server.host}/app:t", allowed_registries=[])
        assert not server.asked
    assert found["reason"] == none["reason"] == "forbidden_registry"


def test_credentials_are_for_the_host_that_is_contacted_and_explicit_ones_for_no_mirror():
    body = manifest()

    def asks(asked):
        if asked.authorization:
            return content(tags={"t": body})(asked)
        return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})

    with serving(asks) as mirror:
        rules = [{"prefix": "quay.example", "mirror": [{"location": mirror.host}]}]
        for_prefix = {"auths": {"quay.example": {"username": "u", "password": "p"}}}
        for_mirror = {"auths": {mirror.host: {"username": "m", "password": "p"}}}
        one("quay.example/app:t", registries=rules, auth_config=for_prefix, retries=1)
        one("quay.example/app:t", registries=rules, username="u", password="p", retries=1)
        assert not [asked for asked in mirror.asked if asked.authorization]
        found = one("quay.example/app:t", registries=rules, auth_config=for_mirror)
    assert (found["digest"], found["source_host"]) == (sha256(body), mirror.host)
    assert found["reference"] == f"quay.example/app@{sha256(body)}"


def test_a_mirror_without_the_image_is_passed_over_with_a_warning():
    with serving(content()) as mirror, serving(content(tags={"t": manifest()})) as server:
        rules = [{"prefix": server.host, "mirror": [{"location": mirror.host}]}]
        found = one(f"{server.host}/app:t", registries=rules)
    assert found["source_host"] == server.host
    assert "mirror" in found["warnings"][0]


def test_hosts_and_ports_are_taken_apart():
    assert split_host("[::1]:5000") == ("::1", "5000")
    assert split_host("[::1]") == ("::1", "")
    assert split_host("::1") == ("::1", "")
    assert split_host("H:1") == ("h", "1")
    assert is_loopback("LOCALHOST:1")
    assert not is_loopback("localhost.example")
    assert is_forbidden("fe80::1%eth0")
    assert is_forbidden("224.0.0.1")
    assert not is_forbidden("10.0.0.1")

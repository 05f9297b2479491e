# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against real registries, with crane and skopeo as oracles."""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential
from ansible_collections.kubesteward.core.plugins.module_utils.registry.facts import NoStore
from ansible_collections.kubesteward.core.plugins.module_utils.registry.helpers import Helpers
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import endpoints
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import parse
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Place, Query, Resolver, Trace
from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client
from ansible_collections.kubesteward.core.tests.integration.registry.conftest import PASSWORD
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import look_up, one

GOOD = ["single", "index", "attested", "rebuilt", "docker", "docker-list"]
EVERY = {"timeout": 10.0}


def by_crane(crane, reference):
    done = subprocess.run(
        [crane, "digest", "--insecure", reference], check=True, capture_output=True, timeout=30, text=True
    )
    return done.stdout.strip()


def by_skopeo(reference):
    command = ["skopeo", "inspect", "--tls-verify=false", "--no-tags", "--override-os=linux", "--override-arch=amd64"]
    done = subprocess.run([*command, f"docker://{reference}"], check=True, capture_output=True, timeout=30, text=True)
    return json.loads(done.stdout)["Digest"]


@pytest.mark.parametrize("tag", GOOD)
def test_crane_and_skopeo_say_the_same(anonymous, crane, tag):
    reference = f"{anonymous}/team/app:{tag}"
    found = one(reference, **EVERY)
    assert found["state"] == "found"
    assert found["digest"] == by_crane(crane, reference) == by_skopeo(reference)
    assert found["requests_made"] == 1


@pytest.mark.parametrize("tag", ["single", "index", "attested", "rebuilt"])
def test_the_digest_is_that_of_the_layout(anonymous, images, tag):
    assert one(f"{anonymous}/team/app:{tag}", **EVERY)["digest"] == images[tag].digest


def test_children_platform_and_config_of_an_index(anonymous, images):
    found = one(f"{anonymous}/team/app:index", platform="linux/arm64", resolve=["children", "config"], **EVERY)
    assert [(item["platform"], item["digest"]) for item in found["children"]] == [
        ("linux/amd64", images["amd64"].digest),
        ("linux/arm64", images["arm64"].digest),
    ]
    assert found["platform_digest"] == images["arm64"].digest
    assert found["config_digest"] == images["arm64"].config_digest


def test_attestations_are_left_out_and_a_rebuilt_index_has_the_same_children(anonymous, images):
    references = [f"{anonymous}/team/app:{tag}" for tag in ("index", "attested", "rebuilt")]
    plain, attested, rebuilt = look_up(images=references, resolve=["children"], **EVERY)["images"]
    assert [item["digest"] for item in attested["children"]] == [images["amd64"].digest]
    assert plain["digest"] != rebuilt["digest"]
    assert sorted(item["digest"] for item in plain["children"]) == sorted(
        item["digest"] for item in rebuilt["children"]
    )


def test_a_docker_list_is_an_index(anonymous):
    found = one(f"{anonymous}/team/app:docker-list", platform="linux/arm64", **EVERY)
    assert found["media_type"] == "application/vnd.docker.distribution.manifest.list.v2+json"
    assert found["platform_digest"].startswith("sha256:")


def test_schema_1_is_unknown_with_the_digest_that_crane_sees(anonymous, crane):
    found = one(f"{anonymous}/team/app:schema1", **EVERY)
    assert (found["state"], found["reason"]) == ("unknown", "schema1")
    assert found["digest"] == by_crane(crane, f"{anonymous}/team/app:schema1")


def test_what_is_not_there_is_not_found(anonymous):
    assert one(f"{anonymous}/team/app:none", **EVERY)["reason"] == "not_found"
    assert one(f"{anonymous}/none:latest", **EVERY)["reason"] == "not_found"
    assert one(f"{anonymous}/team/app@sha256:{'0' * 64}", **EVERY)["reason"] == "not_found"


def test_a_digest_can_be_looked_up(anonymous, images):
    found = one(f"{anonymous}/team/app@{images['index'].digest}", **EVERY)
    assert (found["digest"], found["tag"]) == (images["index"].digest, None)


def test_htpasswd(htpasswd, images):
    reference = f"{htpasswd}/team/app:index"
    assert one(reference, **EVERY)["reason"] == "unauthorized"
    assert one(reference, username="user", password="wrong", **EVERY)["reason"] == "credential_rejected"
    config = {"auths": {htpasswd: {"username": "user", "password": PASSWORD}}}
    found = one(reference, auth_config=config, resolve=["children"], **EVERY)
    assert (found["digest"], found["credential_source"]) == (images["index"].digest, "auth_config")
    assert PASSWORD not in json.dumps(found, ensure_ascii=False)


def test_token_authentication(token_registry, images):
    host, authority = token_registry
    reference = f"{host}/team/app:index"
    assert one(reference, **EVERY)["reason"] == "unauthorized"
    assert one(reference, username="user", password="wrong", **EVERY)["reason"] == "credential_rejected"
    before = len(authority.asked)
    references = [f"{host}/team/app:{tag}" for tag in ("index", "single")]
    found = look_up(images=references, username="user", password=PASSWORD, **EVERY)["images"]
    assert [entry["digest"] for entry in found] == [images["index"].digest, images["single"].digest]
    assert len(authority.asked) == before + 1


def test_a_private_ca(private_ca, images):
    host, ca = private_ca
    reference = f"{host}/team/app:index"
    assert one(reference, registries=[{"prefix": host, "ca_cert": ca}], **EVERY)["digest"] == images["index"].digest
    assert one(reference, registries=[{"prefix": host, "validate_certs": True}], **EVERY)["reason"] == "tls_error"
    assert one(reference, registries=[{"prefix": host, "insecure": True}], **EVERY)["digest"] == images["index"].digest


def test_a_pull_through_proxy_and_a_mirror(pull_through, anonymous, images):
    assert one(f"{pull_through}/team/app:index", resolve=["children"], **EVERY)["digest"] == images["index"].digest
    registries = [{"prefix": "registry.example", "mirror": [{"location": pull_through}]}]
    found = one("registry.example/team/app:index", registries=registries, **EVERY)
    assert (found["digest"], found["source_host"]) == (images["index"].digest, pull_through)
    assert found["reference"] == f"registry.example/team/app@{images['index'].digest}"


def test_a_hundred_references_to_one_image_are_one_head(anonymous):
    result = look_up(images=[f"{anonymous}/team/app:index"] * 100, **EVERY)
    assert result["requests_made"] == 1


def test_all_tags_are_listed(token_registry, images):
    host, _authority = token_registry
    reference = parse(f"{host}/team/app")
    place = Place(endpoints(reference, ())[0], (Credential("test", "user", PASSWORD),))
    client = Client()
    try:
        found = Resolver(client, Helpers(), NoStore()).tags(Query(reference, (place,)), Trace())
    finally:
        client.close()
    assert sorted(found) == ["index", "single"]


def test_an_index_is_compared_with_the_one_before(anonymous, images):
    before = images["index"].digest
    asked = {"image": f"{anonymous}/team/app:rebuilt", "resolve": ["children"], "verify": True, "compare": [before]}
    found = one(asked, **EVERY)
    assert found["pullable"] is True
    assert found["digest"] != before
    assert set(found["compared"][before]) == {child["digest"] for child in found["children"]}
    nowhere = f"sha256:{'0' * 64}"
    single = one({**asked, "image": f"{anonymous}/team/app:single", "compare": [nowhere]}, **EVERY)
    assert (single["compared"], single["gone"]) == ({}, [nowhere])
    expected = one({**asked, "image": f"{anonymous}/team/app:index", "expect": [before]}, **EVERY)
    assert (expected["requests_made"], "compared" in expected) == (1, False)

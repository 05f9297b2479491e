# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registries that redirect to another host, or are asked in another's place: who gets what, and who is named."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.kubesteward.core.plugins.modules import registry_digest
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    manifest,
    one,
    params,
    serving,
    sha256,
)

BODY = manifest()
GOOD = content(tags={"t": BODY})
OWN = "s3cret-of-a"
AUTHS = base64.b64encode(b'{"auths": {"quay.io": {"username": "u", "password": "p"}}}').decode()


def gives_tokens(token="everybody", scope=None, status=401, where="/token"):
    """A host that answers only with a token, which it gives to everybody who asks for it without a credential."""

    def answer(asked):
        if asked.path == where:
            if asked.authorization:
                return Reply(403)
            return Reply(200, {}, json.dumps({"token": token}).encode())
        if asked.authorization == f"Bearer {token}":
            return GOOD(asked)
        more = f',scope="{scope}"' if scope else ""
        return Reply(status, {"WWW-Authenticate": f'Bearer realm="http://{asked.headers["host"]}{where}"{more}'})

    return answer


def redirecting(other, private=False, path=None):
    """A registry that sends everybody to `other`; a private one only those who have its password."""

    def answer(asked):
        if private and not asked.authorization:
            return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})
        return Reply(307, {"Location": f"http://{other.host}{path or asked.path}"})

    return answer


@pytest.mark.parametrize("private", [False, True], ids=["public", "with a password"])
@pytest.mark.parametrize("status", [401, 403])
def test_where_a_registry_redirects_to_a_token_for_everybody_is_taken_and_nothing_of_its_own_is_sent(private, status):
    with serving(gives_tokens(status=status)) as other, serving(redirecting(other, private)) as server:
        found = one(f"{server.host}/app:t", username="u", password=OWN)
        sent = {asked.authorization for asked in other.asked}
    assert found["digest"] == sha256(BODY)
    assert sent == {None, "Bearer everybody"}


def test_the_last_of_several_redirects_gives_the_token():
    with serving(gives_tokens()) as last, serving(redirecting(last)) as middle, serving(redirecting(middle)) as server:
        assert one(f"{server.host}/app:t", username="u", password=OWN)["state"] == "found"
        assert {asked.authorization for asked in (*server.asked, *middle.asked)} == {None}


def test_the_scope_is_that_of_the_repository_at_the_other_host():
    with serving(gives_tokens()) as other:
        with serving(redirecting(other, path="/v2/mirrored/app/manifests/t")) as server:
            assert one(f"{server.host}/app:t")["state"] == "found"
        scopes = [asked.query["scope"] for asked in other.asked if asked.path == "/token"]
    assert scopes == [["repository:mirrored/app:pull"]]


def test_the_token_of_the_other_host_is_fetched_once_for_all_images():
    with serving(gives_tokens()) as other, serving(redirecting(other)) as server:
        entry = {"image": f"{server.host}/app:t", "verify": True, "resolve": ["config"]}
        assert one(entry)["state"] == "found"
        assert [asked.path for asked in other.asked].count("/token") == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda asked: Reply(401),
        lambda asked: Reply(401, {"WWW-Authenticate": 'Basic realm="r"'}),
        lambda asked: Reply(401, {"WWW-Authenticate": "Negotiate"}),
        lambda asked: Reply(403),
        lambda asked: Reply(401, {"WWW-Authenticate": 'Bearer realm="http://auth.example/token"'}),
        lambda asked: Reply(401, {"WWW-Authenticate": 'Bearer realm="http://169.254.169.254/token"'}),
        lambda asked: Reply(404) if asked.path == "/t" else Reply(401, {"WWW-Authenticate": token_at(asked, "/t")}),
        lambda asked: (
            Reply(200, {}, b"{}") if asked.path == "/t" else Reply(401, {"WWW-Authenticate": token_at(asked, "/t")})
        ),
    ],
    ids=["401", "basic", "negotiate", "403", "realm over http", "metadata", "no token server", "no token"],
)
def test_a_refusal_of_the_other_host_names_it(answer):
    with serving(answer) as other, serving(redirecting(other)) as server:
        found = one(f"{server.host}/app:t", username="u", password=OWN)
        assert {asked.authorization for asked in other.asked} == {None}
    assert found["reason"] == "unauthorized"
    assert f"{other.host}/app:t" in found["msg"]
    assert f"{server.host} redirects there" in found["msg"]
    assert OWN not in json.dumps(found)


def token_at(asked, path):
    return f'Bearer realm="http://{asked.headers["host"]}{path}"'


def test_the_other_host_cannot_send_its_token_server_s_client_to_a_third_one_with_a_credential():
    with serving(gives_tokens()) as third:

        def answer(asked):
            if asked.path == "/token":
                return Reply(307, {"Location": f"http://{third.host}/token"})
            return gives_tokens()(asked)

        with serving(answer) as other, serving(redirecting(other, private=True)) as server:
            found = one(f"{server.host}/app:t", username="u", password=OWN)
            assert {asked.authorization for asked in (*third.asked, *other.asked)} <= {None, "Bearer everybody"}
    assert found["state"] == "found"


def signed_for_get(refusal):
    return lambda asked: GOOD(asked) if asked.method == "GET" else Reply(refusal)


@pytest.mark.parametrize("refusal", [403, 401, 400, 405, 501])
@pytest.mark.parametrize("private", [False, True], ids=["public", "with a password"])
def test_storage_that_is_signed_for_get_is_asked_once_by_get(refusal, private):
    with serving(signed_for_get(refusal)) as storage, serving(redirecting(storage, private)) as server:
        found = one(f"{server.host}/app:t", username="u", password=OWN)
        methods = [asked.method for asked in storage.asked]
    assert found["digest"] == sha256(BODY)
    assert methods == ["HEAD", "GET"]


def test_storage_that_refuses_get_as_well_is_asked_no_more_and_named():
    with serving(lambda asked: Reply(403)) as storage, serving(redirecting(storage)) as server:
        found = one(f"{server.host}/app:t")
        assert [asked.method for asked in storage.asked] == ["HEAD", "GET"]
    assert found["reason"] == "unauthorized"
    assert f"{storage.host}/app:t" in found["msg"]
    assert f"{server.host} redirects there" in found["msg"]


def test_a_registry_itself_that_refuses_a_head_is_not_asked_by_get():
    with serving(lambda asked: Reply(403)) as server:
        assert one(f"{server.host}/app:t")["reason"] == "unauthorized"
        assert [asked.method for asked in server.asked] == ["HEAD"]


def test_a_proof_that_a_digest_can_be_pulled_holds_behind_a_redirect():
    with serving(signed_for_get(403)) as storage, serving(redirecting(storage)) as server:
        found = one({"image": f"{server.host}/app:t", "verify": True})
    assert (found["state"], found["pullable"]) == ("found", True)


# --- mirrors


def mirror_that_wants_ns(name):
    return lambda asked: GOOD(asked) if asked.query.get("ns") == [name] else Reply(404)


@pytest.mark.parametrize(
    ("image", "prefix", "name"),
    [
        ("quay.io/app:t", "quay.io", "quay.io"),
        ("docker.io/library/app:t", "docker.io", "docker.io"),
        ("app:t", "docker.io", "docker.io"),
        ("r.example:5000/app:t", "r.example:5000", "r.example:5000"),
    ],
)
def test_a_mirror_is_told_which_registry_is_meant_as_containerd_tells_it(image, prefix, name):
    with serving(mirror_that_wants_ns(name)) as mirror:
        entry = {"image": image, "resolve": ["config"], "verify": True}
        found = one(entry, registries=[{"prefix": prefix, "mirror": [{"location": mirror.host}]}])
        assert all(asked.query.get("ns") == [name] for asked in mirror.asked)
    assert (found["state"], found["source_host"]) == ("found", mirror.host)


def test_a_registry_itself_and_a_location_in_its_place_are_not_told():
    with serving(GOOD) as server:
        one(f"{server.host}/app:t")
        one("quay.io/app:t", registries=[{"prefix": "quay.io", "location": server.host}])
        assert [asked.query for asked in server.asked] == [{}, {}]


# --- credentials go by the host that is asked


def wants(password):
    def answer(asked):
        return GOOD(asked) if asked.authorization else Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})

    return answer


def auths(*hosts, password="p"):
    return {"auths": {host: {"username": "u", "password": password} for host in hosts}}


def test_a_location_gets_the_credentials_of_its_own_host():
    with serving(wants("p")) as server:
        registries = [{"prefix": "registry.example.com", "location": server.host}]
        found = one("registry.example.com/app:t", registries=registries, auth_config=auths(server.host))
    assert found["state"] == "found"


def test_credentials_of_the_prefix_are_not_sent_to_another_host_and_the_message_says_so():
    with serving(wants("p")) as server:
        registries = [{"prefix": "registry.example.com", "location": server.host}]
        found = one("registry.example.com/app:t", registries=registries, auth_config=auths("registry.example.com"))
        assert {asked.authorization for asked in server.asked} == {None}
    assert found["reason"] == "unauthorized"
    for text in (
        f"auth_config has no entry for {server.host} (it has: registry.example.com)",
        f"credentials of registry.example.com are not sent to {server.host}",
        f"--docker-server={server.host} ",
    ):
        assert text in found["msg"]


@pytest.mark.parametrize(
    ("config", "has"),
    [
        (auths("quay.io", "ghcr.io/team"), "quay.io, ghcr.io/team"),
        (auths("*.example:5000"), "*.example:5000"),
        ({"auths": {}}, "none"),
        (
            auths(*(f"r{n}.example" for n in range(9))),
            "r0.example, r1.example, r2.example, r3.example, r4.example and 4 more",
        ),
        (auths("not a host <p4ss>"), "none"),
    ],
    ids=["hosts", "pattern", "empty", "many", "no host"],
)
def test_credentials_without_an_entry_for_the_host_are_told_with_those_that_there_are(config, has):
    with serving(wants("p")) as server:
        found = one(f"{server.host}/app:t", auth_config=config)
    assert f"auth_config has no entry for {server.host} (it has: {has})" in found["msg"]
    assert "p4ss" not in found["msg"]


def test_where_no_credentials_are_given_the_message_says_how_to_make_some():
    with serving(wants("p")) as server:
        found = one(f"{server.host}/app:t")
    assert f"no credentials were given for {server.host}" in found["msg"]
    assert "kubectl create secret docker-registry NAME " in found["msg"]
    assert f"--docker-server={server.host} --docker-username=... --docker-password=..." in found["msg"]


@pytest.mark.parametrize("header", ['Bearer realm="http://169.254.169.254/t"', "Negotiate"])
def test_a_refusal_that_credentials_would_not_change_asks_for_none(header):
    with serving(lambda asked: Reply(401, {"WWW-Authenticate": header})) as server:
        found = one(f"{server.host}/app:t")
    assert found["reason"] == "unauthorized"
    assert "credentials" not in found["msg"]


@pytest.mark.parametrize("secrets", [True, False])
def test_a_missing_image_asks_for_credentials_only_where_the_workload_has_some(secrets):
    class Cluster:
        def get(self, *_about):
            return {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": AUTHS}}

    with serving(lambda asked: Reply(404)) as server:
        image = {"image": f"{server.host}/app:t", "pull_secrets": [{"namespace": "shop", "name": "pull"}] * secrets}
        found = registry_digest.run(params(images=[image]), Cluster)["images"][0]
    assert found["reason"] == "not_found"
    assert (f"secret shop/pull has no entry for {server.host} (it has: quay.io)" in found["msg"]) is secrets
    assert (
        f"kubectl create secret docker-registry NAME -n shop --docker-server={server.host} " in found["msg"]
    ) is secrets


@pytest.mark.parametrize(
    ("username", "password", "words"),
    [
        ("u", "p\n", "password ends with a line break"),
        ("u", "p\r\n", "password ends with a line break"),
        ("u\n", "p", "user name ends with a line break"),
        ("u", " p", "password begins or ends with a space"),
        ("u", "p ", "password begins or ends with a space"),
    ],
)
def test_a_password_that_ends_with_a_line_break_is_sent_as_it_is_and_told_when_it_is_refused(username, password, words):
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    asked_with = []

    def answer(asked):
        asked_with.append(asked.authorization)
        return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})

    with serving(answer) as server:
        found = one(f"{server.host}/app:t", auth_config={"auths": {server.host: {"auth": pair}}})
    assert f"Basic {pair}" in asked_with
    assert found["reason"] == "credential_rejected"
    assert f"refused: auth_config (its {words}" in found["msg"]
    assert pair not in json.dumps(found)


def test_a_good_password_that_is_refused_is_told_without_a_guess():
    with serving(lambda asked: Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})) as server:
        found = one(f"{server.host}/app:t", auth_config=auths(server.host))
    assert found["msg"].endswith("refused: auth_config")


# --- 400 that means a refusal


def answers_400(code):
    body = json.dumps({"errors": [{"code": code}]}).encode()

    def answer(asked):
        if asked.authorization:
            return Reply(400, {"Content-Type": "application/json"}, body)
        return (
            GOOD(asked) if asked.path.startswith("/v2/public/") else Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})
        )

    return answer


@pytest.mark.parametrize("code", ["DENIED", "UNAUTHORIZED"])
@pytest.mark.parametrize("field", ["registrytoken", "password"])
def test_a_token_that_gets_400_and_denied_is_dropped_and_a_public_image_found_without_it(code, field):
    body = json.dumps({"errors": [{"code": code}]}).encode()
    seen = []

    def answer(asked):
        seen.append(asked.authorization)
        if asked.path == "/token":
            # with the old password a token that is worth nothing
            return Reply(200, {}, b'{"token":"old"}' if asked.authorization else b'{"token":"new"}')
        if asked.authorization == "Bearer new":
            return GOOD(asked)
        if asked.authorization:
            return Reply(400, {"Content-Type": "application/json"}, body)
        return Reply(401, {"WWW-Authenticate": token_at(asked, "/token")})

    with serving(answer) as server:
        entry = {"registrytoken": "old"} if field == "registrytoken" else {"username": "u", "password": "old"}
        found = one(f"{server.host}/app:t", auth_config={"auths": {server.host: entry}})
    assert found["state"] == "found"
    assert found["credential_rejected"] == ["auth_config"]
    assert len(seen) < 9


def test_400_and_denied_for_everybody_is_a_refusal():
    with serving(answers_400("DENIED")) as server:
        found = one(f"{server.host}/app:t", auth_config=auths(server.host))
    assert found["reason"] == "credential_rejected"
    assert "HTTP 401" in found["msg"] or "HTTP 400, DENIED" in found["msg"]


def test_another_400_is_still_no_answer_of_a_registry():
    with serving(lambda asked: Reply(400, {}, b'{"errors":[{"code":"NAME_INVALID"}]}')) as server:
        assert one(f"{server.host}/app:t")["reason"] == "not_a_manifest"

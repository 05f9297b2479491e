# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a registry wants to be asked, and with which credential."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import protocol
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential
from ansible_collections.kubesteward.core.plugins.module_utils.registry.facts import NoStore
from ansible_collections.kubesteward.core.plugins.module_utils.registry.helpers import Helpers
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import endpoints
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import parse
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import (
    Place,
    Query,
    Resolver,
    Trace,
    Wanted,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    look_up,
    manifest,
    one,
    serving,
    sha256,
)

BODY = manifest()
GOOD = content(tags={"t": BODY, "u": BODY})


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def wants_basic(*accepted, header='Basic realm="Registry Realm"'):
    def answer(asked):
        if asked.authorization in accepted:
            return GOOD(asked)
        return Reply(401, {"WWW-Authenticate": header} if header else {})

    return answer


class Tokens:
    """A registry with a token server on itself; `grants` maps the Authorization of a token request to a token."""

    def __init__(self, grants, valid=("anon", "good"), scope="repository:app:pull", service="svc", realm="/token"):
        self.grants, self.valid, self.scope, self.service, self.realm = grants, valid, scope, service, realm

    def __call__(self, asked):
        if asked.path == self.realm:
            token = self.grants.get(asked.authorization)
            if isinstance(token, Reply):
                return token
            return Reply(200, {}, json.dumps({"token": token}).encode()) if token else Reply(401)
        if asked.authorization in [f"Bearer {token}" for token in self.valid]:
            return GOOD(asked)
        parts = [f'realm="http://{asked.headers["host"]}{self.realm}"']
        parts += [f'{name}="{value}"' for name, value in (("service", self.service), ("scope", self.scope)) if value]
        return Reply(401, {"WWW-Authenticate": "Bearer " + ",".join(parts)})


def auth_config(host, *pairs):
    """Credentials of one host, in the order they are tried."""
    return {
        "auths": {
            f"{host}{'/app'[: 4 if n == 0 else 0]}": {"username": u, "password": p} for n, (u, p) in enumerate(pairs)
        }
    }


def test_basic_goes_to_the_realm_and_the_token_to_the_registry():
    with serving(Tokens({basic("u", "p"): "good"})) as server:
        found = one(f"{server.host}/app:t", username="u", password="p")
        sent = [(asked.path, asked.authorization) for asked in server.asked]
    assert found["state"] == "found"
    assert sent[1:] == [("/token", basic("u", "p")), ("/v2/app/manifests/t", "Bearer good")]


def test_refused_credentials_give_one_anonymous_try_and_a_warning():
    with serving(Tokens({None: "anon"})) as server:
        found = one(f"{server.host}/app:t", auth_config=auth_config(server.host, ("u", "bad")))
    assert (found["state"], found["credential_source"]) == ("found", None)
    assert found["credential_rejected"] == ["auth_config"]
    assert any("credential_rejected" in warning for warning in found["warnings"])


def test_a_refused_credential_without_public_access_is_credential_rejected():
    with serving(Tokens({})) as server:
        found = one(f"{server.host}/app:t", auth_config=auth_config(server.host, ("u", "bad")))
    assert (found["state"], found["reason"]) == ("unknown", "credential_rejected")
    assert "auth_config" in found["msg"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_no_anonymous_try_after_429_and_5xx(status):
    with serving(Tokens({basic("u", "p"): Reply(status, {"Retry-After": "60"}), None: "anon"})) as server:
        found = one(f"{server.host}/app:t", username="u", password="p")
        tries = [asked.authorization for asked in server.asked if asked.path == "/token"]
    assert found["state"] == "unknown"
    assert tries == [basic("u", "p")]


def test_no_anonymous_fallback_for_the_proof_that_a_digest_can_be_pulled():
    with serving(Tokens({None: "anon"})) as server:
        given = {"auth_config": auth_config(server.host, ("u", "bad")), "anonymous_fallback": False}
        refused = one(f"{server.host}/app@{sha256(BODY)}", **given)
        none_given = one(f"{server.host}/app@{sha256(BODY)}", anonymous_fallback=False)
    assert refused["reason"] == "credential_rejected"
    assert none_given["state"] == "found"


def test_all_matching_credentials_are_tried():
    with serving(Tokens({basic("u", "new"): "good"})) as server:
        found = one(
            f"{server.host}/app:t", auth_config=auth_config(server.host, ("u", "old"), ("u", "new")), resolve=["config"]
        )
        tries = [asked.authorization for asked in server.asked if asked.path == "/token"]
    assert found["state"] == "found"
    assert found["credential_source"] == "auth_config"
    assert tries == [basic("u", "old"), basic("u", "new")]


def test_identity_tokens_are_posted():
    def answer(asked):
        if asked.method == "POST":
            form = asked.body.decode()
            assert "grant_type=refresh_token" in form
            assert "refresh_token=idtok" in form
            assert "scope=repository%3Aapp%3Apull" in form
            return Reply(200, {}, b'{"access_token":"good","expires_in":4800}')
        return Tokens({})(asked)

    with serving(answer) as server:
        found = one(f"{server.host}/app:t", auth_config={"auths": {server.host: {"identitytoken": "idtok"}}})
        assert [asked.method for asked in server.asked if asked.path == "/token"] == ["POST"]
    assert found["state"] == "found"


def test_a_token_server_without_post_is_asked_with_the_password():
    grants = Tokens({basic("u", "p"): "good"})
    entry = {"identitytoken": "idtok", "username": "u", "password": "p"}
    with serving(lambda asked: Reply(404) if asked.method == "POST" else grants(asked)) as server:
        assert one(f"{server.host}/app:t", auth_config={"auths": {server.host: entry}})["state"] == "found"


def test_no_service_no_parameter():
    with serving(Tokens({None: "anon"}, service="")) as server:
        assert one(f"{server.host}/app:t")["state"] == "found"
        (query,) = [asked.query for asked in server.asked if asked.path == "/token"]
    assert query == {"scope": ["repository:app:pull"]}


def test_a_token_without_lifetime_is_reused():
    with serving(Tokens({None: "anon"})) as server:
        found = look_up(images=[f"{server.host}/app:t", f"{server.host}/app:u"], concurrency=1)
        tokens = [asked for asked in server.asked if asked.path == "/token"]
    assert [entry["state"] for entry in found["images"]] == ["found", "found"]
    assert len(tokens) == 1


def test_one_token_for_threads_that_ask_at_once():
    images = [f"app:{name}" for name in ("t", "u")] * 20
    with serving(Tokens({None: "anon"})) as server:
        found = look_up(images=[{"image": f"{server.host}/{image}", "platform": None} for image in images])
        tokens = [asked for asked in server.asked if asked.path == "/token"]
    assert {entry["state"] for entry in found["images"]} == {"found"}
    assert len(tokens) == 1


def test_the_first_request_carries_no_credential():
    with serving(GOOD) as server:
        found = one(f"{server.host}/app:t", username="u", password="p")
        assert [asked.authorization for asked in server.asked] == [None]
    assert found["credential_source"] is None


def test_a_401_without_challenge_is_looked_for_on_the_root():
    def answer(asked):
        if asked.path == "/v2/":
            return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})
        return wants_basic(basic("u", "p"), header="")(asked)

    with serving(answer) as server:
        assert one(f"{server.host}/app:t", username="u", password="p")["state"] == "found"


def test_no_challenge_anywhere_is_a_clear_error():
    with serving(lambda asked: Reply(401)) as server:
        found = one(f"{server.host}/app:t")
    assert found["reason"] == "unauthorized"
    assert "schemes offered: none" in found["msg"]


def test_an_unknown_scheme_is_named():
    with serving(lambda asked: Reply(401, {"WWW-Authenticate": "Negotiate"})) as server:
        assert "negotiate" in one(f"{server.host}/app:t")["msg"]


@pytest.mark.parametrize("scope", ["", "app:pull", "aws"])
def test_our_own_scope_is_asked_for_first_at_the_realm_as_given(scope):
    with serving(Tokens({None: "anon"}, scope=scope, realm="/v2/auth")) as server:
        assert one(f"{server.host}/app:t")["state"] == "found"
        assert [asked.query["scope"] for asked in server.asked if asked.path == "/v2/auth"] == [["repository:app:pull"]]


def test_insufficient_scope_is_answered_with_the_scope_the_server_names():
    def answer(asked):
        if asked.path == "/token":
            return Reply(200, {}, json.dumps({"token": asked.query["scope"][0]}).encode())
        if asked.authorization == "Bearer special":
            return GOOD(asked)
        realm = f'Bearer realm="http://{asked.headers["host"]}/token"'
        more = ',scope="special",error="insufficient_scope"' if asked.authorization else ""
        return Reply(401, {"WWW-Authenticate": realm + more})

    with serving(answer) as server:
        assert one(f"{server.host}/app:t")["state"] == "found"


def test_a_challenge_counts_on_any_request():
    answer = Tokens({basic("u", "p"): "good"})
    with serving(lambda asked: Reply(200) if asked.path == "/v2/" else answer(asked)) as server:
        assert one(f"{server.host}/app:t", username="u", password="p")["state"] == "found"
        assert "GET /v2/" not in server.lines


def test_a_refused_list_of_tags_says_which_action_is_missing():
    steps = protocol.list_tags("app")
    next(steps)
    header = 'Bearer realm="https://x",scope="repository:app:metadata_read",error="insufficient_scope"'
    with pytest.raises(StewardError, match="metadata_read"):
        steps.send(protocol.Response(401, {"www-authenticate": header}, url="https://r/v2/app/tags/list"))


def test_a_refused_list_of_tags_leaves_the_look_up_of_one_tag_working():
    def answer(asked):
        if asked.path == "/token" or "/manifests/" in asked.path:
            return Tokens({basic("u", "p"): "good"})(asked)
        scope = 'scope="repository:app:metadata_read",error="insufficient_scope"'
        return Reply(401, {"WWW-Authenticate": f'Bearer realm="http://{asked.headers["host"]}/token",{scope}'})

    with serving(answer) as server:
        reference = parse(f"{server.host}/app:t")
        query = Query(reference, (Place(endpoints(reference, ())[0], (Credential("s", "u", "p"),)),))
        resolver = Resolver(Client(), Helpers(), NoStore())
        assert resolver.resolve(query, Wanted(), Trace()).digest == sha256(BODY)
        with pytest.raises(StewardError, match="metadata_read"):
            resolver.tags(query, Trace())


def test_a_token_that_ends_early_is_fetched_once_more():
    state = {"given": 0, "valid": 1}

    def answer(asked):
        if asked.path == "/token":
            state["given"] += 1
            return Reply(200, {}, json.dumps({"token": f"t{state['given']}", "expires_in": 3600}).encode())
        if asked.path.endswith("/u"):
            state["valid"] = 2
        if asked.authorization == f"Bearer t{state['valid']}":
            return GOOD(asked)
        return Reply(401, {"WWW-Authenticate": f'Bearer realm="http://{asked.headers["host"]}/token"'})

    with serving(answer) as server:
        found = look_up(images=[f"{server.host}/app:t", f"{server.host}/app:u"], concurrency=1)
    assert [entry["state"] for entry in found["images"]] == ["found", "found"]
    assert state["given"] == 2


def test_a_rotated_file_is_read_again_in_the_next_call(tmp_path):
    path = tmp_path / "config.json"
    with serving(wants_basic(basic("AWS", "new"))) as server:
        path.write_text(json.dumps({"auths": {server.host: {"username": "AWS", "password": "old"}}}))
        assert one(f"{server.host}/app:t", auth_file=str(path))["reason"] == "credential_rejected"
        path.write_text(json.dumps({"auths": {server.host: {"username": "AWS", "password": "new"}}}))
        assert one(f"{server.host}/app:t", auth_file=str(path))["state"] == "found"


def test_basic_needs_no_token_request():
    with serving(wants_basic(basic("AWS", "pw"), header='Basic realm="https://1.dkr.ecr.eu.amazonaws.com/"')) as server:
        found = one(f"{server.host}/app:t", username="AWS", password="pw")
        assert server.lines == ["HEAD /v2/app/manifests/t"] * 2
    assert found["credential_source"] == "username and password"


def test_a_challenge_that_was_learnt_is_answered_at_once():
    with serving(wants_basic(basic("u", "p"))) as server:
        look_up(images=[f"{server.host}/app:{tag}" for tag in "tu"], username="u", password="p", concurrency=1)
        assert len(server.asked) == 3


def test_several_challenges_in_headers_of_their_own_are_all_seen():
    def answer(asked):
        if asked.authorization == basic("u", "p"):
            return GOOD(asked)
        return Reply(401, {"WWW-Authenticate": ['Basic realm="r"', "Negotiate"]})

    with serving(answer) as server:
        assert one(f"{server.host}/app:t", username="u", password="p")["state"] == "found"


def test_a_new_token_that_is_refused_is_not_fetched_again():
    with serving(Tokens({None: "other"})) as server:
        found = one(f"{server.host}/app:t")
        assert len(server.asked) == found["requests_made"] == 3
    assert found["reason"] == "unauthorized"


def test_a_name_that_is_not_on_the_hub_is_not_found_or_not_permitted():
    with serving(Tokens({None: "anon"}, valid=())) as server:
        refused = one("myapp:dev", registries=[{"prefix": "docker.io", "location": server.host}])
    with serving(lambda asked: Reply(404)) as server:
        missing = one("myapp:dev", registries=[{"prefix": "docker.io", "location": server.host}])
    assert (refused["reason"], missing["reason"]) == ("unauthorized", "not_found")
    assert (missing["registry"], missing["repository"]) == ("registry-1.docker.io", "library/myapp")
    assert "missing or not permitted" in refused["msg"]


def test_the_credential_of_the_registry_goes_to_no_realm_over_plain_http_elsewhere():
    header = 'Bearer realm="http://gitlab.example/jwt/auth",service="container_registry"'
    with serving(lambda asked: Reply(401, {"WWW-Authenticate": header})) as server:
        found = one(f"{server.host}/app:t", username="u", password="p")
        assert [asked.authorization for asked in server.asked] == [None]
    assert found["reason"] == "unauthorized"
    assert "gitlab.example" in found["msg"]


@pytest.mark.parametrize(
    "realm", ["https://169.254.169.254/x", "http://169.254.169.254/x", "https://metadata.google.internal/x"]
)
def test_a_realm_at_a_metadata_address_is_refused(realm):
    with serving(lambda asked: Reply(401, {"WWW-Authenticate": f'Bearer realm="{realm}"'})) as server:
        found = one(f"{server.host}/app:t", username="u", password="p")
    assert found["reason"] == "unauthorized"
    assert found["requests_made"] == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_no_access_is_missing_or_not_permitted(status):
    header = {"WWW-Authenticate": 'Basic realm="r"'} if status == 401 else {}
    with serving(lambda asked: Reply(status, header)) as server:
        found = one(f"{server.host}/app:t")
    assert "missing or not permitted" in found["msg"]
    assert "deleted" not in found["msg"]


def test_a_private_repository_that_hides_itself_is_asked_with_credentials():
    def answer(asked):
        if asked.path == "/v2/":
            return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})
        return GOOD(asked) if asked.authorization == basic("u", "p") else Reply(404)

    with serving(answer) as server:
        assert one(f"{server.host}/app:t", username="u", password="p")["state"] == "found"


def test_a_credential_that_sees_nothing_leaves_the_others_their_turn():
    def answer(asked):
        known = {basic("u", "blind"): Reply(404), basic("u", "sees"): GOOD(asked)}
        return known.get(asked.authorization, Reply(401, {"WWW-Authenticate": 'Basic realm="r"'}))

    with serving(answer) as server:
        first = one(f"{server.host}/app:t", auth_config=auth_config(server.host, ("u", "blind"), ("u", "sees")))
        only = one(f"{server.host}/app:t", auth_config=auth_config(server.host, ("u", "blind"), ("u", "bad")))
    assert first["state"] == "found"
    assert only["reason"] == "not_found"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"token": 5}'])
def test_a_token_server_without_a_token_is_a_clear_error(body):
    with serving(Tokens({None: Reply(200, {}, body)})) as server:
        found = one(f"{server.host}/app:t")
    assert found["reason"] == "unauthorized"
    assert "without a token" in found["msg"]

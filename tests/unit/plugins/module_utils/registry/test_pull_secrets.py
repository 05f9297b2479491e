# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pull Secrets: read by name, each once, and what a broken one does."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.modules import registry_digest
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    manifest,
    params,
    serving,
)

GOOD = content(tags={"t": manifest()})
PASSWORD = "s3cret-of-shop"


def wants_basic(*pairs):
    accepted = ["Basic " + base64.b64encode(":".join(pair).encode()).decode() for pair in pairs]

    def answer(asked):
        if asked.authorization in accepted:
            return GOOD(asked)
        return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})

    return answer


class Cluster:
    def __init__(self, **secrets):
        self.secrets, self.read = secrets, []

    def get(self, api_version, kind, namespace, name):
        self.read.append((api_version, kind, namespace, name))
        found = self.secrets.get(name)
        if isinstance(found, StewardError):
            raise found
        return found


def pull_secret(host, user, password):
    data = json.dumps({"auths": {host: {"username": user, "password": password}}}).encode()
    return {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": base64.b64encode(data).decode()}}


def test_pull_secrets_of_an_entry_are_read_by_name_and_each_once():
    with serving(wants_basic(("u", "p"))) as server:
        cluster = Cluster(pull=pull_secret(server.host, "u", "p"))
        item = {"image": f"{server.host}/app:t", "pull_secrets": [{"namespace": "shop", "name": "pull"}]}
        result = registry_digest.run(params(images=[item, item]), lambda: cluster)
    assert [entry["credential_source"] for entry in result["images"]] == ["secret shop/pull"] * 2
    assert cluster.read == [("v1", "Secret", "shop", "pull")]


@pytest.mark.parametrize("broken", [None, StewardError("secrets is forbidden"), {"type": "Opaque"}])
def test_a_broken_secret_is_a_warning_of_its_entry_and_a_public_image_is_found(broken):
    with serving(GOOD) as server:
        item = {"image": f"{server.host}/app:t", "pull_secrets": [{"namespace": "shop", "name": "pull"}]}
        result = registry_digest.run(params(images=[item]), lambda: Cluster(pull=broken))
    (entry,) = result["images"]
    assert entry["state"] == "found"
    assert "secret shop/pull" in entry["warnings"][0]


def test_a_broken_secret_is_named_where_a_private_image_is_refused():
    def unreachable():
        raise StewardError("the cluster does not answer")

    with serving(wants_basic()) as server:
        item = {"image": f"{server.host}/app:t", "pull_secrets": [{"namespace": "shop", "name": "pull"}]}
        result = registry_digest.run(params(images=[item, f"{server.host}/app:t"]), unreachable)
    assert [entry["reason"] for entry in result["images"]] == ["unauthorized"] * 2
    assert "secret shop/pull" in result["images"][0]["msg"]


def test_every_secret_that_admission_gave_the_pod_is_tried():
    with serving(wants_basic(("sa", "p"))) as server:
        cluster = Cluster(own=pull_secret("other.example", "u", "p"), default=pull_secret(server.host, "sa", "p"))
        names = [{"namespace": "shop", "name": name} for name in ("own", "default")]
        result = registry_digest.run(
            params(images=[{"image": f"{server.host}/app:t", "pull_secrets": names}]), lambda: cluster
        )
    assert result["images"][0]["credential_source"] == "secret shop/default"


@pytest.mark.parametrize("where", ["connect", "get"])
def test_an_error_that_nobody_foresaw_while_secrets_are_read_stays_with_their_entries(where):
    class Odd:
        def get(self, api_version, kind, namespace, name):
            if name == "odd":
                raise ValueError(f"cannot read {PASSWORD}")
            return

    def connect():
        if where == "connect":
            raise ValueError(f"cannot read {PASSWORD}")
        return Odd()

    with serving(lambda asked: Reply(401, {"WWW-Authenticate": 'Basic realm="r"'})) as private, serving(GOOD) as public:
        images = [
            {"image": f"{private.host}/app:t", "pull_secrets": [{"namespace": "shop", "name": "odd"}]},
            {"image": f"{public.host}/app:t", "pull_secrets": [{"namespace": "shop", "name": "odd"}]},
            f"{public.host}/app:t",
        ]
        found = registry_digest.run(params(images=images), connect)["images"]
    assert [entry["state"] for entry in found] == ["unknown", "found", "found"]
    assert found[0]["reason"] == "unauthorized"
    assert "ValueError" in found[0]["msg"]
    assert "Traceback" in found[0]["msg"]
    assert PASSWORD not in json.dumps(found)

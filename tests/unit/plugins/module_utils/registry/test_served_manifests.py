# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a registry serves, and what is made of it; whole look-ups and their verdicts are in images/cases."""

from __future__ import annotations

import hashlib

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    OCI_INDEX,
    OCI_MANIFEST,
    Reply,
    child,
    content,
    index,
    look_up,
    manifest,
    one,
    serving,
    sha256,
)

P1, P2 = manifest("c1"), manifest("c2")
INDEX = index(child(P1), child(P2, "linux/arm64"))


def registry(*bodies, **tags):
    return serving(content(*bodies, tags=tags))


def test_a_tag_is_asked_for_in_every_call_whatever_is_cached(tmp_path):
    current = [index(child(P1))]
    with serving(lambda asked: content(P1, P2, INDEX, current[0], tags={"t": current[0]})(asked)) as server:
        first = one(f"{server.host}/app:t", resolve=["children"], cache_dir=str(tmp_path / "c"))
        current[0] = INDEX
        second = one(f"{server.host}/app:t", resolve=["children"], cache_dir=str(tmp_path / "c"))
    assert (first["digest"], second["digest"]) == (sha256(index(child(P1))), sha256(INDEX))


def test_a_manifest_that_is_too_large_is_refused_by_its_length_and_by_its_bytes():
    large = {"Docker-Content-Digest": sha256(b""), "Content-Length": "9999999999"}
    with serving(lambda asked: Reply(200, large)) as server:
        assert one(f"{server.host}/app:t")["reason"] == "too_large"
    body = b'{"schemaVersion":2,"config":{},"x":"' + b"x" * 5_000_000 + b'"}'
    with serving(
        lambda asked: Reply(200, {"Content-Type": OCI_MANIFEST}, b"" if asked.method == "HEAD" else body, length=False)
    ) as server:
        assert one(f"{server.host}/app:t")["reason"] == "too_large"


@pytest.mark.parametrize("kind", ["v1+json", "v1+prettyjws"])
@pytest.mark.parametrize("digest", [sha256(b"payload"), ""])
def test_both_kinds_of_schema_1_are_schema_1_with_and_without_a_digest(kind, digest):
    headers = {"Content-Type": f"application/vnd.docker.distribution.manifest.{kind}"}
    headers.update({"Docker-Content-Digest": digest} if digest else {})
    with serving(lambda asked: Reply(200, headers, b'{"schemaVersion":1}')) as server:
        found = one(f"{server.host}/app:t")
    assert (found["reason"], found.get("digest", "")) == ("schema1", digest)


def test_an_answer_that_no_registry_gives_is_told_with_its_status():
    with serving(lambda asked: Reply(418)) as server:
        found = one(f"{server.host}/app:t")
    assert (found["reason"], found["status"]) == ("not_a_manifest", 418)


def test_a_sha512_digest_is_checked_with_sha512():
    digest = "sha512:" + hashlib.sha512(P1).hexdigest()
    answers = {"Content-Type": OCI_MANIFEST}
    with serving(lambda asked: Reply(200, answers, P1)) as server:
        assert one(f"{server.host}/app@{digest}")["digest"] == digest
        assert one(f"{server.host}/app@sha512:{'0' * 128}")["reason"] == "digest_mismatch"


def test_schema_1_is_told_with_the_digest_the_registry_gives():
    kind = "application/vnd.docker.distribution.manifest.v1+prettyjws"
    headers = {"Content-Type": kind, "Docker-Content-Digest": sha256(b"payload")}
    with serving(lambda asked: Reply(200, headers, b'{"schemaVersion":1}')) as server:
        found = one(f"{server.host}/app:t")
        with pytest.raises(StewardError) as caught:
            look_up(image=f"{server.host}/app:t")
    assert (found["reason"], found["digest"]) == ("schema1", sha256(b"payload"))
    assert caught.value.context["digest"] == sha256(b"payload")


def test_nested_indexes_are_read_to_a_small_depth():
    inner = index(child(P2, "linux/arm64"))
    nested = {"mediaType": OCI_INDEX, "digest": sha256(inner), "size": len(inner)}
    with registry(P1, P2, inner, t=index(child(P1), nested)) as server:
        found = one(f"{server.host}/app:t", platform="linux/arm64")
    assert [item["platform"] for item in found["children"]] == ["linux/amd64", "linux/arm64"]
    assert found["platform_digest"] == sha256(P2)


def test_indexes_nested_too_deep_are_refused():
    bodies = [index(child(P1))]
    for _ in range(4):
        bodies.append(index({"mediaType": OCI_INDEX, "digest": sha256(bodies[-1]), "size": 1}))
    with registry(*bodies, t=bodies[-1]) as server:
        assert one(f"{server.host}/app:t", resolve=["children"])["reason"] == "nested_index"


def test_the_cache_answers_children_and_config_and_says_so(tmp_path):
    given = {"resolve": ["config"], "platform": "linux/amd64", "cache_dir": str(tmp_path / "cache")}
    with registry(P1, P2, t=INDEX) as server:
        first = one(f"{server.host}/app:t", **given)
        second = one(f"{server.host}/app:t", **given)
        assert server.lines[-1] == "HEAD /v2/app/manifests/t"
    assert (first["cached"], first["requests_made"]) == (False, 3)
    assert (second["cached"], second["requests_made"]) == (True, 1)
    assert second["config_digest"] == first["config_digest"] == sha256(b"c1")

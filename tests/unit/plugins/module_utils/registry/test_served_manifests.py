# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases B and C: what a registry serves, and what is made of it."""

from __future__ import annotations

import hashlib
import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    DOCKER_LIST,
    OCI_INDEX,
    OCI_MANIFEST,
    Reply,
    attestation,
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
Q, Q2 = manifest("q"), manifest("q2")
INDEX = index(child(P1), child(P2, "linux/arm64"))
ACCEPTED = [
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
]


def registry(*bodies, **tags):
    return serving(content(*bodies, tags=tags))


def test_B1_the_top_level_digest_and_the_child_of_the_platform_are_both_told():
    with registry(P1, P2, t=INDEX) as server:
        found = one(f"{server.host}/app:t", platform="linux/amd64")
    assert (found["digest"], found["platform_digest"]) == (sha256(INDEX), sha256(P1))


def test_B2_an_unchanged_tag_gives_the_top_level_digest_each_time_whatever_the_order():
    with registry(P1, P2, t=INDEX) as server:
        digests = {one(f"{server.host}/app:t", platform=p)["digest"] for p in (None, "linux/arm64", "linux/amd64")}
    assert digests == {sha256(INDEX)}


def test_B3_a_config_digest_has_a_name_of_its_own():
    with registry(P1, P2, t=INDEX) as server:
        found = one(f"{server.host}/app:t", platform="linux/arm64", resolve=["config"])
    assert found["config_digest"] == sha256(b"c2")
    assert found["config_digest"] not in (found["digest"], found["platform_digest"])


def test_B3_without_a_platform_every_child_has_its_config_digest():
    with registry(P1, P2, t=INDEX) as server:
        found = one(f"{server.host}/app:t", resolve=["config"])
    assert [item["config_digest"] for item in found["children"]] == [sha256(b"c1"), sha256(b"c2")]
    assert found["config_digest"] is None


def test_B5_the_platform_digest_never_takes_the_place_of_the_digest():
    with registry(P1, P2, t=INDEX) as server:
        found = one(f"{server.host}/app:t", platform="linux/arm64")
    assert found["reference"] == f"{server.host}/app@{sha256(INDEX)}"


def test_B6_a_reordered_index_has_equal_children():
    again = index(child(P2, "linux/arm64"), child(P1), annotations={"built": "later"})
    with registry(P1, P2, a=INDEX, b=again) as server:
        first, second = look_up(images=[f"{server.host}/app:a", f"{server.host}/app:b"], resolve=["children"])["images"]
    assert first["digest"] != second["digest"]
    assert {item["digest"] for item in first["children"]} == {item["digest"] for item in second["children"]}


def test_B7_the_child_of_a_pinned_platform_is_found():
    with registry(P1, P2, t=INDEX) as server:
        assert one(f"{server.host}/app@{sha256(INDEX)}", platform="linux/arm64")["platform_digest"] == sha256(P2)


def test_B8_reference_names_the_index_for_mixed_nodes():
    with registry(P1, P2, t=INDEX) as server:
        found = look_up(image=f"{server.host}/app:t", platform="linux/amd64")
    assert found["reference"].endswith(sha256(INDEX))


def test_B10_a_tag_is_asked_for_in_every_call_whatever_is_cached(tmp_path):
    current = [index(child(P1))]
    with serving(lambda asked: content(P1, P2, INDEX, current[0], tags={"t": current[0]})(asked)) as server:
        first = one(f"{server.host}/app:t", resolve=["children"], cache_dir=str(tmp_path / "c"))
        current[0] = INDEX
        second = one(f"{server.host}/app:t", resolve=["children"], cache_dir=str(tmp_path / "c"))
    assert (first["digest"], second["digest"]) == (sha256(index(child(P1))), sha256(INDEX))


def test_B11_attestations_are_no_platform_and_no_child():
    top = index(child(P1), attestation(Q))
    with registry(P1, Q, t=top) as server:
        found = one(f"{server.host}/app:t", platform="linux/amd64")
    assert [item["digest"] for item in found["children"]] == [sha256(P1)]
    assert found["platform_digest"] == sha256(P1)


def test_B12_a_changed_attestation_changes_no_child():
    with registry(P1, a=index(child(P1), attestation(Q)), b=index(child(P1), attestation(Q2))) as server:
        first, second = look_up(images=[f"{server.host}/app:a", f"{server.host}/app:b"], resolve=["children"])["images"]
    assert first["digest"] != second["digest"]
    assert first["children"] == second["children"]


@pytest.mark.parametrize("media_type", [OCI_INDEX, DOCKER_LIST, None])
def test_B15_an_index_is_known_by_its_body(media_type):
    body = json.loads(index(child(P1), child(P2, "linux/arm64")))
    body["mediaType"] = media_type
    raw = json.dumps({key: value for key, value in body.items() if value}).encode()
    good = content(P1, P2, tags={"t": raw})

    def plain(asked):
        reply = good(asked)
        return Reply(reply.status, {**reply.headers, "Content-Type": "application/json; charset=utf-8"}, reply.body)

    with serving(plain) as server:
        found = one(f"{server.host}/app:t", platform="linux/arm64")
    assert found["platform_digest"] == sha256(P2)
    assert found["media_type"] == (media_type or OCI_INDEX)


def test_C1_all_types_are_accepted_schema_1_after_them():
    def picky(asked):
        if "application/vnd.oci.image.index.v1+json" not in asked.headers["accept"]:
            return Reply(404)
        return content(tags={"t": INDEX})(asked)

    with serving(picky) as server:
        assert one(f"{server.host}/app:t")["digest"] == sha256(INDEX)
        accepted = server.asked[0].headers["accept"].split(", ")
    assert accepted == [*ACCEPTED, "application/vnd.docker.distribution.manifest.v1+prettyjws", "*/*"]


def test_C2_every_request_for_a_manifest_accepts_the_same():
    with serving(content(P1, P2, tags={"t": INDEX}, headers=False)) as server:
        found = one(f"{server.host}/app:t", resolve=["config"])
        accepted = {asked.headers["accept"] for asked in server.asked}
    assert found["digest"] == sha256(INDEX)
    assert len(accepted) == 1


def test_C3_the_digest_is_sha256_of_the_raw_bytes():
    body = b'{"schemaVersion": 2,\n "config": {}, "layers": []}\r\n'
    expected = "sha256:" + hashlib.sha256(body).hexdigest()
    with serving(content(tags={"t": body}, headers=False)) as server:
        assert one(f"{server.host}/app:t")["digest"] == expected
        assert all(asked.headers.get("accept") for asked in server.asked)
    assert expected == "sha256:02e8675692ff2587b609eced1a12590b5fddb8408614d588dacdbb72f950acf5"


def test_C6_no_digest_header_gives_the_same_digest_by_one_get():
    with registry(t=INDEX) as server:
        with_header = one(f"{server.host}/app:t")
    with serving(content(tags={"t": INDEX}, headers=False)) as server:
        without = one(f"{server.host}/app:t")
        assert server.lines == ["HEAD /v2/app/manifests/t", "GET /v2/app/manifests/t"]
    assert with_header["digest"] == without["digest"] == sha256(INDEX)


@pytest.mark.parametrize("header", ["", "garbage", "sha256:abc", "md5:" + "a" * 32])
def test_C7_a_digest_header_that_is_none_counts_as_none(header):
    good = content(tags={"t": INDEX}, headers=False)

    def answer(asked):
        reply = good(asked)
        return Reply(reply.status, {**reply.headers, "Docker-Content-Digest": header}, reply.body)

    with serving(answer) as server:
        assert one(f"{server.host}/app:t")["digest"] == sha256(INDEX)


def test_C8_a_missing_tag_is_unknown_and_never_current():
    with registry() as server:
        found = one(f"{server.host}/app:t")
        assert server.lines == ["HEAD /v2/app/manifests/t", "GET /v2/app/manifests/t"]
    assert (found["state"], found["reason"]) == ("unknown", "not_found")
    assert "digest" not in found


@pytest.mark.parametrize("status", [404, 405, 501])
def test_C8_a_head_that_is_not_known_is_asked_again_as_get(status):
    with serving(
        lambda asked: Reply(status) if asked.method == "HEAD" else content(tags={"t": INDEX})(asked)
    ) as server:
        assert one(f"{server.host}/app:t")["digest"] == sha256(INDEX)


def test_C10_a_head_with_nothing_but_a_digest_is_enough():
    with serving(lambda asked: Reply(200, {"Docker-Content-Digest": sha256(INDEX)}, length=False)) as server:
        found = one(f"{server.host}/app:t")
        assert server.lines == ["HEAD /v2/app/manifests/t"]
    assert found["digest"] == sha256(INDEX)


@pytest.mark.parametrize("given", [{"resolve": ["children"]}, {"platform": "linux/amd64"}])
def test_C11_a_body_that_is_not_what_the_header_says_is_a_mismatch(given):
    def broken(asked):
        return Reply(200, {"Docker-Content-Digest": sha256(P1), "Content-Type": OCI_MANIFEST}, P2)

    with serving(broken) as server:
        assert one(f"{server.host}/app:t", **given)["reason"] == "digest_mismatch"


def test_C11_another_digest_than_the_one_asked_for_is_a_mismatch():
    with serving(lambda asked: Reply(200, {"Docker-Content-Digest": sha256(P1)}, P1)) as server:
        assert one(f"{server.host}/app@{sha256(P2)}")["reason"] == "digest_mismatch"


@pytest.mark.parametrize("header", [{}, {"Docker-Content-Digest": sha256(b"x")}])
def test_C13_a_page_is_not_a_manifest(header):
    page = {"Content-Type": "text/html; charset=utf-8", **header}
    with serving(lambda asked: Reply(200, page, b"<html>sign in</html>")) as server:
        assert one(f"{server.host}/app:t")["reason"] == "not_a_manifest"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"<html>", b'{"manifests": 1}', b'{"manifests": [{"digest": "x"}]}', b"[" * 99999]
)
def test_C13_what_is_no_manifest_has_no_digest(body):
    with serving(lambda asked: Reply(200, {"Content-Type": "application/json"}, body)) as server:
        assert one(f"{server.host}/app:t")["reason"] == "not_a_manifest"


def test_C15_a_digest_that_is_not_served_is_not_found():
    with registry() as server:
        assert one(f"{server.host}/app@{sha256(INDEX)}")["reason"] == "not_found"
    with serving(
        lambda asked: content(tags={"t": INDEX})(asked) if asked.path.endswith("/t") else Reply(404)
    ) as server:
        assert one(f"{server.host}/app:t", resolve=["children"])["reason"] == "not_found"


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

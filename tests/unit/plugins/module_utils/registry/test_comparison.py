# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `compare` finds out about digests that run: what they consist of, and whether the registry still has them."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
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

P1, P2, NEW = manifest("c1"), manifest("c2"), manifest("c3")
OLD = index(child(P1), child(P2, "linux/arm64"), attestation(b"q1"))
TOP = index(child(NEW), attestation(b"q2"))
HAS_BOTH = content(P1, P2, NEW, OLD, tags={"t": TOP})
LOST = content(NEW, tags={"t": TOP})
UNKNOWN = b'{"errors":[{"code":"NAME_UNKNOWN"}]}'


def ask(server, *digests, **given):
    given = {"resolve": ["children"], "compare": list(digests), **given}
    return {"image": f"{server.host}/app:t", **given}


def about(digest, lines):
    return [line.partition(" ")[0] for line in lines if line.endswith(digest)]


def refusing(digest, reply, answer=HAS_BOTH):
    """A registry that gives `reply` to whatever asks for one digest."""
    return lambda asked: reply if asked.path.endswith(digest) else answer(asked)


def test_a_digest_that_is_there_is_read_and_not_gone():
    with serving(HAS_BOTH) as server:
        found = one(ask(server, sha256(OLD)))
    assert (found["compared"], found["gone"]) == ({sha256(OLD): [sha256(P1), sha256(P2)]}, [])
    assert found["compared_platforms"] == {sha256(OLD): ["linux/amd64", "linux/arm64"]}


def test_a_digest_that_the_registry_lost_is_gone():
    with serving(LOST) as server:
        found = one(ask(server, sha256(OLD), sha256(P1)))
        assert about(sha256(OLD), server.lines) == ["HEAD", "GET"]
    assert found["state"] == "found"
    assert (found["compared"], found["gone"]) == ({}, sorted([sha256(OLD), sha256(P1)]))


def test_what_is_remembered_of_a_digest_hides_not_that_it_is_gone(tmp_path):
    with serving(HAS_BOTH) as server:
        one(ask(server, sha256(OLD)), cache_dir=str(tmp_path))
        server.answer = LOST
        found = one(ask(server, sha256(OLD)), cache_dir=str(tmp_path))
    assert found["gone"] == [sha256(OLD)]
    assert found["compared"] == {sha256(OLD): [sha256(P1), sha256(P2)]}


@pytest.mark.parametrize("status", [400, 401, 403, 418, 429, 500, 503])
def test_an_error_is_not_gone(tmp_path, status):
    with serving(HAS_BOTH) as server:
        known = one(ask(server, sha256(OLD)), cache_dir=str(tmp_path))
        server.answer = refusing(sha256(OLD), Reply(status))
        again = one(ask(server, sha256(OLD)), cache_dir=str(tmp_path), retries=1)
    assert again["gone"] == []
    assert again["compared"] == known["compared"]


@pytest.mark.parametrize(("status", "reason"), [(429, "rate_limited"), (503, "unreachable")])
def test_no_answer_about_a_digest_of_which_nothing_is_known_leaves_all_undecided(status, reason):
    with serving(refusing(sha256(OLD), Reply(status))) as server:
        found = one(ask(server, sha256(OLD)), retries=1)
    assert (found["state"], found["reason"]) == ("unknown", reason)
    assert "gone" not in found


def test_a_running_image_of_the_published_index_costs_no_request(tmp_path):
    with serving(HAS_BOTH) as server:
        for _pass in range(2):
            server.asked.clear()
            found = one(ask(server, sha256(NEW)), cache_dir=str(tmp_path))
        assert server.lines == ["HEAD /v2/app/manifests/t"]
    assert (found["compared"], found["gone"]) == ({sha256(NEW): [sha256(NEW)]}, [])


def test_the_published_digest_itself_is_not_asked_for():
    with serving(HAS_BOTH) as server:
        found = one(ask(server, sha256(TOP), sha256(OLD)))
        assert about(sha256(TOP), server.lines) == ["GET"]
    assert found["gone"] == []


def test_an_expected_digest_ends_the_look_up():
    with serving(HAS_BOTH) as server:
        found = one(ask(server, sha256(TOP), expect=[sha256(TOP)]))
        assert server.lines == ["HEAD /v2/app/manifests/t"]
    assert "gone" not in found
    assert "compared" not in found


@pytest.mark.parametrize("prefix", ["{host}/app@", "docker-pullable://{host}/app@"])
def test_an_image_id_of_the_same_repository_is_a_digest(prefix):
    with serving(LOST) as server:
        found = one(ask(server, prefix.format(host=server.host) + sha256(OLD)))
    assert found["gone"] == [sha256(OLD)]


@pytest.mark.parametrize("prefix", ["{host}/other@", "elsewhere.example/app@", "app@", "No Reference@"])
def test_a_digest_of_another_repository_is_not_asked_for(prefix):
    with serving(LOST) as server:
        found = one(ask(server, prefix.format(host=server.host) + sha256(OLD)))
        assert about(sha256(OLD), server.lines) == []
    assert found["state"] == "found"
    assert not found.get("gone")


def test_what_is_no_digest_is_refused():
    found = one({"image": "r.example/app:t", "compare": ["sha256:../../tags/list"]})
    assert found["reason"] == "invalid_reference"
    assert "'compare' of the entry has 'sha256:../../tags/list', which is no digest" in found["msg"]


def test_entries_that_share_a_look_up_get_their_own_digests():
    with serving(LOST) as server:
        items = [ask(server, sha256(OLD)), ask(server, sha256(P1)), ask(server)]
        entries = look_up(images=items)["images"]
    assert [entry.get("gone") for entry in entries] == [[sha256(OLD)], [sha256(P1)], None]


def test_a_tag_and_a_digest_that_are_both_unknown_are_told():
    with serving(content()) as server:
        found = one(ask(server, sha256(OLD)))
    assert (found["reason"], found["code"], found["gone"]) == ("not_found", "MANIFEST_UNKNOWN", [sha256(OLD)])


def test_a_digest_may_outlive_its_tag():
    with serving(content(OLD)) as server:
        found = one(ask(server, sha256(OLD)))
    assert (found["reason"], found["gone"]) == ("not_found", [])


@pytest.mark.parametrize("body", [UNKNOWN, b"", b"<html>"])
def test_a_repository_that_may_only_be_hidden_has_nothing_gone(body):
    with serving(lambda asked: Reply(404, {}, body)) as server:
        found = one(ask(server, sha256(OLD)))
    assert (found["reason"], found["gone"]) == ("not_found", [])


def test_an_index_that_lacks_a_part_is_not_gone():
    nested = index(child(P1))
    broken = index({**child(nested), "mediaType": "application/vnd.oci.image.index.v1+json"})
    with serving(content(broken, NEW, tags={"t": TOP})) as server:
        found = one(ask(server, sha256(broken)))
    assert (found["compared"], found["gone"]) == ({}, [])


@pytest.mark.parametrize(("registry", "gone"), [(HAS_BOTH, []), (LOST, [sha256(OLD)]), (lambda _: Reply(500), [])])
def test_what_a_mirror_lacks_is_gone_only_where_the_registry_lacks_it_too(registry, gone):
    with serving(LOST) as mirror, serving(registry) as own:
        rule = {"prefix": own.host, "insecure": True, "mirror": [{"location": mirror.host, "insecure": True}]}
        found = one(ask(own, sha256(OLD)), registries=[rule], retries=1)
        assert found["source_host"] == mirror.host
        assert set(own.lines) <= {f"{method} /v2/app/manifests/{sha256(OLD)}" for method in ("HEAD", "GET")}
    assert found["gone"] == gone

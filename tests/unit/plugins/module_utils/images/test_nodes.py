# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tag names now, and whether the nodes of a workload can run it: from the registry's bytes to the verdict."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images.pushes import (
    CONFIG,
    Pushed,
    decided,
    encoded,
    image,
    index,
    pushed,
    serving,
)
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry import fakeserver
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    OCI_INDEX,
    Reply,
    sha256,
)

HELM = "application/vnd.cncf.helm.config.v1+json"
CACHE = "application/vnd.buildkit.cacheconfig.v0"
EMPTY = "application/vnd.oci.empty.v1+json"
CHART = pushed(b'{"name": "shop"}', HELM, ["application/vnd.cncf.helm.chart.content.v1.tar+gzip"])
CHART_2 = pushed(b'{"name": "shop", "version": "2"}', HELM, ["application/vnd.cncf.helm.chart.content.v1.tar+gzip"])
P, Q, P2, Q2 = (image(f"linux/{arch}", note) for note in ("1", "2") for arch in ("amd64", "arm64"))
AMD64 = {"os": "linux", "architecture": "amd64"}
UNKNOWN_PLATFORM = {"platform": {"os": "unknown", "architecture": "unknown"}}
ATTESTATION = image("unknown/unknown", layers=["application/vnd.in-toto+json"])
REFERRER = {"annotations": {"vnd.docker.reference.type": "attestation-manifest"}}


def told(now, before=None, *platforms, **how):
    """Reason and message."""
    verdict, _asked = decided(now, before, platforms or ("linux/amd64",), **how)
    assert verdict.rolls == (verdict.reason in ("digest_differs", "mixed_replicas"))
    return verdict.reason, verdict.message


# a single manifest


def test_an_image_for_another_platform_is_held_and_both_platforms_are_named():
    reason, message = told(image("linux/arm64"))
    assert reason == "not_pullable"
    assert "linux/arm64" in message
    assert "linux/amd64" in message


@pytest.mark.parametrize(
    ("built_for", "node", "rolls"),
    [
        ("linux/amd64", "linux/amd64", True),
        ("linux/arm64/v8", "linux/arm64", True),
        ("linux/aarch64", "linux/arm64", True),
        ("linux/arm/v6", "linux/arm", True),
        ("linux/arm/v7", "linux/arm64", True),
        ("linux/386", "linux/amd64", True),
        ("linux/amd64/v3", "linux/amd64", False),
        ("linux/arm/v8", "linux/arm", False),
        ("linux/s390x", "linux/amd64", False),
        ("darwin/amd64", "linux/amd64", False),
        ("windows(10.0.17763.1)/amd64", "windows(10.0.17763)/amd64", True),
        ("windows(10.0.20348.1)/amd64", "windows(10.0.17763)/amd64", False),
        ("windows(10.0.20348.1)/amd64", "windows(10.0.26100)/amd64", True),
        # a config that says nothing of it: a runtime does not ask either
        ("", "linux/amd64", True),
    ],
)
def test_a_single_image_rolls_where_it_is_for_the_node(built_for, node, rolls):
    before = image(node, "before")
    for docker in (False, True):
        kinds = {"mediaType": "application/vnd.docker.distribution.manifest.v2+json"} if docker else {}
        reason, _message = told(image(built_for, "now", **kinds), before, node)
        assert reason == ("digest_differs" if rolls else "not_pullable")


def test_an_image_that_not_all_nodes_of_the_workload_can_run_is_held():
    reason, message = told(P2, index(P, Q), "linux/amd64", "linux/arm64")
    assert (reason, "not for linux/arm64" in message) == ("not_pullable", True)


def test_the_config_is_read_once_and_only_before_a_roll(tmp_path):
    _verdict, asked = decided(P2, P, cache_dir=str(tmp_path))
    assert asked.count(f"GET /blobs/{sha256(P2.blobs[0])}") == 1
    verdict, asked = decided(P2, P, cache_dir=str(tmp_path))
    assert (verdict.rolls, [line for line in asked if line.startswith("GET")]) == (True, [])
    _verdict, asked = decided(P, P)
    assert asked == ["HEAD /manifests/1"]


def test_nodes_that_emulate_a_platform_show_it_by_what_runs():
    before = image("linux/amd64", "before")
    assert told(image("linux/amd64", "now"), before, "linux/arm64")[0] == "digest_differs"
    # what does not work proves nothing
    assert told(image("linux/amd64", "now"), before, "linux/arm64", ready=False)[0] == "not_pullable"
    assert told(image("linux/s390x", "now"), before, "linux/arm64")[0] == "not_pullable"
    # of an index a runtime takes what is for the node alone
    assert told(index(image("linux/amd64", "now")), before, "linux/arm64")[0] == "not_pullable"


def test_a_config_may_be_in_the_registrys_storage():
    with fakeserver.serving(lambda _asked: Reply(200, {}, P2.blobs[0])) as storage:
        answer = answering(307, headers={"Location": f"http://{storage.host}/some/where?signed=x"})
        verdict, _asked = decided(P2, P, answer=answer)
        # of what runs too: it may be for the same platform
        assert storage.lines == ["GET /some/where"] * 2
    assert verdict.reason == "digest_differs"


def answering(status, body=b"{}", code="", headers=None):
    """A registry whose blobs are answered so."""
    manifests = serving(P2, P)
    body = b'{"errors":[{"code":"%s"}]}' % code.encode() if code else body

    def answer(asked):
        return Reply(status, headers or {}, body) if "/blobs/" in asked.path else manifests(asked)

    return answer


@pytest.mark.parametrize(
    ("answer", "reason", "part"),
    [
        (answering(404, code="BLOB_UNKNOWN"), "not_pullable", "BLOB_UNKNOWN"),
        (answering(403), "not_pullable", "its config cannot be read"),
        (answering(200, b"x" * (1024 * 1024 + 1)), "not_pullable", "larger than 1048576 bytes"),
        (answering(503), "unreachable", "cannot answer now"),
        (answering(429), "rate_limited", "asks for a pause"),
        (answering(200, b'{"os": "linux"}'), "digest_mismatch", "the body has another digest"),
        # a cache of manifests that knows no blobs says nothing about the nodes
        (answering(404), "digest_differs", ""),
    ],
)
def test_a_config_that_is_not_answered(answer, reason, part):
    verdict, _asked = decided(P2, P, answer=answer)
    assert verdict.reason == reason
    assert part in verdict.message


def test_what_was_not_read_to_spare_the_rate_limit_does_not_roll():
    def sparing(asked):
        reply = serving(P2, P)(asked)
        return Reply(reply.status, {**reply.headers, "RateLimit-Remaining": "2;w=21600"}, reply.body)

    verdict, asked = decided(P2, P, answer=sparing)
    assert (verdict.reason, "nobody knows whether the nodes can run it" in verdict.message) == ("rate_limited", True)
    assert not any(line.startswith("GET") for line in asked)


# what is no image

COSIGN = encoded({"architecture": "", "os": "", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}})
NO_IMAGES = {
    "a Helm chart": CHART,
    "a build cache": pushed(b"{}", CACHE, ["application/vnd.oci.image.layer.v1.tar+zstd"]),
    "an artifact of type application/vnd.example.sbom": pushed(
        b"{}", EMPTY, artifactType="application/vnd.example.sbom"
    ),
    f"an artifact of type {EMPTY}": pushed(b"{}", EMPTY),
    "a signature": pushed(COSIGN, layers=["application/vnd.dev.cosign.simplesigning.v1+json"]),
    "an attestation": pushed(COSIGN, layers=["application/vnd.in-toto+json"]),
    "a Docker plugin": pushed(b"{}", "application/vnd.docker.plugin.v1+json"),
    "an artifact of type application/wasm": pushed(b"{}", layers=["application/wasm"]),
    "an artifact of type unreadable/unreadable": pushed(b"{}", "a\nb: c"),
    "a manifest without a config": Pushed(encoded({"schemaVersion": 2, "layers": []})),
    "a manifest whose config is not that of an image": pushed(b"no json"),
    "an empty index": index(),
    "an index of attestations only": index((ATTESTATION, {}), (image(note="x"), REFERRER)),
    "an index that lists no image": index(index((ATTESTATION, {}))),
    "lists no image for any platform": index((CHART, {"artifactType": HELM})),
}
LAYERS = [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": sha256(b"l"), "size": 1}]
NO_IMAGES["a build cache (application/vnd.buildkit.cacheconfig.v0)"] = Pushed(
    encoded(
        {
            "schemaVersion": 2,
            "mediaType": OCI_INDEX,
            "manifests": [*LAYERS, {"mediaType": CACHE, "digest": sha256(b"c"), "size": 1}],
        }
    )
)
NO_IMAGES["no image for any platform"] = Pushed(
    encoded({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": LAYERS})
)


@pytest.mark.parametrize("what", sorted(NO_IMAGES))
@pytest.mark.parametrize("platforms", [("linux/amd64",), ()])
def test_what_is_no_image_is_held_and_named(what, platforms):
    verdict, _asked = decided(NO_IMAGES[what], platforms=platforms)
    assert (verdict.verdict, verdict.reason) == ("stale", "not_pullable")
    assert what in verdict.message


@pytest.mark.parametrize(
    ("kind", "layers"),
    [
        ("application/vnd.docker.container.image.v1+json", ["application/vnd.docker.image.rootfs.diff.tar.gzip"]),
        # what old registries and builders wrote
        ("application/octet-stream", ["application/vnd.docker.image.rootfs.diff.tar.gzip"]),
        ("application/json", ["application/octet-stream"]),
        ("text/html", ["application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"]),
        (None, [None, ""]),
        (f"{CONFIG}; charset=utf-8", ["application/vnd.oci.image.layer.v1.tar"]),
        (CONFIG, ["application/vnd.oci.image.layer.v1.tar+gzip+encrypted", "application/vnd.erofs.layer.v1"]),
        (CONFIG, ["application/vnd.oci.image.layer.nondistributable.v1.tar+zstd"]),
        (CONFIG, []),
    ],
)
def test_odd_images_are_images(kind, layers):
    now = pushed(encoded({"os": "linux", "architecture": "amd64"}), kind, layers)
    assert told(now)[0] == "digest_differs"


def test_a_manifest_with_an_artifact_type_and_the_config_of_an_image_is_an_image():
    assert told(image(note="now", artifactType="application/vnd.example.app"))[0] == "digest_differs"


def test_a_node_that_runs_one_artifact_may_run_the_next():
    runs, now = (pushed(encoded({"note": note}), layers=["application/wasm"]) for note in ("1", "2"))
    assert told(now, runs)[0] == "digest_differs"
    assert told(now, runs, ready=False)[0] == "not_pullable"


# an index


@pytest.mark.parametrize(
    "now",
    [
        # only what no node takes changes
        index(P, Q, CHART_2),
        index(P, Q, (CHART_2, {"artifactType": HELM})),
        index(P, Q, (CHART_2, {"artifactType": HELM, "platform": AMD64})),
        index(P, Q),
        index(P, Q, (ATTESTATION, UNKNOWN_PLATFORM)),
        index(Q, P, CHART),
        # what other nodes would take
        index(P),
        index(P, Q2),
        index(P, Q2, image("linux/s390x")),
        index((P, {"artifactType": CONFIG}), Q),
        index(index(P), Q2),
        index(
            P,
            (image("linux/amd64", "odd"), {"platform": {"os": "linux", "architecture": "amd64", "os.features": ["x"]}}),
        ),
        index((P, {"platform": {"os": "linux", "architecture": "x86_64"}})),
    ],
)
def test_an_index_from_which_the_nodes_take_the_same_image_is_no_difference(now):
    assert told(now, index(P, Q, CHART))[0] == "index_changed_only"


def test_two_indexes_without_anything_for_nodes_are_not_the_same():
    one, other = (index((chart, {"artifactType": HELM})) for chart in (CHART, CHART_2))
    assert told(one, other)[0] == "not_pullable"


def test_the_image_alone_of_the_index_that_runs_is_no_difference_either():
    assert told(P, index(P, Q))[0] == "index_changed_only"
    assert told(Q, index(P, Q))[0] == "not_pullable"
    assert told(P, index(P, Q), "linux/amd64", "linux/arm64")[0] == "not_pullable"


def test_what_one_of_the_nodes_would_take_anew_is_a_difference():
    assert told(index(P, Q2), index(P, Q), "linux/amd64", "linux/arm64")[0] == "digest_differs"
    assert told(index(P2, Q), index(P, Q))[0] == "digest_differs"
    # the images swapped places
    swapped = index((P, {"platform": {"os": "linux", "architecture": "arm64"}}), (P2, {}))
    assert told(swapped, index(P, (P2, {"platform": {"os": "linux", "architecture": "arm64"}})))[0] == "digest_differs"
    # a better variant for the node
    node = "linux/arm"
    v6, v7 = image("linux/arm/v6"), image("linux/arm/v7")
    assert told(index(v6, v7), index(v6), node)[0] == "digest_differs"
    assert told(index(v6, image("linux/arm/v5")), index(v6), node)[0] == "index_changed_only"


def test_an_index_that_loses_the_image_of_a_node_is_held():
    reason, message = told(index(P2), index(P, Q), "linux/amd64", "linux/arm64")
    assert reason == "not_pullable"
    assert "no image for linux/arm64, only for linux/amd64" in message
    assert told(index(P), index(P, Q), "linux/amd64", "linux/arm64")[0] == "not_pullable"


@pytest.mark.parametrize("extra", [CHART, image("", "amd64 perhaps"), (P2, {"platform": None})])
def test_beside_parts_that_name_a_platform_those_that_name_none_are_for_nobody(extra):
    reason, message = told(index(Q2, extra))
    assert (reason, "no image for linux/amd64, only for linux/arm64" in message) == ("not_pullable", True)


@pytest.mark.parametrize(
    ("children", "rolls"),
    [
        ([P2], True),
        ([Q2], False),
        ([CHART], False),
        # runtimes look at the first one alone
        ([P2, Q2], True),
        ([Q2, P2], False),
        ([CHART, P2], False),
        ([image("")], False),
    ],
)
def test_of_an_index_that_names_no_platforms_the_config_of_the_first_image_decides(children, rolls):
    now = index(*((child, {"platform": None}) for child in children))
    reason, _message = told(now)
    assert reason == ("digest_differs" if rolls else "not_pullable")


def test_an_index_without_platforms_around_the_image_that_runs_is_no_difference():
    assert told(index((P, {"platform": None})), index(P, Q))[0] == "index_changed_only"


def test_windows_nodes_take_the_image_of_their_build():
    old, new, new_2 = (
        image(f"windows({version})/amd64", note)
        for version, note in (("10.0.17763.1", "1"), ("10.0.20348.1", "1"), ("10.0.20348.2", "2"))
    )
    node = "windows(10.0.17763)/amd64"
    assert told(index(old, new_2), index(old, new), node)[0] == "index_changed_only"
    assert told(index(old, new_2), index(old, new), "windows(10.0.20348)/amd64")[0] == "digest_differs"
    assert told(index(new_2), index(old, new), node)[0] == "not_pullable"


# nodes that may not be read, Pods without a node, the pull policy


@pytest.mark.parametrize(
    ("now", "before", "reason"),
    [
        (P2, P, "digest_differs"),
        (Q2, P, "not_pullable"),
        (P2, index(P, Q), "not_pullable"),
        (index(P2, Q2), P, "digest_differs"),
        (index(P2, Q2), index(P, Q), "digest_differs"),
        (index(P, Q), index(Q, P, CHART), "index_changed_only"),
        (index(P, Q2), index(P, Q), "digest_differs"),
        (index(P), index(P, Q), "not_pullable"),
    ],
)
def test_where_nodes_may_not_be_read_what_runs_tells_what_they_are(now, before, reason):
    verdict, _asked = decided(now, before, ())
    assert verdict.reason == reason


def test_a_container_that_never_pulls_is_never_rolled():
    for now in (P2, index(P2, Q2), Q2):
        reason, message = told(now, P, pull_policy="Never")
        assert (reason, "imagePullPolicy is Never" in message) == ("not_pullable", True)
    assert told(P, P, pull_policy="Never")[0] == "digest_equal"
    assert told(index(P, Q2), index(P, Q), pull_policy="Never")[0] == "index_changed_only"
    for policy in ("Always", "IfNotPresent"):
        assert told(P2, P, pull_policy=policy)[0] == "digest_differs"

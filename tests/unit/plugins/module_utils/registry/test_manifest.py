# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import (
    SCHEMA_1,
    Child,
    read_manifest,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.platforms import normal_platform, parse_platform
from ansible_collections.kubesteward.core.plugins.module_utils.registry.runnable import pick


def children(*platforms):
    return [Child(f"sha256:{n:064x}", "", None, platform) for n, platform in enumerate(platforms)]


@pytest.mark.parametrize(
    ("have", "want", "index"),
    [
        (["linux/amd64", "linux/arm64"], "linux/arm64", 1),
        (["linux/arm64/v8"], "linux/arm64", 0),
        (["linux/arm64"], "linux/arm64/v8", 0),
        (["linux/arm64"], "linux/arm64/v9", 0),
        (["linux/arm64/v9"], "linux/arm64", None),
        (["linux/arm/v5", "linux/arm/v6"], "linux/arm/v7", 1),
        (["linux/arm/v7"], "linux/arm", 0),
        (["linux/arm/v7"], "linux/arm/v6", None),
        # containerd runs 32 bit images where there is no other one
        (["linux/arm/v6", "linux/arm/v7"], "linux/arm64", 1),
        (["linux/arm/v7", "linux/arm64/v8"], "linux/arm64", 1),
        (["linux/386"], "linux/amd64", 0),
        (["linux/386", "linux/amd64"], "linux/amd64/v2", 1),
        (["linux/amd64"], "linux/386", None),
        (["linux/arm64/v8.5"], "linux/arm64/v9", 0),
        (["linux/arm64/v8.6"], "linux/arm64/v9", None),
        (["linux/arm64/v9.1", "linux/arm64/v8"], "linux/arm64/v9.2", 0),
        (["linux/arm64", "linux/arm64/v8.2"], "linux/arm64/v8.2", 1),
        (["linux/arm64/x1"], "linux/arm64/x1", None),
        (["linux/riscv64"], "linux/riscv64", 0),
        (["linux/s390x"], "linux/amd64", None),
        (["linux/mips64le/softfloat"], "linux/mips64le", None),
        (["windows(10.0.17763.1)/amd64", "windows(10.0.20348.1)/amd64"], "windows(10.0.20348)/amd64", 1),
        (["windows(10.0.17763.1)/amd64"], "windows(10.0.17763)/amd64", 0),
        (["windows(10.0.17763.1)/amd64"], "windows(10.0.18363)/amd64", None),
        (["windows(10.0.20348.9)/amd64"], "windows(10.0.26100)/amd64", 0),
        (["windows(10.0.20348.9)/amd64"], "windows(10.0.27000)/amd64", None),
        (["windows(10.0.26100.9)/amd64"], "windows(10.0.20348)/amd64", None),
        (["windows(10.0.17763.1)/amd64"], "windows/amd64", 0),
        (["windows/amd64"], "windows(10.0.17763)/amd64", 0),
        (["windows(odd)/amd64", "windows(10)/amd64"], "windows(10.0.17763)/amd64", None),
        (["linux/amd64"], "linux/amd64/v3", 0),
        (["linux/amd64/v2", "linux/amd64"], "linux/amd64/v3", 0),
        (["linux/amd64/v2"], "linux/amd64", None),
        (["linux/x86_64"], "linux/amd64", 0),
        (["windows/amd64"], "linux/amd64", None),
        (["", "linux/amd64"], "linux/amd64", 1),
        (["linux/amd64", "linux/amd64"], "linux/amd64", 0),
        ([], "linux/amd64", None),
    ],
)
def test_a_platform_gets_the_child_that_a_runtime_takes(have, want, index):
    found = pick(children(*have), want)
    assert found == (None if index is None else children(*have)[index])


@pytest.mark.parametrize(
    ("text", "normal"),
    [("Linux/AArch64", "linux/arm64"), ("linux/arm/7", "linux/arm/v7"), ("linux/armhf", "linux/arm/v7")],
)
def test_platforms_have_one_spelling(text, normal):
    assert parse_platform(text) == normal


@pytest.mark.parametrize("text", ["linux", "linux/", "/amd64", "a/b/c/d", "linux/am d64", ""])
def test_a_wrong_platform_is_refused(text):
    with pytest.raises(StewardError, match="platform"):
        parse_platform(text)


def test_platforms_that_are_no_text_are_nothing():
    body = json.dumps(
        {"manifests": [{"digest": "sha256:" + "a" * 64, "platform": {"os": 1, "architecture": "amd64"}, "size": "x"}]}
    )
    (child,) = read_manifest(body.encode(), "", "x").children
    assert (child.platform, child.size, child.media_type) == ("amd64", None, "")


def test_schema_1_is_known_by_its_version():
    assert read_manifest(b'{"schemaVersion": 1}', "application/json", "x").media_type == SCHEMA_1


def test_an_index_of_too_many_is_refused():
    body = json.dumps({"manifests": [{"digest": "sha256:" + "a" * 64}] * 1001}).encode()
    with pytest.raises(StewardError, match="1000"):
        read_manifest(body, "", "x")


json_value = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=10) | st.just("sha256:" + "a" * 64),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["manifests", "config", "digest", "platform", "annotations", "mediaType", "os", "layers"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(json_value, st.sampled_from(["", "application/json", SCHEMA_1]))
def test_any_json_is_a_manifest_or_refused(data, media_type):
    try:
        read_manifest(json.dumps(data).encode(), media_type, "x")
    except StewardError as exc:
        assert exc.reason == "not_a_manifest"


part = st.text("armhfx86v0123456789", min_size=1, max_size=8) | st.sampled_from(
    ["linux", "arm", "arm64", "aarch64", "x86_64", "v8"]
)


@given(st.lists(part, min_size=2, max_size=3))
def test_the_spelling_of_a_platform_is_stable(parts):
    once = normal_platform("/".join(parts))
    assert normal_platform(once) == once
    assert parse_platform(once) == once

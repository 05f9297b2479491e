# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of tags come page by page, and whole or not at all."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import protocol
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    content,
    manifest,
    one,
    serving,
)

BODY = manifest()
GOOD = content(tags={"t": BODY, "u": BODY})


def run(steps, *answers):
    """Drive a generator with answers; its result and the paths it asked for."""
    asked = [next(steps).path]
    try:
        for answer in answers:
            asked.append(steps.send(answer).path)
    except StopIteration as stop:
        return list(stop.value), asked
    raise AssertionError("more is asked for")


def page(tags, link="", url="https://r.example/v2/app/tags/list"):
    return protocol.Response(200, {"link": link} if link else {}, json.dumps({"tags": tags}).encode(), url)


def test_pages_are_followed_to_the_end():
    link = '</v2/app/tags/list?last=b&n=1000>; rel="next"'
    tags, asked = run(protocol.list_tags("app"), page(["a", "b"], link), page(["c"]))
    assert tags == ["a", "b", "c"]
    assert asked == ["/v2/app/tags/list?n=1000", "/v2/app/tags/list?last=b&n=1000"]


def test_a_link_without_the_repository_is_rebuilt_from_last():
    link = '</tags/list?last=b&n=2>; rel="next"'
    _tags, asked = run(protocol.list_tags("app"), page(["a", "b"], link), page(["c"]))
    assert asked[1] == "/v2/app/tags/list?n=1000&last=b"


@pytest.mark.parametrize(
    "target", ["https://evil.example/v2/app/tags/list?last=b", "http://r.example/v2/app/tags/list?last=b", "http://[x"]
)
def test_a_link_to_another_origin_is_refused(target):
    with pytest.raises(StewardError, match="another host"):
        run(protocol.list_tags("app"), page(["a"], f'<{target}>; rel="next"'))


def test_pages_that_do_not_end_are_an_error():
    link = '</v2/app/tags/list?n=1000>; rel="next"'
    with pytest.raises(StewardError, match="does not end"):
        run(protocol.list_tags("app"), page(["a"], link), page(["a"], link))


def test_a_refused_list_does_not_touch_the_look_up_of_one_tag():
    with pytest.raises(StewardError) as caught:
        run(protocol.list_tags("app"), protocol.Response(413, {}, url="https://r.example/"))
    assert "413" in str(caught.value)
    with serving(lambda asked: Reply(413) if "tags/list" in asked.path else GOOD(asked)) as server:
        assert one(f"{server.host}/app:t")["state"] == "found"


def test_a_look_up_never_lists():
    with serving(GOOD) as server:
        one(f"{server.host}/app:t", resolve=["config"])
        assert not any("tags/list" in line for line in server.lines)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"tags": 1}', b'{"tags": [1]}'])
def test_a_page_that_is_none_is_an_error(body):
    with pytest.raises(StewardError):
        run(protocol.list_tags("app"), protocol.Response(200, {}, body, "https://r.example/"))


def test_one_failed_page_fails_the_whole_list():
    link = '</v2/app/tags/list?last=b&n=1000>; rel="next"'
    with pytest.raises(StewardError) as caught:
        run(protocol.list_tags("app"), page(["a", "b"], link), protocol.Response(429, {}, url="https://r.example/"))
    assert caught.value.reason == "rate_limited"

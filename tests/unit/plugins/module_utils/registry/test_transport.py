# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single steps of the transport that no loopback server can show."""

from __future__ import annotations

import pytest
import urllib3.exceptions

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import failures, redirects, transport, urls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Tls
from ansible_collections.kubesteward.core.plugins.module_utils.registry.progress import Progress
from ansible_collections.kubesteward.core.plugins.module_utils.registry.tokens import tls_for

SYSTEM = Tls()


def sending(url, tls=SYSTEM, here=False):
    headers = {"Authorization": "Basic x", "Accept": "a"}
    return redirects.Sending("HEAD", urls.read(url), headers, tls, 10, None, None, Progress(), here)


def test_https_is_never_left_for_plain_http():
    with pytest.raises(StewardError) as caught:
        redirects.redirected(sending("https://r.example/v2/"), "http://r.example/v2/")
    assert caught.value.reason == "tls_error"


@pytest.mark.parametrize("target", ["https://cdn.example/x", "https://r.example:8443/x", "//cdn.example/x"])
def test_another_origin_gets_no_credential_no_client_certificate_and_full_verification(target):
    own = Tls(verify=False, ca_cert="/ca", client_cert="/cert", client_key="/key")
    moved = redirects.redirected(sending("https://r.example/v2/", own), target)
    assert moved.headers == {"Accept": "a"}
    assert moved.tls == Tls(verify=True, ca_cert="/ca")


def test_a_token_server_elsewhere_is_verified_whatever_holds_for_the_registry():
    own = Tls(verify=False, client_cert="/cert")
    assert tls_for("https://r.example/token", "https://r.example:5000", own) == own
    assert tls_for("https://auth.example/token", "https://r.example:5000", own) == Tls()


def test_nothing_is_sent_after_the_end_or_past_the_deadline():
    late = transport.Client(deadline=1.0, clock=lambda: 2.0)
    ended = transport.Client()
    ended.close()
    for client in (late, ended):
        with pytest.raises(StewardError) as caught:
            client.send("HEAD", "http://127.0.0.1:1/v2/", {}, Tls(), 10)
        assert caught.value.reason == "unreachable"
        assert client.requests_made == 0


def test_a_proxy_of_the_environment_that_is_no_url_is_told(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://")
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(StewardError, match="proxy"):
        transport.Client().channel("https://r.example", Tls())


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (ConnectionRefusedError(), "refuses"),
        (urllib3.exceptions.ProxyError("x", OSError()), "proxy"),
        (urllib3.exceptions.ProtocolError("x"), "breaks"),
    ],
)
def test_what_went_wrong_is_said_in_words(cause, text):
    assert text in failures.connection_text(failures.causes(cause))

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass of the bench is one as the operator makes it, and counts only if it did its work."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.request

import pytest

from bench import reconcile

RESOURCE = {
    "kind": "Update",
    "metadata": {"name": "sample", "namespace": "shop"},
    "spec": {"targets": [{"kind": "Start", "name": "{{ x }}"}], "suspend": False},
}
WATCH = {"group": "install.sios.nginx.testing", "kind": "Update", "vars": {"update_must_exist": False}}
STATS = {"event": "playbook_on_stats", "event_data": {"changed": {}}}


def test_variables_are_those_of_the_operator_with_texts_that_are_no_templates():
    found = reconcile.extra_vars(RESOURCE, WATCH)
    spec = {
        "targets": [{"kind": {"__ansible_unsafe": "Start"}, "name": {"__ansible_unsafe": "{{ x }}"}}],
        "suspend": False,
    }
    key = "_install_sios_nginx_testing_update"
    assert found == {
        **spec,
        "ansible_operator_meta": {"name": "sample", "namespace": "shop"},
        key: found[key],
        f"{key}_spec": spec,
        "update_must_exist": False,
    }
    assert found[key]["metadata"]["name"] == {"__ansible_unsafe": "sample"}


@pytest.mark.parametrize(
    ("events", "unchanged", "lacks"),
    [
        ([STATS], True, ""),
        ([], True, "it never told that it ended"),
        ([{"event": "runner_on_failed", "stdout": "broken"}, STATS], False, "a task failed: broken"),
        ([{"event": "runner_on_unreachable"}, STATS], False, "a task failed: "),
        ([{**STATS, "event_data": {"changed": {"localhost": 2}}}], True, "changed=2 instead of 0"),
        ([{**STATS, "event_data": {"changed": {"localhost": 2}}}], False, ""),
    ],
)
def test_what_a_pass_has_to_tell(events, unchanged, lacks):
    assert reconcile.shortcoming(events, unchanged) == lacks


@pytest.mark.parametrize(
    ("arguments", "flags"), [([], ["-vv"]), (["--ansible-verbosity=0"], []), (["--ansible-verbosity=1"], ["-v"])]
)
def test_verbosity_is_the_operators(arguments, flags):
    assert reconcile.verbosity({"args": ["--leader-elect", *arguments]}) == flags


def test_variables_of_a_container_are_those_with_a_value():
    env = [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]
    assert reconcile.variables({"env": env}) == {"A": ""}


def test_events_are_told_by_pass(tmp_path):
    events = reconcile.Events(tmp_path / "events")
    with events.received():
        for name in ("one", "two", "one"):
            connection = http.client.HTTPConnection("localhost")
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(events.socket))
            connection.request("POST", f"/{name}/", json.dumps({"event": name}))
            assert connection.getresponse().status == 204
            connection.close()
        urllib.request.urlopen(events.metrics, json.dumps({"name": "rolls"}).encode(), timeout=10).close()
    assert events.told.pop("metrics") == [{"name": "rolls"}]
    assert events.told == {"one": [{"event": "one"}] * 2, "two": [{"event": "two"}]}

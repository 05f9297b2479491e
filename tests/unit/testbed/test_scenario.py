# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from testbed import TestbedError, scenario
from testbed.audit import Event
from testbed.connection import Testbed

OURS = Event("patch", "starts", "", "shop", "one", "admin", "kubesteward/1.0.0", False, 200, "/apis/starts/one")


def test_facts_of_the_testbed_put_real_names_before_a_repository() -> None:
    testbed = Testbed(Path("/config"), "127.0.0.1:5000", Path("/audit.log"), True)
    found = scenario.facts(testbed)
    assert found["image_prefix"] == "quay.io/"
    assert found["registries"] == testbed.registries() != []
    assert found["has_audit_log"]


def test_facts_of_another_cluster_name_its_registry() -> None:
    found = scenario.facts(Testbed(Path("/config"), "registry.example:5000", None, False))
    assert (found["image_prefix"], found["has_audit_log"]) == ("registry.example:5000/", False)


def test_a_refused_write_of_ours_counts_and_those_of_others_do_not() -> None:
    refused = dataclasses.replace(OURS, code=409)
    dry_run = dataclasses.replace(OURS, dry_run=True)
    kubectl = dataclasses.replace(OURS, user_agent="kubectl/v1.34.4")
    assert scenario.own_writes([refused, dry_run, kubectl]) == ["patch /apis/starts/one (409)"]


def test_what_is_written_to_a_namespace_counts_as_what_is_written_in_it() -> None:
    created = dataclasses.replace(OURS, resource="namespaces", namespace="", name="shop")
    others = [
        dataclasses.replace(created, name="bank"),
        dataclasses.replace(OURS, namespace="bank", name="shop"),
        dataclasses.replace(OURS, namespace="", resource="nodes", name="shop"),
    ]
    assert scenario.within([created, *others, OURS], ["shop"]) == [created, OURS]
    assert scenario.within([created, *others], ["shop", "bank"]) == [created, *others[:2]]


def test_an_image_may_say_anything() -> None:
    assert scenario.pair("shop/web:latest=a=b c") == ("shop/web:latest", "a=b c")


@pytest.mark.parametrize("text", ["shop/web:latest", "shop/web:latest=", "=v1"])
def test_a_push_without_name_or_text_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        scenario.main(["push", text])
    assert "NAME=TEXT" in capsys.readouterr().err


def test_without_a_testbed_the_remedy_is_named(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    def connect() -> Testbed:
        raise TestbedError("start one with `make testbed-up`")

    monkeypatch.setattr(scenario, "connect", connect)
    assert scenario.main(["facts"]) == 2
    assert "make testbed-up" in capsys.readouterr().err

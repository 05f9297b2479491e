# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several Updates of a namespace from the command line: each has its own result, and one that fails stops no other."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest
from integration.accounts import Accounts, rights
from integration.passes import ROOT, Shop
from integration.workloads import container, deployment

pytestmark = pytest.mark.usefixtures("crds")

FIRST, MIDDLE, LAST = "a-first", "b-middle", "c-last"
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - name: Run every Update
      block:
        - ansible.builtin.include_role:
            name: kubesteward.core.update
      always:
        - ansible.builtin.debug:
            msg: "RESULT {{ kubesteward_update | to_json }}"
"""


def run(shop: Shop, tmp_path, kubeconfig, **variables) -> tuple[subprocess.CompletedProcess[str], list[dict]]:
    """Run a playbook with the role; what it printed, and `kubesteward_update`."""
    book = tmp_path / "play.yml"
    book.write_text(PLAY)
    given = {"update_namespace": shop.namespace, "update_registries": shop.testbed.registries(), **variables}
    command = [str(ROOT / ".venv/bin/ansible-playbook"), str(book), "-e", json.dumps(given)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "KUBECONFIG": str(kubeconfig)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "RESULT [" in done.stdout, done.stdout + done.stderr
    (line,) = re.findall(r'"msg": ("RESULT .*")\n', done.stdout)
    return done, json.loads(json.loads(line).removeprefix("RESULT "))


@pytest.fixture
def three(shop: Shop) -> Shop:
    """Three Updates, each with a Deployment of its own; the middle one names a DaemonSet too."""
    shop.push("one")
    for name in (FIRST, MIDDLE, LAST):
        targets = [{"kind": "Deployment", "name": name}]
        if name == MIDDLE:
            targets.append({"kind": "DaemonSet", "name": "nothing"})
        shop.apply(deployment(name, container("web", shop.image)), shop.update(name, {"targets": targets}))
    for name in (FIRST, MIDDLE, LAST):
        shop.kubectl("rollout", "status", "-n", shop.namespace, f"deployment/{name}", "--timeout=90s")
    return shop


@pytest.fixture
def without_daemonsets(kubectl, three, tmp_path):
    """A kubeconfig of somebody who may do everything but look at DaemonSets."""
    accounts = Accounts(kubectl, three.testbed.kubeconfig, three.namespace, tmp_path, "namespace")
    held = [*rights("update_role.yaml"), *rights("update_secrets_role.yaml"), *rights("nodes_role.yaml")]
    held = [right for right in held if right.resource != "daemonsets"]
    try:
        accounts.create({"steward": held})
        yield accounts.kubeconfig("steward", held[0])
    finally:
        accounts.close()


def test_one_that_fails_stops_no_other_and_is_named_at_the_end(three, without_daemonsets, tmp_path):
    published = three.push("two")
    done, found = run(three, tmp_path, without_daemonsets)
    assert done.returncode != 0
    assert [entry["name"] for entry in found] == [FIRST, MIDDLE, LAST]
    first, middle, last = found
    assert [len(entry["rolled"]) for entry in found] == [1, 0, 1]
    assert first["errors"] == last["errors"] == []
    assert "daemonsets" in " ".join(middle["errors"])
    assert middle["verdicts"] == []
    for name in (FIRST, LAST):
        assert published in json.dumps(three.get("deployment", name)["spec"])
    assert published not in json.dumps(three.get("deployment", MIDDLE)["spec"])
    end = done.stdout.rpartition("Fail for what went wrong")[2]
    assert "daemonsets" in end


def test_the_first_that_fails_stops_no_other(three, without_daemonsets, tmp_path):
    three.apply(three.update(FIRST, {"targets": [{"kind": "DaemonSet", "name": "nothing"}]}))
    done, found = run(three, tmp_path, without_daemonsets)
    assert done.returncode != 0
    assert [(entry["name"], bool(entry["errors"])) for entry in found] == [(FIRST, True), (MIDDLE, True), (LAST, False)]
    assert found[2]["counts"] == {"current": 1, "stale": 0, "unknown": 0}


def test_the_result_is_of_this_call_alone_and_has_what_a_playbook_asks_for(three, tmp_path):
    for _again in range(2):
        done, found = run(three, tmp_path, three.testbed.kubeconfig)
        assert done.returncode == 0, done.stdout
        assert [entry["name"] for entry in found] == [FIRST, MIDDLE, LAST]
        assert {entry["namespace"] for entry in found} == {three.namespace}
        wanted = {"namespace", "name", "counts", "verdicts", "rolled", "rolled_back", "held", "pending", "errors"}
        assert all(entry.keys() == wanted for entry in found)


def test_a_missing_workload_fails_a_run_that_asks_for_it_and_everything_is_done(three, tmp_path):
    published = three.push("two")
    done, found = run(three, tmp_path, three.testbed.kubeconfig, update_fail_on=["unknown", "rolled_back"])
    assert done.returncode != 0
    assert [len(entry["rolled"]) for entry in found] == [1, 1, 1]
    assert [entry["errors"] for entry in found] == [[], ["DaemonSet/nothing: there is none"], []]
    assert published in json.dumps(three.get("deployment", LAST)["spec"])


def test_a_dry_run_fails_for_what_is_stale_where_that_is_asked_for(three, tmp_path):
    three.push("two")
    done, found = run(
        three, tmp_path, three.testbed.kubeconfig, update_dry_run=True, update_fail_on=["held"], update_name=FIRST
    )
    assert done.returncode != 0
    assert [entry["name"] for entry in found] == [FIRST]
    assert "dry_run" in " ".join(found[0]["errors"])


def test_the_table_of_a_pass_that_fails_is_printed_before_the_failure(three, tmp_path):
    three.push("two")
    done, _found = run(three, tmp_path, three.testbed.kubeconfig, update_name=MIDDLE, update_fail_on=["unknown"])
    assert done.returncode != 0
    assert done.stdout.index("VERDICT  REASON") < done.stdout.index("FAILED!")


def test_a_check_says_what_would_roll(three, tmp_path):
    three.push("two")
    table = three.run("update", "--check", update_name=FIRST).output
    assert re.search(rf"Deployment/{FIRST}\s+\S+\s+would roll\s+digest_differs", table)
    assert f"{FIRST} rolled" not in re.sub(" +", " ", table)
    assert re.search(
        rf"Deployment/{FIRST}\s+\S+\s+rolled\s+digest_differs", three.run("update", update_name=FIRST).output
    )

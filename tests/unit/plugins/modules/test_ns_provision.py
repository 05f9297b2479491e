# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ns_provision as Ansible runs it: what fails the module, what is a warning, what is returned."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import pytest

from ansible_collections.kubesteward.core.plugins.modules import ns_provision
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.builders import HOME, MARKER
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces.fake_api import refused
from ansible_collections.kubesteward.core.tests.unit.plugins.modules.test_registry_digest import (
    module_side,
    patch_module_args,
)

KEYS = {"name", "state", "reason", "msg", "operations", "warnings", "foreign_policies"}


@pytest.fixture
def api(monkeypatch):
    """A cluster that the module is connected to."""
    found = builders.cluster()
    monkeypatch.setattr(ns_provision.Cluster, "connect", classmethod(lambda cls, module: found))
    return found


def main(**args):
    """Run `main` in this process; its exit code and what it printed."""
    printed = io.StringIO()
    with module_side(), patch_module_args(args), redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        ns_provision.main()
    return ended.value.code, json.loads(printed.getvalue())


def test_one_namespace_and_nothing_to_do_a_second_time(api):
    code, result = main(name="team-a", size="small", managed=True, _ansible_diff=True)
    assert (code, result["changed"], result["writes"]) == (0, True, 4)
    (entry,) = result["namespaces"]
    assert entry.keys() == KEYS
    assert entry["operations"][0] == {"action": "create", "kind": "Namespace", "name": "team-a"}
    assert [item["after_header"] for item in result["diff"]][:2] == [
        "Namespace/team-a",
        "team-a ResourceQuota/team-a-quota",
    ]
    code, result = main(name="team-a", size="small", managed=True, _ansible_diff=True)
    assert (code, result["changed"], result["writes"], result["diff"]) == (0, False, 0, [])


def test_check_mode_says_the_same_and_writes_nothing(api):
    code, predicted = main(name="team-a", size="small", _ansible_check_mode=True, _ansible_diff=True)
    assert (code, api.writes) == (0, [])
    _code, done = main(name="team-a", size="small", _ansible_diff=True)
    assert {**predicted, "invocation": None} == {**done, "invocation": None}


@pytest.mark.parametrize(
    ("given", "state"),
    [({"name": "payments"}, "conflict"), ({"name": "kube-x"}, "reserved"), ({"name": "A_b"}, "invalid")],
)
def test_a_single_name_that_cannot_be_had_fails_and_one_of_many_is_a_warning(api, given, state):
    before = api.dump()
    code, result = main(size="small", **given)
    assert (code, result["failed"], result["namespaces"][0]["state"]) == (1, True, state)
    assert result["msg"] == result["namespaces"][0]["msg"]
    assert api.dump() == before
    code, result = main(size="small", namespaces=[given, {"name": "team-a"}])
    assert (code, [entry["state"] for entry in result["namespaces"]]) == (0, [state, "ready"])
    assert any(state in str(warning) for warning in result["warnings"])


def test_an_api_server_that_refuses_one_fails_the_module_after_the_others(api):
    def hook(verb, target):
        if verb == "create" and target.name == "team-b":
            raise refused(403, "namespaces is forbidden")

    api.before = hook
    code, result = main(size="small", namespaces=[{"name": f"team-{x}"} for x in "abc"])
    assert (code, result["msg"]) == (1, "namespaces is forbidden")
    assert [entry["state"] for entry in result["namespaces"]] == ["ready", "pending", "ready"]
    assert (result["changed"], result["writes"]) == (True, 8)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "one of the following is required: name, namespaces, nspros"),
        ({"name": "a", "namespaces": []}, "mutually exclusive"),
        ({"name": "a", "sizes": {"small": {}}}, "size small has no quota"),
        ({"nspros": {"namespace": HOME, "name": "none"}}, "There is no Nspro none"),
        ({"namespaces": [{"name": "a"}, {"name": "a"}]}, "namespaces has a twice"),
    ],
)
def test_options_that_make_no_sense_are_an_error(api, given, told):
    code, result = main(size="small", **given)
    assert code == 1
    assert told in result["msg"]
    assert api.writes == []


def test_the_content_of_a_pull_secret_is_in_no_result(api):
    api.put(builders.secret())
    api.put(builders.nspro(pullSecrets=[{"name": "regcred"}]))
    for more in ({"_ansible_check_mode": True}, {}, {}):
        printed = json.dumps(main(nspros={"namespace": HOME}, _ansible_diff=True, **more))
        assert "regcred" in printed
        assert MARKER not in printed
        assert api.objects[("Secret", HOME, "regcred")]["data"][".dockerconfigjson"] not in printed

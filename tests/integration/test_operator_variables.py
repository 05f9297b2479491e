# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that the operator gives to a pass, and that nothing an author wrote works as a variable."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from integration.nspro_story import nspro
from integration.operator_passes import Operator, changed, extra_vars, rebuilt

pytestmark = pytest.mark.usefixtures("crds")

NEVER = "/usr/bin/false"


def resource(group: str, version: str, kind: str, spec: t.Any, **meta: t.Any) -> dict[str, t.Any]:
    return {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": "one", "namespace": "shop", **meta},
        "spec": spec,
    }


GOES = {"deletionTimestamp": "2026-01-02T15:04:05Z", "finalizers": ["nspro.example.com/cleanup"]}
META = {"namespace": "shop", "name": "one"}


def test_they_are_as_the_operator_builds_them(operator):
    text = {"__ansible_unsafe": "{{ 1 }}"}
    start = extra_vars(
        resource("install.sios.nginx.testing", "v1", "Start", {"image": "{{ 1 }}", "imagePullSecrets": [{"n": 1}]}),
        operator.watches["Start"],
    )
    assert start["image"] == start["_install_sios_nginx_testing_start_spec"]["image"] == text
    # not imagepullsecrets, nor image_pull_secrets
    assert start["imagePullSecrets"] == [{"n": 1}]
    assert start["_install_sios_nginx_testing_start"]["metadata"]["name"] == {"__ansible_unsafe": "one"}
    assert (start["ansible_operator_meta"], start["start_must_exist"]) == (META, False)
    for spec in (None, [], {}):
        update = extra_vars(resource("install.sios.nginx.testing", "v1", "Update", spec), operator.watches["Update"])
        assert update["_install_sios_nginx_testing_update_spec"] == {}
    watch = operator.watches["Nspro"]
    asked = resource("nspro.example.com", "v1alpha1", "Nspro", {"nssize": "large", "managed": True})
    lives = extra_vars(asked, watch)
    assert (lives["managed"], lives["_nspro_example_com_nspro_spec"]["managed"]) == (True, True)
    assert "nspro_state" not in lives
    goes = extra_vars(resource("nspro.example.com", "v1alpha1", "Nspro", {}, **GOES), watch)
    assert goes["nspro_state"] == "absent"
    # a deleted resource of another's finalizer is not finalized by us, and the watch's variables beat a spec's
    others = resource(
        "nspro.example.com", "v1alpha1", "Nspro", {"nspro_must_exist": True}, **{**GOES, "finalizers": []}
    )
    assert extra_vars(others, watch).items() >= {"nspro_must_exist": False}.items()
    assert "nspro_state" not in extra_vars(others, watch)


def test_conditions_are_rebuilt_as_by_the_operator():
    known = {"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-02T15:04:05Z"}
    fine = {**known, "lastTransitionTime": "2026-01-02T15:04:05.123456Z"}
    first, second, bare = rebuilt([{**known, "observedGeneration": 3}, fine, {"type": "B", "status": "False"}])
    assert first == known
    assert second["lastTransitionTime"] > "2026-01-02T15:04:05Z"
    assert (bare["reason"], bare["message"]) == ("", "")


#: what Ansible would obey, were it a variable of the play
OBEYED = {
    "ansible_connection": "community.none.none",
    "ansible_host": "198.51.100.1",
    "ansible_python_interpreter": NEVER,
    "ansible_become": True,
    "ansible_become_method": "ansible.builtin.su",
    "ansible_become_exe": NEVER,
    "ansible_shell_type": "powershell",
    "ansible_shell_executable": NEVER,
    "ansible_remote_tmp": "/proc/none",
    "ansible_operator_meta": {"namespace": "kube-system", "name": "other"},
    "ansible_playbook_python": NEVER,
    "ansible_check_mode": True,
    "ansible_facts": {"discovered_interpreter_python": NEVER},
}


def lying(seen: dict[str, t.Any], spec: dict[str, t.Any]) -> dict[str, t.Any]:
    """A resource with another spec than the API has, and with keys that a looser schema might let through."""
    return {**seen, "spec": {**seen.get("spec", {}), **spec, **OBEYED}}


def test_no_key_of_a_spec_works_as_a_variable_and_the_api_is_what_counts(shop, operator, team):
    digest = shop.push("v1")
    asked = nspro(shop.namespace, team, nssize="small")
    shop.apply(shop.start(), shop.update(), asked)
    seen = {kind: shop.get(kind, name) for kind, name in (("start", "sample"), ("update", "sample"), ("nspro", team))}
    start = lying(seen["start"], {"name": "other", "image": "registry.invalid/other", "replicas": 5})
    assert changed(operator.begin("Start", resource=start).finish()) > 0
    shop.settled()
    found = shop.get("deployment", "sample-sample")["spec"]
    assert (found["replicas"], found["template"]["spec"]["containers"][0]["image"]) == (1, shop.image)
    update = lying(seen["update"], {"suspend": True, "targets": [{"kind": "Deployment", "name": "none"}]})
    operator.begin("Update", resource=update).finish()
    assert shop.verdicts() == {"sample-sample": "current/digest_equal"}
    assert shop.running() == {digest}
    claim = lying(seen["nspro"], {"nssize": "large", "managed": True, "labels": {"owner": "me"}})
    operator.begin("Nspro", resource=claim).finish()
    labels = shop.kubectl("get", "namespace", team, "-o", "jsonpath={.metadata.labels}").stdout
    assert '"size":"small"' in labels and "owner" not in labels


def test_settings_of_the_administrator_reach_every_pass_and_no_author_beats_them(shop, tmp_path):
    shop.push("v1")
    shop.apply(shop.start(), shop.update())
    settings = {"update_registries": shop.testbed.registries(), "update_allowed_registries": ["registry.example.com"]}
    with Operator(shop, Path(tmp_path), settings) as operator:
        operator.pass_of("Start")
        shop.settled()
        operator.pass_of("Update")
    assert shop.verdicts() == {"sample-sample": "unknown/forbidden_registry"}

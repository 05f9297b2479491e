# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""watches.yaml fits the CRDs and the roles, and reads from the operator's cache only what it has to watch."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible.vars import reserved

from ansible_collections.kubesteward.core.plugins.module_utils.kube import NSPRO_GROUP
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import forecast, writing

#: what the passes of a kind read
READ = {
    "Nspro": {
        ("", "v1"): {
            "Event",
            "LimitRange",
            "Namespace",
            "Pod",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        },
        ("admissionregistration.k8s.io", "v1"): {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
        ("apiextensions.k8s.io", "v1"): {"CustomResourceDefinition"},
        ("networking.k8s.io", "v1"): {"NetworkPolicy"},
        ("nspro.example.com", "v1alpha1"): {"Nspro"},
        ("rbac.authorization.k8s.io", "v1"): {"RoleBinding"},
    },
}
#: what the operator is to watch, and therefore to cache
WATCHED = {("", "v1", "Namespace")}
IMAGES = {
    ("", "v1"): {"Event", "Namespace", "Node", "Pod", "Secret", "ServiceAccount"},
    ("apps", "v1"): {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
    ("batch", "v1"): {"CronJob", "Job"},
    ("install.sios.nginx.testing", "v1"): {"Start", "Update"},
}
READ |= {"Start": IMAGES, "Update": IMAGES}
KINDS = sorted(READ)
#: variables that say where and by what a task runs
HELD = {
    "ansible_connection": "local",
    "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    "ansible_become": False,
}


def seconds(period: str) -> int:
    """A Go duration of one unit in seconds."""
    match = re.fullmatch(r"([1-9]\d*)([smh])", period)
    assert match, period
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def test_every_kind_has_one_watch(crds, watches):
    assert watches.keys() == crds.keys()
    for kind, watch in watches.items():
        assert watch["group"] == crds[kind]["spec"]["group"]
        assert watch["version"] == crds[kind]["spec"]["versions"][0]["name"]


@pytest.mark.parametrize("kind", KINDS)
def test_specs_reach_the_playbook_as_written_and_are_never_executed(watches, kind):
    watch = watches[kind]
    assert watch["snakeCaseParameters"] is False
    assert watch["markUnsafe"] is True
    assert watch["manageStatus"] is True
    assert "role" not in watch


@pytest.mark.parametrize("kind", KINDS)
def test_no_decision_is_taken_on_a_cached_read(watches, kind):
    listed = {(entry["group"], entry["version"], entry["kind"]) for entry in watches[kind]["blacklist"]}
    read = {(group, version, name) for (group, version), names in READ[kind].items() for name in names}
    assert listed == (read - WATCHED if kind == "Nspro" else read)


@pytest.mark.parametrize(("kind", "period"), [("Update", 60), ("Start", 60), ("Nspro", 60)])
def test_periods_are_not_zero_which_would_mean_ten_hours(watches, kind, period):
    assert seconds(watches[kind]["reconcilePeriod"]) == period


@pytest.mark.parametrize("kind", KINDS)
def test_runs_leave_as_few_folders_behind_as_work(watches, kind):
    assert watches[kind]["maxRunnerArtifacts"] == 3


@pytest.mark.parametrize("kind", KINDS)
def test_playbooks_are_named_from_the_folder_the_operator_starts_in(root, watches, kind):
    assert watches[kind]["playbook"] == f"playbooks/{kind.lower()}.yml"
    assert (root / watches[kind]["playbook"]).is_file()


def test_kinds_of_a_nspros_passes_are_those_that_its_code_reads_and_writes(watches):
    known = {*writing.API.items(), ("Nspro", NSPRO_GROUP), ("Event", "v1"), ("Pod", "v1"), ("Service", "v1")}
    known.add(("CustomResourceDefinition", "apiextensions.k8s.io/v1"))
    known |= {(kind, forecast.ADMISSION) for kind in forecast.WEBHOOKS}
    listed = {
        (name, f"{group}/{version}".lstrip("/")) for (group, version), names in READ["Nspro"].items() for name in names
    }
    assert listed == known


def test_the_finalizer_has_the_name_that_it_always_had(watches):
    assert watches["Nspro"]["finalizer"] == {"name": "nspro.example.com/cleanup", "vars": {"nspro_state": "absent"}}
    assert [kind for kind in watches if kind != "Nspro" and "finalizer" in watches[kind]] == []


def test_changes_to_a_namespace_start_a_pass(watches):
    watch = watches["Nspro"]
    assert watch["watchDependentResources"] is watch["watchClusterScopedResources"] is True


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_that_is_gone_is_no_error(watches, kind):
    assert watches[kind]["vars"][f"{kind.lower()}_must_exist"] is False


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_an_author_writes_is_a_variable_that_a_role_reads(root, schemas, kind):
    defaults = yaml.safe_load((root / f"roles/{kind.lower()}/defaults/main.yml").read_text())
    keys = set(schemas[kind]["properties"]["spec"]["properties"])
    assert keys & defaults.keys() == set()
    assert [key for key in keys if key.startswith(("_", "ansible_", f"{kind.lower()}_"))] == []


def test_no_key_of_a_nspro_has_a_meaning_for_ansible(schemas):
    keys = set(schemas["Nspro"]["properties"]["spec"]["properties"])
    assert keys & reserved.get_reserved_names() == set()


@pytest.mark.parametrize("kind", KINDS)
def test_variables_of_a_watch_are_variables_of_its_role(root, watches, kind):
    specs = yaml.safe_load((root / f"roles/{kind.lower()}/meta/argument_specs.yml").read_text())
    known = specs["argument_specs"]["main"]["options"]
    given = {**watches[kind]["vars"], **watches[kind].get("finalizer", {}).get("vars", {})}
    assert given.keys() - HELD.keys() <= known.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_what_ansible_obeys_is_held_against_keys_of_a_spec(watches, kind):
    assert HELD.items() <= watches[kind]["vars"].items()


@pytest.mark.parametrize("kind", KINDS)
def test_every_default_of_a_role_is_an_option_with_that_default(root, kind):
    folder = root / f"roles/{kind.lower()}"
    options = yaml.safe_load((folder / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    defaults = yaml.safe_load((folder / "defaults/main.yml").read_text())
    assert defaults.keys() <= options.keys()
    for name, value in defaults.items():
        if "{{" not in str(value):
            # null stands for an option without a default
            assert options[name].get("default") == value, name


@pytest.mark.parametrize("kind", KINDS)
def test_each_resource_has_a_period_of_its_own_and_no_hour_of_the_clock(watches, kind):
    # the operator counts a period from the end of the resource's own last pass, so passes do not meet at the full hour
    assert re.fullmatch(r"[0-9]+[sm]", watches[kind]["reconcilePeriod"])
    assert not any("schedule" in key.lower() for key in watches[kind])

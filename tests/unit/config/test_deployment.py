# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What config/default and config/single-namespace install: the manager's Pod, who may what where, and the settings."""

from __future__ import annotations

import os
import re

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.registry import addresses, cache
from hack import cluster, deploy

OVERLAYS = ["config/default", "config/single-namespace"]
SYSTEM = "kubesteward-system"
CLUSTER_WIDE = {"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Namespace"}
CLUSTER_WIDE |= {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
SECONDS = re.compile(r"--graceful-shutdown-timeout=([0-9]+)s")


def of(objects, kind: str) -> dict[str, dict]:
    """Objects of a kind by name."""
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}


@pytest.fixture(params=OVERLAYS)
def objects(request, rendered) -> list[dict]:
    return rendered(request.param)


@pytest.fixture
def deployment(objects) -> dict:
    return of(objects, "Deployment")["kubesteward-manager"]


@pytest.fixture
def pod(deployment) -> dict:
    return deployment["spec"]["template"]["spec"]


@pytest.fixture
def manager(pod) -> dict:
    (container,) = pod["containers"]
    return container


def variables(manager: dict) -> dict[str, str]:
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in manager["env"]}


def flags(manager: dict) -> dict[str, str]:
    """Flags of ansible-operator, without their dashes, and their values."""
    return {name: value for name, _equals, value in (flag[2:].partition("=") for flag in manager["args"])}


def test_nothing_is_missing_and_everything_is_labelled_as_ours(objects):
    wanted = {"Namespace", "ServiceAccount", "ConfigMap", "Deployment", "Service", "NetworkPolicy"}
    assert wanted <= {item["kind"] for item in objects}
    for item in objects:
        assert item["metadata"]["labels"]["app.kubernetes.io/part-of"] == "kubesteward", item["metadata"]["name"]
        assert ("namespace" in item["metadata"]) == (item["kind"] not in CLUSTER_WIDE)
    # that label would make a pass take it for something that a Nspro gave
    assert [x for x in objects if "app.kubernetes.io/managed-by" in x["metadata"]["labels"]] == []


def test_the_namespace_admits_restricted_pods_only(objects):
    labels = of(objects, "Namespace")[SYSTEM]["metadata"]["labels"]
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"


def test_the_pod_is_restricted_and_leaves_the_user_to_the_image_and_to_openshift(pod, manager):
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert manager["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pod.keys()


def test_tmp_alone_can_be_written_to_and_cannot_fill_the_node(pod, manager):
    mounts = {mount["mountPath"]: mount for mount in manager["volumeMounts"]}
    assert mounts.keys() == {"/tmp", "/etc/kubesteward"}
    assert mounts["/etc/kubesteward"]["readOnly"] is True
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    # how much, test_manager_resources says
    assert volumes[mounts["/tmp"]["name"]]["emptyDir"]["sizeLimit"]


def test_probes_ask_the_port_that_the_operator_opens(manager):
    ports = {port["name"]: port["containerPort"] for port in manager["ports"]}
    assert flags(manager)["health-probe-bind-address"] == f":{ports['health']}"
    assert flags(manager)["metrics-bind-address"] == f":{ports['https']}"
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert manager[probe]["httpGet"] == {"path": path, "port": "health"}


def test_one_of_several_works_and_metrics_ask_who_reads_them(root, objects, deployment, manager):
    given = flags(manager)
    assert given.keys() >= {"leader-elect", "leader-election-id", "metrics-secure", "metrics-require-rbac"}
    role = yaml.safe_load((root / "config/rbac/leader_election_role.yaml").read_text())
    named = [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule]
    assert named == [[given["leader-election-id"]]]
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    (port,) = of(objects, "Service")["kubesteward-metrics"]["spec"]["ports"]
    assert (port["name"], port["targetPort"]) == ("https", "https")


def test_selectors_match_the_pod(objects, deployment):
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    service = of(objects, "Service")["kubesteward-metrics"]["spec"]["selector"]
    policy = of(objects, "NetworkPolicy")["kubesteward-manager"]["spec"]["podSelector"]["matchLabels"]
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        service,
        policy,
        spread["labelSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels
        assert len(selector) == 2


def test_a_stop_waits_longer_than_the_operator_does_for_its_passes(pod, manager):
    patience = int(SECONDS.fullmatch(next(x for x in manager["args"] if SECONDS.match(x)))[1])
    assert pod["terminationGracePeriodSeconds"] >= patience + 10


def test_the_token_is_given_to_the_manager_alone(objects, pod):
    assert of(objects, "ServiceAccount")["kubesteward-manager"]["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is True
    assert pod["serviceAccountName"] == "kubesteward-manager"


def test_environment_is_what_the_product_reads(watches, manager):
    found = variables(manager)
    assert found["POD_NAMESPACE"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    assert found["ANSIBLE_GATHERING"] == "explicit"
    assert found["KUBESTEWARD_METRICS_URL"] == "http://localhost:5050/metrics"
    workers = {
        f"MAX_CONCURRENT_RECONCILES_{kind}_{x['group']}".upper().replace(".", "_") for kind, x in watches.items()
    }
    assert {name for name in found if name.startswith("MAX_CONCURRENT")} == workers
    assert all(int(found[name]) > 0 for name in workers)


def test_what_digests_fix_for_ever_is_kept_although_the_root_is_read_only(monkeypatch, pod, manager):
    assert manager["securityContext"]["readOnlyRootFilesystem"] is True
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in variables(manager).items():
        if isinstance(value, str):
            monkeypatch.setenv(name, value)
    writable = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
    mounts = [mount["mountPath"] for mount in manager["volumeMounts"] if mount["name"] in writable]
    assert any(cache.default_folder().startswith(f"{path}/") for path in mounts)


def test_memory_has_a_limit_and_cpu_has_none(manager):
    assert manager["resources"]["limits"].keys() == {"memory"}
    assert manager["resources"]["requests"].keys() == {"cpu", "memory"}


def test_settings_arrive_where_the_operator_looks_for_them(objects, pod, manager):
    assert flags(manager)["ansible-args"] == "-e @/etc/kubesteward/settings.yml"
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "settings"]
    config_map, secret = volume["projected"]["sources"]
    assert "settings.yml" in of(objects, "ConfigMap")[config_map["configMap"]["name"]]["data"]
    # without it every key of the ConfigMap is a file, a certificate of a CA for example
    assert "items" not in config_map["configMap"]
    assert secret["secret"]["optional"] is True


def test_settings_are_the_roles_own_defaults(root, objects):
    given = yaml.safe_load(of(objects, "ConfigMap")["kubesteward-settings"]["data"]["settings.yml"])
    known: dict[str, object] = {}
    for role in ("update", "start", "nspro"):
        known |= yaml.safe_load((root / f"roles/{role}/defaults/main.yml").read_text())
    assert given == {name: known[name] for name in given}
    # an empty list would allow no registry at all
    assert "update_allowed_registries" not in given
    # an empty file is no mapping, which Ansible refuses
    assert given
    assert [problem for item in objects for problem in deploy.settings_problems(item)] == []


def test_no_key_of_a_spec_is_a_setting_nor_a_variable_of_ansible(root, schemas):
    options = set()
    for role in ("update", "start", "nspro"):
        specs = yaml.safe_load((root / f"roles/{role}/meta/argument_specs.yml").read_text())
        options |= specs["argument_specs"]["main"]["options"].keys()
    for schema in schemas.values():
        spec = schema["properties"]["spec"]
        assert not spec["properties"].keys() & options
        assert [key for key in spec["properties"] if key.startswith(("_", "ansible_"))] == []
        # the API server takes away what the schema does not have
        assert "x-kubernetes-preserve-unknown-fields" not in spec


def test_every_bound_role_is_there_and_bound_to_the_managers_account(objects):
    there = {(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects}
    bindings = [item for item in objects if item["kind"].endswith("RoleBinding")]
    assert bindings
    for binding in bindings:
        ref, meta = binding["roleRef"], binding["metadata"]
        where = None if ref["kind"] == "ClusterRole" else meta["namespace"]
        assert (ref["kind"], where, ref["name"]) in there
        account = {"kind": "ServiceAccount", "name": "kubesteward-manager", "namespace": SYSTEM}
        assert binding["subjects"] == [account]


def test_roles_for_the_operator_are_all_bound_and_those_for_people_are_not(rendered):
    objects = rendered("config/default")
    bound = {item["roleRef"]["name"] for item in objects if item["kind"].endswith("RoleBinding")}
    names = of(objects, "ClusterRole").keys() | of(objects, "Role").keys()
    # the check's rights are for whoever runs a playbook with --check --diff
    people = {x for x in names if x.endswith(("-editor", "-viewer", "-metrics-reader", "-nspro-check"))}
    assert names - bound == people


def rules_in_the_cluster(objects) -> list[dict]:
    """Rules that hold in every namespace."""
    roles = of(objects, "ClusterRole")
    return [
        rule for item in of(objects, "ClusterRoleBinding").values() for rule in roles[item["roleRef"]["name"]]["rules"]
    ]


def test_a_single_namespace_is_all_that_the_overlay_for_it_gives_rights_to(rendered):
    objects = rendered("config/single-namespace")
    assert of(objects, "ClusterRoleBinding").keys() == {"kubesteward-metrics-auth", "kubesteward-nodes"}
    resources = {resource for rule in rules_in_the_cluster(objects) for resource in rule.get("resources", [])}
    assert resources == {"nodes", "tokenreviews", "subjectaccessreviews"}
    (watched,) = {x["metadata"]["namespace"] for x in objects if x["metadata"].get("namespace", SYSTEM) != SYSTEM}
    assert variables(manager_of(objects))["WATCH_NAMESPACE"] == watched
    assert [item["kind"] for item in objects if "nspro" in item["metadata"]["name"]] == []


def test_a_second_installation_as_documented_has_rights_where_it_watches_and_nobody_else_has_them(
    root, rendered, tmp_path
):
    """Moved as a whole it would watch one namespace, have no rights there, and give some to the first one."""
    text = (root / "docs/operator.md").read_text()
    for path, body in re.findall(r"```yaml\n# (second/[a-z/.]+)\n(.*?)```", text, re.DOTALL):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body.replace("../../kubesteward.core", os.path.relpath(root, file.parent)))
    objects = rendered(str(tmp_path / "second"))
    assert variables(objects_container(objects))["WATCH_NAMESPACE"] == "shop-second"
    inside = [x for x in objects if x["metadata"].get("namespace") == "shop-second"]
    jobs = {
        f"kubesteward-{job}-second"
        for job in ("update", "update-secrets", "update-operator", "start", "start-operator")
    }
    assert of(inside, "Role").keys() == of(inside, "RoleBinding").keys() == jobs
    assert len(inside) == 2 * len(jobs)
    for binding in (x for x in objects if x["kind"].endswith("RoleBinding")):
        account = {"kind": "ServiceAccount", "name": "kubesteward-manager-second", "namespace": "steward-second"}
        assert binding["subjects"] == [account]
    others = {x["metadata"]["namespace"] for x in objects if "namespace" in x["metadata"]} - {"shop-second"}
    assert others == {"steward-second"}


def objects_container(objects) -> dict:
    (container,) = cluster.manager_in(objects)["spec"]["template"]["spec"]["containers"]
    return container


def test_the_same_rights_in_one_namespace_as_in_the_cluster(rendered):
    everywhere, here = of(rendered("config/default"), "ClusterRole"), of(rendered("config/single-namespace"), "Role")
    jobs = {"update", "update-secrets", "update-operator", "start", "start-operator"}
    assert here.keys() == {f"kubesteward-{job}" for job in jobs} | {"kubesteward-leader-election"}
    for job in jobs:
        assert here[f"kubesteward-{job}"]["rules"] == everywhere[f"kubesteward-{job}"]["rules"]


def manager_of(objects) -> dict:
    (container,) = of(objects, "Deployment")["kubesteward-manager"]["spec"]["template"]["spec"]["containers"]
    return container


def test_each_overlay_watches_what_it_has_the_kinds_for(root, rendered):
    for overlay, name in (("config/default", "watches.yaml"), ("config/single-namespace", "watches-workloads.yaml")):
        objects = rendered(overlay)
        assert flags(manager_of(objects))["watches-file"] == f"/opt/ansible/{name}"
        kinds = {watch["kind"] for watch in yaml.safe_load((root / name).read_text())}
        crds = of(objects, "CustomResourceDefinition").values()
        assert {crd["spec"]["names"]["kind"] for crd in crds} == kinds


def test_watches_of_workloads_say_what_watches_say(root, watches):
    text = (root / "watches-workloads.yaml").read_text()
    assert yaml.safe_load(text) == [watches["Update"], watches["Start"]]
    # comments too
    body = text.partition("- version:")[2].rstrip()
    assert body in (root / "watches.yaml").read_text()


def test_one_image_everywhere(root, manager):
    assert re.search(rf"^IMG \?= {re.escape(manager['image'])}$", (root / "Makefile").read_text(), re.MULTILINE)


def test_the_policy_leaves_out_the_addresses_to_which_nothing_is_sent(objects):
    (policy,) = of(objects, "NetworkPolicy").values()
    names, rest = policy["spec"]["egress"]
    assert names == {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
    left_out = {block for peer in rest["to"] if "ipBlock" in peer for block in peer["ipBlock"]["except"]}
    wanted = ["169.254.0.0/16", "fe80::/10", *(f"{x}/{x.max_prefixlen}" for x in addresses.METADATA)]
    assert left_out == set(wanted)
    assert addresses.is_forbidden("169.254.0.1")
    assert addresses.is_forbidden("fe80::1")


def test_metrics_are_read_from_labelled_namespaces_only(objects):
    (policy,) = of(objects, "NetworkPolicy").values()
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["spec"]["ingress"] == [
        {
            "from": [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}],
            "ports": [{"protocol": "TCP", "port": 8443}],
        }
    ]

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts, dashboard and documentation name metrics that exist, and all of ours."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import nspro_status
from ansible_collections.kubesteward.core.plugins.plugin_utils.counters import COUNTERS, REASONS

NAME = re.compile(r"\b(?:kubesteward|ansible_operator|controller_runtime|workqueue|process|rest_client)_[a-z0-9_]+\b")
#: the label `job` of the operator's metrics
SERVICE = "kubesteward-metrics"


@pytest.fixture(scope="module")
def folder(root):
    return root / "config/prometheus"


@pytest.fixture(scope="module")
def monitor(folder):
    (endpoint,) = yaml.safe_load((folder / "service_monitor.yaml").read_text())["spec"]["endpoints"]
    return endpoint


@pytest.fixture(scope="module")
def rules(folder):
    groups = yaml.safe_load((folder / "rules.yaml").read_text())["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.fixture(scope="module")
def dashboard(folder):
    return json.loads((folder / "dashboard.json").read_text())


@pytest.fixture(scope="module")
def state_metrics(folder):
    """Metrics of kube-state-metrics' configuration by their whole names."""
    resources = yaml.safe_load((folder / "kube_state_metrics.yaml").read_text())["spec"]["resources"]
    return {
        f"{entry['metricNamePrefix']}_{metric['name']}": metric for entry in resources for metric in entry["metrics"]
    }


def relabelled(series, rules):
    """Labels after Prometheus' metricRelabelings with the action `replace`."""
    labels = dict(series)
    for rule in rules:
        value = ";".join(labels.get(name, "") for name in rule["sourceLabels"])
        found = re.fullmatch(rule["regex"], value)
        if found:
            labels[rule["targetLabel"]] = found.expand(re.sub(r"\$(\d)", r"\\\1", rule["replacement"]))
    return labels


@pytest.fixture(scope="module")
def counters(monitor):
    """What our counters are called in Prometheus."""
    return {relabelled({"__name__": name}, monitor["metricRelabelings"])["__name__"] for name in COUNTERS}


@pytest.fixture(scope="module")
def known(root, counters, state_metrics):
    recorded = (root / "tests/monitoring/operator_metrics.txt").read_text().splitlines()
    return counters | set(state_metrics) | {name for name in recorded if not name.startswith("#")}


def queries(dashboard):
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


def named(texts):
    return {name for text in texts for name in NAME.findall(text)}


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_in_a_name_becomes_a_label(monitor, reason):
    series = {"__name__": f"kubesteward_registry_lookup_failures_{reason}_total", "pod": "a"}
    assert f"kubesteward_registry_lookup_failures_{reason}_total" in COUNTERS
    assert relabelled(series, monitor["metricRelabelings"]) == {
        "__name__": "kubesteward_registry_lookup_failures_total",
        "reason": reason,
        "pod": "a",
    }


def test_other_names_stay_as_they_are(monitor):
    names = [name for name in COUNTERS if "lookup_failures" not in name]
    assert [relabelled({"__name__": name}, monitor["metricRelabelings"]) for name in names] == [
        {"__name__": name} for name in names
    ]


def test_alerts_name_metrics_that_exist(rules, known):
    used = named(rule["expr"] for rule in rules)
    assert len(used) >= 10
    assert used - known == set()


def test_the_dashboard_names_metrics_that_exist_and_all_of_ours(dashboard, known, counters, state_metrics):
    used = named(queries(dashboard))
    assert used - known == set()
    assert (counters | set(state_metrics)) - used == set()


def test_what_other_operators_have_too_is_asked_for_by_its_job(rules, dashboard):
    for query in [rule["expr"] for rule in rules] + queries(dashboard):
        foreign = [name for name in NAME.findall(query) if not name.startswith("kubesteward")]
        assert query.count(f'job="{SERVICE}"') == len(foreign), query


def test_the_service_is_found_by_its_labels_port_and_name(root, folder, monitor):
    selector = yaml.safe_load((folder / "service_monitor.yaml").read_text())["spec"]["selector"]["matchLabels"]
    (service,) = [
        item
        for path in (root / "config/manager").glob("*.yaml")
        for item in yaml.safe_load_all(path.read_text())
        if item["kind"] == "Service"
    ]
    labels = yaml.safe_load((root / "config/manager/kustomization.yaml").read_text())["labels"][0]["pairs"]
    assert selector.items() <= labels.items()
    assert service["metadata"]["name"] == SERVICE
    assert monitor["port"] in [port["name"] for port in service["spec"]["ports"]]


def test_every_alert_says_what_is_wrong_and_where_to_read_on(root, rules):
    document = (root / "docs/metrics.md").read_text()
    headings = {line.lstrip("# ").lower() for line in document.splitlines() if line.startswith("#")}
    for rule in rules:
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}
        path, _hash, anchor = rule["annotations"]["runbook"].partition("#")
        assert (path, anchor) == ("docs/metrics.md", rule["alert"].lower())
        assert anchor in headings
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_the_document_explains_every_metric(root, counters, state_metrics):
    document = (root / "docs/metrics.md").read_text()
    explained = set(re.findall(r"^\| `(kubesteward_[a-z0-9_]+)", document, re.MULTILINE))
    assert explained == counters | set(state_metrics)


def test_the_documents_examples_name_metrics_that_exist(root, known):
    blocks = re.findall(r"^```promql\n(.*?)^```", (root / "docs/metrics.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 1
    assert named(blocks) - known == set()


def test_every_phase_of_a_nspro_is_a_state(state_metrics, crds):
    listed = state_metrics["kubesteward_nspro_phase"]["each"]["stateSet"]["list"]
    schema = crds["Nspro"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert listed == schema["status"]["properties"]["phase"]["enum"]
    assert set(listed) == set(nspro_status._PHASES.values())


@pytest.mark.parametrize("prefix", ["kubesteward_update", "kubesteward_start", "kubesteward_nspro"])
def test_paths_of_the_configuration_are_fields_of_the_resources(folder, crds, prefix):
    resources = yaml.safe_load((folder / "kube_state_metrics.yaml").read_text())["spec"]["resources"]
    (entry,) = [item for item in resources if item["metricNamePrefix"] == prefix]
    crd = crds[entry["groupVersionKind"]["kind"]]
    assert crd["spec"]["group"] == entry["groupVersionKind"]["group"]
    assert crd["spec"]["versions"][0]["name"] == entry["groupVersionKind"]["version"]
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for metric in entry["metrics"]:
        each = next(value for key, value in metric["each"].items() if key != "type")
        if each["path"][0] == "metadata":
            continue
        node = field(schema, each["path"])
        below = [each["valueFrom"]] if "valueFrom" in each else []
        for path in [*below, *each.get("labelsFromPath", {}).values()]:
            field(node.get("items", node), path)


def field(schema, path):
    """The schema of a field; a KeyError where there is none."""
    for part in path:
        schema = schema["properties"][part]
    return schema


def test_panels_have_ids_of_their_own_ask_the_chosen_data_source_and_do_not_overlap(dashboard):
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    variables = {variable["name"]: variable["type"] for variable in dashboard["templating"]["list"]}
    assert variables == {"datasource": "datasource", "namespace": "query"}
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] == "row":
            continue
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make undeploy` and `make uninstall` decide: whose finalizer goes, what is watched, left, or refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.claim import CLAIM
from hack import cluster, undeploy, uninstall
from hack.cluster import FINALIZER, Found, StopError

OTHER = "example.com/other"


def nspro(*finalizers: str, home: str = "ops", name: str = "np") -> dict:
    meta = {"name": name, "namespace": home, "finalizers": list(finalizers)}
    return {"kind": "Nspro", "metadata": meta if finalizers else {"name": name, "namespace": home}}


def start(name: str, **annotations: str) -> dict:
    return {"kind": "Start", "metadata": {"name": name, "namespace": "shop", "annotations": annotations}}


def manager(watch: str | None = None, *arguments: str) -> dict:
    labels = {"app.kubernetes.io/name": "kubesteward", "app.kubernetes.io/component": "manager"}
    env = [{"name": "OTHER", "value": "x"}] + ([] if watch is None else [{"name": "WATCH_NAMESPACE", "value": watch}])
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"env": env, "args": list(arguments)}]}}
    return {"kind": "Deployment", "metadata": {"name": "m", "namespace": "s"}, "spec": {"template": template}}


def claim(by: str, **meta: str) -> dict:
    text = json.dumps({"by": by, "origin": "created", "deletion": "Delete"})
    return {"kind": "Namespace", "metadata": {"name": "np", "annotations": {CLAIM: text}, **meta}}


@pytest.mark.parametrize(
    ("finalizers", "path"),
    [
        ((), None),
        ((OTHER,), None),
        ((FINALIZER,), "/metadata/finalizers/0"),
        ((OTHER, FINALIZER), "/metadata/finalizers/1"),
    ],
)
def test_our_finalizer_goes_and_no_other(finalizers, path):
    found = undeploy.without_finalizer(nspro(*finalizers))
    wanted = [{"op": "test", "path": path, "value": FINALIZER}, {"op": "remove", "path": path}]
    assert found == (wanted if path else [])


@pytest.mark.parametrize(("watch", "scope"), [(None, set()), ("", set()), ("shop", {"shop"}), ("a, b,", {"a", "b"})])
def test_what_is_watched(watch, scope):
    assert cluster.watched(manager(watch)) == scope


def test_a_variable_from_elsewhere_is_no_namespace():
    deployment = manager()
    field = {"name": "WATCH_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['x']"}}}
    deployment["spec"]["template"]["spec"]["containers"][0]["env"].append(field)
    with pytest.raises(StopError, match="WATCH_NAMESPACE"):
        cluster.watched(deployment)


def test_claims_name_the_namespace_of_their_nspro():
    assert cluster.claimants([claim("ops/np")]) == {"np": "ops/np"}
    assert cluster.claimants([claim("playbook"), {"metadata": {"name": "default"}}]) == {}
    # one that is going is nobody's to let go
    assert cluster.claimants([claim("ops/np", deletionTimestamp="2026-01-02T15:04:05Z")]) == {}
    found = Found((), (nspro(home="dev"),), {"np": "ops/np", "np2": "dev/np"})
    assert found.homes == ["dev", "ops"]


def test_what_is_left_is_told_with_a_way_out_unless_it_is_to_be_kept():
    found = Found((start("web"),), (nspro(FINALIZER, OTHER), nspro(OTHER)), {"np": "ops/np"})
    told = undeploy.left_over(found, ())
    assert len(told) == 3
    assert "ops/Nspro/np" in told[0] and "finalizer" in told[0]
    assert "shop/Start/web" in told[1] and "kubesteward.io/follow" in told[1]
    assert "Namespace np" in told[2] and "Nspro ops/np" in told[2]
    assert undeploy.left_over(found, {"digests", "namespaces"}) == told[:1]


def test_the_lease_is_the_one_that_the_operator_is_told():
    assert undeploy.lease_of(manager(None, "--leader-elect", "--leader-election-id=mine")) == "mine"
    with pytest.raises(StopError, match="leader-election-id"):
        undeploy.lease_of(manager(None, "--leader-elect"))


def test_objects_to_delete_are_named_and_nothing_else_of_them_is_sent():
    item = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "s", "labels": {}},
        "data": {},
    }
    assert undeploy.bare(item) == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "s"}}


def test_a_playbook_that_fails_is_told_with_what_it_printed():
    problem = undeploy.play("nspro", {"nspro_namespace": "ops", "nspro_state": "unknown"}, dry_run=False)
    assert "kubesteward.core.nspro" in problem
    assert "value of nspro_state must be one of" in problem


@pytest.mark.parametrize(
    ("ours", "theirs", "refused"),
    [("", "", True), ("", "shop", True), ("shop", "", True), ("a,b", "b,c", True), ("a", "b", False)],
)
def test_another_operator_at_the_same_work_is_refused(ours, theirs, refused):
    other = manager(theirs)
    other["metadata"] = {"name": "other", "namespace": "s"}
    assert undeploy.rivals(manager(ours), [manager(ours)]) == []
    found = undeploy.rivals(manager(ours), [manager(ours), other])
    assert ["s/Deployment/other is another operator" in text for text in found] == [True] * refused
    other["spec"]["replicas"] = 0
    assert undeploy.rivals(manager(ours), [other]) == []


def of_olm() -> dict:
    item = manager()
    field = {"name": "WATCH_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['x']"}}}
    item["spec"]["template"]["spec"]["containers"][0]["env"] = [field]
    owner = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "name": "kubesteward.v1"}
    item["metadata"] = {"name": "of-olm", "namespace": "operators", "ownerReferences": [owner]}
    return item


def test_what_olm_installed_is_left_to_it():
    assert "of-olm is another operator" in undeploy.rivals(manager("shop"), [of_olm()])[0]
    (told,) = uninstall.refusals(Found((), (), {}), [of_olm()])
    assert "of-olm is the Operator Lifecycle Manager's" in told


def test_many_objects_are_let_go_in_lines_that_linux_takes(monkeypatch):
    long = [start(f"{number:04}-{'x' * 240}") for number in range(1001)]
    asked = []
    monkeypatch.setattr(undeploy, "play", lambda _name, variables, _dry_run: asked.append(variables) or "")
    assert undeploy.release_images(Found(tuple(long), (), {}), dry_run=False) == []
    assert sum(len(variables["update_targets"]) for variables in asked) == 1001
    assert max(len(json.dumps(variables)) for variables in asked) < 128 * 1024


def test_one_cluster_whatever_else_the_environment_names(tmp_path, monkeypatch):
    def entry(kind: str, name: str, content: dict) -> dict:
        return {"name": name, kind: content}

    names = ("mine", "other")
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "mine",
        "contexts": [entry("context", name, {"cluster": name, "user": name}) for name in names],
        "clusters": [entry("cluster", name, {"server": f"https://{name}.example.com"}) for name in names],
        "users": [entry("user", name, {"token": "secret"}) for name in names],
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setenv("K8S_AUTH_HOST", "https://other.example.com")
    before = dict(os.environ)
    with cluster.pinned():
        assert "K8S_AUTH_HOST" not in os.environ
        held = Path(os.environ["K8S_AUTH_KUBECONFIG"])
        assert os.environ["KUBECONFIG"] == str(held)
        assert held.parent.stat().st_mode & 0o077 == 0
        path.write_text(json.dumps({**config, "current-context": "other"}))
        found = yaml.safe_load(held.read_text())
        assert [item["cluster"]["server"] for item in found["clusters"]] == ["https://mine.example.com"]
        assert cluster.call("config", "current-context").stdout == "mine\n"
    assert dict(os.environ) == before
    assert not held.exists()


def test_uninstall_refuses_what_would_never_end_or_be_undone():
    found = Found((), (nspro(FINALIZER),), {})
    told = uninstall.refusals(found, [manager()])
    assert ["s/Deployment/m" in told[0], "ops/Nspro/np has a finalizer" in told[1]] == [True, True]
    assert uninstall.refusals(Found((), (nspro(OTHER), start("web")), {}), []) == []


def test_uninstall_says_what_goes_and_what_stays():
    found = Found((start("web"),), (start("web"), start("db"), nspro()), {})
    told = "\n".join(uninstall.plan(found, keep_deployments=False))
    assert "2 Starts: their Deployments, and the Pods of these, go with them\n  shop/web\n  shop/db" in told
    assert "1 Nspros: their Namespaces stay" in told
    assert "1 objects keep a digest" in told
    assert "2 Starts: their Deployments stay" in "\n".join(uninstall.plan(found, keep_deployments=True))
    assert uninstall.plan(Found((), (), {}), keep_deployments=False) == []


@pytest.mark.parametrize("module", [undeploy, uninstall])
def test_a_misspelt_word_to_keep_is_refused(module, capsys):
    with pytest.raises(SystemExit):
        module.main(["--keep", "digets"])
    assert "invalid choice: 'digets'" in capsys.readouterr().err


def test_without_kubectl_it_says_so(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert uninstall.main([]) == 1
    assert "no kubectl on PATH" in capsys.readouterr().err


def test_where_no_operator_is_undeploy_and_uninstall_name_the_same_way_out(monkeypatch, capsys):
    left = Found((start("web"),), (nspro(FINALIZER),), {"np": "ops/np"})
    told = undeploy.left_behind(left)
    assert told[0].startswith("1 objects keep a digest") and len(told) == 4
    ways = [told[-1], *uninstall.plan(left, keep_deployments=False), *uninstall.refusals(left, [])]
    assert sum("kubesteward.core.release" in line for line in ways) == 3
    assert not any("make undeploy" in line for line in ways)
    assert undeploy.left_behind(Found((), (), {})) == []
    monkeypatch.setattr(undeploy.cluster, "render", lambda _overlay: [manager("shop")])
    monkeypatch.setattr(undeploy, "is_installed", lambda _deployment: False)
    monkeypatch.setattr(undeploy, "remove", lambda *_given: None)
    monkeypatch.setattr(undeploy.cluster, "look", lambda scope: left if scope == {"shop"} else None)
    undeploy.undeploy("config/default", frozenset(), dry_run=False)
    assert told[0] in capsys.readouterr().out


def test_a_report_of_uninstall_is_no_failure(monkeypatch, capsys):
    monkeypatch.setattr(cluster, "look", lambda: Found((start("web"),), (start("web"),), {}))
    monkeypatch.setattr(cluster, "managers", list)
    uninstall.uninstall(confirmed=False, keep_deployments=False)
    assert "CONFIRM=yes deletes the kinds and this; KEEP=deployments" in capsys.readouterr().out


@pytest.mark.parametrize("force", [True, False])
def test_a_tag_that_names_a_failed_digest_goes_back_by_force_only(force, monkeypatch):
    asked = []
    monkeypatch.setattr(undeploy, "play", lambda _name, variables, _dry_run: asked.append(variables) or "")
    undeploy.release_images(Found((start("web"),), (), {}), dry_run=False, force=force)
    assert [variables["update_force"] for variables in asked] == [force]

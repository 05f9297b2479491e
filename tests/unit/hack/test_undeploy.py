# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make undeploy` and `make uninstall` decide: whose finalizer goes, what is watched, left, or refused."""

from __future__ import annotations

import json

import pytest

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
    assert told[0] == "ops/Nspro/np still has its finalizer"
    assert "shop/Start/web" in told[1] and "kubesteward.io/follow" in told[1]
    assert "the Namespace np is still held by the Nspro ops/np" in told[2]
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

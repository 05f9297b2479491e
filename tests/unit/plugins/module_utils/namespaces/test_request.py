# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked for is checked, and a bad request says what is wrong with it."""

from __future__ import annotations

import pytest

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import request as requests
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import sizes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.namespaces import builders

ROLES = ("admin", "edit", "view")


def read(claimant="ops/team-a", **entry):
    return requests.read({"name": "team-a", "size": "small", **entry}, claimant, ROLES, sizes.DEFAULTS)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"name": "Team_A"}, "no name of a namespace"),
        ({"name": "x" * 64}, "at most 63"),
        ({"size": "huge"}, "size 'huge' is not known"),
        ({"quota": {"limits.cpu": "ten"}}, r"quota.limits.cpu: 'ten' is no quantity"),
        ({"quota": {"limits.cpu": "-1"}}, "cannot be less than 0"),
        ({"quota": {"../cpu": "1"}}, r"quota: '\.\./cpu' is no name of a resource"),
        ({"limit_range": {"max": {"{{ cpu }}": "1"}}}, "limit_range.max: .* is no name of a resource"),
        ({"quota": "100m"}, "not a map of resources"),
        ({"limit_range": {"maximum": {"cpu": "1"}}}, "limit_range has the key maximum"),
        ({"access": [{"role": "cluster-admin", "users": ["x"]}]}, "'cluster-admin' may not be given"),
        ({"access": [{"role": "edit"}]}, "nobody is named for edit"),
        ({"access": [{"role": "edit", "groups": ["system:authenticated"]}]}, "rights for strangers"),
        ({"access": [{"role": "edit", "groups": ["system:serviceaccounts"]}]}, "rights for strangers"),
        ({"access": [{"role": "edit", "groups": ["system:authenticated:oauth"]}]}, "rights for strangers"),
        ({"access": [{"role": "edit", "users": [""]}]}, "rights for strangers"),
        ({"access": [{"role": "edit", "service_accounts": ["a/b/c"]}]}, "neither name nor namespace/name"),
        ({"pull_secrets": [{"name": "../x"}]}, "no name of a Secret"),
        ({"pull_secrets": [{"name": "x", "service_accounts": ["A"]}]}, "no name of a Secret or ServiceAccount"),
        ({"pull_secrets": [{"name": "x"}, {"name": "x"}]}, "pull_secrets has x twice"),
        ({"network_policy": {"from_namespaces": [{}]}}, "from_namespaces has an entry without labels"),
        ({"network_policy": {"to_namespaces": [{}]}}, "to_namespaces has an entry without labels"),
        ({"pod_security": {"enforce": "strict"}}, "enforce is 'strict'; it can be privileged, baseline, restricted"),
        ({"labels": {"app": "infra"}}, "app is not yours to set"),
        ({"labels": {"size": "large"}}, "size is not yours to set"),
        ({"labels": {"kubernetes.io/metadata.name": "x"}}, "not yours to set"),
        ({"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}, "not yours to set"),
        ({"annotations": {"kubesteward.io/claim": "x"}}, "not yours to set"),
        ({"annotations": {"scheduler.alpha.kubernetes.io/node-selector": "x"}}, "not yours to set"),
        ({"annotations": {"operator-sdk/primary-resource": "ops/team-b"}}, "not yours to set"),
        ({"annotations": {"field.cattle.io/projectId": "c:p"}}, "not yours to set"),
        ({"annotations": {"iam.amazonaws.com/permitted": ".*"}}, "not yours to set"),
        ({"labels": {"capsule.clastix.io/tenant": "b"}}, "not yours to set"),
        ({"labels": {"b.tree.hnc.x-k8s.io/depth": "0"}}, "not yours to set"),
        ({"labels": {1: "x"}}, "labels: 1: 'x' is no text; quote"),
        ({"labels": {"prod": True}}, "labels: prod: True is no text; quote"),
        ({"annotations": {"owner": None}}, "annotations: owner: None is no text; quote"),
        ({"annotations": {"owner": ["a"]}}, "is no text; quote"),
        ({"network_policy": {"from_namespaces": [{"team": None}]}}, "from_namespaces: team: None is no text; quote"),
        ({"network_policy": {"to_namespaces": [{"team": "a b"}]}}, "to_namespaces: team: 'a b' has a form"),
        ({"labels": {"team": "a b"}}, "a form that the API server refuses"),
        ({"labels": {"-": "a"}}, "a form that the API server refuses"),
        ({"adoption": "Sometimes"}, "adoption is 'Sometimes'; it can be Never, IfIdentical, Always"),
        ({"deletion": "Maybe"}, "deletion is 'Maybe'; it can be Delete, Keep"),
        ({"shrink": "Ask"}, "shrink is 'Ask'; it can be Hold, Apply"),
    ],
)
def test_a_bad_request_says_what_is_wrong(entry, told):
    with pytest.raises(StewardError, match=told):
        read(**entry)


def test_without_a_nspro_there_is_no_source_of_pull_secrets():
    with pytest.raises(StewardError, match="without a Nspro there is none"):
        read(requests.PLAYBOOK, pull_secrets=[{"name": "regcred"}])
    assert read(requests.PLAYBOOK).source_namespace is None
    assert read().source_namespace == "ops"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"small": {}}, "size small has no quota"),
        ({"small": "100m"}, "size small has no quota"),
        ({"small": {"quota": {"pods": "x"}}}, r"size small: quota.pods: 'x' is no quantity"),
        ({"small": {"quota": {"pods": "1"}, "limits": {}}}, "size small has the key limits"),
        ({"small": {"quota": {"pods": "1"}, "limit_range": {"defaults": {}}}}, "limit_range has the key defaults"),
    ],
)
def test_a_size_that_is_none_is_named(given, told):
    with pytest.raises(StewardError, match=told):
        sizes.read(given)


def test_the_administrators_sizes_replace_the_three():
    assert sizes.read(None) is sizes.DEFAULTS
    assert sizes.read({"tiny": {"quota": {"pods": 3}}}) == {"tiny": sizes.Size({"pods": "3"}, {})}


def test_a_resource_says_the_same_as_the_options_of_the_module():
    resource = builders.nspro(
        managed=True,
        quota={"requests.storage": "1Gi"},
        limitRange={"enabled": True, "defaultRequest": {"cpu": "10m"}},
        access=[{"role": "edit", "serviceAccounts": ["ops/bot"]}],
        pullSecrets=[{"name": "regcred", "serviceAccounts": ["default", "builder", "default"]}],
        networkPolicy={
            "sameNamespace": True,
            "fromNamespaces": [{"camelCase": "stays"}],
            "ports": [{"port": 8443}],
            "restrictEgress": True,
            "toNamespaces": [{"team": "b"}],
            "dns": False,
        },
        podSecurity={"enforce": "baseline", "enforceVersion": "v1.33", "warn": "restricted", "warnVersion": "latest"},
        labels={"camelCase": "stays"},
        deletion="Keep",
    )
    found = requests.read(requests.of_resource(resource), "ops/team-a", ROLES, sizes.DEFAULTS)
    assert found == read(
        managed=True,
        quota={"requests.storage": "1Gi"},
        limit_range={"default_request": {"cpu": "10m"}},
        access=[{"role": "edit", "service_accounts": ["ops/bot"]}],
        pull_secrets=[{"name": "regcred", "service_accounts": ["default", "builder"]}],
        network_policy={
            "same_namespace": True,
            "from_namespaces": [{"camelCase": "stays"}],
            "ports": [{"port": 8443, "protocol": "TCP"}],
            "restrict_egress": True,
            "to_namespaces": [{"team": "b"}],
            "dns": False,
        },
        pod_security={
            "enforce": "baseline",
            "enforce_version": "v1.33",
            "warn": "restricted",
            "warn_version": "latest",
        },
        labels={"camelCase": "stays"},
        deletion="Keep",
    )
    assert found.pod_security["pod-security.kubernetes.io/enforce-version"] == "v1.33"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"managed": "perhaps"}, "managed"),
        ({"labels": ["team"]}, "labels"),
        ({"access": "edit"}, "access"),
        ({"access": [{"role": "edit", "people": ["x"]}]}, "people"),
        ({"network_policy": ["open"]}, "network_policy"),
        ({"network_policy": {"ports": [{"port": "http"}]}}, "port"),
        ({"pull_secrets": [{}]}, "name"),
        ({"limit_range": False}, "limit_range: False is no map of default, "),
        ({"limit_range": {0: "1"}}, "limit_range: {0: '1'} is no map of"),
        ({"network_policy": {"ports": [80]}}, "network_policy.ports: 80 is no map of port, protocol"),
        ({"colour": "red"}, "colour is no option of one namespace"),
    ],
)
def test_one_of_many_that_has_another_type_is_told_and_the_others_are_done(entry, told):
    api = builders.cluster()
    found = builders.provision(api, size="small", namespaces=[{"name": "bad", **entry}, {"name": "good"}])
    bad, good = found.results
    assert (bad.state, good.state) == ("invalid", "ready")
    assert told in bad.msg
    assert api.read("Namespace", None, "bad") is None


@pytest.mark.parametrize(("text", "label"), [("false", "false"), ("no", "false"), ("True", "true")])
def test_a_flag_of_one_of_many_is_a_flag_also_as_a_text(text, label):
    api = builders.cluster()
    builders.provision(api, size="small", namespaces=[{"name": "team-a", "managed": text}])
    assert api.read("Namespace", None, "team-a")["metadata"]["labels"]["managed"] == label


def test_a_namespace_named_twice_is_refused_before_anything_is_written():
    api = builders.cluster()
    with pytest.raises(StewardError, match="namespaces has a twice"):
        builders.provision(api, size="small", namespaces=[{"name": "a"}, {"name": "a"}])
    assert api.writes == []

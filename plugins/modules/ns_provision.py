#!/usr/bin/python
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ns_provision
short_description: Give teams namespaces by size
version_added: 1.0.0
description:
  - Gives a Namespace with a quota, container defaults, a network policy, access and pull secrets, keeps it so, and lets
    it go again.
  - Who holds a Namespace is written in its annotation C(kubesteward.io/claim). One that somebody else holds, that was
    there before, or whose name is reserved is left alone.
  - What is unchanged causes no write. What others added to the objects stays.
options:
  name:
    description: Name of the one namespace.
    type: str
  namespaces:
    description:
      - Many namespaces, each a dictionary with the options O(name), O(size), O(managed), and whatever else is to be
        otherwise than for the others. They are worked on at the same time, each with its own result.
      - One that cannot be provided fails neither the others nor the module; an API server that refuses fails it at the
        end.
    type: list
    elements: dict
  nspros:
    description: Take what is wanted from the Nspros of a namespace, and write their statuses.
    type: dict
    suboptions:
      namespace:
        description: Namespace of the Nspros.
        type: str
        required: true
      name:
        description:
          - Name of the one Nspro. Without it all of the namespace are, and namespaces whose Nspro is gone are let go.
        type: str
      must_exist:
        description: Fail where there is no Nspro of that name, or no such namespace.
        type: bool
        default: true
      all:
        description: All of the namespace are meant, with O(state=absent) or O(state=released) and without a name.
        type: bool
        default: false
  state:
    description:
      - With V(present), namespaces are made and kept as they should be.
      - With V(absent), they are let go as their claims say, deleted or kept.
      - With V(released), nothing is deleted but our own objects, labels and annotations.
    type: str
    choices: [present, absent, released]
    default: present
  claim:
    description: The Nspro in whose name it is done. Without it, it is V(playbook).
    type: dict
    suboptions:
      namespace:
        description: Namespace of the Nspro.
        type: str
        required: true
      name:
        description: Name of the Nspro.
        type: str
        required: true
  wait:
    description:
      - Wait until the namespaces are there or gone, where the cluster takes its time with that.
      - One that is being deleted is made anew then.
      - Not in check mode.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait for all namespaces together. What is not done by then is an error.
    type: int
    default: 120
  fail_on:
    description: Fail, once everything is done, where a namespace has one of these states.
    type: list
    elements: str
    choices: [pending, terminating, conflict, invalid, reserved, held]
    default: []
  sizes:
    description:
      - The sizes by name, in place of V(small), V(medium) and V(large). Each has a C(quota), a map of resources and
        quantities, and may have a C(limit_range) and a C(node_selector), labels of the nodes on which its Pods run.
    type: dict
  allowed_roles:
    description: ClusterRoles that may be given.
    type: list
    elements: str
    default: [admin, edit, view]
  reserved:
    description: Patterns of names that nobody gets, beside C(default), C(kube-*), C(kubernetes-*) and C(openshift-*).
    type: list
    elements: str
    default: []
  openshift:
    description: Wait for the annotations without which OpenShift admits no Pods.
    type: bool
    default: false
seealso:
  - module: kubernetes.core.k8s
author:
  - kubesteward authors (@kubesteward)
requirements:
  - python >= 3.11
  - kubernetes >= 33, not 36.0.0, which sends no token
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubesteward.core.namespace
  - kubesteward.core.attributes
  - kubesteward.core.attributes.writes
"""

EXAMPLES = r"""
- name: Give a team a namespace
  kubesteward.core.ns_provision:
    name: team-a
    size: large
    managed: true
    access:
      - role: edit
        groups: [team-a]

- name: Give many teams one
  kubesteward.core.ns_provision:
    size: small
    namespaces:
      - name: team-b
      - name: team-c
        size: medium
        quota: {count/pods: "20"}

- name: Provide what the Nspros of a namespace ask for
  kubesteward.core.ns_provision:
    nspros:
      namespace: ops

- name: Let it go, with everything that is in it, and wait until it is gone
  kubesteward.core.ns_provision:
    name: team-a
    state: absent
    wait: true
"""

RETURN = r"""
namespaces:
  description: One entry per namespace, in the order of the options.
  returned: success
  type: list
  elements: dict
  sample:
    - name: team-a
      state: ready
      reason: ""
      msg: ""
      operations: [{action: create, kind: Namespace, name: team-a}]
      warnings: []
writes:
  description: Mutating requests, statuses and Events aside; what would be written in check mode.
  returned: success
  type: int
  sample: 4
statuses:
  description: Statuses of Nspros that are new, by V(namespace/name).
  returned: success
  type: dict
  sample: {}
table:
  description: The namespaces as lines of a table.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.kubesteward.core.plugins.module_utils import start

start.require()

import copy
import functools
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.concurrency import run_concurrently
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import claim as claims
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import (
    entries,
    forecast,
    forms,
    nspros,
    provision,
    report,
    rivals,
    sizes,
    waiting,
)
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import request as requests
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces.result import Result, refused

Object = dict[str, t.Any]

#: options that each of many namespaces may have for itself
_OF_ONE = (
    *("size", "managed", "quota", "limit_range", "access", "pull_secrets", "network_policy"),
    *("pod_security", "labels", "annotations", "adoption", "deletion", "shrink"),
)
#: states that somebody may want to fail on
_FAILURES = ("pending", "terminating", "conflict", "invalid", "reserved", "held")


def argument_spec() -> Object:
    names = {"type": "list", "elements": "str"}
    text: Object = {}
    flag, mapping = {"type": "bool"}, {"type": "dict"}
    port = {
        "port": {"type": "int", "required": True},
        "protocol": {"choices": list(forms.PROTOCOLS), "default": "TCP"},
    }
    ports = {"type": "list", "elements": "dict", "options": port}
    required = {"required": True}
    options = {
        "name": text,
        "namespaces": {"type": "list", "elements": "dict"},
        "nspros": {
            "type": "dict",
            "options": {
                "namespace": required,
                "name": text,
                "must_exist": {"type": "bool", "default": True},
                "all": {"type": "bool", "default": False},
            },
        },
        "wait": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 120},
        "fail_on": {**names, "choices": list(_FAILURES), "default": []},
        "state": {"choices": ["present", "absent", "released"], "default": "present"},
        "size": text,
        "managed": flag,
        "claim": {"type": "dict", "options": {"namespace": required, "name": required}},
        "sizes": mapping,
        "quota": mapping,
        "limit_range": {"type": "dict", "options": {"enabled": flag, **dict.fromkeys(sizes.LIMITS, mapping)}},
        "access": {
            "type": "list",
            "elements": "dict",
            "options": {"role": required, "users": names, "groups": names, "service_accounts": names},
        },
        "allowed_roles": {**names, "default": ["admin", "edit", "view"]},
        "pull_secrets": {
            "type": "list",
            "elements": "dict",
            "no_log": False,
            "options": {"name": required, "service_accounts": names},
        },
        "network_policy": {
            "type": "dict",
            "options": {
                "same_namespace": flag,
                "from_namespaces": {"type": "list", "elements": "dict"},
                "ports": ports,
                "restrict_egress": flag,
                "to_namespaces": {"type": "list", "elements": "dict"},
                "to_cidrs": {"type": "list", "elements": "dict", "options": {"cidr": required, "ports": ports}},
                "dns": flag,
            },
        },
        "pod_security": {
            "type": "dict",
            "options": {f"{mode}{more}": text for mode in ("enforce", "audit", "warn") for more in ("", "_version")},
        },
        "labels": mapping,
        "annotations": mapping,
        "adoption": {"choices": list(requests.ADOPTION)},
        "deletion": {"choices": list(requests.DELETION)},
        "shrink": {"choices": list(requests.SHRINK)},
        "reserved": {**names, "default": []},
        "openshift": {"type": "bool", "default": False},
    }
    return copy.deepcopy({**AUTH_ARG_SPEC, **options})


def run(params: t.Mapping[str, t.Any], cluster: Cluster, check_mode: bool, details: bool, now: str) -> nspros.Told:
    """One pass.

    :param details: in check mode, say what a change would hit
    :param now: `2006-01-02T15:04:05Z`
    :raises StewardError: an option that makes no sense
    """
    options = _options(params, cluster, check_mode, details, now)
    if params["nspros"]:
        given = params["nspros"]
        wanted = nspros.Wanted(
            given["namespace"], given["name"] or "", given["must_exist"], params["state"], given["all"]
        )
        return nspros.run(cluster, wanted, options)
    claim = params["claim"]
    claimant = claims.holder(f"{claim['namespace']}/{claim['name']}") if claim else requests.PLAYBOOK
    common = {key: params[key] for key in _OF_ONE if params[key] is not None}
    given = params["namespaces"] if params["namespaces"] is not None else [{"name": params["name"]}]
    wanted_ones = _distinct([{**common, **{k: v for k, v in entry.items() if v is not None}} for entry in given])

    def one(entry: Object) -> Result:
        return _one(entry, claimant, params, cluster, options)

    return nspros.Told(run_concurrently(one, wanted_ones, provision.WORKERS))


def _options(
    params: t.Mapping[str, t.Any], cluster: Cluster, check_mode: bool, details: bool, now: str
) -> provision.Options:
    known, reserved = sizes.read(params["sizes"]), (*claims.RESERVED, *params["reserved"])
    forms.check_roles(params["allowed_roles"])
    return provision.Options(
        known,
        reserved,
        params["allowed_roles"],
        params["openshift"],
        check_mode,
        details,
        now,
        rivals.Rivals(cluster, params["allowed_roles"], known, reserved),
        forecast.Webhooks(cluster).homes,
        waiting.Patience(params["wait_timeout"] if params["wait"] and not check_mode else None),
    )


def _distinct(given: list[Object]) -> list[Object]:
    seen: set[str] = set()
    for entry in given:
        name = str(entry.get("name"))
        if name in seen:
            raise StewardError(f"namespaces has {name} twice; two requests for one namespace undo each other")
        seen.add(name)
    return given


@functools.cache
def _of_one() -> ArgumentSpecValidator:
    spec = argument_spec()
    return ArgumentSpecValidator({option: spec[option] for option in ("name", *_OF_ONE)})


def _one(
    entry: Object, claimant: str, params: t.Mapping[str, t.Any], cluster: Cluster, options: provision.Options
) -> Result:
    name = str(entry.get("name") or "")
    try:
        found = entries.checked(entry, _of_one())
        if params["state"] != "present":
            farewell = nspros.RELEASED if params["state"] == "released" else provision.Farewell()
            return provision.let_go(cluster, requests.name_of(found), claimant, farewell, options)
        request = requests.read(found, claimant, params["allowed_roles"], options.sizes)
    except StewardError as exc:
        return refused(name, exc)
    return provision.provide(cluster, request, options)


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        supports_check_mode=True,
        mutually_exclusive=[("name", "namespaces", "nspros"), ("claim", "nspros")],
        required_one_of=[("name", "namespaces", "nspros")],
    )
    start.hide_secrets_alone(module)
    try:
        told = run(module.params, Cluster.connect(module), module.check_mode, module._diff, conditions.now())
    except StewardError as exc:
        module.fail_json(**exc.as_result())
    result = report.result(told.results, told.statuses, with_diff=module._diff)
    for warning in [*report.problems(told.results, module.params["state"]), *told.warnings]:
        module.warn(warning)
    is_single = module.params["name"] is not None
    errors = [*told.errors, *report.failures(told.results, module.params["fail_on"], is_single)]
    if errors:
        module.fail_json(msg=report.aggregated(errors), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()

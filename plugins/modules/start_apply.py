#!/usr/bin/python
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: start_apply
short_description: Give every Start its Deployment
version_added: 1.0.0
description:
  - Applies the Deployment that a Start describes, and writes the Start's status.
  - The Deployment is applied on the server's side with the field manager C(kubesteward), after a dry run of the same
    request has shown that it would change something. Fields that others manage survive.
  - Of two Starts with one C(spec.name) the older has the Deployment; the other is a conflict and changes nothing.
  - A Deployment of that name that is there already and belongs to nobody is a conflict too, unless it is annotated
    C(kubesteward.io/adopt=<name of the Start>), or C(kubesteward.io/adopt=playbook) for one without a Start.
options:
  namespace:
    description: Namespace of the Starts and of their Deployments. This, O(namespaces), or that of each of O(starts).
    type: str
  namespaces:
    description:
      - Namespaces whose Starts are applied, a list of names, or V(all) for every namespace that has a Start.
      - What is wrong in one stops no other. Each of RV(starts) has a C(namespace) then.
    type: raw
    version_added: 1.1.0
  starts:
    description: Starts to apply. Without it, and without O(spec), every Start of the namespace is applied.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the Start.
        type: str
        required: true
      namespace:
        description: Namespace of the Start, O(namespace) by default.
        type: str
        version_added: 1.1.0
      image:
        description: Image that the Start will have, which check mode cannot know from it. It counts in check mode only.
        type: str
  must_exist:
    description: Fail where one of O(starts) does not exist. Otherwise it is passed over.
    type: bool
    default: true
  spec:
    description: What a Start's C(spec) would say, for a Deployment without a Start.
    type: dict
    suboptions:
      name:
        description: Gives the Deployment the name C(<name>-sample).
        type: str
        default: nginx
      image:
        description: Image reference of the container.
        type: str
        default: quay.io/k_nakajima/nginx-sample:latest
      replicas:
        description: Number of Pods.
        type: int
        default: 1
      resources:
        description: Resources of the container, C(limits) and C(requests).
        type: dict
      image_pull_secrets:
        description: Names of Secrets with which the nodes pull the image.
        type: list
        elements: str
      port:
        description: Port that the container listens on.
        type: int
        default: 8080
      readiness:
        description: Readiness probe of the container.
        type: str
        choices: [tcp, none]
        default: tcp
seealso:
  - module: kubesteward.core.image_rollout
author:
  - kubesteward authors (@kubesteward)
requirements:
  - python >= 3.11
  - kubernetes >= 33, not 36.0.0, which sends no token
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubesteward.core.attributes
  - kubesteward.core.attributes.writes
"""

EXAMPLES = r"""
- name: Apply every Start of the namespace
  kubesteward.core.start_apply:
    namespace: shop

- name: Apply one of them
  kubesteward.core.start_apply:
    namespace: shop
    starts:
      - name: start-sample

- name: Run the image without a Start
  kubesteward.core.start_apply:
    namespace: shop
    spec:
      name: web
      image: quay.io/shop/web:1
"""

RETURN = r"""
starts:
  description: One entry per Start, or one for O(spec).
  returned: success
  type: list
  elements: dict
  sample:
    - {start: start-sample, deployment: nginx-sample, state: applied, msg: null, digest: null, ready: 0}
"""

from ansible_collections.kubesteward.core.plugins.module_utils import start

start.require()

import copy
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ansible_collections.kubesteward.core.plugins.module_utils import apply_starts, conditions
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images.report import aggregated
from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster


def argument_spec() -> dict[str, t.Any]:
    spec = {
        "name": {"default": "nginx"},
        "image": {"default": "quay.io/k_nakajima/nginx-sample:latest"},
        "replicas": {"type": "int", "default": 1},
        "resources": {"type": "dict"},
        "image_pull_secrets": {"type": "list", "elements": "str", "no_log": False},
        "port": {"type": "int", "default": 8080},
        "readiness": {"choices": ["tcp", "none"], "default": "tcp"},
    }
    entry: dict[str, t.Any] = {"name": {"required": True}, "namespace": {}, "image": {}}
    return {
        **copy.deepcopy(AUTH_ARG_SPEC),
        "namespace": {},
        "namespaces": {"type": "raw"},
        "starts": {"type": "list", "elements": "dict", "options": entry},
        "must_exist": {"type": "bool", "default": True},
        "spec": {"type": "dict", "options": spec},
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        supports_check_mode=True,
        mutually_exclusive=[("starts", "spec"), ("namespaces", "namespace"), ("namespaces", "starts", "spec")],
        required_one_of=[("namespace", "namespaces", "starts")],
    )
    start.hide_secrets_alone(module)
    try:
        done = apply_starts.run(Cluster.connect(module), module.params, module.check_mode, conditions.now())
    except StewardError as exc:
        module.fail_json(**exc.as_result())
    for warning in done.warnings:
        module.warn(warning)
    result = {"changed": done.changed, "starts": done.starts}
    if module._diff:
        result["diff"] = done.diff
    if done.errors:
        module.fail_json(msg=aggregated(done.errors), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()

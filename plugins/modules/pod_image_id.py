#!/usr/bin/python
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_image_id
short_description: Read which image digests the Pods of a namespace really run
version_added: 1.0.0
description:
  - Looks at workloads, or at Pods and the workloads that control them, and returns for every container of the Pod
    template what its live Pods run.
  - Only Pods of the current revision count. Terminating ones, those on a lost node and those of an old revision are
    left out and counted apart.
  - It only reads. Its name is that of the article it comes from, hence no C(_info).
options:
  namespace:
    description: Namespace to look at. This or O(namespaces) is needed.
    type: str
  namespaces:
    description:
      - Namespaces whose Updates are looked at, a list of names, or V(all) for every namespace that has an Update.
      - It means O(each).
    type: raw
    version_added: 1.1.0
  each:
    description:
      - Look at every Update of the namespace, or the one that O(update) names, and answer for each by itself in
        RV(updates). One that cannot be looked at stops no other.
      - What several need is read and looked up once. Without an Update what the other options name is looked at.
    type: bool
    default: false
    version_added: 1.1.0
  name:
    description: Name of one Pod.
    type: str
  label_selectors:
    description: Label selectors that Pods must match, all of them.
    type: list
    elements: str
  workloads:
    description: Workloads to look at, each by O(workloads[].name) or by O(workloads[].selector).
    type: list
    elements: dict
    suboptions:
      kind:
        description: Kind of the workload. A V(Start) stands for the Deployment it gives.
        type: str
        choices: [Deployment, StatefulSet, DaemonSet, CronJob, Start]
        required: true
      name:
        description: Name of the workload.
        type: str
      selector:
        description: Selects workloads by their own labels, as C(matchLabels).
        type: dict
      api_version:
        description: Accepted for the shape that this module itself returns; the kind says it already.
        type: str
  starts:
    description: Look at the Deployments of every Start of the namespace.
    type: bool
    default: false
  update:
    description:
      - Name of an Update. Its C(spec.targets) and C(spec.containers) say what to look at where no other option does,
        and it is returned as RV(update_resource).
    type: str
  update_must_exist:
    description: Fail where there is no Update of the name O(update). Otherwise nothing is looked at then.
    type: bool
    default: true
  updates:
    description:
      - Without O(update), take the first Update of the namespace, by name, if there is one. The names of the others are
        returned as RV(others).
    type: bool
    default: false
  containers:
    description: Containers to look at, by name, instead of those that the Update names.
    type: dict
    suboptions:
      follow:
        description: Look at these only.
        type: list
        elements: str
      ignore:
        description: Never look at these.
        type: list
        elements: str
  platforms:
    description: Platforms that the workloads' nodes may have, instead of C(spec.platforms) of the Update.
    type: list
    elements: str
  as_text:
    description:
      - Return RV(containers), RV(lookups), RV(update_resource) and RV(updates) as one text each, which the other
        modules take, too. For hundreds of workloads, what Ansible does with every value of a list is most of what a
        task costs.
    type: bool
    default: false
notes:
  - The options O(name), O(label_selectors), O(workloads) and O(starts) exclude each other. Without any of them, and
    without targets of an Update, every Start of the namespace is looked at.
seealso:
  - module: kubesteward.core.registry_digest
  - module: kubesteward.core.image_rollout
author:
  - kubesteward authors (@kubesteward)
requirements:
  - python >= 3.11
  - kubernetes >= 33, not 36.0.0, which sends no token
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubesteward.core.attributes
  - kubesteward.core.attributes.reads
"""

EXAMPLES = r"""
- name: What does every Start of the namespace run?
  kubesteward.core.pod_image_id:
    namespace: shop
    starts: true
  register: running

- name: What do the Pods with these labels run?
  kubesteward.core.pod_image_id:
    namespace: shop
    label_selectors:
      - app=nginx-app

- name: What do one StatefulSet and all Deployments of a team run?
  kubesteward.core.pod_image_id:
    namespace: shop
    workloads:
      - kind: StatefulSet
        name: db
      - kind: Deployment
        selector:
          matchLabels:
            team: checkout
"""

RETURN = r"""
containers:
  description: One entry per container of each workload's Pod template.
  returned: success
  type: list
  elements: dict
  contains:
    workload:
      description: The workload, and the Start that owns it, if any.
      type: dict
      returned: success
      sample: {kind: Deployment, name: nginx-sample, api_version: apps/v1, owner: null}
    container:
      description: Name of the container.
      type: str
      returned: success
      sample: nginx-sample
    type:
      description: One of C(container), C(init) and C(sidecar).
      type: str
      returned: success
      sample: container
    path:
      description: JSON pointer of the container in the object that a roll would patch.
      type: str
      returned: success
      sample: /spec/template/spec/containers/0
    image:
      description: Image as in the Pod template.
      type: str
      returned: success
      sample: quay.io/k_nakajima/nginx-sample:latest
    pull_policy:
      description: The container's C(imagePullPolicy).
      type: str
      returned: success
    spec_image:
      description: Image in the object that a roll would patch; differs from RV(containers[].image) only for a Start
        that has not been applied yet.
      type: str
      returned: success
      sample: quay.io/k_nakajima/nginx-sample:latest
    start:
      description: Name of the Start that gives the workload, also for a container that others added beside the
        Start's own.
      type: str
      returned: success
      sample: start-sample
    reference:
      description: The reference that is followed.
      type: str
      returned: success
      sample: quay.io/k_nakajima/nginx-sample:latest
    pinned:
      description: Digest of a reference without a tag, which nothing is followed for, else null.
      type: str
      returned: success
    invalid:
      description: What is wrong with the reference, else null.
      type: str
      returned: success
    running:
      description: What the live Pods run, most Pods first. Empty where there is no Pod, which is not an error.
      type: list
      elements: dict
      returned: success
      sample:
        - image_id: quay.io/shop/web@sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
          digest: sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
          id_kind: manifest
          pods: 1
          ready: 1
    waiting:
      description: Number of Pods whose container has no image ID yet.
      type: int
      returned: success
    waiting_reasons:
      description: Why they wait, and how many.
      type: dict
      returned: success
    excluded:
      description: Number of Pods that were left out, by reason.
      type: dict
      returned: success
      sample: {old_revision: 1}
    nodes:
      description: Nodes that the Pods run on.
      type: list
      elements: str
      returned: success
      sample: [node-1]
    platforms:
      description: Platforms of the nodes the Pods run on, V(linux/amd64), or V(windows(10.0.20348\)/amd64). Read only
        where a runtime reports no registry digest; M(kubesteward.core.image_rollout) reads them before a roll.
      type: list
      elements: str
      returned: success
    pull_secrets:
      description: Names of the pull secrets of a live Pod.
      type: list
      elements: dict
      returned: success
      sample: [{namespace: shop, name: regcred}]
    follow:
      description: What an earlier roll wrote down, while the spec still carries its digest, else null.
      type: dict
      returned: success
    undone:
      description: An earlier roll that somebody undid, with C(how) (V(digest), V(undo) or V(tag)) and C(manager), else
        null.
      type: dict
      returned: success
    retry:
      description: The digest that the annotation C(kubesteward.io/retry) allows again, else null.
      type: str
      returned: success
    unwell:
      description: What is wrong with the container in every one of its Pods, C(reason) and C(since), else null.
      type: dict
      returned: success
    trial:
      description: How the new Pods of a roll on trial, or of what went back, do, else null.
      type: dict
      returned: success
    stuck:
      description: Pods of an old revision that an ordered StatefulSet waits for, broken ones, and of those that run and
        are not ready the last one, with C(since).
      type: list
      elements: dict
      returned: success
    rollout:
      description: How far the workload's own rollout is.
      type: dict
      returned: success
      sample: {complete: true, desired: 1, updated: 1, available: 1, replicas: 1, restarts: 0, failing: []}
    image_volumes:
      description: Volumes of the Pod template whose image has a tag, which nothing follows.
      type: list
      elements: dict
      returned: success
      sample: [{name: models, image: "quay.io/shop/models:1"}]
    controller:
      description: Another controller that owns the workload and would undo a change, else null.
      type: str
      returned: success
lookups:
  description: The distinct references to look up, as O(kubesteward.core.registry_digest#module:images)
    takes them.
  returned: success
  type: list
  elements: dict
  sample: [{image: "quay.io/k_nakajima/nginx-sample:latest", pull_secrets: [], expect: [], resolve: [children]}]
quarantined:
  description: Whether a digest that failed is remembered of one of the containers.
  returned: success
  type: bool
missing:
  description: Workloads that were asked for by name and do not exist.
  returned: success
  type: list
  elements: str
  sample: [StatefulSet/db]
update_resource:
  description: The Update that O(update) or O(updates) found, else null.
  returned: success
  type: dict
others:
  description: Names of the other Updates of the namespace, with O(updates).
  returned: success
  type: list
  elements: str
  sample: []
updates:
  description:
    - With O(each), an entry for each Update with its C(namespace) and C(name), and RV(update_resource),
      RV(containers), RV(missing) and RV(quarantined), which are not returned beside it then.
    - C(error) says why it could not be looked at, else it is empty.
  returned: with O(each) or O(namespaces)
  type: list
  elements: dict
elapsed:
  description: Seconds that it took.
  returned: success
  type: float
  sample: 0.08
image:
  description: RV(containers[].image) of the first container.
  returned: success
  type: str
image_id:
  description: Image ID that most of its Pods run.
  returned: success
  type: str
digest:
  description: The digest in it.
  returned: success
  type: str
"""

from ansible_collections.kubesteward.core.plugins.module_utils import start

start.require()

import copy
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ansible_collections.kubesteward.core.plugins.module_utils import handover
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import inventory, look, snapshot
from ansible_collections.kubesteward.core.plugins.module_utils.images.slim import SlimReader
from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster

Object = dict[str, t.Any]


def argument_spec() -> dict[str, t.Any]:
    workload = {
        "kind": {"required": True, "choices": [*snapshot.WORKLOADS, "Start"]},
        "name": {},
        "selector": {"type": "dict"},
        "api_version": {},
    }
    names = {"type": "list", "elements": "str"}
    return {
        **copy.deepcopy(AUTH_ARG_SPEC),
        "namespace": {},
        "namespaces": {"type": "raw"},
        "each": {"type": "bool", "default": False},
        "name": {},
        "label_selectors": {"type": "list", "elements": "str"},
        "workloads": {"type": "list", "elements": "dict", "options": workload},
        "starts": {"type": "bool", "default": False},
        "update": {},
        "update_must_exist": {"type": "bool", "default": True},
        "updates": {"type": "bool", "default": False},
        "platforms": {"type": "list", "elements": "str"},
        "as_text": {"type": "bool", "default": False},
        "containers": {"type": "dict", "options": {"follow": names, "ignore": dict(names)}},
    }


def run(params: t.Mapping[str, t.Any], reader: snapshot.Reader) -> dict[str, t.Any]:
    """The module's flat result; `reader` is a `kube.Cluster` or anything with its `get` and `find`."""
    snapshot.named_namespace(params)
    update, others = _update(params, reader)
    try:
        found = look.one(params, reader, update)
    except StewardError as exc:
        # whoever runs one after the other goes on with them
        exc.context.update(others=others, update_name=update["metadata"]["name"] if update else "")
        raise
    containers = found["containers"]
    hand = _hand(params)
    return {
        "changed": False,
        "containers": hand(containers),
        "lookups": hand(inventory.lookups(containers)),
        "quarantined": found["quarantined"],
        "missing": found["missing"],
        "update_resource": hand(update) if update else None,
        **inventory.first(containers),
        "others": others,
    }


def run_each(params: t.Mapping[str, t.Any], cluster: Cluster) -> dict[str, t.Any]:
    """The module's result with an entry for each Update."""
    entries = look.each(params, cluster)
    hand = _hand(params)
    return {
        "changed": False,
        "updates": hand(entries),
        "lookups": hand(look.lookups(entries)),
        "quarantined": any(entry["quarantined"] for entry in entries),
    }


def _hand(params: t.Mapping[str, t.Any]) -> t.Callable[[t.Any], t.Any]:
    return handover.write if params.get("as_text") else lambda value: value


def _update(params: t.Mapping[str, t.Any], reader: snapshot.Reader) -> tuple[Object | None, list[str]]:
    if params.get("update"):
        return look.named(params, reader), []
    if not params.get("updates"):
        return None, []
    found = look.updates_in(reader, params["namespace"])
    return (found[0] if found else None), [item["metadata"]["name"] for item in found[1:]]


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        supports_check_mode=True,
        required_one_of=[("namespace", "namespaces")],
        mutually_exclusive=[("namespace", "namespaces"), ("namespaces", "update")],
    )
    start.hide_secrets_alone(module)
    started = time.monotonic()
    try:
        cluster = Cluster.connect(module)
        if module.params["each"] or module.params["namespaces"] is not None:
            result = run_each(module.params, cluster)
        else:
            result = run(module.params, SlimReader(cluster))
    except StewardError as exc:
        module.fail_json(**exc.as_result())
    module.exit_json(**result, elapsed=round(time.monotonic() - started, 4))


if __name__ == "__main__":
    main()

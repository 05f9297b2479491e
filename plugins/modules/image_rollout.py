#!/usr/bin/python
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_rollout
short_description: Roll stale containers to the digest that their tag names now
version_added: 1.0.0
description:
  - Compares what M(kubesteward.core.pod_image_id) found running with what M(kubesteward.core.registry_digest) found
    published, and gives every container a verdict, V(current), V(stale) or V(unknown), with one reason.
  - Where a container is stale and nothing holds it, the object that owns its image is patched to
    C(repository@digest). The patch tests the container's name and image, so that an edit made meanwhile is never
    overwritten. It also writes the annotation C(kubesteward.io/follow), which remembers the tag.
  - Writes the status of the Update and Events, only where there is something new to say.
options:
  namespace:
    description: Namespace of the workloads and of the Update; O(updates) have theirs.
    type: str
  state:
    description:
      - With V(present), stale containers are rolled.
      - With V(released), the followed references are put back in place of digests and the annotation is removed, and
        the API server forgets that these fields were ours.
      - A digest stays where the tag names one that failed, as O(published) says; without it, where it may be so.
    type: str
    choices: [present, released]
    default: present
  release:
    description:
      - With O(state=released), what the specs have from then on, the followed V(tags) or the V(digests) of now.
      - Where C(imagePullPolicy) is V(IfNotPresent), a node that has an older image under the tag runs that one.
    type: str
    choices: [tags, digests]
    default: tags
    version_added: 1.1.0
  force:
    description: With O(state=released), put a tag back also where it names a digest that failed.
    type: bool
    default: false
    version_added: 1.1.0
  update:
    description: Name of the Update whose status is written. Without it none is.
    type: str
  update_resource:
    description: The Update as M(kubesteward.core.pod_image_id) returned it in this pass, which saves reading it again.
    type: raw
  running:
    description:
      - The RV(kubesteward.core.pod_image_id#module:containers) of a pass, a list or the text for one. This or
        O(updates) is needed.
    type: raw
  updates:
    description:
      - The RV(kubesteward.core.pod_image_id#module:updates) of a pass, a list or the text for one, in place of
        O(running), O(missing) and O(update_resource).
      - Each Update is evaluated and written by itself, with the options given here, and has an entry in RV(results).
        What is wrong with one stops no other.
    type: raw
    version_added: 1.1.0
  published:
    description: The RV(kubesteward.core.registry_digest#module:images) of a pass, a list or the text for one.
    type: raw
    default: []
  missing:
    description:
      - The RV(kubesteward.core.pod_image_id#module:missing) of a pass, told as warnings.
      - While a workload is missing, the Update is not up to date, and is not deleted by O(delete_flag).
    type: list
    elements: str
    default: []
  dry_run:
    description:
      - Decide and report, but hold every roll. The Update can say the same by C(spec.dryRun).
      - With O(state=released), report what would be put back.
    type: bool
    default: false
  suspend:
    description:
      - Hold every roll, as C(spec.suspend) of the Update does. What is given here counts.
    type: bool
  stable_for_seconds:
    description:
      - Seconds for which a tag must have named the same digest before it is rolled, as C(spec.stableForSeconds).
      - The status of the Update remembers since when, so it needs one.
    type: int
  max_concurrent:
    description: Workloads that may be rolling at the same time, as C(spec.maxConcurrent), 10 by default.
    type: int
  platforms:
    description: Platforms that the workloads' nodes may have, as C(spec.platforms), for example V(linux/arm64).
    type: list
    elements: str
  fail_on_errors:
    description:
      - Fail where an object could not be written. Otherwise the messages are in RV(errors) alone, for a caller that
        shows the table first.
    type: bool
    default: true
  fail_on:
    description:
      - What to fail for, beside objects that could not be written. With O(fail_on_errors=false) it is in RV(failures)
        alone.
      - V(unknown), workloads that do not exist among them, V(held), that is stale and not rolled, V(stale), rolled or
        not, and V(rolled_back), in this pass, or a digest that was taken back earlier and that the tag still names.
    type: list
    elements: str
    choices: [unknown, held, stale, rolled_back]
    default: []
  rollback:
    description:
      - What happens to a roll whose new Pods do not get well. What is not given is as C(spec.rollback) of the Update
        says.
      - A roll is on trial until the rollout is complete and every new container has run without a restart for
        O(verification_seconds). A later pass writes that down.
    type: dict
    suboptions:
      enabled:
        description:
          - Write the image from before again, by its digest, and hold the failed digest until the tag names another.
          - Where the registry does not have it any more, an earlier image goes back, or what stood in the spec.
          - By default V(true).
        type: bool
      progress_deadline_seconds:
        description:
          - Seconds that a new Pod has to pull, start and pass its probes. By default V(600).
          - A crash loop, or an image that cannot be pulled, is decided after about a minute.
        type: int
        aliases: [progressDeadlineSeconds]
  verification_seconds:
    description:
      - Seconds that every new container must run, ready and without a restart, before a roll is taken as good, 1 to
        86400. Where the workload's C(minReadySeconds) is more, that counts.
      - It is the administrator's, and no part of an Update.
    type: int
    default: 60
    version_added: 1.1.0
  wait:
    description:
      - Look again and again at what runs, with O(published) as it is, until no roll is on trial, and fail where one was
        taken back or O(wait_timeout) is over.
      - Without an operator somebody has to apply the Starts that were rolled before, RV(starts).
      - With check mode, O(dry_run) or O(state=released) there is nothing to wait for.
    type: bool
    default: false
    version_added: 1.1.0
  rolled:
    description:
      - The RV(rolled) of an earlier call, for whose rolls O(wait) waits; this call rolls nothing then.
      - With O(updates) the RV(results) of that call.
      - A roll of a Start has to be applied before, as M(kubesteward.core.start_apply) does it.
    type: list
    elements: dict
  wait_timeout:
    description: Seconds to wait at most, 1 to 86400.
    type: int
    default: 900
    version_added: 1.1.0
  wait_sleep:
    description: Seconds between two looks, 1 to 3600.
    type: int
    default: 5
    version_added: 1.1.0
  delete_flag:
    description:
      - Delete the Update once every container it looks at is current. Without it C(spec.delete_flag) decides.
    type: bool
seealso:
  - module: kubesteward.core.pod_image_id
  - module: kubesteward.core.registry_digest
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
- name: See what the Deployment runs
  kubesteward.core.pod_image_id:
    namespace: shop
    workloads:
      - kind: Deployment
        name: web
  register: running

- name: See what its tags name now
  kubesteward.core.registry_digest:
    images: "{{ running.lookups }}"
  register: published

- name: Roll what is stale
  kubesteward.core.image_rollout:
    namespace: shop
    running: "{{ running.containers }}"
    published: "{{ published.images }}"
  register: rolled

- name: Stop following, with the tags put back
  kubesteward.core.image_rollout:
    namespace: shop
    state: released
    running: "{{ running.containers }}"
"""

RETURN = r"""
verdicts:
  description: One entry per container, in the order of O(running).
  returned: without O(updates)
  type: list
  elements: dict
  sample:
    - workload: {kind: Deployment, name: web, api_version: apps/v1, owner: null}
      container: app
      image: quay.io/shop/web:1
      verdict: stale
      reason: digest_differs
      message: quay.io/shop/web:1 now names sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
      running: [sha256:e258d248fda94c63753607f7c4494ee0fcbe92f1a76bfdac795c9d84101eb317]
      published: sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
results:
  description:
    - With O(updates), an entry for each of them, C(namespace), C(name), RV(counts), RV(verdicts), RV(rolled),
      RV(rolled_back), RV(held), C(pending), and RV(errors), with RV(failures) among them.
    - What is beside it is of all of them then, where it has a C(namespace).
  returned: with O(updates)
  type: list
  elements: dict
counts:
  description: Containers by verdict.
  returned: without O(updates)
  type: dict
  sample: {current: 3, stale: 1, unknown: 0}
rolled:
  description: Containers whose owner was patched, or would be in check mode.
  returned: success
  type: list
  elements: dict
  sample:
    - workload: {kind: Deployment, name: web, api_version: apps/v1, owner: null}
      container: app
      owner: {kind: Deployment, name: web, api_version: apps/v1}
      from: quay.io/shop/web:1
      to: quay.io/shop/web@sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
rolled_back:
  description: Containers whose last roll failed and was taken back, with the same keys as RV(rolled) and why as
    C(message).
  returned: success
  type: list
  elements: dict
  sample: []
settled:
  description: Containers whose last roll has proven itself, with the same keys as RV(rolled).
  returned: success
  type: list
  elements: dict
  sample: []
freed:
  description: Broken Pods that were deleted, since an ordered StatefulSet would have waited for them for ever.
  returned: success
  type: list
  elements: dict
  sample: []
held:
  description: Stale containers that were not rolled, with the same keys as RV(verdicts).
  returned: success
  type: list
  elements: dict
released:
  description: Objects that were let go of, with O(state=released), and of each container whose spec had our digest what
    it had and has, and a message where that needs one.
  returned: success
  type: list
  elements: dict
  sample:
    - owner: {kind: Deployment, name: web, api_version: apps/v1}
      workload: {kind: Deployment, name: web, api_version: apps/v1, owner: null}
      containers: [app]
      images:
        - container: app
          from: quay.io/shop/web@sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
          to: quay.io/shop/web:1
          message: ""
starts:
  description: Starts whose Deployment does not have the Start's image yet, with the image that it is to have. Without
    an operator somebody has to apply them, as M(kubesteward.core.start_apply) does.
  returned: success
  type: list
  elements: dict
  sample:
    - name: nginx
      image: quay.io/shop/web@sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
status:
  description: What the Update's status is now, or would be in check mode, without the operator's own conditions.
  returned: when an Update is named and exists
  type: dict
deleted:
  description: Whether the Update was deleted, having done its work.
  returned: success
  type: bool
update_name:
  description: Name of the Update.
  returned: when an Update is named and exists
  type: str
failures:
  description: What of the pass O(fail_on) is about, one line for each container or missing workload.
  returned: success
  type: list
  elements: str
  sample: []
errors:
  description: Answers of the API server that were in the way; everything else was done.
  returned: success
  type: list
  elements: str
  sample: []
table:
  description: The verdicts as lines of a table, and below it why containers are unknown or held, and
    what was released.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.kubesteward.core.plugins.module_utils import start

start.require()

import copy
import dataclasses
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ansible_collections.kubesteward.core.plugins.module_utils import conditions, handover
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import (
    execution,
    inputs,
    release,
    report,
    results,
    several,
    snapshot,
    trial,
    waiting,
)
from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster, LazyCluster


def argument_spec() -> dict[str, t.Any]:
    return {
        **copy.deepcopy(AUTH_ARG_SPEC),
        "namespace": {},
        "state": {"choices": ["present", "released"], "default": "present"},
        "release": {"choices": ["tags", "digests"], "default": "tags"},
        "force": {"type": "bool", "default": False},
        "update": {},
        "update_resource": {"type": "raw"},
        "running": {"type": "raw"},
        "updates": {"type": "raw"},
        "published": {"type": "raw", "default": []},
        "missing": {"type": "list", "elements": "str", "default": []},
        "dry_run": {"type": "bool", "default": False},
        "verification_seconds": {"type": "int", "default": trial.VERIFICATION},
        "delete_flag": {"type": "bool"},
        "wait": {"type": "bool", "default": False},
        "rolled": {"type": "list", "elements": "dict"},
        "wait_timeout": {"type": "int", "default": 900},
        "wait_sleep": {"type": "int", "default": 5},
        "suspend": {"type": "bool"},
        "stable_for_seconds": {"type": "int"},
        "max_concurrent": {"type": "int"},
        "platforms": {"type": "list", "elements": "str"},
        "fail_on_errors": {"type": "bool", "default": True},
        "fail_on": {"type": "list", "elements": "str", "choices": list(report.FAIL_ON), "default": []},
        "rollback": {
            "type": "dict",
            "options": {
                "enabled": {"type": "bool"},
                "progress_deadline_seconds": {"type": "int", "aliases": ["progressDeadlineSeconds"]},
            },
        },
    }


def run(params: t.Mapping[str, t.Any], cluster: Cluster, check_mode: bool, now: str) -> execution.Pass:
    """One pass over `running`; `now` is `2006-01-02T15:04:05Z`."""
    namespace = snapshot.named_namespace(params)
    inputs.check(params["running"], params["published"])
    inputs.check_verification(params.get("verification_seconds", trial.VERIFICATION))
    inputs.check_policy(params, bool(params.get("update") or params.get("update_resource")))
    if params["state"] == "released":
        policy = release.Policy(params["release"], params["force"])
        dry_run = check_mode or params["dry_run"]
        done = execution.release(cluster, namespace, params["running"], dry_run, params["published"], policy, now)
        if params["dry_run"]:
            # outside of check mode the caller would apply what was not put back
            done.starts = []
        return done
    inputs.check_wait(params)
    waits = _waits(params, check_mode)
    if waits and params.get("rolled") is not None:
        return waiting.until_proven(cluster, namespace, params, params["rolled"], _clock())
    done = execution.reconcile(cluster, namespace, params, check_mode, now)
    if not waits or not done.rolled:
        return done
    waited = waiting.until_proven(cluster, namespace, params, done.rolled, _clock())
    return dataclasses.replace(waited, rolled=done.rolled, errors=[*done.errors, *waited.errors], starts=done.starts)


def run_each(
    params: t.Mapping[str, t.Any], cluster: Cluster, check_mode: bool, now: str
) -> tuple[several.Done, list[dict[str, t.Any]]]:
    """The same for each of `updates`; and the results that an earlier call had of them."""
    before = params["rolled"] or []
    if _waits(params, check_mode) and params["rolled"] is not None:
        inputs.check_wait(params)
        return several.until_proven(params, cluster, before, _clock()), before

    def one(own: t.Mapping[str, t.Any]) -> execution.Pass:
        return run({**own, "rolled": None}, cluster, check_mode, now)

    return several.run(params, cluster, one), []


def _waits(params: t.Mapping[str, t.Any], check_mode: bool) -> bool:
    return bool(params.get("wait")) and not (check_mode or params["dry_run"])


def _clock() -> waiting.Clock:
    return waiting.Clock(conditions.now, time.monotonic, time.sleep)


def unpacked(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The parameters with everything that may be a text as plain data.

    :raises StewardError: something is neither the text nor what it stands for
    """
    lists = [option for option in ("running", "published", "updates") if option in params]
    return {
        **params,
        **{option: handover.dicts(params[option], option) for option in lists},
        "update_resource": handover.mapping(params["update_resource"], "update_resource"),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec=argument_spec(),
        supports_check_mode=True,
        required_one_of=[("running", "updates")],
        mutually_exclusive=[("updates", option) for option in ("running", "update", "update_resource", "namespace")],
    )
    start.hide_secrets_alone(module)
    cluster = LazyCluster(lambda: Cluster.connect(module))
    try:
        given = unpacked(module.params)
        if module.params["updates"] is None:
            done = run(given, cluster, module.check_mode, conditions.now())
            warnings, result = done.warnings, _result(module, done, not given["running"])
        else:
            each, before = run_each(given, cluster, module.check_mode, conditions.now())
            warnings = [warning for _entry, own in each for warning in own.warnings]
            result = results.result(each, module._diff, module.check_mode, module.params["fail_on"], before)
    except StewardError as exc:
        module.fail_json(**exc.as_result())
    for warning in dict.fromkeys(warnings):
        module.warn(warning)
    if module.params["fail_on_errors"] and result["errors"]:
        module.fail_json(msg=report.aggregated(result["errors"]), **result)
    if module.params["fail_on_errors"] and result.get("failures"):
        module.fail_json(msg="; ".join(result["failures"]), **result)
    module.exit_json(**result)


def _result(module: AnsibleModule, done: execution.Pass, nothing_ran: bool) -> dict[str, t.Any]:
    found = report.result(done, with_diff=module._diff, nothing_ran=nothing_ran, is_check=module.check_mode)
    return {**found, "failures": report.failures(done, module.params["missing"], module.params["fail_on"])}


if __name__ == "__main__":
    main()

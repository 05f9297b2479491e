# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that say what one namespace is to be."""

from __future__ import annotations


class ModuleDocFragment:
    """What `module_utils/namespaces/request.py` reads."""

    DOCUMENTATION = r"""
options:
  size:
    description: Name of a size.
    type: str
  managed:
    description: Whether only namespaces labelled C(app=infra) reach its Pods.
    type: bool
  quota:
    description: Resources and quantities that differ from the size's, object counts such as C(count/pods) among them.
    type: dict
  limit_range:
    description: Limits of containers. What is not given is half of the quota.
    type: dict
    suboptions:
      enabled:
        description: Whether there is a LimitRange at all.
        type: bool
      default:
        description: Limits of a container that has none.
        type: dict
      default_request:
        description: Requests of a container that has none.
        type: dict
      max:
        description: The highest limits.
        type: dict
      min:
        description: The lowest ones.
        type: dict
  access:
    description: Who has which ClusterRole in the namespace.
    type: list
    elements: dict
    suboptions:
      role:
        description: One of O(allowed_roles).
        type: str
        required: true
      users:
        description: Names of users.
        type: list
        elements: str
      groups:
        description: Names of groups.
        type: list
        elements: str
      service_accounts:
        description: Service accounts, V(name) or V(namespace/name).
        type: list
        elements: str
  pull_secrets:
    description:
      - Secrets of a Docker type that are copied from the Nspro's own namespace, where they are labelled
        C(kubesteward.io/shareable=true), and linked to ServiceAccounts.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the Secret.
        type: str
        required: true
      service_accounts:
        description: ServiceAccounts whose Pods pull with it. Without it V(default).
        type: list
        elements: str
  network_policy:
    description: What the policy allows beside the rule of O(managed).
    type: dict
    suboptions:
      same_namespace:
        description: Pods of the namespace reach each other, where it is managed.
        type: bool
      from_namespaces:
        description: Labels of further namespaces whose Pods may come in, one map per rule.
        type: list
        elements: dict
      ports:
        description: Ports that are open to everybody, for callers that are in no Pod network, such as the API server.
        type: list
        elements: dict
        suboptions:
          port:
            description: Number of the port.
            type: int
            required: true
          protocol:
            description: Its protocol.
            type: str
            choices: [TCP, UDP, SCTP]
            default: TCP
      restrict_egress:
        description:
          - Pods reach only DNS, their own namespace, O(network_policy.to_namespaces) and O(network_policy.to_cidrs).
        type: bool
      to_namespaces:
        description: Labels of further namespaces that Pods may reach, one map per rule.
        type: list
        elements: dict
      to_cidrs:
        description:
          - Blocks of addresses that Pods may reach where egress is restricted.
          - This is for what is in no Pod network, such as the API server or a database.
        type: list
        elements: dict
        suboptions:
          cidr:
            description: The block, V(10.1.0.0/16) or V(192.0.2.7/32) for example.
            type: str
            required: true
          ports:
            description: Ports that are reached there. Without them all are.
            type: list
            elements: dict
            suboptions:
              port:
                description: Number of the port.
                type: int
                required: true
              protocol:
                description: Its protocol.
                type: str
                choices: [TCP, UDP, SCTP]
                default: TCP
      dns:
        description: DNS stays reachable where egress is restricted.
        type: bool
  pod_security:
    description: Pod Security levels, V(privileged), V(baseline) or V(restricted).
    type: dict
    suboptions:
      enforce: {description: Level that is enforced., type: str}
      audit: {description: Level that is audited., type: str}
      warn: {description: Level that is warned of., type: str}
      enforce_version: {description: Version of the level., type: str}
      audit_version: {description: Version of the level., type: str}
      warn_version: {description: Version of the level., type: str}
  labels:
    description: Further labels of the Namespace. They go again when they are no longer given.
    type: dict
  annotations:
    description: Further annotations of the Namespace. They go again when they are no longer given.
    type: dict
  adoption:
    description:
      - Whether a Namespace that is there already is taken over, where its administrator has annotated it
        C(kubesteward.io/adoptable-by=<namespace>/<name>) of the Nspro, or V(playbook).
      - V(IfIdentical) takes over what needs no change.
    type: str
    choices: [Never, IfIdentical, Always]
  deletion:
    description:
      - What becomes of the Namespace when it is let go. By default a created one is deleted, an adopted one is kept.
      - One that is annotated C(kubesteward.io/guard) is always kept.
    type: str
    choices: [Delete, Keep]
  shrink:
    description:
      - What happens where the new quota is less than what is used. V(Hold) keeps the size as it is; V(Apply) writes it.
    type: str
    choices: [Hold, Apply]
"""

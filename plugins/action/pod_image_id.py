# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run pod_image_id in the controller's process where the controller is the target."""

from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.plugin_utils.direct import DirectAction, preload

# an Update's three tasks need them, and this is the first
preload(
    "requests",
    "ansible_collections.kubernetes.core.plugins.module_utils.args_common",
    *(".kube", ".handover", ".images.look", ".images.execution", ".images.results", ".images.several"),
    *(".images.waiting", ".registry.call", ".registry.transport"),
)


class ActionModule(DirectAction):
    MODULE = "kubesteward.core.pod_image_id"

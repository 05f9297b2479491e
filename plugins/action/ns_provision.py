# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ns_provision in the controller's process where the controller is the target."""

from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.plugin_utils.direct import DirectAction


class ActionModule(DirectAction):
    MODULE = "kubesteward.core.ns_provision"

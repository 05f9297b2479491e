# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Nspro says, as the module's options have it."""

from __future__ import annotations

from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import request, sizes


def test_every_version_of_a_pod_security_level_is_read() -> None:
    spec = {
        "nssize": "small",
        "podSecurity": {"enforce": "baseline", "enforceVersion": "v1.34", "warnVersion": "latest"},
    }
    entry = request.of_resource({"metadata": {"name": "team-a"}, "spec": spec})
    found = request.read(entry, "ops/team-a", ["edit"], sizes.DEFAULTS).pod_security
    assert found["pod-security.kubernetes.io/enforce-version"] == "v1.34"
    assert "pod-security.kubernetes.io/warn-version" not in found

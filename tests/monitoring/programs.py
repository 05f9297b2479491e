# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""promtool and kube-state-metrics, built by Go from pinned modules and kept in the testbed's cache; CRDs of a third."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from testbed import binaries, settings

FOLDER = Path(__file__).resolve().parent / "build"
_CRDS = "github.com/prometheus-operator/prometheus-operator"


class Tool(binaries.Module):
    """A module whose folder is here."""

    @property
    def folder(self) -> Path:
        return FOLDER / self.name


# without its many ways to find targets, which no test asks for and take half of the time to build
PROMTOOL = Tool("promtool", {"promtool": "github.com/prometheus/prometheus/cmd/promtool"}, tags="remove_all_sd")
KUBE_STATE_METRICS = Tool("kube-state-metrics", {"kube-state-metrics": "k8s.io/kube-state-metrics/v2"})


def path_of(tool: Tool) -> Path:
    """Path of the program; built where it is missing, which takes minutes."""
    (program,) = tool.packages
    return binaries.program_of(tool, program, settings.from_environment(os.environ).cache)


def custom_resource_definitions() -> dict[str, Path]:
    """Files of the CRDs of prometheus-operator that config/prometheus uses, by plural."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", _CRDS],
        cwd=FOLDER / "prometheus-operator",
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/local/go/bin"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (
        f"The module {_CRDS} cannot be had from the Go module proxy: {done.stderr}{done.stdout}"
    )
    folder = Path(json.loads(done.stdout)["Dir"]) / "example/prometheus-operator-crd"
    return {
        plural: folder / f"monitoring.coreos.com_{plural}.yaml" for plural in ("servicemonitors", "prometheusrules")
    }

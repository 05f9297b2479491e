# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import itertools
import runpy
import shutil
from pathlib import Path

import pytest

from testbed import binaries, connection, settings
from testbed.errors import TestbedError


def test_defaults() -> None:
    found = settings.from_environment({"HOME": "/home/me"})
    assert found.home == Path("/var/lib/kubesteward-testbed")
    assert found.cache == Path("/home/me/.cache/kubesteward")
    assert found.registry == "127.0.0.1:16403"
    assert found.assets is None


def test_the_environment_decides() -> None:
    environ = {"TESTBED_HOME": "/srv/tb", "TESTBED_PORT_BASE": "20000", "XDG_CACHE_HOME": "/c"}
    found = settings.from_environment({**environ, "KUBEBUILDER_ASSETS": "/k"})
    assert (found.home, found.cache, found.assets) == (Path("/srv/tb"), Path("/c/kubesteward"), Path("/k"))
    assert set(found.ports.values()) == set(range(20000, 20006))


def test_two_instances_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "DEFAULT_HOME",
        "DEFAULT_PORT_BASE",
        "HOST_ADDRESS",
        "NODE_ADDRESS",
        "POD_NETWORK",
        "HOST_DEVICE",
        "CGROUP",
    )
    found = []
    for number in ("0", "1", "9"):
        monkeypatch.setenv("TESTBED_INSTANCE", number)
        found.append(runpy.run_path(str(settings.PACKAGE / "settings.py")))
    for name in names:
        assert len({values[name] for values in found}) == 3, name
    networks = [ipaddress.ip_network(values["POD_NETWORK"]) for values in found]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(networks, 2))


@pytest.mark.parametrize(
    "environ",
    [
        {"TESTBED_INSTANCE": "10"},
        {"TESTBED_INSTANCE": "second"},
        {"TESTBED_HOME": "relative"},
        {"TESTBED_HOME": "/"},
        {"TESTBED_HOME": "/a b"},
        {"TESTBED_HOME": "/" + "x" * 80},
        {"TESTBED_PORT_BASE": "80"},
        {"TESTBED_PORT_BASE": "65530"},
        {"TESTBED_PORT_BASE": "many"},
    ],
)
def test_bad_values_are_named(environ: dict[str, str]) -> None:
    with pytest.raises(TestbedError, match=next(iter(environ))):
        settings.from_environment(environ)


def test_the_key_of_a_build_follows_its_checksums(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(binaries, "PACKAGE", tmp_path)
    shutil.copytree(settings.PACKAGE / "build", tmp_path / "build")
    before = binaries.KUBERNETES.key
    assert before == binaries.KUBERNETES.key
    with (tmp_path / "build" / "kubernetes" / "go.sum").open("a") as file:
        file.write("x v1 h1:x\n")
    assert binaries.KUBERNETES.key != before


def test_an_external_cluster_needs_both_variables(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.touch()
    found = connection.connect({"TESTBED_KUBECONFIG": str(config), "TESTBED_REGISTRY": "registry.test:5000"})
    assert (found.kubeconfig, found.audit_log, found.mirrored) == (config, None, False)
    assert found.image_name("a/b:1") == "registry.test:5000/a/b:1"
    assert found.registries("quay.io") == [{"prefix": "registry.test:5000", "insecure": True}]
    with pytest.raises(TestbedError, match="TESTBED_REGISTRY"):
        connection.connect({"TESTBED_KUBECONFIG": str(config)})
    with pytest.raises(TestbedError, match="no such file"):
        connection.connect({"TESTBED_KUBECONFIG": str(tmp_path / "none"), "TESTBED_REGISTRY": "r:1"})


@pytest.mark.parametrize("registry", ["localhost:5000", "127.0.0.1:5000", "[::1]:5000", "localhost"])
def test_a_loopback_registry_needs_no_entry(registry: str) -> None:
    assert connection.Testbed(Path("/k"), registry, None, False).registries() == []


def test_the_own_testbed_mirrors_every_name() -> None:
    found = connection.Testbed(Path("/k"), "127.0.0.1:5000", Path("/a"), True)
    assert found.image_name("a/b:1") == "quay.io/a/b:1"
    assert found.image_name("a/b:1", "ghcr.io") == "ghcr.io/a/b:1"
    assert found.registries("quay.io", "ghcr.io") == [
        {"prefix": name, "location": "127.0.0.1:5000"} for name in ("quay.io", "ghcr.io")
    ]


def test_an_exported_kubeconfig_is_not_used(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": str(tmp_path / "production"), "TESTBED_HOME": str(tmp_path / "tb")}
    if len(environ["TESTBED_HOME"]) > settings.LONGEST_HOME:
        environ["TESTBED_HOME"] = "/nonexistent/tb"
    with pytest.raises(TestbedError, match="make testbed-up"):
        connection.connect(environ)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pull Secrets of a real cluster, used against a real registry that wants a password."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import testbed
from ansible_collections.kubesteward.core.plugins.modules import registry_digest
from ansible_collections.kubesteward.core.tests.integration.registry.conftest import MARKER
from ansible_collections.kubesteward.core.tests.integration.registry.pull_secrets import create

ROOT = Path(__file__).parents[3]


@pytest.fixture
def secrets(namespace, kubectl, htpasswd):
    """Namespace of the Secrets."""
    kubectl("create", "--namespace", namespace, "--filename=-", stdin=listed(create(namespace, htpasswd, MARKER)))
    return namespace


def listed(items):
    return {"apiVersion": "v1", "kind": "List", "items": items}


def look_up(folder, **arguments):
    """The module in a process of its own, with the testbed's cluster."""
    given = {"kubeconfig": str(testbed.connect().kubeconfig), "cache_dir": "", **arguments}
    (folder / "arguments.json").write_text(json.dumps({"ANSIBLE_MODULE_ARGS": given}))
    command = [sys.executable, registry_digest.__file__, str(folder / "arguments.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert MARKER not in done.stdout + done.stderr
    return json.loads(done.stdout)


def entries(folder, image, namespace, *names):
    """One entry for each list of names of Secrets."""
    items = [
        {"image": image, "pull_secrets": [{"namespace": namespace, "name": name} for name in group.split()]}
        for group in names
    ]
    return look_up(folder, images=items)["images"]


def test_secrets_of_both_kinds_open_the_registry(tmp_path, secrets, htpasswd, images):
    image = f"{htpasswd}/team/app:index"
    for found, name in zip(
        entries(tmp_path, image, secrets, "good-json", "good-cfg"), ("good-json", "good-cfg"), strict=True
    ):
        assert (found["state"], found["digest"]) == ("found", images["index"].digest)
        assert found["credential_source"] == f"secret {secrets}/{name}"
        assert found["pull_secrets"] == [{"namespace": secrets, "name": name}]
        assert found["warnings"] == []


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("missing", "does not exist"),
        ("bad-auth", "not base64 of user:password"),
        ("bad-auths", "'auths' is not a JSON object"),
        ("bad-field", "is not text"),
        ("bad-key", "not host[:port][/path]"),
        ("opaque", "is of another type"),
    ],
)
def test_a_missing_or_broken_secret_is_named_and_spoils_nothing_else(
    tmp_path, secrets, htpasswd, anonymous, images, name, what
):
    source = f"secret {secrets}/{name}"
    broken, beside = entries(tmp_path, f"{htpasswd}/team/app:index", secrets, name, f"{name} good-json")
    assert (broken["state"], broken["reason"]) == ("unknown", "unauthorized")
    assert source in broken["msg"]
    assert what in broken["msg"]
    assert beside["digest"] == images["index"].digest
    assert any(source in warning and what in warning for warning in beside["warnings"])
    (public,) = entries(tmp_path, f"{anonymous}/team/app:index", secrets, name)
    assert (public["state"], public["credential_source"]) == ("found", None)
    assert any(source in warning for warning in public["warnings"])


def test_the_proof_that_a_digest_can_be_pulled_uses_exactly_the_secret(tmp_path, secrets, htpasswd, images):
    image = f"{htpasswd}/team/app:index"
    item = {"image": image, "pull_secrets": [{"namespace": secrets, "name": "good-cfg"}], "verify": True}
    (found,) = look_up(tmp_path, images=[item])["images"]
    assert (found["digest"], found["pullable"]) == (images["index"].digest, True)


def test_a_cluster_that_cannot_be_reached_is_told_in_the_entry(tmp_path, htpasswd):
    item = {"image": f"{htpasswd}/team/app:index", "pull_secrets": [{"namespace": "shop", "name": "pull"}]}
    (tmp_path / "kubeconfig").write_text("{}")
    (found,) = look_up(tmp_path, images=[item], kubeconfig=str(tmp_path / "kubeconfig"))["images"]
    assert (found["state"], found["reason"]) == ("unknown", "unauthorized")
    assert "secret shop/pull: cannot be read" in found["msg"]

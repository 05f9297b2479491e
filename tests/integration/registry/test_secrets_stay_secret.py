# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-runner records what a module does in job events: no credential may be in them, whatever happens to it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import testbed
from ansible_collections.kubesteward.core.tests.integration.registry.conftest import MARKER
from ansible_collections.kubesteward.core.tests.integration.registry.pull_secrets import (
    create,
    docker_config,
)

ROOT = Path(__file__).parents[3]
MODULE = "kubesteward.core.registry_digest"
BROKEN = "bad-json bad-auth bad-auths bad-field bad-key opaque"


def forms(secret):
    """The secret as it is, and in base64 wherever it may begin within what was encoded."""
    found = {secret, json.dumps(secret)[1:-1]}
    for name in ("user", "team"):
        found.add(base64.b64encode(f"{name}:{secret}".encode()).decode())
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + secret.encode()).decode()
        # the characters at both ends depend on the neighbours
        found.add(encoded[4 if offset else 0 : -4])
    return found


def tasks(host, folder, namespace):
    """Name -> arguments: every way in for a credential, accepted and refused; `vars_files` hold the values."""
    image = f"{host}/team/app:index"
    public = {"images": [image], "cache_dir": "", "retries": 1}
    one = {"image": image, "cache_dir": "", "retries": 1}
    secrets = {name: [{"namespace": namespace, "name": name}] for name in ("good-json", "good-cfg", *BROKEN.split())}
    given = {
        "password": {"username": "team", "password": "{{ secret }}"},
        "config": {"auth_config": "{{ good_config }}"},
        "config_text": {"auth_config": "{{ good_config | to_json }}"},
        "file": {"auth_file": str(folder / "good.json")},
        "secret_json": {"pull_secrets": secrets["good-json"]},
        "secret_cfg": {"pull_secrets": secrets["good-cfg"]},
        "refused_password": {"username": "user", "password": "{{ secret }}"},
        "refused_config": {"auth_config": "{{ bad_config }}"},
        "broken_config": {"auth_config": "{{ '{' ~ secret }}"},
        "odd_config": {"auth_config": {"auths": {"{{ secret }}": "{{ secret }}"}, "credHelpers": "{{ secret }}"}},
        "refused_file": {"auth_file": str(folder / "bad.json")},
        "broken_file": {"auth_file": str(folder / "broken.json")},
        **{f"secret {name}": {"pull_secrets": secrets[name]} for name in BROKEN.split()},
    }
    listed = {f"{name} in a list": {**public, **options} for name, options in given.items()}
    return listed | {f"{name} alone": {**one, **options} for name, options in given.items()}


@pytest.fixture
def project(tmp_path, htpasswd, namespace, kubectl):
    """A folder as ansible-runner wants it."""
    for name in ("project", "inventory"):
        (tmp_path / name).mkdir()
    good, bad = (docker_config(htpasswd, user, MARKER) for user in ("team", "user"))
    for name, content in (("good", json.dumps(good)), ("bad", json.dumps(bad)), ("broken", f'{{"auths": {MARKER}')):
        (tmp_path / f"{name}.json").write_text(content)
    values = {"secret": MARKER, "good_config": good, "bad_config": bad}
    (tmp_path / "project" / "values.yml").write_text(yaml.safe_dump(values))
    for item in create(namespace, htpasswd, MARKER):
        kubectl("create", "--namespace", namespace, "--filename=-", stdin=item)
    steps = [
        {"name": name, MODULE: options, "register": "found", "ignore_errors": True}
        for name, options in tasks(htpasswd, tmp_path, namespace).items()
    ]
    play = {"hosts": "all", "gather_facts": False, "vars_files": ["values.yml"], "tasks": steps}
    (tmp_path / "project" / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    inventory = {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}}
    inventory["all"]["hosts"]["localhost"]["ansible_python_interpreter"] = sys.executable
    (tmp_path / "inventory" / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return tmp_path


def run(project, direct):
    programs = Path(sys.executable).parent
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_"))}
    environment.update(
        PATH=f"{programs}{os.pathsep}{environment['PATH']}",
        ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
        ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".cache" / "collections"),
        ANSIBLE_HOME=str(project / "home"),
        ANSIBLE_LOG_PATH=str(project / "artifacts" / "log"),
        K8S_AUTH_KUBECONFIG=str(testbed.connect().kubeconfig),
        KUBESTEWARD_DIRECT=direct,
    )
    (project / "artifacts").mkdir()
    command = [str(programs / "ansible-runner"), "run", str(project), "-p", "play.yml", "-i", "run", "-vvv"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL
    )


def results(project):
    """Task -> result, out of the job events."""
    events = [json.loads(path.read_text()) for path in (project / "artifacts" / "run" / "job_events").glob("*.json")]
    return {
        event["event_data"]["task"]: event["event_data"]["res"]
        for event in events
        if event["event"] in ("runner_on_ok", "runner_on_failed")
    }


@pytest.mark.parametrize("direct", ["0", "1"], ids=["started", "direct"])
def test_no_credential_is_in_any_event_artifact_or_log(project, namespace, direct):
    done = run(project, direct)
    assert done.returncode == 0, done.stdout + done.stderr
    found = results(project)
    listed = {name.removesuffix(" in a list"): result["images"][0] for name, result in found.items() if "list" in name}
    alone = {name.removesuffix(" alone"): result for name, result in found.items() if name.endswith("alone")}
    assert len(listed) == len(alone) == 12 + len(BROKEN.split())
    for results_of in (listed, alone):
        assert [
            results_of[name].get("credential_source") for name in ("password", "config", "file", "secret_json")
        ] == [
            "username and password",
            "auth_config",
            f"auth_file {project}/good.json",
            f"secret {namespace}/good-json",
        ]
        refused = {name for name, result in results_of.items() if result.get("reason") == "credential_rejected"}
        assert refused >= {"refused_password", "refused_config", "refused_file"}
        for name in BROKEN.split():
            assert results_of[f"secret {name}"]["reason"] in ("unauthorized", "credential_rejected")
    files = [path for path in (project / "artifacts").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"log", "stdout", "status"}
    everything = {str(path.relative_to(project)): path.read_text(errors="replace") for path in files}
    everything["printed"] = done.stdout + done.stderr
    assert sum(len(text) for text in everything.values()) > 100_000
    leaks = sorted((name, form) for name, text in everything.items() for form in forms(MARKER) if form in text)
    assert leaks == []

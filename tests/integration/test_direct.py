# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same playbook with modules run directly and with modules started: the results are the same."""

from __future__ import annotations

import base64
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from ansible.parsing.vault import VaultLib, VaultSecret

SECRET = "open-sesame-5b1f"
DIGEST = f"sha256:{'ab' * 32}"
ROOT = Path(__file__).parents[2]
MODULE = "kubesteward.core.registry_digest"


class Registry(http.server.BaseHTTPRequestHandler):
    """Knows one digest; `/v2/slow/` never answers, `/v2/private/` wants the secret."""

    protocol_version = "HTTP/1.1"
    released = threading.Event()

    def do_HEAD(self):
        if "/slow/" in self.path:
            self.released.wait(20)
        wanted = f"Basic {base64.b64encode(f'me:{SECRET}'.encode()).decode()}"
        if "/private/" in self.path and self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="Registry Realm"')
        else:
            self.send_response(200)
            self.send_header("Docker-Content-Digest", DIGEST)
            self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        """Say nothing."""


@pytest.fixture(scope="module")
def registry():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    Registry.released.set()
    server.shutdown()
    server.server_close()
    thread.join(5)


KUBECONFIG = {
    "current-context": "shop",
    "contexts": [{"name": "shop", "context": {"cluster": "shop", "user": "me"}}],
    "clusters": [{"name": "shop", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "me", "user": {"token": SECRET}}],
}
_VAULT = VaultLib([("default", VaultSecret(b"open sesame"))])


class Vaulted(str):
    """A text that stands encrypted in the playbook."""


def encrypted(text):
    return _VAULT.encrypt(text.encode(), VaultSecret(b"open sesame")).decode()


yaml.SafeDumper.add_representer(
    Vaulted, lambda dumper, value: dumper.represent_scalar("!vault", encrypted(str(value)), style="|")
)


def tasks(host):
    """Name -> a task of registry_digest with its keywords."""
    login = {"username": "me", "password": "{{ lookup('ansible.builtin.env', 'STEWARD_TEST_PASSWORD') }}"}
    return {
        "found": {MODULE: {"image": f"{host}/shop/web:1"}},
        "list": {MODULE: {"images": [f"{host}/shop/web:1", {"image": "Not Valid"}]}, "diff": True},
        "checked": {MODULE: {"image": f"{host}/shop/web:1"}, "check_mode": True},
        "warned": {MODULE: {"image": f"{host}/shop/web:1", "auth_config": "{broken"}},
        "invalid": {MODULE: {"image": "Not Valid"}},
        "unknown_option": {MODULE: {"image": "a", "imag": "b"}},
        "secret": {MODULE: {"image": f"{host}/private/web:1", **login}},
        "refused": {MODULE: {"image": f"{host}/private/web:1", **login, "username": "other"}},
        "environment": {
            MODULE: {"image": "a", "auth_file": "$STEWARD_TEST_FOLDER/config.json"},
            "environment": {"STEWARD_TEST_FOLDER": "/no/such/{{ 'fol' + 'der' }}"},
        },
        "environment_of_no_texts": {
            MODULE: {"image": f"{host}/shop/web:1", "pull_secrets": [{"namespace": "shop", "name": "regcred"}]},
            "environment": {"K8S_AUTH_HOST": "http://127.0.0.1:9", "K8S_AUTH_VERIFY_SSL": False, "A": 5, "B": None},
        },
        "environment_of_python": {
            MODULE: {"image": f"{host}/shop/web:1"},
            "environment": {"PYTHONDONTWRITEBYTECODE": "1"},
        },
        "loop": {MODULE: {"image": f"{host}/{{{{ item }}}}"}, "loop": ["shop/web:1", "shop/web:2"]},
        "delegated": {MODULE: {"image": f"{host}/shop/web:1"}, "delegate_to": "localhost", "run_once": True},
        "in_the_background": {MODULE: {"image": f"{host}/shop/web:1"}, "async": 30, "poll": 1},
        "interpreter": {
            MODULE: {"image": f"{host}/shop/web:1"},
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        },
        "repeated": {
            MODULE: {"image": f"{host}/shop/web:1"},
            "until": "result_repeated.digest is defined",
            "retries": 2,
            "delay": 0,
        },
        "hidden": {MODULE: {"image": f"{host}/private/web:1", **login}, "no_log": True},
        "decrypted": {MODULE: {"image": f"{host}/private/web:1", "auth_file": "auth.json"}},
        "decrypted_value": {
            MODULE: {"image": f"{host}/private/web:1", **login, "password": "{{ vaulted }}"},
            "vars": {"vaulted": Vaulted(SECRET)},
        },
        "cluster_in_a_map": {
            "kubesteward.core.pod_image_id": {"namespace": "shop", "kubeconfig": KUBECONFIG},
        },
        "late": {MODULE: {"image": f"{host}/slow/web:1", "retries": 1}, "timeout": 1},
    }


def play(folder, host, direct_execution):
    """Run all tasks in one playbook; their results by name, and everything that was printed."""
    steps = [
        {"name": name, **task, "register": f"result_{name}", "ignore_errors": True}
        for name, task in tasks(host).items()
    ]
    names = ", ".join(f"'{name}': result_{name}" for name in tasks(host))
    steps.append({"name": "Show", "ansible.builtin.debug": {"msg": f"RESULTS {{{{ {{{names}}} | to_json }}}}"}})
    book = folder / "play.yml"
    free = {"hosts": "all", "gather_facts": False, "strategy": "free", "tasks": steps[:1]}
    book.write_text(yaml.safe_dump([free, {**free, "strategy": "linear", "tasks": steps}], sort_keys=False, width=200))
    (folder / "files").mkdir()
    login = base64.b64encode(f"me:{SECRET}".encode()).decode()
    (folder / "files" / "auth.json").write_text(encrypted(json.dumps({"auths": {host: {"auth": login}}})))
    (folder / "password").write_text("open sesame")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "KUBESTEWARD_"))}
    environment.update(KUBESTEWARD_DIRECT="1" if direct_execution else "0", STEWARD_TEST_PASSWORD=SECRET)
    environment.update(ANSIBLE_NOCOLOR="1", ANSIBLE_LOCAL_TEMP=str(folder), ANSIBLE_REMOTE_TEMP=str(folder))
    command = [
        str(Path(sys.executable).parent / "ansible-playbook"),
        "-i",
        "localhost,",
        "-c",
        "local",
        "-vvv",
        f"--vault-password-file={folder / 'password'}",
        str(book),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    (line,) = re.findall(r'"msg": ("RESULTS .*")\n', printed)
    return json.loads(json.loads(line).removeprefix("RESULTS ")), printed


@pytest.fixture(scope="module")
def both(tmp_path_factory, registry):
    """(results, output) of direct execution, and of started modules."""
    return tuple(play(tmp_path_factory.mktemp("play"), registry, mode) for mode in (True, False))


def comparable(value):
    """A result without what differs between any two runs: durations, temporary names, where a task was interrupted."""
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        moving = ("elapsed", "invocation", "exception", "frame", "ansible_job_id", "results_file")
        return {key: comparable(item) for key, item in value.items() if key not in moving}
    # a decrypted file lies in a folder of the run
    return re.sub(r"/\S*/ansible-local-\S+", "decrypted file", value) if isinstance(value, str) else value


def started(printed):
    """Names of the tasks whose module was started."""
    sections = re.split(r"^TASK \[(\w+)\]", printed, flags=re.MULTILINE)
    return {name for name, text in zip(sections[1::2], sections[2::2], strict=True) if "AnsiballZ_" in text}


def test_both_ways_were_taken(both):
    assert started(both[0][1]) == {"in_the_background", "environment_of_python"}
    assert started(both[1][1]) == set(tasks("host"))


@pytest.mark.parametrize("name", tasks("host"))
def test_both_ways_give_the_same_result(both, name):
    assert comparable(both[0][0][name]) == comparable(both[1][0][name])


@pytest.mark.parametrize("way", [0, 1], ids=["direct", "started"])
def test_results_are_what_the_module_says(both, way):
    results = both[way][0]
    failed = {"invalid", "unknown_option", "refused", "environment", "late", "cluster_in_a_map"}
    assert {name for name, result in results.items() if result.get("failed")} == failed
    without_digest = {*failed, "list", "loop"}
    assert {results[name]["digest"] for name in results if name not in without_digest} == {DIGEST}
    assert [item["digest"] for item in results["loop"]["results"]] == [DIGEST] * 2
    # names of the kubeconfig are not hidden, its token is
    assert "in shop" in results["cluster_in_a_map"]["msg"]
    assert any("auth_config" in text for text in results["warned"]["warnings"])
    assert [item["state"] for item in results["list"]["images"]] == ["found", "unknown"]
    assert results["invalid"]["reason"] == "invalid_reference"
    assert "imag" in results["unknown_option"]["msg"]
    assert results["refused"]["reason"] == "credential_rejected"
    assert "/no/such/folder/config.json" in results["environment"]["msg"]
    # ansible-core 2.18 says "in the expected time frame (1)", newer ones "after 1 second"
    assert re.search(r"\b1\b", results["late"]["msg"])


@pytest.mark.parametrize("way", [0, 1], ids=["direct", "started"])
def test_a_secret_is_printed_nowhere(both, way):
    printed = both[way][1]
    assert SECRET not in printed
    assert base64.b64encode(f"me:{SECRET}".encode()).decode() not in printed
    # ansible-core 2.21 prints no invocation at all
    assert "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER" in printed or '"invocation"' not in printed

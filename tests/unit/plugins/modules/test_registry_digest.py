# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import redirect_stdout
from unittest import mock

import pytest
import yaml
from ansible.module_utils import basic
from ansible.module_utils.common.text.converters import to_bytes
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ansible_collections.kubesteward.core.plugins.doc_fragments import cluster_auth, registry_access
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import read_rules
from ansible_collections.kubesteward.core.plugins.module_utils.registry.lookup import ENTRY_KEYS
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import parse
from ansible_collections.kubesteward.core.plugins.modules import registry_digest
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.images import pushes
from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    Reply,
    child,
    content,
    index,
    look_up,
    manifest,
    one,
    serving,
    sha256,
)

try:
    from ansible.module_utils.testing import patch_module_args
except ImportError:  # ansible-core 2.18

    @contextlib.contextmanager
    def patch_module_args(args):
        with mock.patch.object(basic, "_ANSIBLE_ARGS", to_bytes(json.dumps({"ANSIBLE_MODULE_ARGS": args}))):
            yield


BODY = manifest()
GOOD = content(BODY, tags={"t": BODY, "i": index(child(BODY))})
MARKER = "m4rk3r-s3cret"


def module_side():
    """As in a process of its own, where warnings go into the result; other tests import the controller's side."""
    internal = sys.modules.get("ansible.module_utils._internal")
    if not hasattr(internal, "is_controller"):
        return contextlib.nullcontext()
    return mock.patch.object(internal, "is_controller", False)


def main(**args):
    """Run `main` in this process; its exit code and what it printed."""
    printed = io.StringIO()
    given = {"cache_dir": "", "timeout": 3, **args}
    with module_side(), patch_module_args(given), redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        registry_digest.main()
    return ended.value.code, json.loads(printed.getvalue())


def test_one_image_gives_its_parts_at_the_top_level():
    with serving(GOOD) as server:
        code, result = main(image=f"{server.host}/app:t")
    assert code == 0
    assert (result["changed"], result["digest"], result["tag"]) == (False, sha256(BODY), "t")
    assert result["reference"] == f"{server.host}/app@{sha256(BODY)}"
    assert result["requests_made"] == 1
    assert "state" not in result


def test_a_failed_look_up_of_one_image_fails_with_its_reason():
    with serving(GOOD) as server:
        code, result = main(image=f"{server.host}/app:none")
    assert code == 1
    assert result["failed"]
    assert result["reason"] == "not_found"
    assert server.host in result["msg"]


def test_a_list_never_fails_and_keeps_its_order():
    with serving(GOOD) as server:
        code, result = main(
            images=[
                f"{server.host}/app:none",
                f"{server.host}/app:t",
                {"image": f"{server.host}/app:i", "platform": "linux/amd64"},
            ]
        )
    assert code == 0
    assert [entry["state"] for entry in result["images"]] == ["unknown", "found", "found"]
    assert result["images"][2]["platform_digest"] == sha256(BODY)
    assert result["requests_made"] == sum(entry["requests_made"] for entry in result["images"])


def test_a_refused_credential_is_a_warning_of_ansible():
    def public(asked):
        return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'}) if asked.authorization else GOOD(asked)

    with serving(lambda asked: public(asked) if asked.path != "/v2/app/manifests/gone" else Reply(404)) as server:
        code, result = main(image=f"{server.host}/app:t", auth_config="{broken")
    assert code == 0
    assert any("auth_config" in json.dumps(text) for text in result["warnings"])


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ({}, "one of the following is required"),
        ({"image": "a", "images": ["b"]}, "mutually exclusive"),
        ({"image": "a", "username": "u"}, "required together"),
        ({"image": "a", "timeout": 0}, "timeout is 0"),
        ({"image": "a", "deadline": -1}, "deadline is -1"),
        ({"image": "a", "timeout": "inf"}, "timeout is inf"),
        ({"image": "a", "timeout": "nan"}, "timeout is nan"),
        ({"image": "a", "concurrency": 10000}, "at most 128"),
        ({"image": "a", "auth_file": "/nonexistent"}, "/nonexistent"),
        ({"image": "a", "registries": [{}]}, "registries[0]"),
        ({"image": "a", "platform": "linux"}, "platform"),
        ({"image": "UPPER"}, "lower case"),
        ({"image": "a", "resolve": ["x"]}, "resolve"),
    ],
)
def test_wrong_options_are_told(args, what):
    code, result = main(**args)
    assert code == 1
    assert what in result["msg"]


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"image": "a", "tag": "x"}, "unknown key 'tag'"),
        ({"platform": "linux/amd64"}, "must be a reference"),
        (["a"], "must be a reference"),
        ({"image": "a", "pull_secrets": "x"}, "'pull_secrets'"),
        ({"image": "a", "pull_secrets": [{"name": "x"}]}, "'pull_secrets'"),
        ({"image": "a", "platform": 5}, "'platform'"),
        ({"image": "a", "platform": "x"}, "platform 'x'"),
        ({"image": "a", "expect": "sha256:x"}, "'expect' of the entry must be a list"),
        ({"image": "a", "resolve": ["x"]}, "'resolve' of the entry has 'x'"),
        ({"image": "a", "verify": "perhaps"}, "'verify' of the entry must be true or false"),
    ],
)
def test_a_wrong_entry_is_told_in_its_place(item, what):
    (entry,) = look_up(images=[item])["images"]
    assert (entry["state"], entry["reason"]) == ("unknown", "invalid_reference")
    assert what in entry["msg"]


@pytest.mark.parametrize(("verify", "asked"), [("False", 1), ("no", 1), (None, 1), ("true", 2), (True, 2)])
def test_verify_may_be_what_a_template_made_of_it(verify, asked):
    with serving(GOOD) as server:
        look_up(images=[{"image": f"{server.host}/app:t", "verify": verify}])
        assert len(server.asked) == asked


def test_a_platform_without_a_child_is_a_warning_that_lists_what_there_is():
    with serving(GOOD) as server:
        (entry,) = look_up(images=[{"image": f"{server.host}/app:i", "platform": "linux/s390x"}])["images"]
    assert (entry["state"], entry["platform_digest"]) == ("found", None)
    assert "linux/amd64" in entry["warnings"][0]


def test_a_single_image_is_its_own_platform():
    with serving(GOOD) as server:
        found = look_up(image=f"{server.host}/app:t", platform="linux/amd64", resolve=["config"])
    assert (found["platform_digest"], found["children"], found["config_digest"]) == (sha256(BODY), [], sha256(b"c"))


def test_documentation_and_argument_spec_agree():
    documented = yaml.safe_load(registry_digest.DOCUMENTATION)["options"]
    for fragment in (cluster_auth, registry_access):
        documented.update(yaml.safe_load(fragment.ModuleDocFragment.DOCUMENTATION)["options"])
    spec = registry_digest.argument_spec()
    assert set(documented) == set(spec)
    for name, option in spec.items():
        assert documented[name].get("type", "str") == option.get("type", "str"), name
        assert documented[name].get("default") == option.get("default"), name
        assert documented[name].get("choices") == option.get("choices"), name
        assert documented[name].get("elements") == option.get("elements"), name
        assert bool(documented[name].get("suboptions")) == bool(option.get("options")), name
    assert set(AUTH_ARG_SPEC) - {"username", "password"} <= set(spec)
    yaml.safe_load(registry_digest.RETURN)


def test_every_example_has_known_options():
    spec = registry_digest.argument_spec()
    tasks = [
        task["kubesteward.core.registry_digest"]
        for task in yaml.safe_load(registry_digest.EXAMPLES)
        if "ansible.builtin.debug" not in task
    ]
    assert len(tasks) > 5
    for task in tasks:
        assert set(task) <= set(spec)
        for entry in task.get("images", ()):
            assert isinstance(entry, str) or set(entry) <= ENTRY_KEYS


def test_every_kind_of_registry_has_an_example_that_is_a_legal_call():
    """Docker Hub, GHCR, ECR, Quay, a private registry with its own CA, a mirror."""
    tasks = [task.get("kubesteward.core.registry_digest", {}) for task in yaml.safe_load(registry_digest.EXAMPLES)]
    images = [
        (task, entry["image"] if isinstance(entry, dict) else entry)
        for task in tasks
        for entry in [*task.get("images", ()), *([task["image"]] if "image" in task else [])]
        if "{{" not in str(entry) or isinstance(entry, dict)
    ]
    hosts = {parse(image).registry.partition(":")[0] for _task, image in images}
    assert hosts >= {"registry-1.docker.io", "ghcr.io", "quay.io", "registry.example.com"}
    assert any(host.endswith(".amazonaws.com") for host in hosts)
    rules = [(image, rule) for task, image in images for rule in task.get("registries", ())]
    assert all(read_rules([rule]) for _image, rule in rules)
    assert any(rule.get("ca_cert") and image.startswith(rule["prefix"]) for image, rule in rules)
    assert any(rule.get("mirror") for _image, rule in rules)


@pytest.mark.parametrize("key", sorted(ENTRY_KEYS))
def test_every_key_of_an_entry_is_explained(key):
    (option,) = [yaml.safe_load(registry_digest.DOCUMENTATION)["options"]["images"]]
    assert any(line.startswith(f"C({key})") for line in option["description"])


@pytest.mark.parametrize(
    ("now", "platform", "digest"),
    [
        (pushes.image("linux/arm64"), "linux/arm64", True),
        (pushes.image("linux/arm/v6"), "linux/arm", True),
        (pushes.image(""), "linux/amd64", True),
        (pushes.image("linux/arm64"), "linux/amd64", False),
        (pushes.image("windows(10.0.20348.1)/amd64"), "windows(10.0.20348)/amd64", True),
        (pushes.image("windows(10.0.20348.1)/amd64"), "windows(10.0.17763)/amd64", False),
        (pushes.pushed(b"{}", "application/vnd.cncf.helm.config.v1+json"), "linux/amd64", False),
        (pushes.index(), "linux/amd64", False),
    ],
)
def test_a_platform_has_no_digest_where_its_nodes_could_not_run_it(now, platform, digest):
    with serving(pushes.serving(now)) as server:
        found = one({"image": f"{server.host}/shop/web:1", "platform": platform})
    assert found["platform_digest"] == (now.digest if digest else None)
    assert [now.digest in text for text in found["warnings"]] == ([] if digest else [True])


def test_a_single_image_tells_its_platform_and_what_is_none_what_it_is():
    chart = pushes.pushed(b"{}", "application/vnd.cncf.helm.config.v1+json")
    for now, platform, artifact in (
        (pushes.image("linux/arm64/v8"), "linux/arm64/v8", None),
        (chart, None, "a Helm chart (application/vnd.cncf.helm.config.v1+json)"),
    ):
        with serving(pushes.serving(now)) as server:
            found = one({"image": f"{server.host}/shop/web:1", "resolve": ["children"]})
            alone = one(f"{server.host}/shop/web:1")
        assert (found["image_platform"], found["artifact"]) == (platform, artifact)
        assert (found["state"], alone["state"], alone["requests_made"]) == ("found", "found", 1)
        assert "image_platform" not in alone


def test_every_key_of_a_result_is_documented():
    documented = set(yaml.safe_load(registry_digest.RETURN)) | {"changed", "state", "msg", "failed"}
    with serving(GOOD) as server:
        item = {"image": f"{server.host}/app:i", "verify": True, "resolve": ["children", "config"]}
        (full,) = look_up(images=[{**item, "platform": "linux/amd64"}])["images"]
        single = look_up(image=f"{server.host}/app:t")
        unknown = one(f"{server.host}/app:none")
    invalid = one("UPPER")
    assert full["pullable"] is True
    for result in (full, single, unknown, invalid):
        assert set(result) <= documented


def test_importing_the_module_imports_neither_requests_nor_kubernetes():
    code = (
        "import sys; import ansible_collections.kubesteward.core.plugins.modules.registry_digest; "
        "print([name for name in ('requests', 'urllib3', 'kubernetes') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30, env=environment()
    )
    assert done.stdout.strip() == "[]"


def environment(**more):
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "ANSIBLE_NOCOLOR": "1",
        **more,
    }


def test_no_credential_appears_at_vvv(tmp_path):
    """Every way in for a credential, every way for it to be refused, and the marker in no output."""

    def refusing(asked):
        if asked.path == "/token":
            return Reply(401, {}, json.dumps({"details": asked.authorization, "body": asked.body.decode()}).encode())
        if asked.path.startswith("/v2/basic"):
            return Reply(401, {"WWW-Authenticate": 'Basic realm="r"'}, str(asked.authorization).encode())
        return Reply(401, {"WWW-Authenticate": f'Bearer realm="http://{asked.headers["host"]}/token"'})

    with serving(refusing) as server:
        auths = {
            server.host: {"username": "team", "password": MARKER},
            f"{server.host}/basic": {"auth": MARKER},
            f"{server.host}/id": {"identitytoken": f"id{MARKER}"},
            f"{server.host}/reg": {"registrytoken": f"reg{MARKER}"},
        }
        (tmp_path / "config.json").write_text(json.dumps({"auths": {**auths, MARKER: MARKER}}))
        common = {
            "images": [f"{server.host}/{name}/team:t" for name in ("basic", "id", "reg", "token")],
            "cache_dir": "",
            "retries": 1,
        }
        sources = [
            {"auth_file": str(tmp_path / "config.json")},
            {"auth_config": {"auths": auths}},
            {"auth_config": json.dumps({"auths": auths})},
            {"auth_config": f"{{{MARKER}"},
            {"username": "team", "password": MARKER},
        ]
        tasks = [{"kubesteward.core.registry_digest": {**common, **source}, "register": "found"} for source in sources]
        failing = {key: value for key, value in common.items() if key != "images"}
        failing = {**failing, "image": f"{server.host}/basic/team:t", "username": "team", "password": MARKER}
        tasks.append({"kubesteward.core.registry_digest": failing, "ignore_errors": True})
        play = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}]
        (tmp_path / "play.yml").write_text(yaml.safe_dump(play))
        command = [sys.executable, "-m", "ansible.cli.playbook", "-i", "localhost,", "-vvv", str(tmp_path / "play.yml")]
        more = {
            "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(sys.path),
            "ANSIBLE_LOG_PATH": str(tmp_path / "log"),
            "ANSIBLE_HOME": str(tmp_path / "home"),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        }
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=environment(**more), cwd=tmp_path
        )
        sent = [asked.authorization for asked in server.asked if asked.authorization]
    printed = done.stdout + done.stderr + (tmp_path / "log").read_text()
    assert done.returncode == 0, printed
    assert sent, "no credential was sent, so nothing was tested"
    assert printed.count('"reason": "credential_rejected"') >= 4
    assert f"{server.host}/basic/team:t" in printed
    assert MARKER not in printed


def test_steward_errors_of_wrong_options_are_not_look_ups():
    with pytest.raises(StewardError) as caught:
        look_up(image="a", registries=[{"prefix": "http://x"}])
    assert caught.value.reason is None


def test_a_silent_host_does_not_keep_the_process_alive(tmp_path):
    with socket.create_server(("127.0.0.1", 0), backlog=20) as silent:
        images = [f"127.0.0.1:{silent.getsockname()[1]}/app:{number}" for number in range(5)]
        arguments = {"ANSIBLE_MODULE_ARGS": {"images": images, "timeout": 60, "deadline": 0.5, "cache_dir": ""}}
        (tmp_path / "args.json").write_text(json.dumps(arguments))
        started = time.monotonic()
        command = [sys.executable, registry_digest.__file__, str(tmp_path / "args.json")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment())
        took = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result = json.loads(done.stdout)
    assert {entry["reason"] for entry in result["images"]} == {"unreachable"}
    assert result["elapsed"] < 1.5
    # a busy machine needs some seconds to start and to end the process
    assert took < 20


@pytest.mark.parametrize(("spent", "asked"), [(0, True), (59, True), (61, False), (-5, True)])
def test_what_is_spent_of_a_deadline_counts(spent, asked):
    with serving(GOOD) as server:
        code, result = main(images=[f"{server.host}/app:t"], deadline=60, spent=spent)
        assert bool(server.asked) is asked
    assert code == 0
    assert ("deadline" in result["images"][0].get("msg", "")) is not asked

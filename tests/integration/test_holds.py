# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rolls that are held because a person, a manager, the registry or another Update says otherwise."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import threading
import time
import typing as t
from collections.abc import Iterator

import pytest
from integration.passes import Shop, writes
from integration.workloads import Object, container, deployment, digests_of, image_of, images_in, rolled_out

import testbed
from testbed import images, layout
from testbed.audit import AuditLog

pytestmark = pytest.mark.usefixtures("crds")

FORWARD_SECONDS = 10


@pytest.fixture
def audit() -> AuditLog:
    return AuditLog.of(testbed.connect())


def manifest(shop: Shop, name: str) -> Object:
    """A Deployment of the tag `app`, as a person applies it."""
    return deployment(name, container(name, image_of(shop, "app")))


def spec_image(shop: Shop, name: str) -> str:
    return images_in(shop.get("deployment", name))[name]


def digest_of(shop: Shop, name: str) -> str:
    return spec_image(shop, name).rpartition("@")[2]


def message(shop: Shop, name: str, update: str = "sample") -> str:
    found = shop.get("update", update)["status"]["images"]
    return next(image["message"] for image in found if image["container"] == name)


def targets(*names: str) -> Object:
    return {"targets": [{"kind": "Deployment", "name": name} for name in names]}


def roll(shop: Shop, text: str, *names: str) -> str:
    """Push, run a pass, and wait until these Deployments run it; its digest."""
    digest = shop.push(text, "app")
    shop.run("update")
    assert {name: digest_of(shop, name) for name in names} == dict.fromkeys(names, digest)
    rolled_out(shop, *(f"deployment/{name}" for name in names))
    return digest


def change(shop: Shop, name: str, *command: str) -> None:
    """What a person does with kubectl, and its rollout."""
    shop.kubectl(*command, "-n", shop.namespace)
    rolled_out(shop, f"deployment/{name}")


def test_what_a_person_put_back_is_held_until_the_tag_moves(shop):
    """By `kubectl set image` to an older digest, and by `kubectl rollout undo`, to a tag or to a digest."""
    names = ("chosen", "undone")
    first = shop.push("v1", "app")
    shop.apply(*(manifest(shop, name) for name in names), shop.update(spec=targets(*names)))
    rolled_out(shop, "deployment/chosen", "deployment/undone")
    shop.run("update")
    second = roll(shop, "v2", *names)
    older = f"chosen={shop.testbed.image_name(shop.repository)}@{first}"
    change(shop, "chosen", "set", "image", "deployment/chosen", older)
    change(shop, "undone", "rollout", "undo", "deployment/undone")
    # the node still has the first image under the tag
    assert spec_image(shop, "undone") == image_of(shop, "app")
    for _pass in range(2):
        shop.run("update")
        assert shop.verdicts() == dict.fromkeys(names, "stale/rolled_back_by_hand")
        assert digest_of(shop, "chosen") == first
        assert spec_image(shop, "undone") == image_of(shop, "app")
    assert digests_of(shop, "chosen") == digests_of(shop, "undone") == {first}
    assert shop.condition("RolloutBlocked")["status"] == "True"
    assert "RollHeld" in shop.events()
    third = roll(shop, "v3", *names)
    assert digests_of(shop, "chosen") == digests_of(shop, "undone") == {third}
    roll(shop, "v4", *names)
    change(shop, "undone", "rollout", "undo", "deployment/undone")
    assert digest_of(shop, "undone") == third
    shop.run("update")
    assert shop.verdicts()["undone"] == "stale/rolled_back_by_hand"
    assert digest_of(shop, "undone") == third
    assert second not in (first, third)


def test_a_person_can_have_what_was_undone_rolled_again(shop):
    shop.push("v1", "app")
    shop.apply(manifest(shop, "undone"), shop.update(spec=targets("undone")))
    rolled_out(shop, "deployment/undone")
    second = roll(shop, "v2", "undone")
    change(shop, "undone", "rollout", "undo", "deployment/undone")
    shop.run("update")
    assert shop.verdicts() == {"undone": "stale/rolled_back_by_hand"}
    shop.kubectl("annotate", "-n", shop.namespace, "deployment/undone", f"kubesteward.io/retry={second}")
    shop.run("update")
    assert digest_of(shop, "undone") == second
    assert "kubesteward.io/retry" not in shop.get("deployment", "undone")["metadata"]["annotations"]


def test_a_manager_that_puts_the_tag_back_is_answered_once_and_then_named(shop):
    shop.push("v1", "app")
    shop.apply(shop.update(spec=targets("managed")))
    sync = ("apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f", "-")

    def put_back() -> None:
        shop.kubectl(*sync, "-n", shop.namespace, stdin=manifest(shop, "managed"))
        rolled_out(shop, "deployment/managed")
        assert spec_image(shop, "managed") == image_of(shop, "app")

    put_back()
    second = roll(shop, "v2", "managed")
    put_back()
    shop.run("update")
    assert digest_of(shop, "managed") == second
    rolled_out(shop, "deployment/managed")
    put_back()
    for _pass in range(2):
        shop.run("update")
        assert shop.verdicts() == {"managed": "stale/reverted"}
        assert spec_image(shop, "managed") == image_of(shop, "app")
    assert "argocd-controller" in message(shop, "managed")
    assert shop.condition("RolloutBlocked")["status"] == "True"


def test_a_digest_that_the_registry_does_not_give_is_not_rolled(shop):
    shop.push("v1", "app")
    shop.apply(manifest(shop, "web"), shop.update(spec=targets("web")))
    rolled_out(shop, "deployment/web")
    second = shop.push("v2", "app")
    with registry_without(shop.testbed.registry, second) as address:
        places = [{**entry, "location": address} for entry in shop.testbed.registries()]
        for _pass in range(2):
            shop.run("update", update_registries=places)
            assert shop.verdicts() == {"web": "stale/not_pullable"}
            assert spec_image(shop, "web") == image_of(shop, "app")
        assert second in message(shop, "web")
        assert shop.condition("RolloutBlocked")["status"] == "True"
        assert shop.condition("RegistryReachable")["status"] == "True"
        assert shop.flags() == "true,false"
    shop.run("update")
    assert digest_of(shop, "web") == second


def test_only_what_the_node_can_run_and_does_not_have_is_rolled(shop):
    """A single image for another platform, something that is none, an index that changes for other nodes only."""
    here = images.host_platform()
    there = next(name for name in ("linux/arm64", "linux/amd64") if name != here)
    tag, text = f"{shop.repository}:app", shop.repository

    def web(version: str, platform: str) -> layout.Layout:
        return images.web_image(f"{version} {text}", platform=platform)

    first = images.push(images.index_image([web("v1", here), web("v1", there)]), tag)
    shop.apply(manifest(shop, "web"), shop.update(spec=targets("web")))
    rolled_out(shop, "deployment/web")
    note = layout.image([layout.layer({"note": text.encode()})], {}, here)
    for pushed, parts in (
        (web("v2", there), (there, here)),
        (images.index_image([web("v2", there)]), (there, here)),
        (layout.index([layout.attestation(note)]), ("attestations only",)),
    ):
        digest = images.push(pushed, tag)
        shop.run("update")
        assert shop.verdicts() == {"web": "stale/not_pullable"}
        assert all(part in message(shop, "web") for part in (digest, *parts))
        assert spec_image(shop, "web") == image_of(shop, "app")
    images.push(images.index_image([web("v1", here), web("v3", there)]), tag)
    shop.run("update")
    assert shop.verdicts() == {"web": "current/index_changed_only"}
    assert digests_of(shop, "web") == {first}
    good = images.push(web("v4", here), tag)
    shop.run("update")
    assert digest_of(shop, "web") == good
    rolled_out(shop, "deployment/web")
    assert digests_of(shop, "web") == {good}


@contextlib.contextmanager
def registry_without(registry: str, digest: str) -> Iterator[str]:
    """The address of a registry that answers as `registry` does, but knows no manifest by that digest."""

    class Front(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, content = self._answer()
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def _answer(self) -> tuple[int, list[tuple[str, str]], bytes]:
            if self.path.endswith(f"/manifests/{digest}"):
                return 404, [("Content-Length", "0")], b""
            behind = http.client.HTTPConnection(registry, timeout=FORWARD_SECONDS)
            behind.request(self.command, self.path, headers={"Accept": ", ".join(self.headers.get_all("Accept", []))})
            answer = behind.getresponse()
            content = answer.read()
            behind.close()
            return answer.status, answer.getheaders(), content

        def log_message(self, *_args: t.Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(FORWARD_SECONDS)


def test_of_two_updates_the_older_has_a_workload_and_the_other_writes_nothing_to_it(shop, audit):
    shop.push("v1", "app")
    shop.apply(manifest(shop, "web"), shop.update("older", targets("web")))
    time.sleep(1)  # creation times have whole seconds
    shop.apply(shop.update("a-younger", targets("web")))
    rolled_out(shop, "deployment/web")
    shop.run("update")
    assert shop.verdicts("older") == {"web": "current/digest_equal"}
    second = shop.push("v2", "app")
    mark = audit.mark()
    for _pass in range(2):
        shop.run("update", update_name="a-younger")
        assert shop.verdicts("a-younger") == {"web": "stale/conflict"}
        assert "older" in message(shop, "web", "a-younger")
        assert shop.condition("RolloutBlocked", "a-younger")["status"] == "True"
    written = writes(audit.since(mark, namespace=shop.namespace))
    assert "patch updates/status a-younger" in written
    assert [write for write in written if "events/" not in write and "updates/status" not in write] == []
    assert spec_image(shop, "web") == image_of(shop, "app")
    mark = audit.mark()
    shop.run("update")
    assert digest_of(shop, "web") == second
    written = writes(audit.since(mark, namespace=shop.namespace))
    assert written.count("patch deployments/ web") == 1
    rolled_out(shop, "deployment/web")
    shop.kubectl("delete", "update/older", "-n", shop.namespace)
    third = shop.push("v3", "app")
    shop.run("update")
    assert digest_of(shop, "web") == third

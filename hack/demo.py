#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch a Pod move to the image that was pushed a moment ago.

Starts the testbed if there is none, or uses the cluster of TESTBED_KUBECONFIG and TESTBED_REGISTRY. Can be run again.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import time
import typing as t
from pathlib import Path

from testbed import Testbed, TestbedError, connect, images

ROOT = Path(__file__).resolve().parent.parent
NAMESPACE = "kubesteward-demo"
REPOSITORY = "k_nakajima/nginx-sample:latest"
DEPLOYMENT = "nginx-sample"
COMMAND_SECONDS = 180
ROLLOUT_SECONDS = 150
BOLD, GREEN, DIM, END = "\033[1m", "\033[32m", "\033[2m", "\033[0m"

START = """\
apiVersion: install.sios.nginx.testing/v1
kind: Start
metadata:
  name: start-sample
spec:
  name: nginx
  image: {image}
"""
UPDATE = """\
apiVersion: install.sios.nginx.testing/v1
kind: Update
metadata:
  name: update-sample
"""


class DemoError(Exception):
    """What went wrong, for people."""


def paint(text: str, colour: str) -> str:
    return f"{colour}{text}{END}" if sys.stdout.isatty() else text


def title(text: str) -> None:
    print(f"\n{paint('== ' + text, BOLD)}", flush=True)


def show(text: str) -> None:
    print("".join(f"   {line}\n" for line in text.splitlines()), end="", flush=True)


@dataclasses.dataclass(frozen=True)
class Demo:
    """The cluster to show it on, and how to call the two tools on it."""

    testbed: Testbed

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("K8S_AUTH_")}
        return {**kept, "KUBECONFIG": str(self.testbed.kubeconfig), "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1"}

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints; raises DemoError where it fails."""
        return _run(["kubectl", "--namespace", NAMESPACE, *arguments], self.environment, stdin)

    def playbook(self, name: str, **variables: t.Any) -> str:
        """Run one of our playbooks and return the lines of its verdict table, if it prints one."""
        command = [str(ROOT / ".venv/bin/ansible-playbook"), f"kubesteward.core.{name}", "-e", json.dumps(variables)]
        show(paint("$ " + shlex.join(["ansible-playbook", *command[1:]]), DIM))
        environment = {**self.environment, "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
        output = _run(command, {**environment, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}, None)
        return "\n".join(_table(output))

    def pod(self) -> dict[str, str]:
        """Name, image and imageID of the newest Pod that is ready."""
        found = json.loads(self.kubectl("get", "pods", "-l", "app=nginx-app", "-o", "json"))["items"]
        ready = [
            pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"]
            and any(entry.get("ready") for entry in pod["status"].get("containerStatuses", []))
        ]
        if not ready:
            raise DemoError("no Pod is ready; see: kubectl -n " + NAMESPACE + " describe pods")
        pod = max(ready, key=lambda item: item["metadata"]["creationTimestamp"])
        status = pod["status"]["containerStatuses"][0]
        return {
            "name": pod["metadata"]["name"],
            "imageID": status["imageID"],
            "image": pod["spec"]["containers"][0]["image"],
        }

    def wait(self) -> None:
        """Wait for the rollout, which the product itself never does."""
        self.kubectl("rollout", "status", f"deployment/{DEPLOYMENT}", f"--timeout={ROLLOUT_SECONDS}s")

    def page(self, pod: str) -> str:
        """What the web server in the Pod answers."""
        answer = self.kubectl("exec", pod, "--", *images.http_get_command("127.0.0.1"))
        return answer.replace("\r", "").rpartition("\n\n")[2].strip()

    def flags(self) -> str:
        """The line that the article prints."""
        return self.kubectl("get", "update", "update-sample", "-o", "jsonpath={..status.check_id},{..status.update}")


def _run(command: list[str], environment: dict[str, str], stdin: str | None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except FileNotFoundError as exc:
        raise DemoError(f"{command[0]} is missing: install it and run the demo again") from exc
    except subprocess.TimeoutExpired as exc:
        raise DemoError(f"{shlex.join(command)} took more than {COMMAND_SECONDS} s") from exc
    if done.returncode:
        raise DemoError(f"{shlex.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def _table(output: str) -> list[str]:
    _before, found, rest = output.partition('"msg": [')
    if not found:
        return []
    lines = rest.partition("]\n")[0].splitlines()
    return [json.loads(line.strip().rstrip(",")) for line in lines if line.strip()]


def testbed() -> Testbed:
    """The external cluster, or the testbed, started where there is none."""
    if not os.environ.get("TESTBED_KUBECONFIG"):
        up = subprocess.run([sys.executable, "-m", "testbed", "up"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        if up.returncode:
            raise DemoError("the testbed did not start; its message is above")
    return connect()


def play(demo: Demo) -> None:
    """The whole story; raises DemoError where it does not go as told."""
    image = demo.testbed.image_name(REPOSITORY)
    registries = demo.testbed.registries()
    stamp = time.strftime("%H:%M:%S")

    title("A registry has v1, the cluster gets a Start and an Update")
    first = images.push(images.web_image(f"v1 of {stamp}"), REPOSITORY, demo.testbed.registry)
    show(f"pushed v1 as {image}\n  {first}")
    _run(["kubectl", "apply", "--server-side", "-k", str(ROOT / "config/crd")], demo.environment, None)
    demo.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/starts.install.sios.nginx.testing")
    demo.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/updates.install.sios.nginx.testing")
    namespace = demo.kubectl("create", "namespace", NAMESPACE, "--dry-run=client", "-o", "yaml")
    demo.kubectl("apply", "-f", "-", stdin=namespace)
    demo.kubectl("delete", "update", "update-sample", "--ignore-not-found")
    show(demo.kubectl("apply", "-f", "-", stdin=f"{START.format(image=image)}---\n{UPDATE}"))
    demo.playbook("start", start_namespace=NAMESPACE)
    demo.wait()
    show(demo.playbook("update", update_namespace=NAMESPACE, update_registries=registries))
    before = demo.pod()
    if first not in before["imageID"]:
        # an earlier run of the demo left the Deployment on its own digest: the pass above has rolled it to v1
        demo.wait()
        show(demo.playbook("update", update_namespace=NAMESPACE, update_registries=registries))
        before = demo.pod()
    show(f"check_id,update = {demo.flags()}")

    title("Somebody pushes v2 under the same tag")
    second = images.push(images.web_image(f"v2 of {stamp}"), REPOSITORY, demo.testbed.registry)
    show(f"pushed v2 as {image}\n  {second}")

    title("One pass of the update playbook")
    show(demo.playbook("update", update_namespace=NAMESPACE, update_registries=registries))
    show(f"check_id,update = {demo.flags()}")
    old_page = demo.page(before["name"])
    demo.wait()
    after = demo.pod()
    show(demo.playbook("update", update_namespace=NAMESPACE, update_registries=registries))

    title("The Pod runs what was pushed")
    oracle = images.inspect(REPOSITORY, demo.testbed.registry)
    show(f"before    {before['imageID']}\n          answers {old_page!r}")
    show(f"after     {after['imageID']}\n          answers {demo.page(after['name'])!r}")
    show(f"skopeo    {oracle}")
    if before["imageID"] == after["imageID"] or not after["imageID"].endswith(oracle):
        raise DemoError("the Pod does not run the digest that the registry has")
    show(paint("the Pod's imageID is the digest that skopeo inspect reports", GREEN))


def main() -> int:
    try:
        found = testbed()
        play(Demo(found))
    except (DemoError, TestbedError) as exc:
        print(f"demo: {exc}", file=sys.stderr)
        return 1
    look = f"KUBECONFIG={found.kubeconfig} kubectl -n {NAMESPACE} get starts,updates,pods"
    stop = "make testbed-down" if found.audit_log else f"kubectl delete namespace {NAMESPACE}"
    print(f"\nLook around: {look}    Stop: {stop}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

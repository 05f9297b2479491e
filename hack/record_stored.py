# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record what this version stores: `PYTHONPATH=tests python hack/record_stored.py VERSION`, on the testbed.

ansible-operator itself (`ANSIBLE_OPERATOR`, or on PATH) works on the samples for some minutes; then what the API server
has of them goes to tests/integration/stored/VERSION. See docs/operator-upgrades.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

import yaml

from testbed import Testbed, connect, images

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/integration/stored"
#: names that a test must replace end with it
MARK = "-stored"
NAMESPACE = f"shop{MARK}"
REPOSITORY = "tests/stored"
KINDS = ("updates", "starts", "nspros", "deployments")
API = "install.sios.nginx.testing/v1"
SAMPLES = ("install_v1_start", "every_option_start", "install_v1_update", "every_option_update")
NSPROS = ("nspro_v1alpha1_large", "nspro_v1alpha1_np", "nspro_v1alpha1_small", "every_option_nspro")
SECONDS = 600
#: two periods of every resource: what is written then is what stays
REST = 130
Object = dict[str, t.Any]


def main(version: str) -> None:
    """Make the objects, let the operator work, write the files, and take everything away again."""
    bed = connect()
    digests = push(bed, {"v1": "", "web1": "-web", "broken1": "-broken"})
    kubectl(bed, "create", "namespace", NAMESPACE)
    try:
        kubectl(bed, "create", "-f", "-", stdin=listed(list(objects(bed))))
        with operator(bed):
            until("everything runs", lambda: all(running(bed)))
            digests |= push(bed, {"v2": "", "web2": "-web", "broken2": "-broken"})
            until("a digest waits", lambda: status(bed, "update", "waiting").get("pending"))
            until("a roll has failed", lambda: status(bed, "update", "careless").get("quarantine"))
            time.sleep(REST)
            write(bed, OUT / version, digests)
    finally:
        remove(bed)


def kubectl(bed: Testbed, *arguments: str, stdin: Object | None = None) -> str:
    command = ["kubectl", f"--kubeconfig={bed.kubeconfig}", *arguments]
    text = "" if stdin is None else json.dumps(stdin)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def get(bed: Testbed, *arguments: str) -> Object:
    return json.loads(kubectl(bed, "get", *arguments, "--show-managed-fields", "-o", "json"))


def status(bed: Testbed, kind: str, name: str) -> Object:
    return get(bed, kind, name, "-n", NAMESPACE).get("status", {})


def running(bed: Testbed) -> t.Iterator[bool]:
    yield status(bed, "update", "update-sample").get("counts", {}).get("current", 0) >= 2
    for name in ("waiting", "careless"):
        yield status(bed, "update", name).get("counts", {}).get("current") == 1
    for item in get(bed, "nspros", "-n", NAMESPACE)["items"]:
        yield item.get("status", {}).get("phase") == "Ready"


def push(bed: Testbed, texts: t.Mapping[str, str]) -> dict[str, str]:
    """Digests by the text of the image; `texts` has the repositories' endings."""
    made = {text: (images.exiting_image if text == "broken2" else images.web_image)(f"stored {text}") for text in texts}
    return {text: images.push(made[text], f"{REPOSITORY}{end}:latest", bed.registry) for text, end in texts.items()}


def objects(bed: Testbed) -> t.Iterator[Object]:
    """The samples, with an image of the testbed, and workloads whose Updates wait or take back."""
    for name in (*SAMPLES, *NSPROS):
        (sample,) = filter(None, yaml.safe_load_all((ROOT / f"config/samples/{name}.yaml").read_text()))
        if sample["kind"] == "Start":
            sample["spec"]["image"] = bed.image_name(f"{REPOSITORY}:latest")
        if sample["kind"] == "Nspro":
            sample["metadata"]["name"] += MARK
        yield placed(sample)
    for name, more in (
        ("waiting", {"stableForSeconds": 86400}),
        ("careless", {"rollback": {"progressDeadlineSeconds": 30}}),
    ):
        workload = {"waiting": "web", "careless": "broken"}[name]
        yield placed(deployment(workload, bed.image_name(f"{REPOSITORY}-{workload}:latest")))
        spec = {"targets": [{"kind": "Deployment", "name": workload}], **more}
        yield placed({"apiVersion": API, "kind": "Update", "metadata": {"name": name}, "spec": spec})
    meta = {"name": "registry-login", "labels": {"kubesteward.io/shareable": "true"}}
    secret = {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": '{"auths": {}}'}}
    yield placed({"apiVersion": "v1", "kind": "Secret", "metadata": meta, **secret})


def placed(item: Object) -> Object:
    return {**item, "metadata": {**item["metadata"], "namespace": NAMESPACE}}


def listed(items: list[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def deployment(name: str, image: str) -> Object:
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [{"name": name, "image": image, "readinessProbe": probe}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    meta = {"name": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {"selector": selector, "template": template},
    }


@contextlib.contextmanager
def operator(bed: Testbed) -> t.Iterator[None]:
    """The program, as it is set up in a cluster, for our namespace alone."""
    program = os.environ.get("ANSIBLE_OPERATOR") or shutil.which("ansible-operator")
    if not program:
        raise SystemExit("ansible-operator is not on PATH; name it by ANSIBLE_OPERATOR")
    with tempfile.TemporaryDirectory(prefix="kubesteward-record-") as name:
        settings = Path(name) / "settings.json"
        settings.write_text(json.dumps({"update_registries": bed.registries()}))
        own = {
            "KUBECONFIG": str(bed.kubeconfig),
            "WATCH_NAMESPACE": NAMESPACE,
            "POD_NAMESPACE": "kubesteward-system",
            "KUBESTEWARD_METRICS_URL": "http://localhost:5050/metrics",
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
            "ANSIBLE_HOME": f"{name}/ansible",
        }
        arguments = ["--watches-file=watches.yaml", "--ansible-verbosity=0", f"--ansible-args=-e @{settings}"]
        with (
            Path(name, "log").open("w") as log,
            subprocess.Popen(
                [program, "run", *arguments], cwd=ROOT, env={**os.environ, **own}, stdout=log, stderr=log
            ) as process,
        ):
            try:
                yield
            except BaseException:
                print(Path(name, "log").read_text()[-5000:], file=sys.stderr)
                raise
            finally:
                process.terminate()


def until(what: str, ready: t.Callable[[], t.Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not so after {SECONDS} s")
        time.sleep(1)
    print(what, flush=True)


def write(bed: Testbed, folder: Path, digests: t.Mapping[str, str]) -> None:
    """The lists of objects, the CRDs, and what of all that a test must replace."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "config/crd/bases", folder / "crds")
    found = {kind: get(bed, kind, "-n", NAMESPACE)["items"] for kind in KINDS}
    names = [item["metadata"]["name"] for item in found["nspros"]]
    found["namespaces"] = get(bed, "namespaces", *names)["items"]
    repository = bed.image_name(REPOSITORY)
    recorded = {"namespace": NAMESPACE, "mark": MARK, "repository": repository, "digests": dict(digests)}
    contents = {**{kind: listed(items) for kind, items in found.items()}, "recorded": recorded}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def remove(bed: Testbed) -> None:
    names = [item["metadata"]["name"] for item in get(bed, "nspros", "-n", NAMESPACE)["items"]]
    for name in names:
        gone = ("--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        kubectl(bed, "patch", "nspro", name, "-n", NAMESPACE, *gone)
    kubectl(bed, "delete", "namespace", NAMESPACE, *names, "--ignore-not-found", "--wait=false")


if __name__ == "__main__":
    main(sys.argv[1])

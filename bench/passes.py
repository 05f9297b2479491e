# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Group `pass`: an empty play, our unchanged pass and the article's, over one Start, one Update and one Pod."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import typing as t

from bench import cluster
from bench.errors import BenchError
from bench.play import ROOT, Expected, Play, environment
from testbed import Testbed, images
from testbed.console import step

NAMES = ("empty_play", "update_unchanged", "article_update_unchanged")
REPOSITORY = "kubesteward-bench/web"
TAG = "1"
UNCHANGED = {"changed": 0, "unreachable": 0, "failed": 0, "rescued": 0, "ignored": 0}
# tasks of the article's role behind the comparison
SKIPPED_BY_ARTICLE = 3


@contextlib.contextmanager
def prepared(bed: Testbed) -> t.Iterator[dict[str, Play]]:
    """The plays of the group, by name, in a namespace where nothing is left to do."""
    env = environment(bed)
    with cluster.namespace(bed, "pass") as where:
        with step("one Start, one Update and a running Pod"):
            digest = images.push(images.web_image("bench"), f"{REPOSITORY}:{TAG}", bed.registry)
            image = bed.image_name(f"{REPOSITORY}:{TAG}")
            cluster.kubectl(bed, "apply", "--namespace", where, "--filename=-", stdin=_manifests(image))
            started(bed, where, "nginx-sample")
        with tag_service(digest) as url:
            yield {
                "empty_play": Play("empty_play", ("bench/empty.yml",), Expected(), env),
                "update_unchanged": update_play("update_unchanged", where, bed, current=1),
                "article_update_unchanged": _article(where, url, digest, env),
            }


def update_play(name: str, where: str, bed: Testbed, current: int) -> Play:
    """Our playbook over a namespace, as it is typed; `current` containers must be found current."""
    arguments = ["kubesteward.core.update", "-e", f"update_namespace={where}", "-e", "update_name=update-sample"]
    registries = bed.registries()
    if registries:
        arguments += ["-e", json.dumps({"update_registries": registries})]
    return Play(name, tuple(arguments), Expected(UNCHANGED, current), environment(bed))


def _manifests(image: str) -> dict[str, t.Any]:
    """A Start and an Update as the article has them."""
    api = "install.sios.nginx.testing/v1"
    start = {"metadata": {"name": "start-sample"}, "spec": {"name": "nginx", "image": image}}
    update = {"metadata": {"name": "update-sample"}, "spec": {"delete_flag": False}}
    both = [{"apiVersion": api, "kind": "Start", **start}, {"apiVersion": api, "kind": "Update", **update}]
    return {"apiVersion": "v1", "kind": "List", "items": both}


def started(bed: Testbed, where: str, deployment: str) -> None:
    """Give every Start of a namespace its Deployment, and wait for the one of that name."""
    once(bed, where, "start")
    wait = ("rollout", "status", f"deployment/{deployment}", f"--timeout={cluster.SECONDS}s")
    cluster.kubectl(bed, "--namespace", where, *wait)


def once(bed: Testbed, where: str, playbook: str) -> None:
    """Run `start` or `nspro` for every resource of a namespace."""
    arguments = (f"kubesteward.core.{playbook}", "-e", f"{playbook}_namespace={where}")
    Play(playbook, arguments, Expected(), environment(bed)).run(unchanged=False)


def _article(where: str, url: str, digest: str, env: dict[str, str]) -> Play:
    arguments = ["bench/article/update.yml"]
    for name, value in (("namespace", where), ("update", "update-sample"), ("url", url), ("tag", TAG)):
        arguments += ["-e", f"article_{name}={value}"]
    # both sides of the comparison are printed, so a pass that found them equal shows the digest in both
    shown = (f'"article_run_id": "{digest}"', f'"article_registry_id": "{digest}"')
    counts = {**UNCHANGED, "skipped": SKIPPED_BY_ARTICLE}
    return Play("article_update_unchanged", tuple(arguments), Expected(counts, texts=shown), env)


@contextlib.contextmanager
def tag_service(digest: str) -> t.Iterator[str]:
    """URL of the stand-in for a registry's JSON tag service, which runs meanwhile.

    :raises BenchError: it did not start
    """
    command = [sys.executable, "-m", "bench.article.tags", REPOSITORY, TAG, digest]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise BenchError(f"the tag service ended at once: {' '.join(command)}")
            yield url
        finally:
            process.terminate()

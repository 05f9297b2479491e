#!/usr/bin/env python3
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the bundle that OLM installs the operator from, out of config/: bundle/ and bundle.Dockerfile."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from hack import bundle_csv as csv

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, CHANNEL = "kubesteward", "stable"
LINE = 120
# What OLM puts beside the operator, in its namespace or the cluster: roles for people, and the Service of the metrics.
BESIDE = ("-editor", "-viewer", "-metrics-reader")
LABELS = {
    "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
    "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
    "operators.operatorframework.io.bundle.package.v1": PACKAGE,
    "operators.operatorframework.io.bundle.channels.v1": CHANNEL,
    "operators.operatorframework.io.bundle.channel.default.v1": CHANNEL,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", required=True, help="the operator's image, as the cluster pulls it")
    parser.add_argument("--into", type=Path, default=ROOT, help="folder to write to (default: the checkout)")
    options = parser.parse_args()
    try:
        made = files(ROOT, options.image)
    except csv.BundleError as error:
        sys.exit(f"bundle: {error}")
    shutil.rmtree(options.into / "bundle", ignore_errors=True)
    for name, text in made.items():
        path = options.into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def files(root: Path, image: str) -> dict[str, str]:
    """Text of every file of the bundle by its path."""
    config = root / "config"
    version = yaml.safe_load((root / "galaxy.yml").read_text())["version"]
    roles = load(config / "rbac")
    manager = load(config / "manager")
    crds = [path.read_text() for path in sorted((config / "crd/bases").glob("*.yaml"))]
    bindings = [each for each in [*load(config / "default"), *manager] if each["kind"].endswith("RoleBinding")]
    # every overlay of one namespace has them below this folder
    namespaced = [each for each in load(config / "single-namespace/watched") if each["kind"] == "RoleBinding"]
    (base,) = load(config / "manifests/bases")
    written = csv.version_of(
        base,
        version=version,
        created=release_date(root, version),
        image=image,
        icon=(config / "manifests/icon.svg").read_bytes(),
        samples=samples(config / "samples"),
        crds=[yaml.safe_load(crd) for crd in crds],
        manager=one(manager, "Deployment"),
        rights=csv.rights_of(roles, namespaced, bindings),
    )
    objects = [
        *(role for role in roles if role["metadata"]["name"].endswith(BESIDE)),
        defaults(one(manager, "ConfigMap")),
        without_namespace(one(manager, "Service")),
    ]
    return {
        f"bundle/manifests/{PACKAGE}.clusterserviceversion.yaml": dump(written),
        **{f"bundle/manifests/{yaml.safe_load(crd)['metadata']['name']}.yaml": crd for crd in crds},
        **{f"bundle/manifests/{each['metadata']['name']}_{each['kind'].lower()}.yaml": dump(each) for each in objects},
        "bundle/metadata/annotations.yaml": dump({"annotations": LABELS}),
        "bundle.Dockerfile": dockerfile(LABELS),
    }


def load(folder: Path) -> list[dict[str, Any]]:
    """Every object of the files and of Lists in them, by the files' names; what kustomize alone reads is left out."""
    paths = [path for path in sorted(folder.glob("*.yaml")) if path.name != "kustomization.yaml"]
    found = [each for path in paths for each in yaml.safe_load_all(path.read_text()) if each]
    return [item for each in found for item in (each["items"] if each["kind"] == "List" else [each])]


def one(objects: Iterable[dict[str, Any]], kind: str) -> dict[str, Any]:
    found = [each for each in objects if each["kind"] == kind]
    if len(found) != 1:
        raise csv.BundleError(f"config/manager has {len(found)} objects of kind {kind}, and not one.")
    return found[0]


def samples(folder: Path) -> list[dict[str, Any]]:
    """What the kustomization of the samples names: one or more of every kind."""
    names = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    return [yaml.safe_load((folder / name).read_text()) for name in names]


def defaults(config_map: dict[str, Any]) -> dict[str, Any]:
    name = csv.defaults_name(config_map["metadata"]["name"])
    return {**config_map, "metadata": {"name": name}}


def without_namespace(namespaced: dict[str, Any]) -> dict[str, Any]:
    """OLM puts it where the operator is installed, and refuses any other place."""
    metadata = {key: value for key, value in namespaced["metadata"].items() if key != "namespace"}
    return {**namespaced, "metadata": metadata}


def release_date(root: Path, version: str) -> str:
    releases = yaml.safe_load((root / "changelogs/changelog.yaml").read_text())["releases"]
    if version not in releases:
        raise csv.BundleError(f"changelogs/changelog.yaml has no release {version}.")
    return str(releases[version]["release_date"])


class Dumper(yaml.SafeDumper):
    """Lists indented and long text as blocks, as files written by hand are; no aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else ">" if len(value) > LINE and " " not in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


Dumper.add_representer(str, _text)


def dump(value: Any) -> str:
    """One document: OLM takes what stands before the mark for another one, be it a comment alone."""
    return "---\n# Made by make bundle.\n" + yaml.dump(value, Dumper=Dumper, sort_keys=False, width=LINE)


def dockerfile(labels: Mapping[str, str]) -> str:
    lines = [f"LABEL {key}={value}" for key, value in labels.items()]
    copies = ["COPY bundle/manifests /manifests/", "COPY bundle/metadata /metadata/"]
    return "\n".join(["# Made by make bundle.", "FROM scratch", *lines, *copies, ""])


if __name__ == "__main__":
    main()

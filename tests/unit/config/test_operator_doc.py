# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/operator.md says what there is, and its examples work as they stand there. Links of all pages lead somewhere."""

from __future__ import annotations

import re
import shutil

import pytest
import yaml

from ansible_collections.kubesteward.core.plugins.module_utils.registry import credentials, hosts, lookup
from hack import cluster, deploy


@pytest.fixture(scope="module")
def text(root) -> str:
    return (root / "docs/operator.md").read_text()


def example(text: str, *words: str) -> str:
    """The one code block that has all of the words."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if all(word in block for word in words)]
    return found


def test_every_setting_and_every_folder_is_named_and_no_other(root, text):
    table = text.partition("| setting |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`((?:update|nspro)_\w+)`", table)) == set(deploy.options())
    folders = {str(path.relative_to(root)) for path in (root / "config").iterdir()}
    assert set(re.findall(r"^\| `(config/[\w-]+)`", text, re.MULTILINE)) == folders


def test_overlay_of_the_page_works_beside_the_checkout(root, text, tmp_path):
    (tmp_path / "kubesteward.core").mkdir()
    shutil.copytree(root / "config", tmp_path / "kubesteward.core/config")
    (tmp_path / "steward").mkdir()
    for name in ("kustomization.yaml", "settings.yaml"):
        (tmp_path / "steward" / name).write_text(example(text, f"# steward/{name}"))
    assert "OVERLAY=../steward" in text

    objects = cluster.render(str(tmp_path / "steward"))
    container = cluster.manager_in(objects)["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example.com/kubesteward:1.0.0"
    (settings,) = filter(deploy.is_settings, objects)
    assert deploy.settings_problems(settings) == []
    assert "registry.example.com/*" in yaml.safe_load(settings["data"]["settings.yml"])["update_allowed_registries"]
    assert settings["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")


def test_credentials_of_the_page_are_those_of_the_host_that_its_settings_ask(text):
    """As the page has it: the reference, the settings, the Secret that the command makes."""
    data = yaml.safe_load(example(text, "# steward/settings.yaml"))["data"]
    settings = yaml.safe_load(data["settings.yml"])
    command = example(text, "kubesteward-registry-auth", "--docker-server")
    server = re.search(r"--docker-server=(\S+)", command)[1]
    rules = hosts.read_rules([{**rule, "ca_cert": None} for rule in settings["update_registries"]])
    config = credentials.read_config({"auths": {server: {"username": "steward", "password": "p"}}}, "auth_file")
    entry = lookup.read_entry(f"{settings['update_registries'][0]['prefix']}/shop:1", None, None)
    lookup.plan(entry, {}, lookup.Settings(rules=rules, configs=(config,)))
    (place,) = entry.query.places
    assert place.endpoint.host == settings["update_registries"][0]["location"]
    assert [credential.username for credential in place.credentials] == ["steward"]


def test_quota_of_the_page_counts_resources_that_there_are(root, text):
    quota = yaml.safe_load(example(text, "kind: ResourceQuota"))
    kinds = set()
    for path in (root / "config/crd/bases").glob("*.yaml"):
        spec = yaml.safe_load(path.read_text())["spec"]
        kinds.add(f"count/{spec['names']['plural']}.{spec['group']}")
    assert set(quota["spec"]["hard"]) <= kinds
    assert "count/updates.install.sios.nginx.testing" in quota["spec"]["hard"]
    assert "count/updates.install.sios.nginx.testing" in (root / "docs/operator-rights.md").read_text()


def test_links_lead_to_files_and_make_has_the_targets(root):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    pages = [
        root / "README.md",
        *(root / "docs").glob("*.md"),
        root / "bench/README.md",
        root / "tests/testbed/README.md",
    ]
    wrong = []
    for page in pages:
        words = page.read_text()
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", words) if "://" not in link]
        wrong += [f"{page.name}: {link}" for link in links if not (page.parent / link).exists()]
        named = re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)", words, re.MULTILINE)
        wrong += [f"{page.name}: make {name}" for name in map("".join, named) if name not in targets]
    assert wrong == []


def test_every_page_can_be_reached_from_the_first(root):
    seen, left = set(), [root / "README.md"]
    while left:
        page = left.pop()
        seen.add(page)
        links = re.findall(r"\]\(([^)\s]+\.md)\)", page.read_text())
        left += [path for link in links if (path := (page.parent / link).resolve()) not in seen and path.is_file()]
    assert set((root / "docs").glob("*.md")) <= seen


def test_no_row_of_a_table_stands_alone(root):
    for page in [root / "README.md", *(root / "docs").glob("*.md"), *root.glob("*/README.md")]:
        words = page.read_text()
        tables = re.findall(
            r"(?:^\|.*\n)+", re.sub(r"^```.*?^```$", "", words, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
        )
        assert all(re.match(r"\|[ :-]+\|", table.splitlines()[1]) for table in tables), page

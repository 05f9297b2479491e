# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose word counts on containers to follow: the option's or the Update's."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubesteward.core.plugins.modules import pod_image_id

CONTAINERS = [{"name": name, "image": "quay.io/shop/web"} for name in ("web", "proxy")]
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "shop", "uid": "1"},
    "spec": {
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {"spec": {"containers": CONTAINERS}},
    },
}
UPDATE = {
    "metadata": {"name": "all"},
    "spec": {"targets": [{"kind": "Deployment", "name": "shop"}], "containers": {"ignore": ["proxy"]}},
}


class Reader:
    """A namespace with one Update and one Deployment that has no Pods."""

    def get(self, _api_version: str, kind: str, _namespace: str | None, _name: str) -> dict[str, t.Any] | None:
        return {"Update": UPDATE, "Deployment": DEPLOYMENT}.get(kind)

    def find(self, *_arguments: t.Any, **_options: t.Any) -> list[dict[str, t.Any]]:
        return []


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({}, ["web"]),
        ({"follow": [], "ignore": []}, ["web"]),
        ({"ignore": ["web"]}, ["proxy"]),
        ({"follow": ["web", "proxy"]}, ["web", "proxy"]),
    ],
)
def test_only_an_option_that_names_containers_replaces_what_the_update_says(
    option: dict[str, list[str]], expected: list[str]
) -> None:
    arguments = {"namespace": "shop", "update": "all", "containers": option}
    checked = ArgumentSpecValidator(pod_image_id.argument_spec()).validate(arguments)
    assert checked.error_messages == []
    found = pod_image_id.run(checked.validated_parameters, Reader())["containers"]
    assert [container["container"] for container in found] == expected

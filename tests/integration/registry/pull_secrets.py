# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets of a namespace for one registry: good ones of both types, and broken ones as an API server accepts them."""

from __future__ import annotations

import base64
import json
import typing as t

Object = dict[str, t.Any]


def docker_config(host: str, user: str, password: str) -> Object:
    return {"auths": {host: {"username": user, "password": password}}}


def create(namespace: str, host: str, password: str) -> list[Object]:
    """Objects to create. The user of the good ones is `team`; each broken one has the password in another odd place."""
    encoded = base64.b64encode(f"team:{password}".encode()).decode()
    good = docker_config(host, "team", password)
    return [
        _secret("good-json", "dockerconfigjson", good),
        _secret("good-cfg", "dockercfg", {host: {"auth": encoded}}),
        _secret("bad-json", "dockerconfigjson", {password: password}),
        _secret("bad-auth", "dockerconfigjson", {"auths": {host: {"auth": password}}}),
        _secret("bad-auths", "dockerconfigjson", {"auths": password}),
        _secret("bad-field", "dockerconfigjson", {"auths": {host: {"username": "team", "password": [password]}}}),
        _secret("bad-key", "dockercfg", {f"{password}:port": {"auth": encoded}}),
        {**_secret("opaque", "dockerconfigjson", good), "type": "Opaque"},
    ]


def _secret(name: str, kind: str, content: t.Any) -> Object:
    data = {f".{kind}": base64.b64encode(json.dumps(content).encode()).decode()}
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": f"kubernetes.io/{kind}", "data": data}

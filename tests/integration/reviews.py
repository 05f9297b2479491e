# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask a real API server what an account may do, without doing it."""

from __future__ import annotations

import time
import typing as t

from integration.accounts import KNOWN_SECONDS, Right

from testbed.api import Api

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def refused(api: Api, home: str, account: str, asked: t.Iterable[Right], namespace: str | None = None) -> set[Right]:
    """Those of the rights that a ServiceAccount of `home` does not have in `namespace`, by default in `home`."""
    return {right for right in asked if not _may(api, home, account, right, home if namespace is None else namespace)}


def refused_at_last(
    api: Api, home: str, account: str, asked: t.Iterable[Right], expected: t.Container[Right]
) -> set[Right]:
    """The same, once the API server knows of every other right: it learns of new roles a moment later."""
    questions = list(asked)
    deadline = time.monotonic() + KNOWN_SECONDS
    while True:
        found = refused(api, home, account, questions)
        if not [right for right in found if right not in expected] or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def _may(api: Api, home: str, account: str, right: Right, namespace: str) -> bool:
    resource, _slash, below = right.resource.partition("/")
    what = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": below, "name": right.name}
    user = f"system:serviceaccount:{home}:{account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{home}", "system:authenticated"]
    spec = {"user": user, "groups": groups, "resourceAttributes": {**what, "namespace": namespace}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    code, answer = api.request("POST", PATH, body)
    assert code == 201, answer
    allowed: bool = answer["status"]["allowed"]
    return allowed

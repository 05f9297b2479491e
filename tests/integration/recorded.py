# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What passes ask of the API server, and which rights that takes, in the API server's own words.

Every request that was made is made once more by an account that may do nothing. The API server refuses it, before it
looks at anything else, and names the right that it would take: reads too, which no audit log of the testbed has.
"""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from integration.accounts import Right, client

from ansible_collections.kubesteward.core.plugins.module_utils.kube import TIMEOUT, Cluster
from ansible_collections.kubesteward.core.plugins.module_utils.kube_plain import RefusedError
from testbed.audit import Event

READS = ("get", "list", "watch")
REFUSAL = re.compile(r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"')


@dataclass(frozen=True)
class Request:
    """`status` is that of the answer."""

    method: str
    path: str
    status: int


@dataclass
class Recorder:
    """Requests of one account, through the product's own client."""

    kubeconfig: Path
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._client = client(self.kubeconfig)

    def cluster(self, kind: type[Cluster] = Cluster) -> Cluster:
        return kind(self._request)

    def _request(self, method: str, path: str, **query: t.Any) -> t.Any:
        try:
            answer = self._client.request(method, path, **query)
        except RefusedError as exc:
            self.requests.append(Request(method, path, exc.status))
            raise
        self.requests.append(Request(method, path, answer.status))
        return answer

    def used(self, nobody: Path, granted: t.Iterable[Right]) -> set[Right]:
        """Rights that the requests took which were not refused.

        :param nobody: kubeconfig of an account without any right
        :param granted: those that are for one object alone keep its name, all others are for any
        """
        named = {(right.group, right.resource, right.verb) for right in granted if right.name}
        asking = client(nobody)
        found = set()
        for request in sorted({x for x in self.requests if x.status != 403}, key=lambda x: (x.path, x.method)):
            right = _needed(asking.request, request)
            found.add(right)
            if request.method == "patch" and request.status == 201:
                # an apply of what was not there: the API server asks for this right while it carries the request out
                found.add(Right(right.group, right.resource, "create"))
        return {x if (x.group, x.resource, x.verb) in named else Right(x.group, x.resource, x.verb) for x in found}

    def refused(self, nobody: Path) -> set[Right]:
        """Rights that it lacked, for any object."""
        asking = client(nobody)
        lacked = [_needed(asking.request, request) for request in set(self.requests) if request.status == 403]
        return {Right(right.group, right.resource, right.verb) for right in lacked}


def _needed(ask: t.Callable[..., t.Any], request: Request) -> Right:
    try:
        ask(request.method, request.path, _request_timeout=TIMEOUT)
    except RefusedError as exc:
        answer = json.loads(exc.body)
        found = REFUSAL.search(answer["message"])
        assert exc.status == 403 and found, answer
        return Right(found["group"], found["resource"], found["verb"], answer["details"].get("name", ""))
    raise AssertionError(f"an account without rights may {request.method} {request.path}")


def written(rights: t.Iterable[Right]) -> set[str]:
    """`verb resource` of the writes that are requests of their own."""
    return {f"{right.verb} {right.resource}" for right in rights if right.verb not in READS}


def audited(events: t.Iterable[Event], user: str) -> set[str]:
    """The same of an account in the audit log; an apply that made the object counts as a create, too."""
    found = set()
    for event in events:
        if event.user == user and event.code != 403:
            resource = f"{event.resource}/{event.subresource}" if event.subresource else event.resource
            verbs = ("patch", "create") if event.verb == "patch" and event.code == 201 else (event.verb,)
            found |= {f"{verb} {resource}" for verb in verbs}
    return found

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a playbook asks of the testbed, or of the cluster of TESTBED_KUBECONFIG: `python -m testbed.scenario ...`.

Every command prints one JSON object. `facts`: how to reach it; `push NAME=TEXT...` and `inspect NAME...`: digests by
repository:tag; `mark` and `writes MARK NAMESPACE...`: what this product wrote to namespaces and in them since the mark.
"""

from __future__ import annotations

import argparse
import json
import sys
import typing as t

from testbed import images
from testbed.audit import AuditLog, Event
from testbed.connection import Testbed, connect
from testbed.console import fail
from testbed.errors import TestbedError

USER_AGENT = "kubesteward"


def main(arguments: t.Sequence[str] | None = None) -> int:
    """Exit code 0, or 2 with a message for people."""
    asked = _parser().parse_args(arguments)
    try:
        print(json.dumps(asked.answer(connect(), asked)))
    except TestbedError as error:
        fail(str(error))
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="testbed.scenario", description="What a playbook asks of the testbed.")
    commands = parser.add_subparsers(required=True)
    commands.add_parser("facts").set_defaults(answer=facts)
    push = commands.add_parser("push")
    push.add_argument("items", nargs="+", metavar="NAME=TEXT", type=pair)
    push.set_defaults(answer=_push)
    inspect = commands.add_parser("inspect")
    inspect.add_argument("names", nargs="+", metavar="NAME")
    inspect.set_defaults(answer=_inspect)
    commands.add_parser("mark").set_defaults(answer=_mark)
    writes = commands.add_parser("writes")
    writes.add_argument("mark", type=int)
    writes.add_argument("namespaces", nargs="+", metavar="NAMESPACE")
    writes.set_defaults(answer=_writes)
    return parser


def facts(testbed: Testbed, _asked: argparse.Namespace | None = None) -> dict[str, t.Any]:
    """`kubeconfig`, `image_prefix` (of repository:tag), `registries` (of update_registries), `has_audit_log`."""
    return {
        "kubeconfig": str(testbed.kubeconfig),
        "image_prefix": testbed.image_name(""),
        "registries": testbed.registries(),
        "has_audit_log": testbed.audit_log is not None,
    }


def pair(text: str) -> tuple[str, str]:
    """`repository:tag=text` in two; ArgumentTypeError where a part is missing."""
    name, equals, content = text.partition("=")
    if not (name and equals and content):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=TEXT")
    return name, content


def own_writes(events: t.Iterable[Event]) -> list[str]:
    """Mutating requests of this product, refused ones too; dry runs are none."""
    return [
        f"{event.verb} {event.uri} ({event.code})"
        for event in events
        if event.user_agent.startswith(USER_AGENT) and not event.dry_run
    ]


def within(events: t.Iterable[Event], namespaces: t.Collection[str]) -> list[Event]:
    """Events on the namespaces themselves, and on what is in them."""
    return [
        event
        for event in events
        if event.namespace in namespaces or (event.resource == "namespaces" and event.name in namespaces)
    ]


def _push(testbed: Testbed, asked: argparse.Namespace) -> dict[str, str]:
    return {name: images.push(images.web_image(text), name, testbed.registry) for name, text in asked.items}


def _inspect(testbed: Testbed, asked: argparse.Namespace) -> dict[str, str]:
    return {name: images.inspect(name, testbed.registry) for name in asked.names}


def _mark(testbed: Testbed, _asked: argparse.Namespace) -> dict[str, int]:
    return {"mark": AuditLog.of(testbed).mark()}


def _writes(testbed: Testbed, asked: argparse.Namespace) -> dict[str, list[str]]:
    return {"writes": own_writes(within(AuditLog.of(testbed).since(asked.mark), asked.namespaces))}


if __name__ == "__main__":
    sys.exit(main())

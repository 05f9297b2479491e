# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the passes in a log of ansible-operator: `passes.py LOG [OFFSET]`, bytes of the log that are left out.

Prints JSON: `offset` (bytes read so far), `errors` (messages) and `passes` by namespace/name: those that ended, each
with the whole seconds from its first task to its end.
"""

from __future__ import annotations

import datetime
import json
import pathlib
import sys
import typing as t

ENDED = "Ansible-runner exited successfully"
TASK = "[playbook task start]"


def lines(content: bytes) -> list[dict[str, t.Any]]:
    """What is JSON of complete lines; the output of plays is in between."""
    found = []
    for line in content.split(b"\n")[:-1]:
        if line.startswith(b'{"level"'):
            found.append(json.loads(line))
    return found


def summary(entries: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """`errors` and `passes` of entries in the order of the log."""
    began: dict[str, datetime.datetime] = {}
    passes: dict[str, list[int]] = {}
    for entry in entries:
        if entry["msg"] == TASK:
            began.setdefault(entry["job"], moment(entry))
        elif entry["msg"] == ENDED:
            since = began.get(entry["job"], moment(entry))
            seconds = int((moment(entry) - since).total_seconds())
            passes.setdefault(f"{entry['namespace']}/{entry['name']}", []).append(seconds)
    errors = [f"{entry['msg']}: {entry.get('error', '')}" for entry in entries if entry["level"] == "error"]
    return {"errors": errors, "passes": passes}


def moment(entry: t.Mapping[str, t.Any]) -> datetime.datetime:
    return datetime.datetime.fromisoformat(entry["ts"])


if __name__ == "__main__":
    content = pathlib.Path(sys.argv[1]).read_bytes()
    offset = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    complete = content.rfind(b"\n") + 1
    print(json.dumps({"offset": complete, **summary(lines(content[offset:complete]))}))

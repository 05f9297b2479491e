# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a container does not do its work, from its status: what that proves of its image, and how it is told. Pure.

Text of a container is told only where its image meant it so: a termination message, and never the end of a log, which
may hold anything.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import conditions
from ansible_collections.kubesteward.core.plugins.module_utils.images import running

Object = t.Mapping[str, t.Any]

#: seconds after which what a container did proves something: what it needs may start with it; passes come each minute
SOON = 45
#: seconds for which what is wrong is no hiccup, and of a run that is too short to be any good
LASTS = 60
#: restarts that make a crash loop
CRASHES = 3
#: characters of a termination message
MOST_WORDS = 120
#: the registry or the way to it is at fault, where it does not answer us either
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})
#: the image itself is at fault, whatever else was edited
NOT_GOT = PULLING | {"ErrImageNeverPull", "ImageInspectError", "InvalidImageName", "SignatureValidationFailed"}
#: a Secret or ConfigMap that is missing is not the image's fault
_CONFIG = "CreateContainerConfigError"
_UNREADY = ("is not ready", "does not end")
#: a refused pull that may well succeed a moment later
_NO_CAUSE = re.compile(r'Back-off pulling image "[^"]*"')
_PASSING = re.compile(
    r"\b429\b|\b50[0-9] |toomanyrequests|too many requests|time(d )?out|deadline exceeded|connection re|no such host"
    r"|i/o|\bEOF\b|no route|unreachable|temporary failure",
    re.IGNORECASE,
)
#: what a runtime says of an image that must not run as it wants to
_BY_IMAGE = re.compile("runAsNonRoot|non-numeric user", re.IGNORECASE)


def trouble(entry: Object, kind: str) -> str:
    """Why a container does not do its work, as far as its image may be the cause; empty where it does.

    :param entry: its status, or an empty mapping
    :param kind: the container's type, `container`, `init` or `sidecar`
    """
    state = entry.get("state") or {}
    waiting = (state.get("waiting") or {}).get("reason", "")
    if waiting:
        return waiting if waiting in running.FAILING else ""
    ended = state.get("terminated")
    if ended:
        is_done = kind == "init" and ended.get("exitCode") == 0
        return "" if is_done else f"ended with exit code {ended.get('exitCode')}"
    if not state.get("running"):
        return ""
    if kind == "init":
        return _UNREADY[1]
    return "" if entry.get("ready") else _UNREADY[0]


def unwell_since(item: Object, seconds: int) -> str:
    """Since when a container is in trouble: since its Pod was made, unless it ran well for long enough before.

    :param item: `since` (its Pod was made), `unready_since`, and the seconds `ran` of its last run
    :param seconds: that are long enough
    """
    ran = item["ran"]
    # what dies again and again is ready in between
    since: str = item["since" if ran is not None and ran < seconds else "unready_since"]
    return since


def times(pod: Object, entry: Object) -> dict[str, t.Any]:
    """`since`, `unready_since` and `ran` of a container, see `unwell_since`."""
    made: str = pod["metadata"].get("creationTimestamp", "")
    told = {x.get("type"): x for x in (pod.get("status") or {}).get("conditions") or ()}
    ready = told.get("ContainersReady") or told.get("Ready") or {}
    unready = max(made, ready.get("lastTransitionTime") or "") if ready.get("status") != "True" else made
    return {"since": made, "unready_since": unready, "ran": _seconds(last_end(entry))}


def last_end(entry: Object) -> Object:
    """How a container ended last, as its status has it; empty where it never did."""
    return (entry.get("state") or {}).get("terminated") or (entry.get("lastState") or {}).get("terminated") or {}


def _seconds(end: Object) -> int | None:
    if not end.get("startedAt"):
        return None
    return age(end["startedAt"], end.get("finishedAt") or "")


def evidence(pod: Object, entry: Object) -> dict[str, t.Any]:
    """What a container in trouble did.

    :returns: `restarts`, `exit_code` (or None), `ended` (the runtime's word for that), `words` (its termination
        message), `passing` (a pull that failed for a reason that passes), `by_image` (the configuration is refused
        because of the image)
    """
    end = last_end(entry)
    says = ((entry.get("state") or {}).get("waiting") or {}).get("message") or ""
    return {
        "restarts": entry.get("restartCount", 0),
        "exit_code": end.get("exitCode"),
        "ended": end.get("reason") or "",
        "words": "" if _may_be_log(pod, entry) else clean(end.get("message") or ""),
        # the kubelet before 1.32 backs off without the cause: then the deadline decides
        "passing": bool(_PASSING.search(says) or _NO_CAUSE.fullmatch(says)),
        "by_image": bool(_BY_IMAGE.search(says)),
    }


def _may_be_log(pod: Object, entry: Object) -> bool:
    """With `FallbackToLogsOnError` the termination message of a container that wrote none is the end of its log."""
    named = running.containers_named(pod, entry.get("name") or "")
    policies = [x.get("terminationMessagePolicy") or "File" for x in named]
    return any(policy != "File" for policy in policies)


def clean(text: str) -> str:
    """A text on one line, without control characters and cut."""
    plain = " ".join("".join(x if x.isprintable() else " " for x in text[: MOST_WORDS * 10]).split())
    return plain if len(plain) <= MOST_WORDS else f"{plain[: MOST_WORDS - 3]}..."


def proves(item: Object, rolled: str, seconds: int, short: int) -> bool:
    """Whether what a container did proves that its image does not work, before any deadline.

    :param item: an entry of `troubled`, see `trial.facts`
    :param rolled: time of the roll: restarts of an older Pod are of another image
    :param seconds: for which it has been in trouble
    :param short: seconds of a run that is too short
    """
    if seconds < SOON:
        return False
    reason = item["reason"]
    if reason in PULLING:
        return not item.get("passing")
    if reason == _CONFIG:
        return bool(item.get("by_image"))
    if item.get("restarts", 0) >= CRASHES:
        return item["since"] >= rolled and (item["ran"] is None or item["ran"] < short)
    return reason in running.FAILING and reason != "CrashLoopBackOff"


def gravity(reason: str) -> int:
    """How bad a trouble is: 1 not ready, 2 does not run, 3 the image cannot be had."""
    if reason in NOT_GOT:
        return 3
    return 1 if reason in _UNREADY else 2


def told(item: Object, seconds: int) -> str:
    """The same for people; the figures of time and restarts in it are no news, see `status`."""
    said = f"Pod {item['pod']}: {item['reason']} for {seconds} s"
    if item.get("restarts"):
        said += f", {item['restarts']} restarts"
    code = item.get("exit_code")
    if code is not None:
        how = f" ({item['ended']})" if item.get("ended") else ""
        said += f", last exit code {code}{how}"
    return f"{said}: {item['words']}" if item.get("words") else said


def age(since: str, now: str) -> int:
    """Seconds from one time to another; 0 where `since` is none."""
    return conditions.age(since, now) or 0

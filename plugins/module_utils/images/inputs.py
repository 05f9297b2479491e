# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What image_rollout is handed, looked at before anything is decided: a hand may have written it. Pure."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.images import follow
from ansible_collections.kubesteward.core.plugins.module_utils.registry import reference as references

_PLATFORM = re.compile(r"[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?")

Test = t.Callable[[t.Any], bool]
#: a test and what it asks for, a list of one shape, or a mapping of them, in which a key with a ? may be absent
Shape: t.TypeAlias = "tuple[Test, str] | list[t.Any] | dict[str, t.Any]"


def _kind(name: str, *types: type) -> tuple[Test, str]:
    return (lambda value: isinstance(value, types)), name


_TEXT = _kind("a string", str)
_MAYBE_TEXT = _kind("a string or null", str, type(None))
_NUMBER = (lambda value: isinstance(value, int) and not isinstance(value, bool)), "a number"
_MAYBE_NUMBER = (lambda value: value is None or _NUMBER[0](value)), "a number or null"
_FLAG = _kind("a boolean", bool)
_MAPPING = _kind("a mapping", dict)
_MAYBE_MAPPING = _kind("a mapping or null", dict, type(None))
_DIGEST = (
    (lambda value: isinstance(value, str) and references.is_digest(value)),
    "a digest (sha256:...)",
)
_MEMORY = (lambda value: value is None or follow.of_dict(value) is not None), "null or what an earlier roll wrote down"
_OWNER = (lambda value: value is None or not _problem(value, _NAMES, "")), "null or kind, name and api_version"
_ID_KIND = (lambda value: value in ("manifest", "config", "none")), "manifest, config or none"

_NAMES: dict[str, Shape] = dict.fromkeys(("kind", "name", "api_version"), _TEXT)
_CONTAINER: dict[str, Shape] = {
    "workload": {**_NAMES, "owner": _OWNER},
    **dict.fromkeys(("container", "path", "image", "spec_image", "reference"), _TEXT),
    **dict.fromkeys(("pinned", "invalid", "retry", "pull_policy", "controller", "start"), _MAYBE_TEXT),
    **dict.fromkeys(("follow", "undone"), _MEMORY),
    "running": [
        {"image_id": _TEXT, "digest": _TEXT, "id_kind": _ID_KIND, "pods": _NUMBER, "ready": _NUMBER},
    ],
    "waiting": _NUMBER,
    **dict.fromkeys(("waiting_reasons", "excluded"), _MAPPING),
    "nodes": [_TEXT],
    "platforms": [_TEXT],
    "pull_secrets": [{"namespace": _TEXT, "name": _TEXT}],
    "rollout": {
        **dict.fromkeys(("generation", "observed", "desired", "updated", "available", "replicas"), _NUMBER),
        **dict.fromkeys(("complete", "paused", "deadline_exceeded"), _FLAG),
        "outdated?": _NUMBER,
        "failing": [{"pod": _TEXT, "container": _TEXT, "reason": _TEXT}],
    },
    "trial": _MAYBE_MAPPING,
    "stuck": [{"name": _TEXT, "uid": _TEXT, "since?": _TEXT}],
    "image_volumes": [{"name": _TEXT, "image": _TEXT}],
}
_SEEN: dict[str, Shape] = dict.fromkeys(("pod", "uid", "reason", "since"), _TEXT)
#: what a container in trouble did, see crashes.evidence
_DID: dict[str, Shape] = {
    **dict.fromkeys(("ended?", "words?"), _TEXT),
    "restarts?": _NUMBER,
    "exit_code?": _MAYBE_NUMBER,
    **dict.fromkeys(("passing?", "by_image?"), _FLAG),
}
#: seconds that an administrator may ask a new image to run well for; more than a day would never end between two pushes
VERIFICATION_SECONDS = range(1, 86400 + 1)
#: looked at where they are not null
_CONTAINER_TOO: dict[str, Shape] = {
    "undone": {"how": _TEXT, "manager": _TEXT},
    "unwell": {"reason": _TEXT, "since": _TEXT},
    "pull_policy": _TEXT,
    "trial": {
        **dict.fromkeys(("pods", "min_ready_seconds", "restarts"), _NUMBER),
        "steady_since": _MAYBE_TEXT,
        "well?": _NUMBER,
        "troubled": [{**_SEEN, "unready_since": _TEXT, "ran": _MAYBE_NUMBER, **_DID}],
        "unscheduled": [_SEEN],
        "others": [{"pod": _TEXT, "container": _TEXT, "reason": _TEXT, "restarted": _TEXT}],
        "obstacle": _MAYBE_MAPPING,
        "edited": _TEXT,
        "ordered": _FLAG,
    },
}
_UPDATE: dict[str, Shape] = {
    **dict.fromkeys(("namespace", "name", "error"), _TEXT),
    "update_resource": _MAYBE_MAPPING,
    "containers": [{}],
    "missing": [_TEXT],
}
_STATE = (lambda value: value in ("found", "unknown")), "found or unknown"
_FOUND: dict[str, Shape] = {"image": _TEXT, "digest": _DIGEST}
_FOUND_TOO: dict[str, Shape] = {
    "children": [{"digest": _DIGEST}],
    **dict.fromkeys(("compared", "compared_platforms"), _MAPPING),
    **dict.fromkeys(("image_platform", "artifact", "media_type"), _TEXT),
    "gone": [_TEXT],
}
_UNKNOWN: dict[str, Shape] = {"image": _TEXT, "reason": _TEXT, "msg": _TEXT}


def check(running: t.Sequence[t.Any], published: t.Sequence[t.Any]) -> None:
    """Nothing happens where both are what pod_image_id and registry_digest return.

    :raises StewardError: the first entry that is not; its place is named
    """
    for number, container in enumerate(running):
        problem = _container_problem(container, f"running[{number}]")
        if problem:
            raise StewardError(f"{problem}; give the containers that kubesteward.core.pod_image_id returned")
    for number, entry in enumerate(published):
        problem = _published_problem(entry, f"published[{number}]")
        if problem:
            raise StewardError(f"{problem}; give the images that kubesteward.core.registry_digest returned")


def check_updates(updates: t.Sequence[t.Any]) -> None:
    """Nothing happens where these are entries as pod_image_id returns one for each Update.

    :raises StewardError: the first that is not; its place is named
    """
    for number, entry in enumerate(updates):
        problem = _problem(entry, _UPDATE, f"updates[{number}]")
        if problem:
            raise StewardError(f"{problem}; give the updates that kubesteward.core.pod_image_id returned")


def check_verification(seconds: int) -> None:
    """Nothing happens where a roll can be taken as good after that many seconds, and not before it has run at all.

    :raises StewardError: it is out of bounds
    """
    if seconds not in VERIFICATION_SECONDS:
        bounds = f"{VERIFICATION_SECONDS[0]} to {VERIFICATION_SECONDS[-1]}"
        raise StewardError(f"verification_seconds is {seconds}; give a number of seconds from {bounds}")


def check_wait(params: t.Mapping[str, t.Any]) -> None:
    """The options of a wait.

    :raises StewardError: one is out of its bounds
    """
    for name, most in (("wait_timeout", 86400), ("wait_sleep", 3600)):
        if name in params and not 1 <= params[name] <= most:
            raise StewardError(f"{name} is {params[name]}; it must be 1 to {most} seconds")


def check_policy(params: t.Mapping[str, t.Any], has_memory: bool) -> None:
    """Check the options of image_rollout that an Update's schema checks where they come from it.

    :param has_memory: there is an Update, whose status remembers since when a digest is seen
    :raises StewardError: an option that makes no sense
    """
    stable_for, most = params.get("stable_for_seconds"), params.get("max_concurrent")
    if stable_for is not None and stable_for < 0:
        raise StewardError(f"stable_for_seconds is {stable_for}; give 0 or more seconds")
    if stable_for and not has_memory:
        raise StewardError(
            "stable_for_seconds needs an Update: its status remembers since when a tag names a digest;"
            " create one, or leave the option out"
        )
    if most is not None and most < 1:
        raise StewardError(f"max_concurrent is {most}; give at least 1, or set suspend to hold every roll")
    deadline = (params.get("rollback") or {}).get("progress_deadline_seconds")
    if deadline is not None and not 30 <= deadline <= 86400:
        raise StewardError(f"rollback.progress_deadline_seconds is {deadline}; give 30 to 86400 seconds")
    for platform in params.get("platforms") or ():
        if not _PLATFORM.fullmatch(platform):
            raise StewardError(f"platforms has {platform!r}; give os/arch or os/arch/variant, e.g. linux/arm64")


def _container_problem(container: t.Any, where: str) -> str:
    return _problem(container, _CONTAINER, where) or _problem(container, _given(container, _CONTAINER_TOO), where)


def _published_problem(entry: t.Any, where: str) -> str:
    problem = _problem(entry, {"state": _STATE}, where)
    if problem:
        return problem
    if entry["state"] == "unknown":
        return _problem(entry, _UNKNOWN, where)
    problem = _problem(entry, {**_FOUND, **_given(entry, _FOUND_TOO)}, where)
    return problem or _contents_problem(entry.get("compared_contents") or {}, f"{where}.compared_contents")


def _contents_problem(contents: t.Any, where: str) -> str:
    problem = _problem(contents, {}, where)
    places = [] if problem else [(content, f"{where}[{digest}]") for digest, content in contents.items()]
    found = (_problem(x, {}, place) or _problem(x, _given(x, _FOUND_TOO), place) for x, place in places)
    return problem or next(filter(None, found), "")


def _given(entry: t.Mapping[str, t.Any], shapes: t.Mapping[str, Shape]) -> dict[str, Shape]:
    return {key: shape for key, shape in shapes.items() if entry.get(key) is not None}


def _problem(value: t.Any, shape: Shape, where: str) -> str:
    """What is wrong with a value, or an empty text."""
    if isinstance(shape, tuple):
        test, wanted = shape
        return "" if test(value) else f"{where} is {_short(value)}, not {wanted}"
    if isinstance(shape, list):
        if not isinstance(value, list | tuple):
            return f"{where} is {_short(value)}, not a list"
        found = (_problem(item, shape[0], f"{where}[{number}]") for number, item in enumerate(value))
        return next(filter(None, found), "")
    if not isinstance(value, dict):
        return f"{where} is {_short(value)}, not a mapping"
    given = {key.rstrip("?"): inner for key, inner in shape.items() if not key.endswith("?") or key[:-1] in value}
    missing = [key for key in given if key not in value]
    if missing:
        return f"{where} has no {missing[0]}"
    return next(filter(None, (_problem(value[key], inner, f"{where}.{key}") for key, inner in given.items())), "")


def _short(value: t.Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

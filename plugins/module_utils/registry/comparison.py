# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests beside the one that a tag names, those that run: what they consist of, and whether they are still there."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import facts, protocol
from ansible_collections.kubesteward.core.plugins.module_utils.registry.runnable import Content

# Digests that one look-up compares with what is published; a workload runs one or two.
MAX_COMPARED = 4
#: no answer, as opposed to one that says something about the digest
_UNANSWERED = ("unreachable", "rate_limited", "tls_error")

Run = t.Callable[[protocol.Steps], t.Any]


@dataclasses.dataclass(frozen=True)
class Compared:
    """What was found out about digests.

    :ivar images: digest -> digests of its images, of those that could be read
    :ivar platforms: digest of an index -> platforms of its images, of those that name all of them
    :ivar contents: digest -> what it stands for, of those that could be read
    :ivar gone: those that the registry does not have any more
    """

    images: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    platforms: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    contents: t.Mapping[str, Content] = dataclasses.field(default_factory=dict)
    gone: tuple[str, ...] = ()


def compare(
    digests: t.Iterable[str],
    listed: t.Container[str],
    repository: str,
    run: Run,
    lacks: t.Callable[[str], bool],
    store: facts.FactStore,
) -> Compared:
    """Ask for each digest, and read what of it is not remembered.

    :param listed: images of the index that the tag names: there, without a request
    :param lacks: whether the registry says that it has no such digest
    :raises StewardError: no answer about a digest of which nothing is known: the whole look-up is undecided
    """
    images: dict[str, tuple[str, ...]] = {}
    platforms: dict[str, tuple[str, ...]] = {}
    contents: dict[str, Content] = {}
    gone = []
    for digest in sorted(digests)[:MAX_COMPARED]:
        if digest in listed:
            images[digest] = (digest,)
            continue
        known = store.get(digest) is not None
        is_gone = _unless_silent(lacks, digest, known)
        if is_gone:
            gone.append(digest)
        if known or not is_gone:
            content = _read(digest, repository, run, store)
            if content is None:
                continue
            contents[digest] = content
            children = content.children or ()
            images[digest] = tuple(child.digest for child in children) or (digest,)
            if children and all(child.platform for child in children):
                platforms[digest] = tuple(child.platform for child in children)
    return Compared(images, platforms, contents, tuple(gone))


def _unless_silent(lacks: t.Callable[[str], bool], digest: str, known: bool) -> bool:
    try:
        return lacks(digest)
    except StewardError:
        if known:
            return False
        raise


def _read(digest: str, repository: str, run: Run, store: facts.FactStore) -> Content | None:
    """What a digest stands for, or None where it cannot be read."""
    try:
        read = run(facts.gather(repository, protocol.Head(digest, ""), False, (), store))
    except StewardError as exc:
        if exc.reason in _UNANSWERED:
            raise
        # malformed, or a part of it is missing: that says nothing
        return None
    # a config only helps to tell what nodes take
    with contextlib.suppress(StewardError):
        read = facts.with_platforms(read, digest, repository, run, store)
    return read.content(digest)


def gone(digests: t.Iterable[str], lacks: t.Callable[[str], bool], known: str) -> list[str]:
    """Those of the digests that the registry has no more; one that it does not answer for is none of them.

    :param known: a digest that it just said it has not, which is not asked for again
    """
    wanted = sorted(digests)[:MAX_COMPARED]
    return [digest for digest in wanted if digest == known or _unless_silent(lacks, digest, True)]


def lacks(repository: str, digest: str, run: Run, sure: bool) -> bool:
    """Whether the registry says that it has no such digest; False where its answer leaves that open.

    :param sure: True where the repository was just read, so that "not found" cannot mean "not permitted"
    :raises StewardError: no answer
    """
    try:
        run(protocol.find(repository, digest))
    except StewardError as exc:
        if exc.reason in _UNANSWERED:
            raise
        return exc.reason == "not_found" and (sure or exc.context.get("code") == "MANIFEST_UNKNOWN")
    return False

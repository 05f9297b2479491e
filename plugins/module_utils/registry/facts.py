# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a digest stands for, for ever: its children, config digests and platforms. Pure but for its store."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import protocol
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import (
    MAX_DEPTH,
    SCHEMA_1,
    Child,
    Manifest,
    read_platform,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.runnable import Content, pick

MAX_INDEXES = 50


class FactStore(t.Protocol):
    """Where manifests are remembered by digest."""

    def get(self, digest: str) -> Manifest | None:
        """The manifest of `digest` as it was put, or None."""

    def put(self, digest: str, manifest: Manifest) -> None:
        """Remember `manifest`; never raises for a full or broken store."""


class NoStore:
    """A store that remembers nothing."""

    def get(self, digest: str) -> Manifest | None:
        return None

    def put(self, digest: str, manifest: Manifest) -> None:
        return None


@dataclasses.dataclass(frozen=True)
class Facts:
    """What was read.

    :ivar children: of an index, nested ones flattened and attestations left out; None for the manifest of one image
    :ivar configs: config digest by digest of the manifest
    :ivar cached: True where nothing had to be asked
    :ivar artifact: what it is instead of an image or an index of images, else empty
    :ivar platform: of a single image, empty where its config does not say, None where that was not read
    :ivar unreadable: why the config of a single image cannot be read by anybody, else empty
    """

    media_type: str
    children: tuple[Child, ...] | None
    configs: t.Mapping[str, str | None]
    cached: bool
    artifact: str = ""
    platform: str | None = None
    unreadable: str = ""

    def content(self, digest: str) -> Content:
        """The same as what a node may get."""
        return Content(digest, self.children, self.platform or "", self.artifact)


Asking = t.Generator[protocol.Request, protocol.Response, t.Any]


def gather(repository: str, head: protocol.Head, config: bool, platforms: t.Sequence[str], store: FactStore) -> Asking:
    """Read children, and config digests where `config`: of `platforms`, or of all children where none is given.

    :raises StewardError: reason `nested_index`, `not_found` where the registry lacks what an index lists, and others
    """
    reader = _Reader(repository, store)
    top = head.manifest
    if top is None:
        top = yield from reader.read(head.digest)
    elif top.media_type:
        store.put(head.digest, top)
    if not top.is_index:
        is_kept = reader.asked == 0 and head.manifest is None
        return Facts(top.media_type, None, {head.digest: top.config_digest}, is_kept, top.artifact, top.platform)
    children = yield from reader.flatten(top, {head.digest}, 1)
    configs: dict[str, str | None] = {}
    if config:
        for digest in _chosen(children, platforms):
            configs[digest] = (yield from reader.read(digest)).config_digest
    artifact = top.artifact or ("" if children else "an index that lists no image")
    return Facts(top.media_type, children, configs, reader.asked == 0 and head.manifest is None, artifact)


def with_platforms(
    read: Facts, digest: str, repository: str, run: t.Callable[[Asking], t.Any], store: FactStore
) -> Facts:
    """The same with the platforms that stand in configs alone: of a single image, and of an index that names none.

    Of the latter runtimes look at the first part only.

    :param digest: what was read
    :raises StewardError: no answer, or a wrong one, about a config of which nothing is known
    """
    if read.children is None:
        if read.artifact or read.platform is not None:
            return read
        manifest, unreadable = _with_platform(digest, repository, run, store)
        return dataclasses.replace(
            read, cached=False, artifact=manifest.artifact, platform=manifest.platform, unreadable=unreadable
        )
    if not read.children or any(child.platform for child in read.children):
        return read
    first, *others = read.children
    if first.artifact:
        return read
    manifest, _unreadable = _with_platform(first.digest, repository, run, store)
    platform = "" if manifest.artifact else manifest.platform or ""
    return dataclasses.replace(read, children=(dataclasses.replace(first, platform=platform), *others))


def _with_platform(
    digest: str, repository: str, run: t.Callable[[Asking], t.Any], store: FactStore
) -> tuple[Manifest, str]:
    """The manifest of an image with the platform of its config, and why that cannot be read."""
    manifest: Manifest = run(_Reader(repository, store).read(digest))
    if manifest.platform is not None or manifest.artifact or manifest.is_index or not manifest.config_digest:
        return manifest, ""
    try:
        body = run(protocol.fetch_config(repository, manifest.config_digest))
    except StewardError as exc:
        if exc.reason in ("unreachable", "rate_limited", "tls_error", "digest_mismatch"):
            raise
        # any other 404 may come from what knows no blobs, and says nothing about the nodes
        is_open = exc.reason == "not_found" and exc.context.get("code") != "BLOB_UNKNOWN"
        return manifest, "" if is_open else f"its config cannot be read: {exc}"
    platform = read_platform(body)
    if platform is None:
        manifest = dataclasses.replace(manifest, artifact="a manifest whose config is not that of an image")
    else:
        manifest = dataclasses.replace(manifest, platform=platform)
    store.put(digest, manifest)
    return manifest, ""


def _chosen(children: t.Sequence[Child], platforms: t.Sequence[str]) -> list[str]:
    picked = [pick(children, platform) for platform in platforms] if platforms else list(children)
    return list(dict.fromkeys(child.digest for child in picked if child is not None))


class _Reader:
    def __init__(self, repository: str, store: FactStore) -> None:
        self.repository, self.store, self.asked = repository, store, 0

    def read(self, digest: str) -> Asking:
        kept = self.store.get(digest)
        if kept is not None:
            return kept
        self.asked += 1
        head = yield from protocol.fetch(self.repository, digest)
        manifest = t.cast(Manifest, head.manifest)
        if manifest.media_type == SCHEMA_1:
            # nobody can check such bytes against the digest: what is kept would be the word of one host for all
            raise StewardError(f"{self.repository}: {digest} is served as a schema 1 manifest", reason="schema1")
        self.store.put(digest, manifest)
        return manifest

    def flatten(self, index: Manifest, above: set[str], depth: int) -> Asking:
        # one image may be there for several platforms
        found: dict[Child, None] = {}
        for child in index.children:
            if not child.is_index:
                found[child] = None
                continue
            if depth >= MAX_DEPTH or child.digest in above or self.asked >= MAX_INDEXES:
                raise StewardError(
                    f"{self.repository}: its index holds indexes more than {MAX_DEPTH} deep, or itself",
                    reason="nested_index",
                )
            nested = yield from self.read(child.digest)
            for item in (yield from self.flatten(nested, above | {child.digest}, depth + 1)):
                found[item] = None
        return tuple(found)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a digest stands for, for ever: its children and config digests. Pure but for the store that it is handed."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import protocol
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import MAX_DEPTH, Child, Manifest, pick

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
    """

    media_type: str
    children: tuple[Child, ...] | None
    configs: t.Mapping[str, str | None]
    cached: bool


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
        return Facts(
            top.media_type, None, {head.digest: top.config_digest}, reader.asked == 0 and head.manifest is None
        )
    children = yield from reader.flatten(top, {head.digest}, 1)
    configs: dict[str, str | None] = {}
    if config:
        for digest in _chosen(children, platforms):
            configs[digest] = (yield from reader.read(digest)).config_digest
    return Facts(top.media_type, children, configs, reader.asked == 0 and head.manifest is None)


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
        self.store.put(digest, manifest)
        return manifest

    def flatten(self, index: Manifest, above: set[str], depth: int) -> Asking:
        found: dict[str, Child] = {}
        for child in index.children:
            if not child.is_index:
                found.setdefault(child.digest, child)
                continue
            if depth >= MAX_DEPTH or child.digest in above or self.asked >= MAX_INDEXES:
                raise StewardError(
                    f"{self.repository}: its index holds indexes more than {MAX_DEPTH} deep, or itself",
                    reason="nested_index",
                )
            nested = yield from self.read(child.digest)
            for item in (yield from self.flatten(nested, above | {child.digest}, depth + 1)):
                found.setdefault(item.digest, item)
        return tuple(found.values())

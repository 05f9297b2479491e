# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look-up from end to end: places and credentials in turn, the generators of `protocol` run."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import comparison, facts, protocol
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.asking import Asking, Session
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import Credential
from ansible_collections.kubesteward.core.plugins.module_utils.registry.helpers import HelperAsk, Helpers
from ansible_collections.kubesteward.core.plugins.module_utils.registry.hosts import Endpoint
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import SCHEMA_1
from ansible_collections.kubesteward.core.plugins.module_utils.registry.progress import Progress
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import Reference

if t.TYPE_CHECKING:
    from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client

# Pulls that a registry still grants below which nothing optional is asked.
RATE_RESERVE = 5


@dataclasses.dataclass(frozen=True)
class Place:
    """One endpoint and the credentials meant for it, best first."""

    endpoint: Endpoint
    credentials: tuple[Credential | HelperAsk, ...] = ()


@dataclasses.dataclass(frozen=True)
class Query:
    """What to look up, apart from what is wanted beside the top-level digest; equal queries are one look-up."""

    reference: Reference
    places: tuple[Place, ...]
    anonymous_fallback: bool = True


@dataclasses.dataclass
class Trace(Progress):
    """What a look-up did, kept up to date while it runs."""

    host: str | None = None
    source: str | None = None
    refused: tuple[str, ...] = ()
    ratelimit_remaining: int | None = None
    warnings: list[str] = dataclasses.field(default_factory=list)


class Resolver:
    """Answers queries; one for a call of the module, used by all its threads."""

    def __init__(self, client: Client, helpers: Helpers, cache: facts.FactStore) -> None:
        self.client, self.cache, self.session = client, cache, Session(client, helpers)
        self._schemes: dict[str, str] = {}

    def resolve(self, query: Query, wanted: Wanted, trace: Trace) -> Found:
        """Look `query` up at its places in turn, the registry itself last.

        :raises StewardError: with one of the documented reasons
        """
        for place in query.places[:-1]:
            try:
                return self._at(place, query, wanted, trace)
            except StewardError as exc:
                trace.warnings.append(f"mirror {place.endpoint.host}: {exc}")
        return self._at(query.places[-1], query, wanted, trace)

    def _at(self, place: Place, query: Query, wanted: Wanted, trace: Trace) -> Found:
        # each place its own time: they are the administrator's, and a mirror that is down must not take the registry's
        trace.begin(self.client.clock())
        known = self._schemes.get(place.endpoint.host)
        schemes = (known,) if known in place.endpoint.schemes else place.endpoint.schemes
        for scheme in schemes[:-1]:
            began = self.client.clock()
            try:
                return self._over(scheme, place, query, wanted, trace)
            except StewardError as exc:
                # a host that says nothing for so long says nothing to another scheme
                timed_out = exc.reason == "unreachable" and self.client.clock() - began >= self.client.timeout
                # 400 is what Go's servers say to plain HTTP on a TLS port; another status came in the right scheme
                status = exc.context.get("status")
                other_scheme = status == 400 or (status is None and exc.reason in ("tls_error", "unreachable"))
                if timed_out or not other_scheme:
                    raise
        return self._over(schemes[-1], place, query, wanted, trace)

    def _over(self, scheme: str, place: Place, query: Query, wanted: Wanted, trace: Trace) -> Found:
        endpoint = place.endpoint
        trace.host, trace.source, trace.refused = endpoint.host, None, ()
        asking = Asking(self.session, f"{scheme}://{endpoint.host}", place, query.anonymous_fallback, trace)
        try:
            head = asking.run(protocol.find(endpoint.repository, query.reference.identifier))
        except StewardError as exc:
            if exc.reason == "not_found" and wanted.compare and not endpoint.mirror:
                exc.context["gone"] = comparison.gone(
                    wanted.compare,
                    lambda digest: comparison.lacks(endpoint.repository, digest, asking.run, False),
                    query.reference.identifier if exc.context.get("code") == "MANIFEST_UNKNOWN" else "",
                )
            raise
        self._schemes[endpoint.host] = scheme
        if head.media_type == SCHEMA_1 or not head.digest:
            raise StewardError(
                f"{query.reference}: the tag names a schema 1 manifest, which runtimes no longer pull; rebuild it",
                reason="schema1",
                **({"digest": head.digest} if head.digest else {}),
                media_type=SCHEMA_1,
            )
        if head.digest in wanted.expect:
            return Found(head.digest, head.media_type)
        found = Found(head.digest, head.media_type)
        if wanted.verify:
            found = self._verified(found, scheme, place, trace)
        # what cannot be pulled cannot be read by its digest either
        if found.pullable is False or not (wanted.children or wanted.config):
            return found
        if trace.ratelimit_remaining is not None and trace.ratelimit_remaining < RATE_RESERVE:
            trace.warnings.append(
                f"{endpoint.host} grants {trace.ratelimit_remaining} more pulls; children and config were not read"
            )
            return dataclasses.replace(found, unread=True)
        return self._read(found, head, asking, query, wanted, trace)

    def _read(
        self, found: Found, head: protocol.Head, asking: Asking, query: Query, wanted: Wanted, trace: Trace
    ) -> Found:
        endpoint = asking.place.endpoint
        read = asking.run(facts.gather(endpoint.repository, head, wanted.config, wanted.platforms, self.cache))
        if wanted.children:
            read = facts.with_platforms(read, head.digest, endpoint.repository, asking.run, self.cache)
        found = dataclasses.replace(found, media_type=read.media_type, facts=read)
        if read.unreadable and endpoint.mirror:
            # as runtimes do: what a mirror lacks the next one or the registry has
            raise StewardError(read.unreadable, reason="not_found")
        if wanted.verify and read.unreadable:
            found = dataclasses.replace(found, pullable=False, pullable_msg=read.unreadable)
        if not wanted.compare:
            return found
        compared = comparison.compare(
            wanted.compare - {head.digest},
            frozenset(child.digest for child in read.children or ()),
            endpoint.repository,
            asking.run,
            lambda digest: self._lacks(digest, asking, query, trace),
            self.cache,
        )
        return dataclasses.replace(found, compared=compared)

    def _lacks(self, digest: str, asking: Asking, query: Query, trace: Trace) -> bool:
        """Whether the registry itself has no such digest: a mirror may lack what the registry has."""
        if not comparison.lacks(asking.place.endpoint.repository, digest, asking.run, True):
            return False
        own = query.places[-1]
        if asking.place is own:
            return True
        source = trace.source
        try:
            asking = self._asking(own, query, trace)
            return comparison.lacks(own.endpoint.repository, digest, asking.run, False)
        except StewardError:
            # behind a mirror nobody has to reach the registry
            return False
        finally:
            trace.source = source

    def _asking(self, place: Place, query: Query, trace: Trace) -> Asking:
        scheme = self._schemes.get(place.endpoint.host, place.endpoint.schemes[0])
        return Asking(self.session, f"{scheme}://{place.endpoint.host}", place, query.anonymous_fallback, trace)

    def _verified(self, found: Found, scheme: str, place: Place, trace: Trace) -> Found:
        """Ask for the digest itself as the kubelet would: with these credentials, not anonymously after a refusal."""
        asking = Asking(self.session, f"{scheme}://{place.endpoint.host}", place, False, trace)
        try:
            asking.run(protocol.find(place.endpoint.repository, found.digest))
        except StewardError as exc:
            # a registry that does not answer now has not refused: the whole look-up is undecided
            if exc.reason in ("unreachable", "rate_limited", "tls_error"):
                raise
            return dataclasses.replace(found, pullable=False, pullable_msg=str(exc))
        return dataclasses.replace(found, pullable=True)

    def tags(self, query: Query, trace: Trace) -> list[str]:
        """All tags of the repository, asked of the registry itself: a mirror may lack some.

        :raises StewardError: with one of the documented reasons, where any page cannot be read
        """
        place = query.places[-1]
        trace.begin(self.client.clock())
        return list(self._asking(place, query, trace).run(protocol.list_tags(place.endpoint.repository)))

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the module's parameters to queries, and from their answers to its result. Pure but for `resolve_all`."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError, unexpected
from ansible_collections.kubesteward.core.plugins.module_utils.registry import batch, hosts
from ansible_collections.kubesteward.core.plugins.module_utils.registry.answer import Found, Wanted
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import (
    Credential,
    DockerConfig,
    helper_for,
    lacking,
    matching,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.facts import Facts
from ansible_collections.kubesteward.core.plugins.module_utils.registry.helpers import HelperAsk
from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import Child
from ansible_collections.kubesteward.core.plugins.module_utils.registry.patience import Patience
from ansible_collections.kubesteward.core.plugins.module_utils.registry.platforms import parse_platform
from ansible_collections.kubesteward.core.plugins.module_utils.registry.reference import (
    HUB_API,
    Reference,
    is_digest,
    parse,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.resolver import Place, Query
from ansible_collections.kubesteward.core.plugins.module_utils.registry.runnable import Content, nodes_get

ENTRY_KEYS = frozenset({"image", "pull_secrets", "platform", "resolve", "expect", "verify", "compare", "on_behalf_of"})
RESOLVE = ("children", "config")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What holds for every entry.

    :ivar explicit: user name and password given to the module, sent to the registry itself and never to a mirror
    :ivar configs: docker configurations for all entries, in order
    """

    rules: tuple[hosts.RegistryRule, ...] = ()
    allowed: tuple[str, ...] | None = None
    explicit: Credential | None = None
    configs: tuple[DockerConfig, ...] = ()
    children: bool = False
    config: bool = False
    anonymous_fallback: bool = True


@dataclasses.dataclass
class Entry:
    """One item of `images`, read; `error` where it cannot be looked up.

    :ivar resolve: what to read beside the top-level digest; None where the module's option says it
    :ivar expect: digests for which nothing more has to be read, or verified
    :ivar verify: prove that another digest can be pulled with these credentials
    :ivar compare: digests whose children are to be read too, where the tag names none of `expect`; of the same
        repository
    :ivar authors: whose look-up it is, an empty text for nobody's
    :ivar hints: says what may be the reason where it is not permitted
    """

    image: str
    platform: str | None = None
    secrets: tuple[tuple[str, str], ...] = ()
    resolve: tuple[str, ...] | None = None
    expect: frozenset[str] = frozenset()
    verify: bool = False
    compare: frozenset[str] = frozenset()
    authors: tuple[str, ...] = ("",)
    reference: Reference | None = None
    error: StewardError | None = None
    query: Query | None = None
    warnings: tuple[str, ...] = ()
    hints: t.Callable[[], tuple[str, ...]] = tuple


def read_entry(
    item: t.Any, platform: str | None, secrets: t.Sequence[t.Mapping[str, str]] | None, author: str | None = None
) -> Entry:
    """Read a reference, or a dict with `image`, `pull_secrets`, `platform`; the other arguments are defaults."""
    data = item if isinstance(item, dict) else {"image": item}
    image = data.get("image")
    entry = Entry(image if isinstance(image, str) else "", authors=(author or "",))
    try:
        unknown = sorted(str(key) for key in set(data) - ENTRY_KEYS)
        if unknown:
            raise _bad(
                f"an entry of 'images' has the unknown key {unknown[0]!r}; known are {', '.join(sorted(ENTRY_KEYS))}"
            )
        if not isinstance(image, str):
            raise _bad("an entry of 'images' must be a reference, or a dict with a reference as 'image'")
        own = data.get("pull_secrets")
        entry.secrets = _secret_names([*(own or ()), *(secrets or ())] if isinstance(own, (list, type(None))) else own)
        entry.reference = parse(image)
        wanted = data.get("platform") or platform
        if wanted is not None and not isinstance(wanted, str):
            raise _bad(f"{image}: 'platform' must be text such as linux/arm64")
        entry.platform = parse_platform(wanted) if wanted else None
        entry.resolve = _texts(data, "resolve", RESOLVE)
        entry.expect = frozenset(_texts(data, "expect") or ())
        entry.verify = _truth(data, "verify")
        entry.compare = _own_digests(_texts(data, "compare") or (), entry.reference)
        entry.authors = _authors(data) or entry.authors
    except StewardError as exc:
        entry.error = exc
    except Exception as exc:
        entry.error = unexpected(exc, entry.image)
    return entry


def _texts(data: t.Mapping[str, t.Any], key: str, known: t.Container[str] | None = None) -> tuple[str, ...] | None:
    items = data.get(key)
    if items is None:
        return None
    if not isinstance(items, list):
        raise _bad(f"{data.get('image')}: {key!r} of the entry must be a list")
    for item in items:
        if not isinstance(item, str) or (known is not None and item not in known):
            raise _bad(f"{data.get('image')}: {key!r} of the entry has {item!r}, which it does not take")
    return tuple(items)


def _own_digests(items: t.Iterable[str], reference: Reference) -> frozenset[str]:
    """Digests of the reference's own repository: what another one has says nothing about it.

    :raises StewardError: for what is neither a digest nor repository@digest
    """
    found = set()
    for item in items:
        # as a Pod's status has it, with or without docker-pullable://
        repository, _at, digest = item.rpartition("://")[2].rpartition("@")
        if not is_digest(digest):
            raise _bad(f"{reference}: 'compare' of the entry has {item!r}, which is no digest")
        if not repository or _repository(repository) == (reference.registry, reference.repository):
            found.add(digest)
    return frozenset(found)


def _repository(text: str) -> tuple[str, str] | None:
    try:
        parsed = parse(text)
    except StewardError:
        return None
    return parsed.registry, parsed.repository


def _truth(data: t.Mapping[str, t.Any], key: str) -> bool:
    value = data.get(key)
    try:
        # a template gives text such as "False", which must not count as true
        return value is not None and boolean(value)
    except TypeError:
        raise _bad(f"{data.get('image')}: {key!r} of the entry must be true or false") from None


def _authors(data: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    value = data.get("on_behalf_of") or []
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _bad(f"{data.get('image')}: 'on_behalf_of' of the entry must be text, such as a namespace, or a list")
    return tuple(names)


def _bad(message: str) -> StewardError:
    return StewardError(message, reason="invalid_reference")


def _secret_names(items: t.Any) -> tuple[tuple[str, str], ...]:
    names = []
    for item in items if isinstance(items, list) else [None]:
        pair = (item.get("namespace"), item.get("name")) if isinstance(item, dict) else (None, None)
        if not all(isinstance(text, str) and text for text in pair):
            raise _bad("'pull_secrets' must be a list of dicts with 'namespace' and 'name'")
        names.append(t.cast("tuple[str, str]", pair))
    return tuple(dict.fromkeys(names))


def plan(entry: Entry, secrets: t.Mapping[tuple[str, str], DockerConfig], settings: Settings) -> None:
    """Find out where and with what `entry` is looked up; sets `query`, or `error`."""
    if entry.error is not None:
        return
    reference = t.cast(Reference, entry.reference)
    configs = [*(secrets[name] for name in entry.secrets), *settings.configs]
    entry.warnings = tuple(problem for config in configs for problem in config.problems)
    try:
        if not hosts.is_allowed(reference, settings.allowed):
            raise StewardError(f"{reference.domain} is not one of the allowed registries", reason="forbidden_registry")
        places = tuple(
            Place(endpoint, _candidates(endpoint, configs, settings.explicit))
            for endpoint in hosts.endpoints(reference, settings.rules)
        )
    except StewardError as exc:
        entry.error = exc
        return
    except Exception as exc:
        entry.error = unexpected(exc, entry.image, None)
        return
    # put into words only where that is needed
    entry.hints = functools.partial(_hints, places[-1], reference, configs, entry.secrets)
    entry.query = Query(reference, places, settings.anonymous_fallback)


def _hints(
    place: Place, reference: Reference, configs: t.Sequence[DockerConfig], secrets: t.Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """What to do where the registry asks for credentials, and there are none for it."""
    if place.credentials:
        return ()
    host, repository = place.endpoint.host, place.endpoint.repository
    asked_for = reference.registry if reference.registry != host else ""
    texts = [text for text in (lacking(config, host, repository, asked_for) for config in configs) if text]
    if not configs:
        texts = [f"no credentials were given for {host}"]
    namespace = f" -n {secrets[0][0]}" if secrets else ""
    server = "https://index.docker.io/v1/" if host == HUB_API else host
    make = f"kubectl create secret docker-registry NAME{namespace} --docker-server={server} --docker-username=... "
    return (*texts, f"make credentials for it with `{make}--docker-password=...`") if texts else ()


def _candidates(
    endpoint: hosts.Endpoint, configs: t.Sequence[DockerConfig], explicit: Credential | None
) -> tuple[Credential | HelperAsk, ...]:
    found: list[Credential | HelperAsk] = [] if explicit is None or endpoint.mirror else [explicit]
    for config in configs:
        helper = helper_for(config, endpoint.host)
        if helper:
            found.append(HelperAsk(*helper, config.source))
        found += matching([config], endpoint.host, endpoint.repository)
    return tuple(dict.fromkeys(found))


def jobs_for(entries: t.Sequence[Entry], settings: Settings) -> dict[Query, batch.Job]:
    """One job for each distinct query, which reads what any of its entries wants."""
    grouped: dict[Query, list[Entry]] = {}
    for entry in entries:
        if entry.query is not None:
            grouped.setdefault(entry.query, []).append(entry)
    return {query: batch.Job(query, _wanted(group, settings), _together(group)) for query, group in grouped.items()}


def _together(group: t.Iterable[Entry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(author for entry in group for author in entry.authors))


def _wanted(group: t.Sequence[Entry], settings: Settings) -> Wanted:
    platforms = {entry.platform for entry in group}
    named = sorted(platform for platform in platforms if platform)
    default = tuple(name for name, on in (("children", settings.children), ("config", settings.config)) if on)
    resolve = {name for entry in group for name in (default if entry.resolve is None else entry.resolve)}
    return Wanted(
        children="children" in resolve or bool(named),
        config="config" in resolve,
        # an entry without a platform wants the config of every child
        platforms=() if None in platforms else tuple(named),
        expect=frozenset.intersection(*(entry.expect for entry in group)),
        verify=any(entry.verify for entry in group),
        compare=frozenset().union(*(entry.compare for entry in group)),
    )


def resolve_all(
    entries: t.Sequence[Entry],
    settings: Settings,
    resolve: batch.Resolve,
    concurrency: int,
    timeout: float,
    deadline: float | None,
    patience: t.Mapping[str, Patience],
) -> list[dict[str, t.Any]]:
    """Look every entry up and describe each, in order."""
    jobs = jobs_for(entries, settings)
    batch.run(list(jobs.values()), resolve, concurrency, timeout, deadline, patience)
    counted: set[int] = set()
    results = []
    for entry in entries:
        job = jobs[entry.query] if entry.query is not None else None
        try:
            results.append(describe(entry, job, settings, first=id(job) not in counted))
        except Exception as exc:
            entry.error = unexpected(exc, entry.image, None)
            results.append(describe(entry, None, settings))
        counted.add(id(job))
    return results


def describe(entry: Entry, job: batch.Job | None, settings: Settings, first: bool = True) -> dict[str, t.Any]:
    """The result of one entry: plain data, no secret; `first` where the look-up's requests count for it."""
    result: dict[str, t.Any] = {
        "image": entry.image,
        "state": "unknown",
        "elapsed": 0.0,
        "requests_made": 0,
        "cached": False,
    }
    if entry.secrets:
        result["pull_secrets"] = [{"namespace": namespace, "name": name} for namespace, name in entry.secrets]
    if entry.reference is not None:
        reference = entry.reference
        result.update(registry=reference.registry, repository=reference.repository, tag=reference.tag)
        result.update(pinned_digest=reference.digest)
    error = entry.error or (job.error if job else None)
    warnings = list(entry.warnings)
    if job is not None:
        trace = job.trace
        result.update(
            elapsed=round(job.elapsed, 4), requests_made=trace.requests if first else 0, source_host=trace.host
        )
        result.update(credential_source=trace.source, ratelimit_remaining=trace.ratelimit_remaining)
        warnings += trace.warnings
        if trace.refused and error is None:
            warnings.append(f"credential_rejected: {', '.join(trace.refused)}")
        result["credential_rejected"] = list(trace.refused)
    if error is not None:
        result.update({"reason": "unexpected", **error.as_result()})
        if "gone" in result:
            result["gone"] = [digest for digest in result["gone"] if digest in entry.compare]
        # where the registry said so, or may hide what is there from those without credentials
        hidden = "status" in error.context and (
            error.reason == "unauthorized" or (error.reason == "not_found" and bool(entry.secrets))
        )
        said = (*entry.warnings, *(entry.hints() if hidden else ()))
        if said and error.reason in ("unauthorized", "not_found"):
            result["msg"] += f"; {'; '.join(said)}"
    elif job is not None and job.found is not None and entry.reference is not None:
        result.update(state="found", digest=job.found.digest, media_type=job.found.media_type)
        result["reference"] = entry.reference.at(job.found.digest)
        result.update(_proofs(job.found, entry.compare))
        if job.found.facts is not None:
            result.update(_facts(entry, job.found.digest, job.found.facts, settings, warnings))
    result["warnings"] = list(dict.fromkeys(warnings))
    return result


def _proofs(found: Found, compare: t.Container[str]) -> dict[str, t.Any]:
    result: dict[str, t.Any] = {}
    if found.pullable is not None:
        result.update(pullable=found.pullable, pullable_msg=found.pullable_msg)
    if found.unread:
        result["unread"] = True
    if found.compared and compare:
        result["compared"] = {digest: list(images) for digest, images in found.compared.images.items()}
        platforms = found.compared.platforms
        result["compared_platforms"] = {digest: list(names) for digest, names in platforms.items()}
        contents = found.compared.contents
        result["compared_contents"] = {digest: _content(content) for digest, content in contents.items()}
        result["gone"] = [digest for digest in found.compared.gone if digest in compare]
    return result


def _content(content: Content) -> dict[str, t.Any]:
    """What the verdict asks of it; `runnable.of_result` reads it."""
    children = None if content.children is None else [_child(child) for child in content.children]
    return {"children": children, "image_platform": content.platform, "artifact": content.artifact or None}


def _child(child: Child) -> dict[str, t.Any]:
    found = {"platform": child.platform, "digest": child.digest, "media_type": child.media_type, "size": child.size}
    more = {"os_version": child.os_version, "os_features": child.os_features, "artifact_type": child.artifact}
    return {**found, **{key: value for key, value in more.items() if value}}


def _facts(entry: Entry, digest: str, facts: Facts, settings: Settings, warnings: list[str]) -> dict[str, t.Any]:
    content = facts.content(digest)
    result: dict[str, t.Any] = {"cached": facts.cached, "artifact": facts.artifact or None}
    children = facts.children
    wants_config = settings.config if entry.resolve is None else "config" in entry.resolve
    got = nodes_get(content, [entry.platform])[entry.platform] if entry.platform else None
    if got and not got.runs:
        warnings.append(f"{entry.image}: {got.message}")
    result["platform_digest"] = got.digest if got and got.runs else None
    if children is None:
        result.update(children=[], image_platform=facts.platform)
        if facts.unreadable:
            warnings.append(f"{entry.image}: {facts.unreadable}")
        if wants_config:
            result["config_digest"] = facts.configs.get(digest)
        return result
    configs = facts.configs
    result["children"] = [
        {**_child(child), **({"config_digest": configs[child.digest]} if child.digest in configs else {})}
        for child in children
    ]
    if wants_config:
        only = result["platform_digest"] or (children[0].digest if len(children) == 1 and not entry.platform else None)
        result["config_digest"] = facts.configs.get(only) if only else None
    return result

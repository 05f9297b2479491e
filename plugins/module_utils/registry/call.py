# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One call of registry_digest: from checked options, through Secrets and files, to the result."""

from __future__ import annotations

import time
import typing as t

from ansible.module_utils.common.validation import check_type_list

from ansible_collections.kubesteward.core.plugins.module_utils import handover
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError, unexpected
from ansible_collections.kubesteward.core.plugins.module_utils.registry import (
    cache,
    facts,
    helpers,
    hosts,
    lookup,
    patience,
    resolver,
    waits,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import (
    Credential,
    DockerConfig,
    read_config,
    read_secret,
)

# of numeric options; a day is longer than any call takes
MOST = {"timeout": 86400, "retries": 20, "concurrency": 128, "deadline": 86400}


class SecretReader(t.Protocol):
    """What is needed of a cluster."""

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, t.Any] | None: ...


def run(params: t.Mapping[str, t.Any], connect: t.Callable[[], SecretReader]) -> dict[str, t.Any]:
    """Look up what `params` ask for.

    :param params: checked options of the module
    :param connect: gives access to the cluster; called only where Secrets are to be read
    :raises StewardError: for wrong options, and for a failed look-up of `image`
    """
    started = time.monotonic() - max(0.0, params.get("spent") or 0.0)
    _check_numbers(params)
    settings = _settings(params)
    single = params.get("image") is not None
    items = [params["image"]] if single else _items(params.get("images"))
    defaults = (params.get("platform"), params.get("pull_secrets"), params.get("on_behalf_of"))
    entries = [lookup.read_entry(item, *defaults) for item in items]
    secrets = _read_secrets(entries, connect)
    for entry in entries:
        lookup.plan(entry, secrets, settings)
    results, made, elapsed = _look_up(entries, settings, params, started)
    if not single:
        images = handover.write(results) if params.get("as_text") else results
        return {"changed": False, "images": images, "requests_made": made, "elapsed": elapsed}
    result = results[0]
    if result.pop("state") == "unknown":
        context = {key: value for key, value in result.items() if key not in ("msg", "reason")}
        raise StewardError(result["msg"], result.get("reason"), **{**context, "requests_made": made})
    return {"changed": False, **result, "requests_made": made}


def _items(given: t.Any) -> list[t.Any]:
    try:
        return check_type_list(handover.read(given) or [])
    except TypeError as exc:
        raise StewardError(f"The option images must be a list: {exc}") from exc


def _look_up(
    entries: list[lookup.Entry], settings: lookup.Settings, params: t.Mapping[str, t.Any], began: float
) -> tuple[list[dict[str, t.Any]], int, float]:
    # here and not at the top: requests costs 0.1 s to import, which nothing else of this module needs
    from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client

    started = time.monotonic()
    seconds = params.get("deadline")
    deadline = None if seconds is None else began + seconds
    timeout, concurrency = params["timeout"], params["concurrency"]
    authors = {author for entry in entries for author in entry.authors}
    kept = _waits(params, authors)
    limits = {
        author: patience.Patience(timeout, concurrency, kept[author].read() if author in kept else None)
        for author in authors
    }
    client = Client(timeout, params["retries"], concurrency, deadline)
    resolve = resolver.Resolver(client, helpers.Helpers(), _store(params)).resolve
    try:
        results = lookup.resolve_all(entries, settings, resolve, concurrency, timeout, deadline, limits)
    finally:
        client.close()
    for author, waits_of in kept.items():
        before = limits[author].before
        if before is not None:
            waits_of.write(before, limits[author].record())
    return results, client.requests_made, round(time.monotonic() - started, 4)


def _folder(params: t.Mapping[str, t.Any]) -> str:
    folder = params.get("cache_dir")
    return cache.default_folder() if folder is None else folder


def _waits(params: t.Mapping[str, t.Any], authors: t.Iterable[str]) -> dict[str, waits.Waits]:
    folder = _folder(params)
    return {author: waits.Waits(folder, author) for author in authors if folder and author}


def _store(params: t.Mapping[str, t.Any]) -> facts.FactStore:
    folder = _folder(params)
    return cache.DiskStore(folder) if folder else facts.NoStore()


def _check_numbers(params: t.Mapping[str, t.Any]) -> None:
    for name, most in MOST.items():
        value = params.get(name)
        if value is not None and not 0 < value <= most:
            raise StewardError(f"{name} is {value}; it must be greater than 0 and at most {most}")


def _settings(params: t.Mapping[str, t.Any]) -> lookup.Settings:
    explicit = None
    if params.get("username") is not None:
        explicit = Credential("username and password", params["username"], params.get("password") or "")
    allowed = params.get("allowed_registries")
    return lookup.Settings(
        rules=hosts.read_rules(params.get("registries")),
        allowed=None if allowed is None else tuple(allowed),
        explicit=explicit,
        configs=_configs(params),
        children="children" in (params.get("resolve") or ()),
        config="config" in (params.get("resolve") or ()),
        anonymous_fallback=params.get("anonymous_fallback", True),
    )


def _configs(params: t.Mapping[str, t.Any]) -> tuple[DockerConfig, ...]:
    configs = []
    if params.get("auth_config"):
        configs.append(read_config(params["auth_config"], "auth_config"))
    path = params.get("auth_file")
    if path:
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as exc:
            raise StewardError(
                f"auth_file {path} cannot be read: {exc.strerror}; give the path of a Docker config.json"
            ) from exc
        configs.append(read_config(content, f"auth_file {path}"))
    return tuple(configs)


def _read_secrets(
    entries: list[lookup.Entry], connect: t.Callable[[], SecretReader]
) -> dict[tuple[str, str], DockerConfig]:
    names = dict.fromkeys(name for entry in entries for name in entry.secrets)
    found: dict[tuple[str, str], DockerConfig] = {}
    if not names:
        return found
    cluster: SecretReader | StewardError
    try:
        cluster = connect()
    except StewardError as exc:
        cluster = exc
    except Exception as exc:
        cluster = unexpected(exc, "access to the cluster", None)
    for namespace, name in names:
        try:
            if isinstance(cluster, StewardError):
                raise cluster
            found[namespace, name] = read_secret(cluster.get("v1", "Secret", namespace, name), namespace, name)
        except StewardError as exc:
            source = f"secret {namespace}/{name}"
            found[namespace, name] = DockerConfig(source, problems=(f"{source}: cannot be read: {exc}",))
        except Exception as exc:
            source = f"secret {namespace}/{name}"
            found[namespace, name] = DockerConfig(source, problems=(str(unexpected(exc, source, None)),))
    return found

#!/usr/bin/python
# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: registry_digest
short_description: Find out which digest an image tag names in its registry
version_added: 1.0.0
author:
  - kubesteward authors (@kubesteward)
description:
  - Asks container registries which digest a tag names now, with one C(HEAD) request for each distinct reference.
  - The digest is that of what the tag names itself, an index where there is one, so it does not depend on a platform.
  - This module only reads. It is not named C(_info) because its name is part of the published interface.
attributes:
  check_mode:
    description: Reads only, so check mode changes nothing.
    support: full
  diff_mode:
    description: Nothing is changed, so there is no difference to show.
    support: none
options:
  image:
    description:
      - One reference. Its parts are returned at the top level, and a look-up that fails fails the module.
      - Exactly one of O(image) and O(images) is required.
    type: str
  images:
    description:
      - References, each a string or a dictionary with the key C(image).
      - A dictionary may have C(pull_secrets), dictionaries with C(namespace) and C(name), which are tried before
        O(pull_secrets), and C(platform), which takes the place of O(platform).
      - One entry that cannot be looked up fails neither the others nor the module.
    type: list
    elements: raw
  platform:
    description:
      - Platform as V(os/arch) or V(os/arch/variant), for example V(linux/arm64). The child for it is resolved too.
    type: str
  resolve:
    description:
      - What to read beside the top-level digest.
      - V(children) lists the manifests of an index. V(config) adds the digest of the image configuration.
    type: list
    elements: str
    choices: [children, config]
    default: []
  username:
    description:
      - User name for the registry that the reference names. Never sent to a mirror.
    type: str
  password:
    description:
      - Password or access token that belongs to O(username).
    type: str
  auth_file:
    description:
      - Path of a Docker C(config.json) where the module runs, with C(auths), C(credHelpers) or C(credsStore).
      - Helper programs that it names are run.
      - Stands for the credential provider of a node, so it is tried after all others.
    type: path
  auth_config:
    description:
      - Content of a Docker C(config.json), as a string or a dictionary.
    type: raw
  pull_secrets:
    description:
      - Secrets that this module reads from the cluster, of type C(kubernetes.io/dockerconfigjson) or
        C(kubernetes.io/dockercfg).
      - Credential helpers that a Secret names are never run.
    type: list
    elements: dict
    suboptions:
      namespace:
        description: Namespace of the Secret.
        type: str
        required: true
      name:
        description: Name of the Secret.
        type: str
        required: true
  registries:
    description:
      - How registries are reached, with the keys of C(containers-registries.conf). The longest prefix wins.
      - Loopback registries use plain HTTP unless a certificate option is given for them.
    type: list
    elements: dict
    default: []
    suboptions:
      prefix:
        description:
          - What references begin with, C(host[:port][/path]), or C(*.host) for every name below a domain.
          - Default is O(registries[].location).
        type: str
      location:
        description: What takes the place of the prefix. Default is the prefix.
        type: str
      insecure:
        description: Use plain HTTP or unverified TLS for this prefix.
        type: bool
        default: false
      mirror:
        description: Places to ask first, in order.
        type: list
        elements: dict
        default: []
        suboptions:
          location:
            description: What takes the place of the prefix.
            type: str
            required: true
          insecure:
            description: Use plain HTTP or unverified TLS for this mirror.
            type: bool
            default: false
      ca_cert:
        description: Path of CA certificates that are trusted beside the system's.
        type: path
      client_cert:
        description: Path of a client certificate.
        type: path
      client_key:
        description: Path of the key that belongs to O(registries[].client_cert).
        type: path
      validate_certs:
        description: Whether TLS certificates are verified.
        type: bool
  allowed_registries:
    description:
      - Patterns C(host[:port][/path]) with V(*) as a wildcard. Any other registry is C(forbidden_registry)
        before a request is made.
      - Without this option all are allowed, with an empty list none.
    type: list
    elements: str
  anonymous_fallback:
    description:
      - Whether to ask once without credentials where all credentials are refused.
      - V(false) asks as the kubelet does and so proves that a digest can be pulled.
    type: bool
    default: true
  cache_dir:
    description:
      - Folder for what a digest fixes for ever, the children of an index and the digest of a configuration.
      - What a tag names is never kept. An empty string turns the folder off.
      - The default is C(kubesteward/manifests) below E(XDG_CACHE_HOME) or C(~/.cache).
    type: path
  timeout:
    description: Seconds for one request. A request that times out is not repeated.
    type: float
    default: 10
  retries:
    description: Tries for one request, the first included, where the registry fails or breaks the connection.
    type: int
    default: 3
  concurrency:
    description: Requests under way to one host at most.
    type: int
    default: 8
  deadline:
    description: Seconds for the whole call. What is not looked up until then is C(unreachable).
    type: float
requirements:
  - requests >= 2.32
  - kubernetes, only for O(pull_secrets)
extends_documentation_fragment:
  - kubesteward.core.cluster_auth
"""

EXAMPLES = r"""
- name: Ask Docker Hub
  kubesteward.core.registry_digest:
    image: nginx:1.27
"""

RETURN = r"""
digest:
  description: Digest of what the tag names.
  returned: when found
  type: str
  sample: sha256:4bcff63911fcb4448bd4fdacec207030997caf25e9bea4045fa6c8c44de311d1
"""

import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry import (
    cache,
    facts,
    helpers,
    hosts,
    lookup,
    resolver,
)
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import (
    Credential,
    DockerConfig,
    read_config,
    read_secret,
)


class SecretReader(t.Protocol):
    """What is needed of a cluster."""

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> dict[str, t.Any] | None: ...


def argument_spec() -> dict[str, t.Any]:
    """Options of the module; those for the cluster are kubernetes.core's."""
    secret_name = {"namespace": {"type": "str", "required": True}, "name": {"type": "str", "required": True}}
    mirror = {"location": {"type": "str", "required": True}, "insecure": {"type": "bool", "default": False}}
    registry = {
        "prefix": {"type": "str"},
        "location": {"type": "str"},
        "insecure": {"type": "bool", "default": False},
        "mirror": {"type": "list", "elements": "dict", "default": [], "options": mirror},
        "ca_cert": {"type": "path"},
        "client_cert": {"type": "path"},
        "client_key": {"type": "path", "no_log": False},
        "validate_certs": {"type": "bool"},
    }
    cluster = {name: dict(option) for name, option in AUTH_ARG_SPEC.items() if name not in ("username", "password")}
    return {
        **cluster,
        "image": {"type": "str"},
        "images": {"type": "list", "elements": "raw"},
        "platform": {"type": "str"},
        "resolve": {"type": "list", "elements": "str", "choices": ["children", "config"], "default": []},
        "username": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "auth_file": {"type": "path", "no_log": False},
        "auth_config": {"type": "raw", "no_log": True},
        "pull_secrets": {"type": "list", "elements": "dict", "options": secret_name, "no_log": False},
        "registries": {"type": "list", "elements": "dict", "default": [], "options": registry},
        "allowed_registries": {"type": "list", "elements": "str"},
        "anonymous_fallback": {"type": "bool", "default": True},
        "cache_dir": {"type": "path"},
        "timeout": {"type": "float", "default": 10},
        "retries": {"type": "int", "default": 3},
        "concurrency": {"type": "int", "default": 8},
        "deadline": {"type": "float"},
    }


CONSTRAINTS: dict[str, t.Any] = {
    "mutually_exclusive": [("image", "images")],
    "required_one_of": [("image", "images")],
    "required_together": [("username", "password")],
}


def run(params: t.Mapping[str, t.Any], connect: t.Callable[[], SecretReader]) -> dict[str, t.Any]:
    """Look up what `params` ask for.

    :param params: checked options of the module
    :param connect: gives access to the cluster; called only where Secrets are to be read
    :raises StewardError: for wrong options, and for a failed look-up of `image`
    """
    _check_numbers(params)
    settings = _settings(params)
    single = params.get("image") is not None
    items = [params["image"]] if single else params.get("images") or []
    entries = [lookup.read_entry(item, params.get("platform"), params.get("pull_secrets")) for item in items]
    secrets = _read_secrets(entries, connect)
    for entry in entries:
        lookup.plan(entry, secrets, settings)
    results, made, elapsed = _look_up(entries, settings, params)
    if not single:
        return {"changed": False, "images": results, "requests_made": made, "elapsed": elapsed}
    result = results[0]
    if result.pop("state") == "unknown":
        context = {key: value for key, value in result.items() if key not in ("msg", "reason")}
        raise StewardError(result["msg"], result.get("reason"), **{**context, "requests_made": made})
    return {"changed": False, **result, "requests_made": made}


def _look_up(
    entries: list[lookup.Entry], settings: lookup.Settings, params: t.Mapping[str, t.Any]
) -> tuple[list[dict[str, t.Any]], int, float]:
    # here and not at the top: requests costs 0.1 s to import, which nothing else of this module needs
    from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client

    started = time.monotonic()
    seconds = params.get("deadline")
    deadline = None if seconds is None else started + seconds
    client = Client(params["timeout"], params["retries"], params["concurrency"], deadline)
    resolve = resolver.Resolver(client, helpers.Helpers(), _store(params)).resolve
    try:
        results = lookup.resolve_all(entries, settings, resolve, params["concurrency"], params["timeout"], deadline)
    finally:
        client.close()
    return results, client.requests_made, round(time.monotonic() - started, 4)


def _store(params: t.Mapping[str, t.Any]) -> facts.FactStore:
    folder = params.get("cache_dir")
    if folder is None:
        folder = cache.default_folder()
    return cache.DiskStore(folder) if folder else facts.NoStore()


def _check_numbers(params: t.Mapping[str, t.Any]) -> None:
    for name in ("timeout", "retries", "concurrency", "deadline"):
        value = params.get(name)
        if value is not None and not value > 0:
            raise StewardError(f"{name} is {value}; it must be greater than 0")


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
    for namespace, name in names:
        try:
            if isinstance(cluster, StewardError):
                raise cluster
            found[namespace, name] = read_secret(cluster.get("v1", "Secret", namespace, name), namespace, name)
        except StewardError as exc:
            source = f"secret {namespace}/{name}"
            found[namespace, name] = DockerConfig(source, problems=(f"{source}: cannot be read: {exc}",))
    return found


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True, **CONSTRAINTS)

    def connect() -> SecretReader:
        from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster

        return Cluster.connect(module)

    try:
        result = run(module.params, connect)
    except StewardError as exc:
        module.fail_json(**exc.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()

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
        O(pull_secrets), C(platform), which takes the place of O(platform), and C(resolve), which takes the place of
        O(resolve).
      - With C(expect), digests, nothing more than the top-level digest is read where that is one of them.
      - With C(verify), any other digest is asked for by itself, with the same credentials and without an anonymous try,
        as a node would pull it.
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
- name: Ask Docker Hub which digest a tag names now
  kubesteward.core.registry_digest:
    image: nginx:1.27
  register: published

- name: Pin the image
  ansible.builtin.debug:
    msg: "{{ published.reference }}"

- name: Ask GHCR for many images at once, with a token
  kubesteward.core.registry_digest:
    images:
      - ghcr.io/example/shop:stable
      - ghcr.io/example/cart:stable
    username: example-bot
    password: "{{ ghcr_token }}"

- name: Ask ECR with the credential helper that the administrator's configuration names
  kubesteward.core.registry_digest:
    image: 123456789012.dkr.ecr.eu-central-1.amazonaws.com/shop:stable
    auth_file: /etc/kubesteward/config.json

- name: Ask Quay with the pull secret of a Pod, and find the child for its node
  kubesteward.core.registry_digest:
    images:
      - image: quay.io/example/shop:stable
        platform: linux/arm64
        pull_secrets:
          - namespace: shop
            name: quay-pull
    resolve: [children, config]

- name: Ask a private registry with its own CA
  kubesteward.core.registry_digest:
    image: registry.example.com:5000/team/shop:stable
    registries:
      - prefix: registry.example.com:5000
        ca_cert: /etc/ssl/private-ca.pem

- name: Ask a mirror of Docker Hub first
  kubesteward.core.registry_digest:
    image: nginx:1.27
    registries:
      - prefix: docker.io
        mirror:
          - location: mirror.example.com/hub

- name: Prove that a digest can be pulled with exactly this Secret
  kubesteward.core.registry_digest:
    image: "registry.example.com/shop@{{ digest }}"
    pull_secrets:
      - namespace: shop
        name: registry-pull
    anonymous_fallback: false
"""

RETURN = r"""
image:
  description: The reference as it was given.
  returned: with O(image)
  type: str
  sample: nginx:1.27
registry:
  description: Host of the registry's API.
  returned: with a valid O(image)
  type: str
  sample: registry-1.docker.io
repository:
  description: Path of the repository.
  returned: with a valid O(image)
  type: str
  sample: library/nginx
tag:
  description: The tag, V(latest) where none is given, null where there is only a digest.
  returned: with a valid O(image)
  type: str
  sample: "1.27"
pinned_digest:
  description: The digest that the reference itself has, or null.
  returned: with a valid O(image)
  type: str
digest:
  description: Digest of what the tag names, of the index where it is one.
  returned: when found
  type: str
  sample: sha256:4bcff63911fcb4448bd4fdacec207030997caf25e9bea4045fa6c8c44de311d1
media_type:
  description: Media type of what the tag names.
  returned: when found
  type: str
  sample: application/vnd.oci.image.index.v1+json
reference:
  description: Registry, repository and digest, as a container runtime pulls it.
  returned: when found
  type: str
  sample: docker.io/library/nginx@sha256:4bcff63911fcb4448bd4fdacec207030997caf25e9bea4045fa6c8c44de311d1
children:
  description: Manifests of the index and of nested ones, attestations left out. Empty for a single image.
  returned: with O(resolve) or a platform
  type: list
  elements: dict
  contains:
    platform:
      description: C(os/arch[/variant]), empty where the index does not say.
      type: str
    digest:
      description: Digest of the manifest.
      type: str
    media_type:
      description: Media type that the index gives.
      type: str
    size:
      description: Bytes of the manifest.
      type: int
    config_digest:
      description: Digest of the image configuration, where it was read.
      type: str
platform_digest:
  description: Digest of the manifest that a node of the platform pulls, null where there is none for it.
  returned: with O(resolve) or a platform
  type: str
config_digest:
  description: Digest of the image configuration of the platform, or of the only image there is.
  returned: with V(config) in O(resolve)
  type: str
source_host:
  description: Host that was asked last, which gave the answer, a mirror perhaps.
  returned: after a request
  type: str
credential_source:
  description: Name of what gave the credential that was used, never its value. Null where none was needed.
  returned: after a request
  type: str
  sample: secret shop/quay-pull
credential_rejected:
  description: Names of credentials that the registry refused.
  returned: after a request
  type: list
  elements: str
ratelimit_remaining:
  description: Pulls that the registry still grants, null where it does not say.
  returned: after a request
  type: int
requests_made:
  description: Requests on the wire, those to token servers included.
  returned: always
  type: int
cached:
  description: Whether everything beside the digest came from the cache folder.
  returned: with O(image)
  type: bool
elapsed:
  description: Seconds that the look-ups took.
  returned: always
  type: float
warnings:
  description: What went wrong without spoiling the result.
  returned: with O(image), where there is something
  type: list
  elements: str
reason:
  description: Why the look-up failed, one of the documented reasons.
  returned: when not found
  type: str
  sample: not_found
retry_after:
  description: Seconds after which the registry wants to be asked again.
  returned: with reason V(rate_limited)
  type: int
images:
  description:
    - One entry for each of O(images), in their order, with the keys that O(image) gives at the top level.
    - C(requests_made) counts a shared look-up in its first entry only.
  returned: with O(images)
  type: list
  elements: dict
  contains:
    state:
      description: V(found) or V(unknown).
      type: str
    reason:
      description: Why it is unknown.
      type: str
    msg:
      description: The same for people.
      type: str
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
    harmless_texts,
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
    started = time.monotonic()
    _check_numbers(params)
    settings = _settings(params)
    single = params.get("image") is not None
    items = [params["image"]] if single else params.get("images") or []
    entries = [lookup.read_entry(item, params.get("platform"), params.get("pull_secrets")) for item in items]
    secrets = _read_secrets(entries, connect)
    for entry in entries:
        lookup.plan(entry, secrets, settings)
    results, made, elapsed = _look_up(entries, settings, params, started)
    if not single:
        return {"changed": False, "images": results, "requests_made": made, "elapsed": elapsed}
    result = results[0]
    if result.pop("state") == "unknown":
        context = {key: value for key, value in result.items() if key not in ("msg", "reason")}
        raise StewardError(result["msg"], result.get("reason"), **{**context, "requests_made": made})
    return {"changed": False, **result, "requests_made": made}


def _look_up(
    entries: list[lookup.Entry], settings: lookup.Settings, params: t.Mapping[str, t.Any], began: float
) -> tuple[list[dict[str, t.Any]], int, float]:
    # here and not at the top: requests costs 0.1 s to import, which nothing else of this module needs
    from ansible_collections.kubesteward.core.plugins.module_utils.registry.transport import Client

    started = time.monotonic()
    seconds = params.get("deadline")
    deadline = None if seconds is None else began + seconds
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
    module.no_log_values.difference_update(harmless_texts(module.params["auth_config"]))

    def connect() -> SecretReader:
        from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster

        return Cluster.connect(module)

    try:
        result = run(module.params, connect)
    except StewardError as exc:
        failed = exc.as_result()
        _warn(module, failed)
        module.fail_json(**failed)
    _warn(module, result)
    module.exit_json(**result)


def _warn(module: AnsibleModule, result: dict[str, t.Any]) -> None:
    """Give the warnings of the one entry there is to Ansible, whose own key they would be."""
    for text in result.pop("warnings", ()):
        module.warn(text)


if __name__ == "__main__":
    main()

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
      - References, each a string or a dictionary with these keys. Any other key makes the entry C(invalid_reference).
      - C(image), required, is the reference.
      - C(pull_secrets), dictionaries with C(namespace) and C(name), are tried before O(pull_secrets).
      - C(platform) takes the place of O(platform).
      - C(resolve) takes the place of O(resolve).
      - C(expect) is a list of digests, those that run for example. Where the tag names one of them, nothing more than
        the top-level digest is read, whatever C(resolve) and C(verify) say.
      - C(verify), a boolean, asks for the digest that was found by itself, with the same credentials and without an
        anonymous try after a refusal, as a node would pull it. The answer is RV(pullable).
      - C(compare), up to four digests or image IDs, reads what those consist of where the tag names none of C(expect),
        and whether they are still there, RV(compared) and RV(gone). Other repositories' are left out.
      - C(on_behalf_of) of an entry, one name or a list, stands for O(on_behalf_of). What several ask for is asked as
        long as one of them has time left for it.
      - One entry that cannot be looked up fails neither the others nor the module.
      - A list, or the text for one that M(kubesteward.core.pod_image_id) returns.
    type: raw
  platform:
    description:
      - Platform as V(os/arch[/variant]), for example V(linux/arm64), of Windows with its version as
        V(windows(10.0.20348\)/amd64). The child for it is resolved too.
    type: str
  resolve:
    description:
      - What to read beside the top-level digest.
      - V(children) lists the manifests of an index. V(config) adds the digest of the image configuration.
    type: list
    elements: str
    choices: [children, config]
    default: []
requirements:
  - requests >= 2.32
  - python >= 3.11
  - kubernetes >= 33, not 36.0.0, only for O(pull_secrets)
extends_documentation_fragment:
  - kubesteward.core.registry_access
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

- name: Read an index only where the tag names something new, and prove then that a node can pull it
  kubesteward.core.registry_digest:
    images:
      - image: quay.io/example/shop:stable
        expect: ["{{ running_digest }}"]
        resolve: [children]
        verify: true
        pull_secrets:
          - namespace: shop
            name: quay-pull

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
pullable:
  description: Whether the digest can be pulled with these credentials, as a node would.
  returned: with C(verify) in an entry of O(images), unless C(expect) has the digest
  type: bool
unread:
  description: True where children or config were wanted, and not read to spare the registry's rate limit.
  returned: when so
  type: bool
artifact:
  description: What the digest is where it is no container image, for example V(a Helm chart), else null.
  returned: with O(resolve) or a platform
  type: str
image_platform:
  description: Platform of a single image as its config says, empty where that does not, null where it was not read.
  returned: with V(children) in O(resolve) or a platform, of a single image
  type: str
compared:
  description: For each digest of C(compare) that could be read, the digests of its images without attestations.
  returned: with C(compare) in an entry of O(images), unless C(expect) has the digest
  type: dict
compared_platforms:
  description: For each index among those digests that names the platforms of all its images, these platforms.
  returned: with RV(compared)
  type: dict
compared_contents:
  description: For each of them RV(children) (null for a single image), RV(image_platform) and RV(artifact).
  returned: with RV(compared)
  type: dict
gone:
  description:
    - Digests of C(compare) that the registry, not just a mirror, answers C(404) for, so that no node can pull them.
    - Where the tag is not found either, it must say C(MANIFEST_UNKNOWN), as C(404) may also mean not permitted.
    - One that it does not answer for is none of them, nor is an image of the index that the tag names.
  returned: with RV(compared), and where the tag is not found
  type: list
  elements: str
pullable_msg:
  description: Why it cannot be pulled, null where it can.
  returned: with RV(pullable)
  type: str
pull_secrets:
  description: Names of the Secrets that were read for the entry, never what is in them.
  returned: with pull secrets
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the Secret.
      type: str
    name:
      description: Name of the Secret.
      type: str
children:
  description:
    - Manifests of the index and of nested ones, attestations left out. Empty for a single image.
    - Where the index says so they have C(os_version), C(os_features) and C(artifact_type), what they are but images.
  returned: with O(resolve) or a platform
  type: list
  elements: dict
  contains:
    platform:
      description: C(os/arch[/variant]), empty where neither the index says it nor, where that says none, the config.
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
  description:
    - Digest of the manifest that a node of the platform pulls and can run, by containerd's rules; null where there is
      none, also where the tag names a single image for another platform, or something that is no image.
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
status:
  description: HTTP status that was the reason.
  returned: when not found, where an answer was the reason
  type: int
code:
  description: What the registry says the error is, as the distribution specification names errors.
  returned: when not found, where it says so
  type: str
part:
  description: Part of the reference that is wrong, for example V(tag).
  returned: with reason V(invalid_reference), where it is the reference
  type: str
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
    pull_secrets:
      description: As RV(pull_secrets).
      type: list
      elements: dict
"""

from ansible_collections.kubesteward.core.plugins.module_utils import start

start.require()

import types
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.registry.call import SecretReader, run
from ansible_collections.kubesteward.core.plugins.module_utils.registry.credentials import harmless_texts

#: options that are named like kubernetes.core's and mean the registry's account
_REGISTRYS = ("username", "password")


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
    cluster = {name: dict(option) for name, option in AUTH_ARG_SPEC.items() if name not in _REGISTRYS}
    return {
        **cluster,
        "image": {"type": "str"},
        "images": {"type": "raw"},
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
        "as_text": {"type": "bool", "default": False},
        "cache_dir": {"type": "path"},
        "on_behalf_of": {"type": "str"},
        "timeout": {"type": "float", "default": 10},
        "retries": {"type": "int", "default": 3},
        "concurrency": {"type": "int", "default": 8},
        "deadline": {"type": "float"},
        "spent": {"type": "float", "default": 0},
    }


def cluster_options(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What of the module's options is about the cluster."""
    return {name: params.get(name) for name in AUTH_ARG_SPEC if name not in _REGISTRYS}


CONSTRAINTS: dict[str, t.Any] = {
    "mutually_exclusive": [("image", "images")],
    "required_one_of": [("image", "images")],
    "required_together": [("username", "password")],
}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True, **CONSTRAINTS)
    # not at the top: what reads the options alone imports this file where there are no libraries
    start.require("requests")
    start.hide_secrets_alone(module)
    module.no_log_values.difference_update(harmless_texts(module.params["auth_config"]))

    def connect() -> SecretReader:
        from ansible_collections.kubesteward.core.plugins.module_utils.kube import Cluster

        # `username` and `password` are the registry's here
        return Cluster.connect(types.SimpleNamespace(params=cluster_options(module.params)))

    try:
        result = run(module.params, connect)
    except StewardError as exc:
        failed = exc.as_result()
        _warn(module, failed)
        module.fail_json(**failed)
    _warn(module, result)
    module.exit_json(**result)


def _warn(module: AnsibleModule, result: dict[str, t.Any]) -> None:
    for text in result.pop("warnings", ()):  # the key is Ansible's own
        module.warn(text)


if __name__ == "__main__":
    main()

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that say how registries are reached: credentials, mirrors, TLS, limits."""

from __future__ import annotations


class ModuleDocFragment:
    """What `module_utils/registry/call.py` reads beside the references themselves."""

    DOCUMENTATION = r"""
options:
  username:
    description:
      - User name for the registry that the reference names, or for what O(registries[].location) puts in its place.
        Never sent to a mirror.
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
      - One that is missing or cannot be read is a warning of its entry. A public image is found nonetheless; a private
        one is C(unauthorized), with a message that names the Secret.
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
  on_behalf_of:
    description:
      - Whose references these are, for example the namespace of an Update that the operator runs.
      - What is waited for slow registries is then remembered in O(cache_dir) for five minutes. Later calls for the same
        author give these registries two seconds of ten, and end early where the author's registries took a minute.
    type: str
  timeout:
    description:
      - Seconds for one request and its whole answer, at most 86400. A request that times out is not repeated.
      - Everything that one look-up asks at one place, redirects, retries and pauses included, gets twice as long.
    type: float
    default: 10
  retries:
    description:
      - Tries for one request, the first included, where the registry fails or breaks the connection. At most 20.
    type: int
    default: 3
  concurrency:
    description: Requests under way to one host at most. No more than 128.
    type: int
    default: 8
  as_text:
    description:
      - Return RV(images) as one text, which M(kubesteward.core.image_rollout) takes, too. For hundreds of images, what
        Ansible does with every value of a list is most of what a task costs.
    type: bool
    default: false
  deadline:
    description: Seconds for the whole call, at most 86400. What is not looked up until then is C(unreachable).
    type: float
  spent:
    description: Seconds of O(deadline) that are over already, for example since a pass began.
    type: float
    default: 0
"""

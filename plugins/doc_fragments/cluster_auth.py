# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for the cluster of modules that use `username` and `password` for a registry."""

from __future__ import annotations


class ModuleDocFragment:
    """kubernetes.core's options for authentication, without `username` and `password`."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description: Path of a kubeconfig file, or its content as a dictionary. Also E(K8S_AUTH_KUBECONFIG).
    type: raw
  context:
    description: Name of a context in the kubeconfig file. Also E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description: URL of the cluster's API. Also E(K8S_AUTH_HOST).
    type: str
  api_key:
    description: Token for the cluster's API. Also E(K8S_AUTH_API_KEY).
    type: str
  validate_certs:
    description: Whether the certificate of the cluster's API is verified. Also E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  ca_cert:
    description: Path of the CA certificate of the cluster's API. Also E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  client_cert:
    description: Path of a client certificate for the cluster's API. Also E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: Path of the key of the client certificate. Also E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  proxy:
    description: URL of an HTTP proxy for the cluster's API. Also E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description: Hosts and address ranges, separated by commas, without the proxy. Also E(K8S_AUTH_NO_PROXY).
    type: str
  proxy_headers:
    description: Headers for the HTTP proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description: User and password for the proxy, separated by a colon.
        type: str
      basic_auth:
        description: User and password for basic authentication, separated by a colon.
        type: str
      user_agent:
        description: Name that the client gives itself.
        type: str
  persist_config:
    description: Whether a renewed token is written back to the kubeconfig file. Also E(K8S_AUTH_PERSIST_CONFIG).
    type: bool
  impersonate_user:
    description: User name to impersonate. Also E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description: Groups to impersonate. Also E(K8S_AUTH_IMPERSONATE_GROUPS).
    type: list
    elements: str
"""

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to the API server.

Authentication is kubernetes.core's (every option and K8S_AUTH_* variable), the transport is the official client's, or
ours where access is plain.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import kube_plain
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError

if t.TYPE_CHECKING:
    import urllib3
    from ansible.module_utils.basic import AnsibleModule

USER_AGENT = "kubesteward/1.0.0"
#: seconds that an API server may ask to be waited for; what asks for more is refused at once
LONGEST_PAUSE = 5
#: the version of the official client that sends no bearer token
_WITHOUT_TOKENS = "36.0.0"
#: what a file of Ansible Vault begins with
_VAULT = b"$ANSIBLE_VAULT;"


class _NoDiscovery:
    """Stands in for the dynamic client's discovery, which would read the whole API's index first."""

    def __init__(self, client: t.Any, cache_file: t.Any) -> None:
        pass


def request_function(module: AnsibleModule) -> t.Callable[..., t.Any]:
    """How requests are made: by ourselves where access is plain, else by the official client."""
    try:
        retries = _retries()
    except ImportError as exc:
        raise _missing_library() from exc
    from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_MAP, AUTH_ARG_SPEC

    names = {**dict.fromkeys(AUTH_ARG_SPEC, ""), **{option: other for other, option in AUTH_ARG_MAP.items()}}
    access = kube_plain.find(module.params, names, os.environ)
    if access is not None:
        return _plain(access, retries)
    return _official(module, retries)


def _retries() -> urllib3.Retry:
    """A refused write was not carried out, so 429 may be repeated for every verb; a broken read may not."""
    import urllib3

    class Retries(urllib3.Retry):
        """Waits where nothing was carried out and a short pause is asked for; urllib3 repeats a POST on 503, too."""

        RETRY_AFTER_STATUS_CODES = frozenset((429,))

        def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
            try:
                return super().get_retry_after(response)
            except (urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
                return None

        def increment(
            self,
            method: str | None = None,
            url: str | None = None,
            response: t.Any = None,
            *more: t.Any,
            **query: t.Any,
        ) -> t.Self:
            pause = self.get_retry_after(response) if response is not None else None
            origin = self.new(total=0) if pause and pause > LONGEST_PAUSE else self
            return urllib3.Retry.increment(origin, method, url, response, *more, **query)

    found = Retries(
        total=4, connect=2, read=0, status=3, status_forcelist=[429], allowed_methods=None, backoff_factor=0.2
    )
    # the last refusal says why; without this it would read as no answer at all
    found.raise_on_status = False
    return found


def _plain(access: kube_plain.Access, retries: t.Any) -> t.Callable[..., t.Any]:
    import ssl

    try:
        return kube_plain.PlainClient(access, USER_AGENT, retries).request
    except ssl.SSLError as exc:
        hint = "certificates and the key must be PEM, and the key must be that of the certificate"
        raise StewardError(f"The kubeconfig's certificates cannot be used: {exc.reason or exc} ({hint})") from exc


def _missing_library() -> StewardError:
    from ansible.module_utils.basic import missing_required_lib

    return StewardError(missing_required_lib("kubernetes"))


def _official(module: AnsibleModule, retries: t.Any) -> t.Callable[..., t.Any]:
    try:
        import kubernetes
    except ImportError as exc:
        raise _missing_library() from exc
    return with_one_error(_dynamic_client(module, kubernetes, retries).request)


def with_one_error(official: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
    """The official client's `request`, refusing in the way that our own does."""
    import kubernetes
    from kubernetes.client.exceptions import ApiException

    def request(verb: str, path: str, **query: t.Any) -> t.Any:
        try:
            return official(verb, path, serialize=False, **query)
        except ApiException as exc:
            hint = ""
            if exc.status == 401 and kubernetes.__version__ == _WITHOUT_TOKENS:
                hint = f" (kubernetes {_WITHOUT_TOKENS} sends no token: install another version of that Python library)"
            raise kube_plain.RefusedError(exc.status or 0, exc.reason or "", exc.body, hint) from exc

    return request


def _one_line(exc: Exception) -> str:
    """What is wrong and where. Of what a YAML file says only the place is told: it may be a secret."""
    mark = getattr(exc, "problem_mark", None)
    if mark is None:
        return " ".join(str(exc).split())
    return f"{getattr(exc, 'problem', None) or 'not YAML'} in {mark.name}, line {mark.line + 1}"


def _check_files(given: t.Any) -> None:
    """Name a kubeconfig that is not there or is encrypted; the client says "No configuration found", or breaks off.

    :param given: the option, or what stands for it in the environment
    :raises StewardError: there is no such file, or only Ansible could read it
    """
    if not isinstance(given, str):
        return
    paths = [pathlib.Path(path).expanduser() for path in given.split(os.pathsep) if path]
    absent = [path for path in paths if not path.exists()]
    if len(absent) == len(paths):
        raise StewardError(f"There is no kubeconfig {' and no '.join(map(str, absent))}")
    for path in paths:
        with contextlib.suppress(OSError), path.open("rb") as file:
            if file.read(len(_VAULT)) == _VAULT:
                raise StewardError(
                    f"The kubeconfig {path} is encrypted with Ansible Vault: give it as the option kubeconfig,"
                    " which Ansible decrypts, not by the environment"
                )


def _dynamic_client(module: AnsibleModule, kubernetes: t.Any, retries: t.Any) -> t.Any:
    import yaml
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as k8s
    from kubernetes.dynamic import DynamicClient

    spec = k8s._create_auth_spec(module)
    # the client reads the variable when it is imported, which a controller may have done with another environment
    kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION = os.environ.get("KUBECONFIG", "~/.kube/config")
    try:
        configuration = k8s._create_configuration(spec)
    except kubernetes.config.ConfigException as exc:
        _check_files(spec.get("kubeconfig") or os.environ.get("KUBECONFIG"))
        hint = "set kubeconfig, context or host, or the environment variable KUBECONFIG or K8S_AUTH_KUBECONFIG"
        raise StewardError(f"No cluster is configured: {exc} ({hint})") from exc
    except (OSError, ValueError, yaml.YAMLError) as exc:
        raise StewardError(f"The kubeconfig cannot be read: {_one_line(exc)}") from exc
    except (TypeError, AttributeError) as exc:
        # what the client says of a file that is one text or a list is about its own code
        _check_files(spec.get("kubeconfig") or os.environ.get("KUBECONFIG"))
        raise StewardError("The kubeconfig cannot be read: it is no map of clusters, users and contexts") from exc
    configuration.retries = retries
    api = kubernetes.client.ApiClient(configuration)
    api.user_agent = USER_AGENT
    for header, value in k8s._create_headers(module).items():
        k8s._set_header(api, header, value)
    return DynamicClient(api, discoverer=_NoDiscovery)

# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The short way to the API server, for a kubeconfig file that holds everything itself.

Importing the official client costs more than all the rest of an unchanged pass. Where access is a file with a
certificate, a token or a password, as on most machines and under ansible-operator, nothing of it is needed. Anything
else (plugins that fetch credentials, proxies, impersonation, options of the module, ...) is `None` here and left to it.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import pathlib
import re
import ssl
import tempfile
import typing as t
import urllib.parse
from dataclasses import dataclass, field

if t.TYPE_CHECKING:
    import urllib3

#: connections that are kept open: as many as there are threads at most, here as in the official client
CONNECTIONS = 8
#: environment variables that take precedence over a kubeconfig, or change how it is used
_NOT_PLAIN = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_CLUSTER = {"server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify", "extensions"}
_CERTIFICATE = {"client-certificate", "client-certificate-data", "client-key", "client-key-data"}
_USER = {*_CERTIFICATE, "token", "username", "password"}
_QUERY = {
    "limit": "limit",
    "_continue": "continue",
    "label_selector": "labelSelector",
    "dry_run": "dryRun",
    "field_manager": "fieldManager",
    "force_conflicts": "force",
}

Params = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Access:
    """All that is needed for a request. `authority`, `certificate` and `key` are PEM; secrets are not shown."""

    server: str
    verify: bool
    authority: str = ""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    authorization: str = field(default="", repr=False)


class RefusedError(Exception):
    """An answer that is not a success: HTTP status, reason phrase, body, and what this side knows of the cause."""

    def __init__(self, status: int, reason: str, body: t.Any, hint: str = "") -> None:
        super().__init__(f"{status} {reason}")
        self.status, self.reason, self.body, self.hint = status, reason, body, hint


def find(params: Params, names: t.Mapping[str, str], environ: t.Mapping[str, str]) -> Access | None:
    """Access as the module's options and the environment name it, where that is a plain kubeconfig file.

    :param names: kubernetes.core's options for authentication, with the name that its environment variable may have
        instead: {option: other name}
    """
    if any(environ.get(name) for name in _NOT_PLAIN):
        return None
    given = {option: _given(params, environ, option, other) for option, other in names.items()}
    path, context, verify = (given.pop(option, None) for option in ("kubeconfig", "context", "validate_certs"))
    if any(value is not None for value in given.values()):
        return None
    if path is None:
        # where there is none, kubernetes.core asks for a service account first
        if environ.get("KUBERNETES_SERVICE_HOST"):
            return None
        path = environ.get("KUBECONFIG") or os.path.join(os.path.expanduser("~"), ".kube", "config")
    if not isinstance(path, str) or os.pathsep in path:
        return None
    access = _read(pathlib.Path(path).expanduser(), context)
    if access is None or verify is None:
        return access
    verify = verify.lower() not in ("0", "false", "no") if isinstance(verify, str) else bool(verify)
    return Access(**{**vars(access), "verify": verify})


def _given(params: Params, environ: t.Mapping[str, str], option: str, other: str) -> t.Any:
    value = params.get(option)
    if value is not None:
        return value
    return environ.get(f"K8S_AUTH_{option.upper()}") or environ.get(f"K8S_AUTH_{other.upper()}")


def _read(path: pathlib.Path, context: str | None) -> Access | None:
    import yaml

    try:
        return of_kubeconfig(yaml.safe_load(path.read_bytes()), context, path.parent)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError):
        # the official client has the better words for what is wrong with it
        return None


def of_kubeconfig(data: t.Any, context: str | None, folder: pathlib.Path) -> Access | None:
    """Access of a context (None: the current one), or None where it needs more than is understood here.

    :param folder: what paths in the file are relative to
    :raises LookupError, TypeError, ValueError, AttributeError, OSError: it is not well formed, or a file is missing
    """
    wanted = _named(data["contexts"], context or data["current-context"])["context"]
    cluster = _named(data["clusters"], wanted["cluster"])["cluster"]
    user = _named(data["users"], wanted["user"])["user"] or {}
    if not set(cluster) <= _CLUSTER or not set(user) <= _USER:
        return None
    return Access(
        cluster["server"].rstrip("/"),
        not cluster.get("insecure-skip-tls-verify"),
        _content(cluster, "certificate-authority", folder).decode(),
        _content(user, "client-certificate", folder),
        _content(user, "client-key", folder),
        _authorization(user),
    )


def _named(entries: t.Iterable[t.Mapping[str, t.Any]], name: str) -> t.Mapping[str, t.Any]:
    for entry in entries:
        if entry["name"] == name:
            return entry
    raise LookupError(name)


def _content(section: Params, name: str, folder: pathlib.Path) -> bytes:
    """PEM that is in the file itself, or in one that it names."""
    if section.get(f"{name}-data"):
        try:
            return base64.b64decode(section[f"{name}-data"], validate=True)
        except binascii.Error as exc:
            raise ValueError(f"{name}-data is not base64") from exc
    return (folder / section[name]).read_bytes() if section.get(name) else b""


def _authorization(user: Params) -> str:
    if user.get("token"):
        # a block of YAML ends with a line break
        return f"Bearer {user['token'].strip()}"
    if user.get("username") and user.get("password"):
        pair = f"{user['username']}:{user['password']}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return ""


class PlainClient:
    """Takes the place of the official dynamic client's `request`."""

    def __init__(self, access: Access, user_agent: str, retries: urllib3.Retry) -> None:
        import urllib3

        self._server = access.server
        self._headers = {"Accept": "application/json", "User-Agent": user_agent}
        if access.authorization:
            self._headers["Authorization"] = access.authorization
        tls = _tls(access) if access.server.startswith("https:") else None
        self._pool = urllib3.PoolManager(maxsize=CONNECTIONS, retries=retries, ssl_context=tls)

    def request(self, verb: str, path: str, **query: t.Any) -> t.Any:
        """The answer, with its body as `data`.

        :raises RefusedError: any status but success
        :raises urllib3.exceptions.HTTPError: there is no answer
        """
        import urllib3

        connect, read = query["_request_timeout"]
        body = query.get("body")
        headers = {**self._headers, **query.get("header_params", {})}
        if body is not None:
            headers["Content-Type"] = query.get("content_type") or "application/json"
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        fields = {name: query[key] for key, name in _QUERY.items() if query.get(key) is not None}
        text = {name: str(value).lower() if isinstance(value, bool) else value for name, value in fields.items()}
        url = f"{self._server}{path}" + (f"?{urllib.parse.urlencode(text)}" if text else "")
        answer = self._pool.request(
            verb.upper(),
            url,
            body=body,
            headers=headers,
            # a redirect would carry the credentials elsewhere
            redirect=False,
            timeout=urllib3.Timeout(connect=connect, read=read),
        )
        if not 200 <= answer.status <= 299:
            raise RefusedError(answer.status, answer.reason or "", answer.data)
        return answer


def as_yaml(obj: t.Mapping[str, t.Any]) -> bytes:
    """JSON that is YAML too, which is what the API server reads an apply as: YAML knows no escapes by surrogates.

    Bytes, since the client serialises no dict of that content type, and encodes no text.
    """
    text = json.dumps(obj, ensure_ascii=False)
    # what YAML takes for unprintable is escaped; beyond \uffff everything is printable, and has no short escape
    return re.sub("[\x7f-\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _tls(access: Access) -> ssl.SSLContext:
    from urllib3.util.ssl_ import create_urllib3_context

    context = create_urllib3_context()
    if access.authority:
        context.load_verify_locations(cadata=access.authority)
    else:
        context.load_default_certs()
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate:
        # ssl reads a client's certificate from a file only
        descriptor, name = tempfile.mkstemp()
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(access.certificate + b"\n" + access.key)
            context.load_cert_chain(name)
        finally:
            os.unlink(name)
    return context

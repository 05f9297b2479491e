# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of Kubernetes; kube_access.py makes the connection.

No API discovery takes place: the kinds this product knows are listed in `RESOURCES`, so that a broken aggregated API
of the cluster cannot stop a pass and an unchanged pass asks nothing it does not need.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils import kube_access, kube_plain
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.texts import NAME, cut

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

INSTALL_GROUP = "install.sios.nginx.testing/v1"
NSPRO_GROUP = "nspro.example.com/v1alpha1"

#: (apiVersion, kind) -> plural name in the API's paths
RESOURCES = {
    ("v1", "Event"): "events",
    ("v1", "LimitRange"): "limitranges",
    ("v1", "Namespace"): "namespaces",
    ("v1", "Node"): "nodes",
    ("v1", "PersistentVolumeClaim"): "persistentvolumeclaims",
    ("v1", "Pod"): "pods",
    ("v1", "ResourceQuota"): "resourcequotas",
    ("v1", "Secret"): "secrets",
    ("v1", "Service"): "services",
    ("v1", "ServiceAccount"): "serviceaccounts",
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"): "mutatingwebhookconfigurations",
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): "validatingwebhookconfigurations",
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): "customresourcedefinitions",
    ("apps/v1", "ControllerRevision"): "controllerrevisions",
    ("apps/v1", "DaemonSet"): "daemonsets",
    ("apps/v1", "Deployment"): "deployments",
    ("apps/v1", "ReplicaSet"): "replicasets",
    ("apps/v1", "StatefulSet"): "statefulsets",
    ("batch/v1", "CronJob"): "cronjobs",
    ("batch/v1", "Job"): "jobs",
    ("networking.k8s.io/v1", "NetworkPolicy"): "networkpolicies",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "rolebindings",
    (NSPRO_GROUP, "Nspro"): "nspros",
    (INSTALL_GROUP, "Start"): "starts",
    (INSTALL_GROUP, "Update"): "updates",
}
FIELD_MANAGER = "kubesteward"
#: seconds to connect and to read, per request
TIMEOUT = (5, 30)
PAGE = 500
#: objects of the first page where they may be large, and bytes of the next ones
FIRST_PAGE, PAGE_BYTES = 10, 4_000_000
#: bytes that lists may have together: what is kept of them has to fit beside other passes
MOST_READ = 200_000_000

#: characters that a name may have in the API's paths
_SEGMENT = re.compile(r"[-A-Za-z0-9._:~]+")
_JSON_PATCH = "application/json-patch+json"
_UNDECLARED = "field not declared in schema"
_APPLY = "application/apply-patch+yaml"


class ApiError(StewardError):
    """An answer of the API server that is not a success.

    :ivar status: its HTTP code; 0 where there was no answer at all
    :ivar causes: the API's own words for why, e.g. `NamespaceTerminating`
    """

    def __init__(self, message: str, status: int, causes: t.Iterable[str] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.causes = frozenset(causes)

    @property
    def changed_meanwhile(self) -> bool:
        """Somebody edited the object between our read and our write: a conflict, or a patch test that failed."""
        return self.status in (409, 422)


@dataclasses.dataclass(frozen=True)
class Reference:
    """Names one object; `namespace` is None for cluster-scoped kinds."""

    api_version: str
    kind: str
    namespace: str | None
    name: str

    @classmethod
    def of(cls, obj: t.Mapping[str, t.Any]) -> Reference:
        """The reference of an object as the API returns it."""
        meta = obj["metadata"]
        return cls(obj["apiVersion"], obj["kind"], meta.get("namespace"), meta["name"])

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.kind} {self.name}".rstrip() + where


class Cluster:
    """One connection to one API server, as the module's kubernetes.core options name it."""

    #: bytes of all lists of a pass, and of the last answer
    _listed = 0
    _size = 0

    def __init__(self, request: t.Callable[..., t.Any]) -> None:
        self._request = request

    @classmethod
    def connect(cls, module: AnsibleModule) -> Cluster:
        """Connect as kubernetes.core would.

        :raises StewardError: the client library is missing or no cluster is configured
        """
        return cls(kube_access.request_function(module))

    def begin(self) -> None:
        """A new pass begins: what it reads in lists is bounded by itself."""
        self._listed = 0

    def get(self, api_version: str, kind: str, namespace: str | None, name: str) -> dict[str, t.Any] | None:
        """The object, or None where there is none of that name.

        :raises ApiError: forbidden, unreachable, ...
        """
        target = Reference(api_version, kind, namespace, name)
        try:
            return self._call("get", _path(target), f"read {target}")
        except ApiError as exc:
            if exc.status == 404:
                return None
            raise

    def find(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        selector: str | None = None,
        metadata_only: bool = False,
        keep: t.Callable[[dict[str, t.Any]], dict[str, t.Any]] | None = None,
    ) -> list[dict[str, t.Any]]:
        """All objects of a kind in a namespace (None: cluster-wide), page by page; an unknown kind is an empty list.

        :param selector: a label selector in the API's text form
        :param metadata_only: objects without spec and status, far less to read
        :param keep: what to keep of an object, where objects may be large: pages are small then
        :raises ApiError: forbidden, unreachable, ..., or more than `MOST_READ` was read in lists
        """
        path = _path(Reference(api_version, kind, namespace, ""))
        query: dict[str, t.Any] = {"limit": FIRST_PAGE if keep else PAGE, "label_selector": selector}
        if metadata_only:
            accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            query["header_params"] = {"Accept": accept}
        items: list[dict[str, t.Any]] = []
        restarted = False
        while True:
            try:
                page = self._call("get", path, f"list {kind}s in {namespace or 'the cluster'}", **query)
            except ApiError as exc:
                if exc.status == 404:
                    return items
                if exc.status != 410 or restarted:
                    raise
                # the pages before are of a state that etcd has forgotten by now
                items, restarted = [], True
                query.pop("_continue", None)
                continue
            # a list of metadata alone that is empty has null for its items
            listed = page["items"] or ()
            named = ({**item, "apiVersion": api_version, "kind": kind} for item in listed)
            items.extend(map(keep, named) if keep else named)
            self._check_listed(f"{kind}s in {namespace or 'the cluster'}")
            following = page["metadata"].get("continue")
            if not following:
                return items
            query["_continue"] = following
            if keep and listed:
                query["limit"] = min(PAGE, max(1, PAGE_BYTES * len(listed) // self._size))
            # before the next page is read
            del page, listed, named

    def _check_listed(self, what: str) -> None:
        self._listed += self._size
        if self._listed > MOST_READ:
            hint = "name the workloads, select fewer by labels, or delete what is not needed"
            raise ApiError(f"Could not list {what}: more than {MOST_READ // 1_000_000} MB had to be read ({hint})", 0)

    def json_patch(
        self, target: Reference, operations: list[dict[str, t.Any]], dry_run: bool = False, subresource: str = ""
    ) -> dict[str, t.Any]:
        """Apply a JSON patch and return the object as the write left it.

        :raises ApiError: `changed_meanwhile` where a test of the patch failed
        """
        query = {"content_type": _JSON_PATCH, "field_manager": FIELD_MANAGER, "body": operations}
        path = _path(target) + (f"/{subresource}" if subresource else "")
        return self._write("patch", path, f"patch {target}", dry_run, query)

    def apply(
        self, obj: t.Mapping[str, t.Any], subresource: str = "", dry_run: bool = False, force: bool = True
    ) -> dict[str, t.Any]:
        """Server-side apply of our fields of an object; fields of other managers survive.

        :param force: take fields over from other managers; otherwise a field that one of them has set differently
            is a conflict (409)
        """
        target = Reference.of(obj)
        query = {
            "content_type": _APPLY,
            "field_manager": FIELD_MANAGER,
            "force_conflicts": force or None,
            "body": kube_plain.as_yaml(obj),
        }
        path = _path(target) + (f"/{subresource}" if subresource else "")
        return self._write("patch", path, f"apply {target}", dry_run, query)

    def create(self, obj: dict[str, t.Any], dry_run: bool = False) -> dict[str, t.Any]:
        """Create an object; its metadata may carry `generateName`."""
        target = Reference(obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace"), "")
        query = {"field_manager": FIELD_MANAGER, "body": obj}
        named = dataclasses.replace(target, name=obj["metadata"].get("name") or "")
        return self._write("post", _path(target), f"create {named}", dry_run, query)

    def delete(self, target: Reference, uid: str, version: str | None = None, dry_run: bool = False) -> None:
        """Delete just the object of that uid; one that is gone already, or is another by now, is no error.

        :param version: the resourceVersion that it must still have
        :raises ApiError: `changed_meanwhile` where it has another version
        """
        conditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
        body: dict[str, t.Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        if dry_run:
            # with a body the API server does not look at the query: it would be a real deletion
            body["dryRun"] = ["All"]
        try:
            self._write("delete", _path(target), f"delete {target}", dry_run, {"body": body})
        except ApiError as exc:
            if exc.status != 404 and (exc.status != 409 or version):
                raise

    def _write(self, verb: str, path: str, what: str, dry_run: bool, query: dict[str, t.Any]) -> dict[str, t.Any]:
        return self._call(verb, path, what, dry_run="All" if dry_run else None, **query)

    def _call(self, verb: str, path: str, what: str, **query: t.Any) -> dict[str, t.Any]:
        import urllib3

        try:
            answer = self._request(verb, path, _request_timeout=TIMEOUT, **query)
        except kube_plain.RefusedError as exc:
            raise ApiError(f"Could not {what}: {_explain(exc)}", exc.status or 0, _causes(exc)) from exc
        except urllib3.exceptions.HTTPError as exc:
            raise ApiError(f"Could not {what}: the API server did not answer ({exc})", 0) from exc
        except ValueError as exc:
            if not (isinstance(exc, UnicodeError) or str(exc).startswith("Invalid header")):
                raise
            # not chained: http.client quotes the header, and it may be the token
            raise ApiError(
                f"Could not {what}: the token or another header has characters that none can have", 0
            ) from None
        self._size = len(answer.data)
        try:
            return json.loads(answer.data)
        except ValueError as exc:
            hint = "is there something else at this address, a proxy or a login page?"
            raise ApiError(f"Could not {what}: the answer is not of an API server ({hint})", 0) from exc


class LazyCluster(Cluster):
    """A Cluster that connects at its first request: a pass that writes nothing does not even load the client."""

    def __init__(self, connect: t.Callable[[], Cluster]) -> None:
        self._connect = connect
        self._connected: Cluster | None = None

    def _call(self, verb: str, path: str, what: str, **query: t.Any) -> dict[str, t.Any]:
        if self._connected is None:
            self._connected = self._connect()
        answer = self._connected._call(verb, path, what, **query)
        self._size = self._connected._size
        return answer


def _path(target: Reference) -> str:
    try:
        plural = RESOURCES[(target.api_version, target.kind)]
    except KeyError:
        known = ", ".join(sorted(kind for _version, kind in RESOURCES))
        raise StewardError(
            f"{target.api_version} {target.kind} is no kind this collection works with ({known})"
        ) from None
    for segment in filter(None, (target.namespace, target.name)):
        # the API server lets a Pod name its pull secrets as it likes: `../` would lead into another namespace
        if segment in (".", "..") or not _SEGMENT.fullmatch(segment):
            raise StewardError(f"{cut(repr(segment), NAME)} is no name that a {target.kind} or its namespace can have")
    root = "/api/v1" if target.api_version == "v1" else f"/apis/{target.api_version}"
    parts = [root]
    if target.namespace is not None:
        parts.append(f"namespaces/{target.namespace}")
    parts.append(plural)
    if target.name:
        parts.append(target.name)
    return "/".join(parts)


def _explain(exc: t.Any) -> str:
    """The server's own sentence where the answer has one; never its headers."""
    try:
        message = json.loads(exc.body).get("message")
    except (TypeError, ValueError, AttributeError):
        message = None
    if not message:
        return f"{exc.status} {exc.reason}{exc.hint}"
    is_undeclared = _UNDECLARED in message
    remedy = "; the cluster has another definition: apply the CRDs of this version" if is_undeclared else ""
    return f"{cut(message)}{remedy}{exc.hint}"


def _causes(exc: t.Any) -> list[str]:
    """`details.causes[].reason` of the answer, as far as it has them."""
    try:
        body = json.loads(exc.body)
        return [
            body.get("reason") or "",
            *(x.get("reason") or "" for x in (body.get("details") or {}).get("causes") or ()),
        ]
    except (TypeError, ValueError, AttributeError):
        return []

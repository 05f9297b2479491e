# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one file that talks to Kubernetes, against a fake of the client's `request`."""

from __future__ import annotations

import json
import socket
import traceback
import types

import pytest
import urllib3
from kubernetes.client.exceptions import ApiException

from ansible_collections.kubesteward.core.plugins.module_utils import kube, kube_access, kube_plain
from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.kube import INSTALL_GROUP, ApiError, Cluster, Reference

DEPLOYMENT = Reference("apps/v1", "Deployment", "shop", "web")
SECRET = "c2VjcmV0LXRva2Vu"


class Server:
    """Answers requests in order, with a dict or an exception; remembers what was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, verb, path, **query):
        self.asked.append((verb, path, query))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return types.SimpleNamespace(data=json.dumps(answer))


def cluster_of(server):
    """A Cluster over a fake of the official client."""
    return Cluster(kube_access.with_one_error(server))


def refusal(status, message=None, body=None):
    exc = ApiException(status=status, reason="Some Reason")
    exc.body = body if body is not None else json.dumps({"kind": "Status", "message": message})
    exc.headers = {"Authorization": f"Bearer {SECRET}"}
    return exc


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (("v1", "Pod", "shop", "p"), "/api/v1/namespaces/shop/pods/p"),
        (("v1", "Node", None, "n"), "/api/v1/nodes/n"),
        (("apps/v1", "Deployment", "shop", "web"), "/apis/apps/v1/namespaces/shop/deployments/web"),
        (("batch/v1", "CronJob", "shop", "c"), "/apis/batch/v1/namespaces/shop/cronjobs/c"),
        ((INSTALL_GROUP, "Update", "shop", "u"), "/apis/install.sios.nginx.testing/v1/namespaces/shop/updates/u"),
    ],
)
def test_paths_of_objects(target, path):
    server = Server({"kind": "x"})
    assert cluster_of(server).get(*target) == {"kind": "x"}
    assert server.asked[0][:2] == ("get", path)


@pytest.mark.parametrize(("namespace", "path"), [("shop", "/api/v1/namespaces/shop/pods"), (None, "/api/v1/pods")])
def test_paths_of_lists(namespace, path):
    server = Server({"metadata": {}, "items": []})
    assert cluster_of(server).find("v1", "Pod", namespace) == []
    assert server.asked[0][:2] == ("get", path)


@pytest.mark.parametrize(
    "name", ["../../kube-system/secrets/admin", "..", ".", "a/b", "a?b=c", "a#b", "a%2fb", "a b", "é"]
)
def test_no_name_leads_to_another_object(name):
    server = Server()
    with pytest.raises(StewardError, match="no name that a Secret"):
        cluster_of(server).get("v1", "Secret", "shop", name)
    with pytest.raises(StewardError, match="no name that a Secret"):
        cluster_of(server).find("v1", "Secret", name)
    assert server.asked == []


@pytest.mark.parametrize("kind", [("v1", "Deployment"), ("apps/v1", "Gadget")])
def test_an_unknown_kind_is_refused_by_name(kind):
    with pytest.raises(StewardError, match=f"{kind[0]} {kind[1]}"):
        cluster_of(Server()).get(*kind, "shop", "x")


def test_lists_are_read_page_by_page():
    first = {"metadata": {"continue": "next"}, "items": [{"metadata": {"name": "a"}}]}
    second = {"metadata": {"continue": ""}, "items": [{"metadata": {"name": "b"}}]}
    server = Server(first, second)
    found = cluster_of(server).find("v1", "Pod", "shop", "app=web")
    assert [(x["kind"], x["apiVersion"], x["metadata"]["name"]) for x in found] == [
        ("Pod", "v1", "a"),
        ("Pod", "v1", "b"),
    ]
    queries = [query for _verb, _path, query in server.asked]
    assert [query.get("_continue") for query in queries] == [None, "next"]
    assert all(query["label_selector"] == "app=web" and query["limit"] == kube.PAGE for query in queries)


def test_a_list_whose_next_page_has_expired_is_read_anew():
    first = {"metadata": {"continue": "next"}, "items": [{"metadata": {"name": "a"}}]}
    last = {"metadata": {}, "items": [{"metadata": {"name": "b"}}]}
    server = Server(first, refusal(410, "expired"), first, last)
    assert [x["metadata"]["name"] for x in cluster_of(server).find("v1", "Pod", "shop")] == ["a", "b"]
    assert [query.get("_continue") for _verb, _path, query in server.asked] == [None, "next", None, "next"]
    with pytest.raises(ApiError, match="expired"):
        cluster_of(Server(first, refusal(410, "expired"), first, refusal(410, "expired"))).find("v1", "Pod", "shop")


def test_an_answer_of_something_else_is_told_apart():
    def login(verb, path, **query):
        return types.SimpleNamespace(data=b"<html>Sign in, your session is c2VjcmV0LXRva2Vu</html>")

    with pytest.raises(ApiError, match="not of an API server") as caught:
        cluster_of(login).get("v1", "Pod", "shop", "p")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("token", [f"{SECRET}\nX-Other: 1", f"{SECRET}\u2192"])
def test_a_token_that_no_header_can_hold_is_not_shown(token):
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    access = kube_plain.Access(url, True, authorization=f"Bearer {token}")
    with listener, pytest.raises(ApiError, match="characters that none can have") as caught:
        Cluster(kube_plain.PlainClient(access, "x", urllib3.Retry(total=0)).request).get("v1", "Pod", "shop", "p")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("broken", [{"authority": "junk"}, {"certificate": b"junk", "key": b"junk"}])
def test_certificates_that_are_none_are_told(broken):
    access = kube_plain.Access("https://127.0.0.1:1", True, **broken)
    with pytest.raises(StewardError, match="must be PEM"):
        kube_access._plain(access, urllib3.Retry(total=0))


def test_metadata_alone_is_asked_for_by_its_media_type():
    server = Server({"metadata": {}, "items": []}, {"metadata": {}, "items": []})
    cluster_of(server).find("v1", "Node", None, metadata_only=True)
    cluster_of(server).find("v1", "Node", None)
    assert "PartialObjectMetadataList" in server.asked[0][2]["header_params"]["Accept"]
    assert "header_params" not in server.asked[1][2]


def test_an_empty_list_of_metadata_has_null_for_its_items():
    server = Server({"kind": "PartialObjectMetadataList", "metadata": {}, "items": None})
    assert cluster_of(server).find("apps/v1", "Deployment", "shop", "app=none", metadata_only=True) == []


def test_what_is_not_there_is_none_or_empty():
    assert cluster_of(Server(refusal(404, "gone"))).get("v1", "Pod", "shop", "p") is None
    assert cluster_of(Server(refusal(404, "gone"))).find(INSTALL_GROUP, "Start", "shop") == []


def calls(cluster):
    return {
        "get": lambda: cluster.get("v1", "Secret", "shop", "regcred"),
        "find": lambda: cluster.find("v1", "Secret", "shop"),
        "patch": lambda: cluster.json_patch(DEPLOYMENT, []),
        "apply": lambda: cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}),
        "create": lambda: cluster.create({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop"}}),
        "delete": lambda: cluster.delete(DEPLOYMENT, "uid"),
    }


@pytest.mark.parametrize("call", calls(None))
def test_an_error_has_the_servers_message_and_no_secret(call):
    server = Server(refusal(403, "secrets is forbidden: User cannot"))
    with pytest.raises(ApiError) as caught:
        calls(cluster_of(server))[call]()
    assert caught.value.status == 403
    assert "secrets is forbidden: User cannot" in str(caught.value)
    assert "Could not" in str(caught.value)
    assert SECRET not in str(caught.value) + str(caught.value.as_result())


@pytest.mark.parametrize("body", ["<html>", "", b"\xff", "[]", "{}", None])
def test_an_answer_without_a_message_is_told_by_its_code(body):
    exc = refusal(502, body=body)
    exc.body = body
    with pytest.raises(ApiError, match="502 Some Reason"):
        cluster_of(Server(exc)).get("v1", "Pod", "shop", "p")


def test_a_field_that_the_cluster_does_not_know_says_what_to_apply():
    server = Server(refusal(500, "failed to create typed patch object: .status.new: field not declared in schema"))
    update = {"apiVersion": INSTALL_GROUP, "kind": "Update", "metadata": {"name": "u", "namespace": "shop"}}
    with pytest.raises(ApiError, match=r"not declared in schema; .* apply the CRDs of this version$"):
        cluster_of(server).apply(update, "status")


def test_a_server_that_does_not_answer_has_no_code():
    broken = urllib3.exceptions.ProtocolError("Connection aborted")
    with pytest.raises(ApiError, match="did not answer") as caught:
        cluster_of(Server(broken)).get("v1", "Pod", "shop", "p")
    assert caught.value.status == 0
    assert not caught.value.changed_meanwhile


def test_an_unexpected_error_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        cluster_of(Server(ZeroDivisionError("bug"))).get("v1", "Pod", "shop", "p")


@pytest.mark.parametrize(("status", "meanwhile"), [(409, True), (422, True), (403, False), (404, False), (500, False)])
def test_which_errors_mean_that_somebody_edited_the_object(status, meanwhile):
    with pytest.raises(ApiError) as caught:
        cluster_of(Server(refusal(status, "x"))).json_patch(DEPLOYMENT, [])
    assert caught.value.changed_meanwhile is meanwhile


def test_every_request_has_a_time_out():
    server = Server(*[{"metadata": {}, "items": []}] * 6)
    for call in calls(cluster_of(server)).values():
        call()
    assert [query["_request_timeout"] for _verb, _path, query in server.asked] == [kube.TIMEOUT] * 6


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_json_patch_is_sent_as_it_is(dry_run):
    server = Server({"kind": "Deployment"})
    operations = [{"op": "test", "path": "/x", "value": 1}]
    assert cluster_of(server).json_patch(DEPLOYMENT, operations, dry_run) == {"kind": "Deployment"}
    verb, path, query = server.asked[0]
    assert (verb, path) == ("patch", "/apis/apps/v1/namespaces/shop/deployments/web")
    assert query["content_type"] == "application/json-patch+json"
    assert (query["field_manager"], query["body"]) == ("kubesteward", operations)
    assert query["dry_run"] == ("All" if dry_run else None)


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_apply_is_ours_and_goes_to_the_subresource(dry_run):
    server = Server({})
    body = {"apiVersion": INSTALL_GROUP, "kind": "Update", "metadata": {"name": "u", "namespace": "shop"}}
    cluster_of(server).apply(body, "status", dry_run)
    verb, path, query = server.asked[0]
    assert (verb, path) == ("patch", "/apis/install.sios.nginx.testing/v1/namespaces/shop/updates/u/status")
    assert (query["content_type"], query["field_manager"]) == ("application/apply-patch+yaml", "kubesteward")
    assert json.loads(query["body"]) == body
    assert query["dry_run"] == ("All" if dry_run else None)


def test_an_object_is_created_in_its_namespace():
    server = Server({})
    cluster_of(server).create({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop"}})
    assert server.asked[0][:2] == ("post", "/api/v1/namespaces/shop/events")


def test_a_deletion_is_of_that_uid_alone():
    server = Server({})
    cluster_of(server).delete(DEPLOYMENT, "abc")
    assert server.asked[0][0] == "delete"
    assert server.asked[0][2]["body"]["preconditions"] == {"uid": "abc"}


def test_a_deletion_that_is_only_asked_about_says_so_where_the_api_server_looks():
    server = Server({}, {})
    cluster_of(server).delete(DEPLOYMENT, "abc", dry_run=True)
    assert server.asked[0][2]["body"]["dryRun"] == ["All"]
    assert server.asked[0][2]["dry_run"] == "All"
    cluster_of(server).delete(DEPLOYMENT, "abc")
    assert "dryRun" not in server.asked[1][2]["body"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_creation_can_be_only_asked_about(dry_run):
    server = Server({})
    cluster_of(server).create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}, dry_run=dry_run)
    assert server.asked[0][2]["dry_run"] == ("All" if dry_run else None)


@pytest.mark.parametrize("status", [404, 409])
def test_what_is_gone_or_another_is_not_deleted_and_no_error(status):
    cluster_of(Server(refusal(status, "x"))).delete(DEPLOYMENT, "abc")


def test_what_has_another_version_is_not_deleted_and_told():
    server = Server(refusal(409, "the resourceVersion does not match"))
    with pytest.raises(ApiError) as caught:
        cluster_of(server).delete(DEPLOYMENT, "abc", "17")
    assert caught.value.changed_meanwhile
    assert server.asked[0][2]["body"]["preconditions"] == {"uid": "abc", "resourceVersion": "17"}


def test_a_reference_reads_as_people_write_it():
    assert str(DEPLOYMENT) == "Deployment web in namespace shop"
    assert str(Reference("v1", "Node", None, "n")) == "Node n"
    assert Reference.of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}) == Reference(
        "v1", "Node", None, "n"
    )


def test_a_lazy_cluster_connects_once_and_only_when_used():
    connected = []

    def connect():
        connected.append(1)
        return cluster_of(Server({"kind": "a"}, {"kind": "b"}, refusal(404, "x")))

    cluster = kube.LazyCluster(connect)
    assert connected == []
    assert cluster.get("v1", "Pod", "shop", "p") == {"kind": "a"}
    assert cluster.json_patch(DEPLOYMENT, []) == {"kind": "b"}
    assert cluster.find("v1", "Pod", "shop") == []
    assert connected == [1]


def large_pages(*pages):
    """Answers to a list: sizes of the objects of each page."""
    names = [f"page {number}" for number in range(1, len(pages))] + [""]
    return [
        {"metadata": {"continue": name}, "items": [{"metadata": {"name": "x" * size}} for size in sizes]}
        for sizes, name in zip(pages, names, strict=True)
    ]


def short(item):
    return {"name": len(item["metadata"]["name"])}


def test_of_large_objects_few_are_read_at_once_and_of_small_ones_many():
    server = Server(*large_pages([1_000_000] * 10, [1_000_000] * 3, [10], [10]))
    found = cluster_of(server).find("apps/v1", "Deployment", "shop", keep=short)
    assert [query["limit"] for _verb, _path, query in server.asked] == [kube.FIRST_PAGE, 3, 3, kube.PAGE]
    assert found == [{"name": 1_000_000}] * 13 + [{"name": 10}] * 2


def test_an_object_larger_than_a_page_is_read_alone():
    server = Server(*large_pages([3 * kube.PAGE_BYTES], [1]))
    cluster_of(server).find("apps/v1", "Deployment", "shop", keep=short)
    assert server.asked[1][2]["limit"] == 1


@pytest.mark.parametrize("pages", [[[700], [700]], [[1400]]])
def test_what_a_pass_reads_in_lists_has_a_bound_that_is_named(monkeypatch, pages):
    monkeypatch.setattr(kube, "MOST_READ", 1200)
    with pytest.raises(ApiError, match=r"Could not list Pods in shop: more than .* had to be read .*fewer by labels"):
        cluster_of(Server(*large_pages(*pages))).find("v1", "Pod", "shop", keep=short)


def test_the_bound_is_on_all_lists_of_a_pass_together(monkeypatch):
    monkeypatch.setattr(kube, "MOST_READ", 1200)
    cluster = cluster_of(Server(*large_pages([700]), *large_pages([700])))
    cluster.find("v1", "Pod", "shop", keep=short)
    with pytest.raises(ApiError, match="more than"):
        cluster.find("apps/v1", "Deployment", "shop", keep=short)


def test_a_cluster_that_connects_late_reads_small_pages_and_has_the_bound_too(monkeypatch):
    monkeypatch.setattr(kube, "MOST_READ", 2_500_000)
    server = Server(*large_pages([1_000_000] * 2, [100_000]), *large_pages([400_000]))
    cluster = kube.LazyCluster(lambda: cluster_of(server))
    assert cluster.find("v1", "Pod", "shop", keep=short) == [{"name": 1_000_000}] * 2 + [{"name": 100_000}]
    assert [query["limit"] for _verb, _path, query in server.asked] == [kube.FIRST_PAGE, 3]
    with pytest.raises(ApiError, match="more than"):
        cluster.find("v1", "Pod", "shop")


def test_each_pass_has_the_bound_for_itself(monkeypatch):
    monkeypatch.setattr(kube, "MOST_READ", 1200)
    cluster = cluster_of(Server(*large_pages([700]), *large_pages([700])))
    cluster.find("v1", "Pod", "shop")
    cluster.begin()
    assert len(cluster.find("v1", "Pod", "shop")) == 1


def test_a_patch_goes_to_the_subresource():
    server = Server({"kind": "x"})
    cluster_of(server).json_patch(DEPLOYMENT, [], dry_run=True, subresource="status")
    assert server.asked[0][1].endswith("/deployments/web/status")
    assert server.asked[0][2]["dry_run"] == "All"

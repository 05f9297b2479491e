# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the nodes of one workload would get of what is published, beside what they run. Pure."""

from __future__ import annotations

import itertools
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.registry.manifest import Child
from ansible_collections.kubesteward.core.plugins.module_utils.registry.platforms import normal_platform
from ansible_collections.kubesteward.core.plugins.module_utils.registry.runnable import (
    SAME,
    Content,
    nodes_get,
    of_result,
)

Container = t.Mapping[str, t.Any]
Published = t.Mapping[str, t.Any]


def cannot_run(container: Container, published: Published) -> str:
    """Why nodes of the workload cannot run what is published; empty where they can.

    Each node where Pods are has to; where no Pod is on a node that is known, one kind of node of the cluster.
    """
    placed, anywhere = container["platforms"], container.get("cluster_platforms") or ()
    found = nodes_get(
        _published(published), placed or anywhere, container.get("pull_policy") or "", *_proof(container, published)
    )
    problems = [got.message for got in found.values() if not got.runs]
    if problems and (placed or len(problems) == len(found)):
        return "; ".join(dict.fromkeys(problems)) + (f" (Pods run on {', '.join(placed)})" if placed else "")
    return _unless_as_before(container, published) if container.get("nodes_unread") and not placed else ""


def get_the_same(container: Container, published: Published, digest: str) -> bool:
    """Whether the nodes of the workload would get for what is published the image that they have for `digest`."""
    now, before = _published(published), _content_of(digest, published)
    if before is None:
        return False
    platforms = container["platforms"]
    if platforms and all(content.children is None or content.images for content in (now, before)):
        return all(got.kind == SAME for got in nodes_get(now, platforms, running=before).values())
    by_name = [_by_platform(content) for content in (now, before)]
    if all(by_name):
        return by_name[0] == by_name[1]
    return bool(_digests(now)) and _digests(now) == _digests(before)


def may_get_the_same(container: Container, published: Published) -> bool:
    """Whether that depends on what the nodes are: something of what runs is in what is published."""
    contents = [_content_of(item["digest"], published) for item in container["running"]]
    return any(_digests(content) & _digests(_published(published)) for content in contents if content)


def name_matters(published: Published) -> bool:
    """Whether anything of what is published is for some nodes only."""
    content = _published(published)
    return bool(content.children or content.platform)


def _published(published: Published) -> Content:
    return of_result(published["digest"], published)


def _content_of(digest: str, published: Published) -> Content | None:
    """What a running digest stands for, as far as registry_digest tells."""
    if digest == published["digest"]:
        return _published(published)
    for child in _published(published).children or ():
        if digest == child.digest:
            return Content(digest, None, child.full_platform)
    given = (published.get("compared_contents") or {}).get(digest)
    if given:
        return of_result(digest, given)
    images = (published.get("compared") or {}).get(digest) or ()
    names = (published.get("compared_platforms") or {}).get(digest) or ()
    if list(images) == [digest]:
        return Content(digest)
    pairs = itertools.zip_longest(images, names, fillvalue="")
    return Content(digest, tuple(Child(image, "", None, name) for image, name in pairs)) if images or names else None


def _proof(container: Container, published: Published) -> tuple[Content | None, bool]:
    """A single image that is ready on the nodes, and that it is: what a node emulates runs there, too."""
    contents = (_content_of(item["digest"], published) for item in container["running"] if item["ready"])
    single = next((content for content in contents if content and content.children is None), None)
    return single, single is not None


def _by_platform(content: Content) -> dict[str, str]:
    """Platform -> digest; empty where the content does not say."""
    found: dict[str, str] = {}
    for child in content.images:
        found.setdefault(normal_platform(child.full_platform), child.digest)
    return found


def _digests(content: Content) -> set[str]:
    if content.children is None:
        return {content.digest}
    return {child.digest for child in content.images or content.children if child.digest and not child.artifact}


def _platforms(content: Content | None) -> list[str]:
    """What a content is for; empty where it does not say of all of it."""
    if content is None:
        return []
    if content.children is None:
        return [content.platform] if content.platform else []
    return [child.full_platform for child in content.images]


def _unless_as_before(container: Container, published: Published) -> str:
    """Nobody says what the nodes are: what is for all that the running one is for is for them too."""
    content = _published(published)
    listed = {content.digest, *_digests(content)}
    running = [item["digest"] for item in container["running"] if item["digest"] not in listed]
    known = [_platforms(_content_of(digest, published)) for digest in running]
    if running and all(known):
        wanted = dict.fromkeys(name for names in known for name in names)
        lacking = [name for name, got in nodes_get(content, wanted).items() if not got.runs]
        problem = f"it has no image for {', '.join(lacking)}, which what runs has"
    else:
        lacking = _platforms(content)
        problem = "what runs does not tell either"
    if not lacking:
        return ""
    remedy = "name them in spec.platforms of the Update, or allow to list Nodes (ClusterRole kubesteward-nodes)"
    return f"{content.digest} may have no image for the nodes: Nodes may not be read, and {problem}; {remedy}"

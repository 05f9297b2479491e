# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Pods use of resources that a quota is to limit, as the quota would count it. Pure."""

from __future__ import annotations

import decimal
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import quantity

Object = t.Mapping[str, t.Any]
Amounts = dict[str, decimal.Decimal]

_NUMBERS = ("pods", "count/pods")
_OF_CLAIMS = "requests.storage"


def countable(hard: t.Iterable[str]) -> list[str]:
    """Resources of a quota that Pods use, and nothing else does."""
    return [name for name in hard if name in _NUMBERS or (_kind(name)[0] and name != _OF_CLAIMS)]


def _kind(resource: str) -> tuple[str, str]:
    """`limits` or `requests` and the resource of a container; empty for what is none."""
    kind, dot, name = resource.partition(".")
    if dot and kind in ("limits", "requests"):
        return kind, name
    return ("requests", resource) if resource in ("cpu", "memory", "ephemeral-storage") else ("", "")


def count(pods: t.Iterable[Object], names: t.Iterable[str]) -> dict[str, str]:
    """What Pods that have not ended use of these resources, as quantities."""
    alive = [pod for pod in pods if is_alive(pod)]
    return {name: _text(sum((_of_pod(pod, name) for pod in alive), decimal.Decimal(0))) for name in names}


def is_alive(pod: Object) -> bool:
    """False for a Pod that has ended and counts for no quota."""
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _of_pod(pod: Object, resource: str) -> decimal.Decimal:
    if resource in _NUMBERS:
        return decimal.Decimal(1)
    kind, name = _kind(resource)
    spec = pod.get("spec") or {}
    overhead = _amount((spec.get("overhead") or {}).get(name, 0))
    whole = ((spec.get("resources") or {}).get(kind) or {}).get(name)
    if whole is not None:
        return _amount(whole) + overhead
    together = sum((_asked(item, kind, name) for item in spec.get("containers") or ()), decimal.Decimal(0))
    # an init container has the Pod for itself, but for those that stay; containers that stay count with the others
    staying, highest = decimal.Decimal(0), decimal.Decimal(0)
    for item in spec.get("initContainers") or ():
        amount = _asked(item, kind, name)
        if item.get("restartPolicy") == "Always":
            staying += amount
            highest = max(highest, staying)
        else:
            highest = max(highest, staying + amount)
    return max(together + staying, highest) + overhead


def _asked(container: Object, kind: str, name: str) -> decimal.Decimal:
    return _amount(((container.get("resources") or {}).get(kind) or {}).get(name, 0))


def _amount(text: t.Any) -> decimal.Decimal:
    try:
        return quantity.parse(text)
    except StewardError:
        return decimal.Decimal(0)


def _text(number: decimal.Decimal) -> str:
    return f"{int(number)}" if number == int(number) else f"{int(number / quantity.MILLI)}m"

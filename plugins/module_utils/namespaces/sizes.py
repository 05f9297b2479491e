# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sizes of namespaces: three by default, or the administrator's own. Pure."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import quantity

_RESOURCE = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Size:
    """What a namespace of one size gets.

    :ivar quota: `hard` of its ResourceQuota, object counts such as `count/pods` among it
    :ivar limit_range: `default`, `default_request`, `max`, `min` of containers; what is absent is half of the quota
    """

    quota: t.Mapping[str, str]
    limit_range: t.Mapping[str, t.Mapping[str, str]] = dataclasses.field(default_factory=dict)


DEFAULTS: t.Mapping[str, Size] = {
    "small": Size({"limits.cpu": "100m", "limits.memory": "100Mi"}),
    "medium": Size({"limits.cpu": "200m", "limits.memory": "200Mi"}),
    "large": Size({"limits.cpu": "300m", "limits.memory": "300Mi"}),
}
LIMITS = ("default", "default_request", "max", "min")


def read(given: t.Mapping[str, t.Any] | None) -> t.Mapping[str, Size]:
    """The administrator's sizes, which replace the three; nothing given means the three.

    :param given: name -> {`quota`: {resource: quantity}, `limit_range`: {`default`: {...}, ...}}
    :raises StewardError: a size that is none; the message names it
    """
    if not given:
        return DEFAULTS
    return {str(name): _size(str(name), entry) for name, entry in given.items()}


def _size(name: str, entry: t.Any) -> Size:
    where = f"size {name}"
    if not isinstance(entry, t.Mapping) or not isinstance(entry.get("quota"), t.Mapping) or not entry["quota"]:
        raise StewardError(f"{where} has no quota; give it as a map, for example limits.cpu: 300m")
    unknown = set(entry) - {"quota", "limit_range"}
    if unknown:
        raise StewardError(f"{where} has the key {sorted(unknown)[0]}; quota and limit_range are known")
    return Size(amounts(entry["quota"], f"{where}: quota"), limits(entry.get("limit_range") or {}, where))


def limits(given: t.Mapping[str, t.Any], where: str) -> dict[str, dict[str, str]]:
    """Container limits as they were given, checked.

    :raises StewardError: a key that is none, or no quantity
    """
    unknown = set(given) - set(LIMITS)
    if unknown:
        raise StewardError(f"{where}: limit_range has the key {sorted(unknown)[0]}; {', '.join(LIMITS)} are known")
    return {key: amounts(given[key] or {}, f"{where}: limit_range.{key}") for key in LIMITS if given.get(key)}


def amounts(given: t.Any, where: str) -> dict[str, str]:
    """A map of resource -> quantity as texts.

    :raises StewardError: it is no map, a key is no name of a resource, or a value is no quantity that can be
    """
    if not isinstance(given, t.Mapping):
        raise StewardError(f"{where} is not a map of resources and quantities")
    found = {}
    for resource, amount in given.items():
        if not _RESOURCE.fullmatch(str(resource)):
            # the API server would refuse the whole quota, in a namespace that is there already
            raise StewardError(f"{where}: {resource!r} is no name of a resource, limits.cpu or count/pods for example")
        try:
            number = quantity.parse(amount)
        except StewardError as exc:
            raise StewardError(f"{where}.{resource}: {exc}") from None
        if number < 0:
            raise StewardError(f"{where}.{resource} is {amount}; it cannot be less than 0")
        found[str(resource)] = str(amount)
    return found

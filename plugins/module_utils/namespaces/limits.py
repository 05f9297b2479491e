# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of containers: what is given must not contradict itself, and what is filled in fits what was given. Pure.

The shape is {`default`, `default_request`, `max`, `min`} -> {resource: quantity}, as in a LimitRange.
"""

from __future__ import annotations

import decimal
import typing as t

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError
from ansible_collections.kubesteward.core.plugins.module_utils.namespaces import forms, quantity

Limits = t.Mapping[str, t.Mapping[str, str]]

KEYS = ("default", "default_request", "max", "min")
#: the lower one and the higher one, as the API server compares them
_ORDER = (
    ("min", "max"),
    ("min", "default_request"),
    ("min", "default"),
    ("default_request", "default"),
    ("default_request", "max"),
    ("default", "max"),
)
#: what a half is a multiple of: nobody can have half a byte
_STEP = {"cpu": quantity.MILLI, "memory": decimal.Decimal(1)}


def given(of_size: Limits, own: Limits) -> Limits:
    """What stands: all that is asked for, and the bounds of the size. A size's defaults give way to both."""
    bounds = {key: {**of_size.get(key, {}), **own.get(key, {})} for key in ("max", "min")}
    return {key: amounts for key, amounts in {**own, **bounds}.items() if amounts}


def check(found: Limits, where: str) -> None:
    """Ask as the API server does.

    :raises StewardError: it contradicts itself; the message names both amounts
    """
    for name in sorted({name for amounts in found.values() for name in amounts}):
        of = {key: found[key][name] for key in KEYS if name in found.get(key, {})}
        for lower, higher in _ORDER:
            if lower in of and higher in of and quantity.parse(of[lower]) > quantity.parse(of[higher]):
                what = f"limit_range.{lower}.{name} is {of[lower]}, more than limit_range.{higher}.{name}, {of[higher]}"
                raise StewardError(f"{where}{what}; lower the one or raise the other")
        one, other = of.get("default"), of.get("default_request")
        if one and other and not forms.may_overcommit(name) and not quantity.equal(one, other):
            what = f"limit_range.default.{name} is {one} and limit_range.default_request.{name} {other}"
            raise StewardError(f"{where}{what}; of this resource both must be the same")


def fill(hard: t.Mapping[str, str], of_size: Limits, own: Limits) -> dict[str, dict[str, str]]:
    """Limits of a container that names none: half of the quota, so that its replacement fits beside it.

    :param hard: the quota
    :param of_size: what the size says instead
    :param own: what is asked for, which outranks both; `check` has passed what is `given`
    """
    stands = given(of_size, own)
    hints = {key: {**halves(hard, key), **of_size.get(key, {})} for key in ("default", "default_request")}
    names = {name for amounts in (*stands.values(), *hints.values()) for name in amounts}
    found: dict[str, dict[str, str]] = {key: {} for key in KEYS}
    for name in sorted(names):
        for key, value in _one(name, stands, hints).items():
            if value is not None:
                found[key][name] = value
    return {key: amounts for key, amounts in found.items() if amounts}


def _one(name: str, stands: Limits, hints: Limits) -> dict[str, str | None]:
    high, low, request = (stands.get(key, {}).get(name) for key in ("max", "min", "default_request"))
    default = stands.get("default", {}).get(name)
    if default is None and request is not None and not forms.may_overcommit(name):
        default = request
    if default is None:
        # a limit that is left open is the highest one
        hint = hints["default"].get(name) or high
        default = _between(hint, (low, request), (high,))
    if request is None:
        # a request that is left open is the limit
        hint = default if not forms.may_overcommit(name) else hints["default_request"].get(name) or default or low
        request = _between(hint, (low,), (default, high))
    return {"default": default, "default_request": request, "max": high, "min": low}


def _between(value: str | None, lows: t.Iterable[str | None], highs: t.Iterable[str | None]) -> str | None:
    if value is None:
        return None
    for low in lows:
        value = max(value, low, key=quantity.parse) if low is not None else value
    for high in highs:
        value = min(value, high, key=quantity.parse) if high is not None else value
    return value


def halves(hard: t.Mapping[str, str], key: str) -> dict[str, str]:
    """Half of what a quota allows of CPU and memory, as `default` or as `default_request`; half of nothing is none."""
    found = {}
    for name, step in _STEP.items():
        # in a quota `cpu` is another word for `requests.cpu`
        resources = (f"limits.{name}",) if key == "default" else (f"requests.{name}", name)
        amounts = [hard[item] for item in resources if item in hard]
        least = min(amounts, key=quantity.parse) if amounts else "0"
        # a limit of 0 would be no limit at all
        if quantity.parse(least) > 0:
            found[name] = quantity.half(least, step)
    return found


def uncovered(hard: t.Mapping[str, str], limits: Limits) -> str:
    """A sentence on resources of a quota that a Pod must name because nothing fills them in; empty without any."""
    found = []
    for resource in hard:
        kind, _dot, name = resource.rpartition(".")
        key = "default" if kind == "limits" else "default_request"
        if kind in ("", "requests", "limits") and name in _STEP and name not in limits.get(key, {}):
            found.append(resource)
    if not found:
        return ""
    words = sorted({"limits" if item.startswith("limits.") else "requests" for item in found})
    without = "the LimitRange does not fill them in" if limits else "there is no LimitRange"
    return f"{without}: Pods without {' and '.join(words)} of their own are refused by the quota ({', '.join(found)})"

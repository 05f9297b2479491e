# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server knows of the kinds: fields that are one value, the form of quantities, defaults, limits."""

from __future__ import annotations

import copy
import fractions
import re
import typing as t

Object = dict[str, t.Any]
Path = tuple[str, ...]

#: maps that have one owner as a whole; lists have one too
_ATOMIC = ("podSelector", "roleRef")
_AMOUNTS = ("hard", "default", "defaultRequest", "max", "min")
_FORM = re.compile(r"\+?([0-9.]+)(?:([num]|[kKMGTPE]i?)|[eE]([+-]?[0-9]+))?$")
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def leaves(obj: Object) -> set[Path]:
    """Paths of all fields that can have an owner of their own."""
    parts = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    meta = {key: obj["metadata"].get(key) or {} for key in ("labels", "annotations")}
    return set(_leaves({"metadata": meta, **parts}, ()))


def _leaves(value: t.Any, path: Path) -> t.Iterator[Path]:
    if not isinstance(value, dict) or (path and path[-1] in _ATOMIC):
        yield path
        return
    for key, below in value.items():
        yield from _leaves(below, (*path, key))


def fields(paths: t.Iterable[Path]) -> Object:
    """The paths as `fieldsV1`."""
    found: Object = {}
    for path in sorted(paths):
        here = found
        for key in path:
            here = here.setdefault(f"f:{key}", {})
    return found


def at(obj: Object, path: Path) -> t.Any:
    """The value at a path, or None."""
    here: t.Any = obj
    for key in path:
        here = here.get(key) if isinstance(here, dict) else None
    return here


def put_at(obj: Object, path: Path, value: t.Any) -> None:
    """Set the value at a path."""
    for key in path[:-1]:
        obj = obj.setdefault(key, {})
    obj[path[-1]] = copy.deepcopy(value)


def drop_at(obj: Object, path: Path) -> None:
    """Remove the value at a path."""
    for key in path[:-1]:
        obj = obj.get(key) or {}
    obj.pop(path[-1], None)


def canonical(obj: Object) -> Object:
    """The same with every quantity in the form in which it is stored."""
    if obj["kind"] not in ("ResourceQuota", "LimitRange"):
        return obj
    return {**obj, "spec": _canonical(obj["spec"], False, stored)}


def numbers(obj: Object) -> Object:
    """The same with every quantity as a number, so that spellings are equal."""
    if obj["kind"] not in ("ResourceQuota", "LimitRange"):
        return obj
    return {**obj, "spec": _canonical(obj["spec"], False, lambda text: str(amount(text)))}


def _canonical(value: t.Any, is_amount: bool, form: t.Callable[[str], str]) -> t.Any:
    if isinstance(value, dict):
        return {key: _canonical(below, is_amount or key in _AMOUNTS, form) for key, below in value.items()}
    if isinstance(value, list):
        return [_canonical(item, is_amount, form) for item in value]
    return form(value) if is_amount else value


def amount(text: str) -> fractions.Fraction:
    """The number of a quantity."""
    found = _FORM.match(str(text))
    assert found, text
    number, suffix = fractions.Fraction(found[1]), found[2] or ""
    if suffix.endswith("i"):
        return number * 1024 ** _DECIMAL[suffix[0].replace("K", "k")]
    return number * fractions.Fraction(10) ** int(found[3] or 3 * _DECIMAL[suffix])


def stored(text: str) -> str:
    """A quantity as the API server writes it: thousandths, rounded up, with the largest suffix that leaves no rest."""
    number = fractions.Fraction(-(-amount(text) * 1000 // 1), 1000)
    if str(text).endswith("i"):
        for suffix in reversed("kMGTPE"):
            unit = 1024 ** _DECIMAL[suffix]
            if number >= unit and number % unit == 0:
                return f"{number // unit}{suffix.upper() if suffix == 'k' else suffix}i"
        if number.denominator == 1:
            return str(number)
    for suffix, power in sorted(_DECIMAL.items(), key=lambda item: -item[1]):
        scaled = number / fractions.Fraction(10) ** (3 * power)
        if number and scaled.denominator == 1:
            return f"{scaled}{suffix}"
    return "0"


def defaulted(obj: Object) -> Object:
    """The object with what the API server fills in."""
    kind = obj["kind"]
    if kind == "LimitRange":
        for item in obj["spec"]["limits"]:
            _default_limits(item)
    elif kind == "NetworkPolicy":
        for rule in [*(obj["spec"].get("ingress") or ()), *(obj["spec"].get("egress") or ())]:
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
    elif kind == "RoleBinding":
        for subject in obj["subjects"]:
            if subject["kind"] != "ServiceAccount":
                subject.setdefault("apiGroup", "rbac.authorization.k8s.io")
    elif kind == "Secret":
        obj.setdefault("type", "Opaque")
    return obj


def _default_limits(item: Object) -> None:
    """In the order of SetDefaults_LimitRangeItem."""
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    item.update({key: value for key, value in (("default", default), ("defaultRequest", request)) if value})


def problem(before: Object | None, after: Object) -> str | None:
    """Why the API server refuses an object, or None."""
    kind = after["kind"]
    fixed = {"RoleBinding": "roleRef", "Secret": "type"}.get(kind)
    if before and fixed and before.get(fixed) != after.get(fixed):
        return f"{fixed}: Invalid value: field is immutable"
    if kind == "LimitRange":
        return next(filter(None, (_limits_problem(item) for item in after["spec"]["limits"])), None)
    if kind == "ResourceQuota":
        return next(filter(None, (_quota_problem(*item) for item in after["spec"]["hard"].items())), None)
    if kind == "NetworkPolicy":
        rules = [*(after["spec"].get("ingress") or ()), *(after["spec"].get("egress") or ())]
        numbers = [port["port"] for rule in rules for port in rule.get("ports") or ()]
        return next((f"port: Invalid value: {number}" for number in numbers if not 0 < number < 65536), None)
    return None


#: ValidateLimitRange: none of these pairs may be the wrong way round
_PAIRS = (("min", "max"), ("min", "defaultRequest"), ("defaultRequest", "max"), ("defaultRequest", "default"))
_PAIRS += (("min", "default"), ("default", "max"))


def _limits_problem(item: Object) -> str | None:
    for lower, higher in _PAIRS:
        low, high = item.get(lower) or {}, item.get(higher) or {}
        for name in {*low} & {*high}:
            if amount(low[name]) > amount(high[name]):
                return f"spec.limits[0].{lower}[{name}]: Invalid value: it is greater than {higher}"
    return None


_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = ("pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports")


def _quota_problem(name: str, value: str) -> str | None:
    """As far as tests ask for it."""
    known = [*_COUNTED, *_COMPUTE, "requests.storage", *(f"{x}.{y}" for x in ("limits", "requests") for y in _COMPUTE)]
    if "/" not in name and "hugepages-" not in name and name not in known:
        return f"spec.hard[{name}]: Invalid value: must be a standard resource for quota"
    if (name in _COUNTED or name.startswith("count/")) and amount(value).denominator != 1:
        return f"spec.hard[{name}]: Invalid value: must be an integer"
    return None

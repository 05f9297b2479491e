# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities of Kubernetes as numbers: `1000m` and `1` are one. Pure."""

from __future__ import annotations

import decimal
import re

from ansible_collections.kubesteward.core.plugins.module_utils.errors import StewardError

_FORM = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,3})?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
#: more is stored as this, less than a billionth is rounded up
_MOST, _LEAST = decimal.Decimal(2**63 - 1), decimal.Decimal("1e-9")
_BINARY = {name: 2 ** (10 * power) for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}


def parse(value: str | int | float) -> decimal.Decimal:
    """The number of a quantity such as `300m`, `100Mi`, `1.5` or `2e3`, as exactly as the API server keeps it.

    :raises StewardError: it is none, or more than can be stored
    """
    found = _read(value)
    with decimal.localcontext(prec=100):
        number, suffix = decimal.Decimal(found[1]), found[2] or ""
        if suffix in _BINARY:
            number *= _BINARY[suffix]
        elif suffix:
            number = number.scaleb(_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))
        if abs(number) > _MOST:
            raise StewardError(f"{value!r} is more than the API server can store; the most is {_MOST}")
        return number.quantize(_LEAST, decimal.ROUND_UP).normalize()


def _read(value: str | int | float) -> re.Match[str]:
    found = _FORM.fullmatch(str(value))
    if not found:
        raise StewardError(f"{value!r} is no quantity; write a number with a suffix as in 300m, 2, 100Mi or 1Gi")
    return found


def equal(one: str, other: str) -> bool:
    """True where both are the same amount; what is no quantity equals only itself."""
    try:
        return parse(one) == parse(other)
    except StewardError:
        return one == other


def half(value: str) -> str:
    """Half of a quantity in a form people read: `300m` gives `150m`, `100Mi` gives `50Mi`, `1` gives `500m`.

    :raises StewardError: it is none
    """
    found = _read(value)
    number, suffix = decimal.Decimal(found[1]), found[2] or ""
    if number % 2 == 0:
        return f"{number / 2:f}".rstrip(".") + suffix
    if suffix in _BINARY:
        # the next smaller unit, so that no fraction is written
        smaller = {"Ki": "", "Mi": "Ki", "Gi": "Mi", "Ti": "Gi", "Pi": "Ti", "Ei": "Pi"}[suffix]
        return f"{int(number * 512)}{smaller}"
    milli = parse(value) * 500
    return f"{int(milli)}m" if milli == int(milli) and suffix in ("", "m", "k") else f"{parse(value) / 2:f}"

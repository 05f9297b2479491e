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
_MOST = decimal.Decimal(2**63 - 1)
#: quotas and limits are stored in thousandths, rounded up
MILLI = decimal.Decimal("0.001")
_BINARY = {name: 2 ** (10 * power) for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}


def parse(value: str | int | float) -> decimal.Decimal:
    """The number of a quantity such as `300m`, `100Mi`, `1.5` or `2e3`, as the API server stores it in a quota.

    What is finer than a thousandth is rounded up to one: `0.3001` is stored as `301m`, and must not differ from it.

    :raises StewardError: it is none, or more than can be stored
    """
    number, suffix = _parts(value)
    with decimal.localcontext(prec=100):
        if suffix in _BINARY:
            number *= _BINARY[suffix]
        elif suffix:
            number = number.scaleb(_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))
        if abs(number) > _MOST:
            raise StewardError(f"{value!r} is more than the API server can store; the most is {_MOST}")
        return number.quantize(MILLI, decimal.ROUND_UP).normalize()


def _parts(value: str | int | float) -> tuple[decimal.Decimal, str]:
    found = _FORM.fullmatch(str(value))
    if not found:
        raise StewardError(f"{value!r} is no quantity; write a number with a suffix as in 300m, 2, 100Mi or 1Gi")
    return decimal.Decimal(found[1]), found[2] or ""


def equal(one: str, other: str) -> bool:
    """True where both are the same amount; what is no quantity equals only itself."""
    try:
        return parse(one) == parse(other)
    except StewardError:
        return one == other


def half(value: str, step: decimal.Decimal = MILLI) -> str:
    """Half of a quantity in a form people read: `300m` gives `150m`, `100Mi` gives `50Mi`, `1` gives `500m`.

    It is rounded down, so that two halves fit: `125m` gives `62m`. Of the smallest amount it is that amount, since
    a limit of 0 would be none at all.

    :param step: what the half is a multiple of; 1 for bytes
    :raises StewardError: it is none
    """
    whole = parse(value)
    amount = max((whole / 2 / step).to_integral_value(decimal.ROUND_DOWN) * step, min(whole, step))
    number, suffix = _parts(value)
    smaller = {"Ki": "", "Mi": "Ki", "Gi": "Mi", "Ti": "Gi", "Pi": "Ti", "Ei": "Pi"}
    candidates = [f"{number / 2:f}{suffix}"] if number % 2 == 0 else []
    if suffix in smaller:
        # the next smaller unit, so that no fraction is written
        candidates.append(f"{int(number * 512)}{smaller[suffix]}")
    exact = [text for text in candidates if parse(text) == amount]
    return exact[0] if exact else _plain(amount)


def _plain(amount: decimal.Decimal) -> str:
    return f"{int(amount)}" if amount == int(amount) else f"{int(amount / MILLI)}m"

"""Numbers as text: an uncertain number has the digits that its interval justifies.

Everything that is printed takes its digits from here: the terminal's table, comparisons, notes, transfer and the page
with its plots.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_UP, Context, Decimal

from wsap_eval.stats import Interval

_PRECISE = Context(prec=700)
_NOISE = Decimal("1e-6")
"""A bound this close to a rounded number, in units of its last digit, counts as that number."""
_LEAST_P = Decimal("0.0001")


def number(value: float, interval: Interval | None = None, *, sign: bool = False) -> str:
    """Return a number with the digits of its interval, or with three significant digits if it has none.

    A number of four digits or more keeps those before the point. With `sign`, a positive number has a plus.
    """
    unit = _unit(value) if interval is None else _unit_of(interval)
    return _text(_rounded(value, unit, ROUND_HALF_EVEN), sign=sign, plain=interval is None)


def interval_of(interval: Interval | None) -> str:
    """Return an interval as text, rounded outwards, with two or three significant digits of its width; "-" for None.

    A bound other than 0 does not become 0, so that the text excludes 0 if the interval does.
    """
    if interval is None:
        return "-"
    unit = _unit_of(interval)
    low, high = _rounded(interval.low, unit, ROUND_FLOOR), _rounded(interval.high, unit, ROUND_CEILING)
    return f"{_text(low)} to {_text(high)}"


def estimate_of(value: float, interval: Interval | None, *, sign: bool = False) -> str:
    """Return a number with its interval in brackets, or alone if it has none."""
    span = "" if interval is None else f" ({interval_of(interval)})"
    return number(value, interval, sign=sign) + span


def p_of(p_value: float) -> str:
    """Return a p-value as "p 0.013", rounded up to two significant digits, or "p < 0.0001"."""
    value = Decimal(p_value)
    if value < _LEAST_P:
        return f"p < {_LEAST_P}"
    unit = Decimal(1).scaleb(value.adjusted() - 1)
    return f"p {_text(_rounded(p_value, unit, ROUND_UP), plain=True)}"


def _unit_of(interval: Interval) -> Decimal:
    """Return the value of the last digit: at most a tenth of the width, and small enough to show the bounds' signs."""
    width = Decimal(interval.high) - Decimal(interval.low)
    largest = max(abs(interval.low), abs(interval.high))
    if width <= Decimal(largest) * Decimal("1e-12"):
        return _unit(largest)
    unit = Decimal(1).scaleb(width.adjusted() - 1)
    for bound, rounding in ((interval.low, ROUND_FLOOR), (interval.high, ROUND_CEILING)):
        if bound and not _rounded(bound, unit, rounding):
            unit = min(unit, Decimal(1).scaleb(Decimal(bound).adjusted()))
    return min(unit, Decimal(1)) if largest < 1e15 else unit


def _unit(value: float) -> Decimal:
    """Return the value of the last of three significant digits, at most 1."""
    rounded = Context(prec=3).plus(Decimal(value))
    return Decimal(1).scaleb(min(0, rounded.adjusted() - 2) if abs(value) < 1e15 else rounded.adjusted() - 2)


def _rounded(value: float, unit: Decimal, rounding: str) -> Decimal:
    scaled = _PRECISE.divide(Decimal(value), unit)
    nearest = scaled.to_integral_value(ROUND_HALF_EVEN, context=_PRECISE)
    whole = nearest if abs(scaled - nearest) < _NOISE else scaled.to_integral_value(rounding, context=_PRECISE)
    found = _PRECISE.multiply(whole, unit).quantize(unit, context=_PRECISE)
    return found if found else abs(found)


def _text(value: Decimal, *, sign: bool = False, plain: bool = False) -> str:
    """Return a decimal number without an exponent unless it is very large or small; `plain` drops zeros at its end."""
    shown = value
    if plain:
        shown = value.normalize(_PRECISE)
    if shown and not -6 <= shown.adjusted() < 15:
        return f"{shown.normalize(_PRECISE):{'+' * sign}e}"
    return f"{shown:{'+' * sign}f}"

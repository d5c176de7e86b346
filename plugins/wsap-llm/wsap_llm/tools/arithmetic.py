"""Arithmetic read and worked out, within bounds of size and time, and nothing else.

    expression = term { ("+" | "-") term }
    term       = factor { ("*" | "/" | "//" | "%") factor }
    factor     = ("+" | "-") factor | power
    power      = atom [ ("**" | "^") factor ]
    atom       = number | constant | function "(" expression { "," expression } ")" | "(" expression ")"

Whole numbers are exact. Every value, also on the way, stays below 2 ** 1024 in size, which bounds
the work: a text of `LONGEST` characters has at most that many operations on numbers of that size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

LONGEST = 500
"""Most characters of an expression."""
DEEPEST = 50
"""Most brackets and signs within each other."""
BITS = 1024
"""Whole numbers have at most this many; numbers with fractions end there by themselves."""

Number = int | float

_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|//|[-+*/%^(),×·÷−]))", re.A
)
_SAME = {"^": "**", "×": "*", "·": "*", "÷": "/", "−": "-"}


class ArithmeticProblem(Exception):
    """The expression can't be worked out; the message says why, for a model to read."""


def evaluate(text: str) -> Number:
    """Return the value of an expression.

    Raises:
        ArithmeticProblem: it can't be read or worked out.
    """
    if len(text) > LONGEST:
        raise ArithmeticProblem(f"the expression has {len(text)} characters; at most {LONGEST} are read")
    return _Reader(_tokens(text)).whole()


def spoken(value: Number) -> str:
    """Return a number as text: whole where it is, otherwise with 12 digits."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ArithmeticProblem(f"{text[at:].lstrip()[:12]!r} is not arithmetic")
        token = match[0].strip()
        found.append(_SAME.get(token, token))
        at = match.end()
    if not found:
        raise ArithmeticProblem("there is nothing to work out")
    return found


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Number:
        value = self._sum()
        if (rest := self._peek()) is not None:
            hint = "; write numbers without thousands separators" if rest == "," else ""
            raise ArithmeticProblem(f"{rest!r} is not expected there{hint}")
        return value

    def _peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, *wanted: str) -> str | None:
        token = self._peek()
        if token is None or (wanted and token not in wanted):
            return None
        self._at += 1
        return token

    def _need(self, wanted: str) -> None:
        if self._take(wanted) is None:
            raise ArithmeticProblem(f"{wanted!r} is missing")

    def _sum(self) -> Number:
        value = self._product()
        while sign := self._take("+", "-"):
            value = _apply(sign, value, self._product())
        return value

    def _product(self) -> Number:
        value = self._factor()
        while sign := self._take("*", "/", "//", "%"):
            value = _apply(sign, value, self._factor())
        return value

    def _factor(self) -> Number:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ArithmeticProblem(f"brackets and signs are more than {DEEPEST} deep")
        sign = self._take("+", "-")
        value = self._factor() if sign else self._power()
        self._depth -= 1
        return -value if sign == "-" else value

    def _power(self) -> Number:
        base = self._atom()
        return _apply("**", base, self._factor()) if self._take("**") else base

    def _atom(self) -> Number:
        token = self._take()
        if token is None:
            raise ArithmeticProblem("the expression ends too early")
        if token == "(":  # noqa: S105  # a bracket
            value = self._sum()
            self._need(")")
            return value
        if token[0].isdigit() or token[0] == ".":
            return _number(token)
        if token in _CONSTANTS:
            return _CONSTANTS[token]
        if token in _FUNCTIONS:
            return self._call(token)
        if token[0].isalpha() or token[0] == "_":
            known = ", ".join([*_CONSTANTS, *_FUNCTIONS])
            raise ArithmeticProblem(f"{token[:40]!r} is not known; there are: {known}")
        raise ArithmeticProblem(f"{token!r} is not expected there")

    def _call(self, name: str) -> Number:
        self._need("(")
        values = [self._sum()]
        while self._take(","):
            values.append(self._sum())
        self._need(")")
        low, high, function = _FUNCTIONS[name]
        if not low <= len(values) <= high:
            raise ArithmeticProblem(f"{name} takes {low if low == high else f'{low} or more'} numbers")
        return _guarded(lambda: function(*values))


def _number(token: str) -> Number:
    if token.isdigit():
        if len(token) > 309:
            raise ArithmeticProblem("a number is too large")
        return _bounded(int(token))
    return _bounded(float(token))


def _apply(sign: str, left: Number, right: Number) -> Number:
    return _guarded(lambda: _SIGNS[sign](left, right))


def _guarded(work: Callable[[], Number]) -> Number:
    try:
        return _bounded(work())
    except ZeroDivisionError:
        raise ArithmeticProblem("that divides by zero") from None
    except OverflowError:
        raise ArithmeticProblem("a number is too large") from None
    except (ValueError, TypeError):
        raise ArithmeticProblem("a function is not defined there") from None


def _bounded(value: Number) -> Number:
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise ArithmeticProblem("a number is too large")
    elif math.isinf(value):
        raise ArithmeticProblem("a number is too large")
    elif math.isnan(value):
        raise ArithmeticProblem("the result is not a number")
    return value


def _raised(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int):
        # Told before it is worked out: 9 ** 9 ** 9 would take for ever.
        if abs(base) > 1 and abs(exponent) * (abs(base).bit_length() - 1) > BITS:
            if exponent < 0:
                return 0.0
            raise ArithmeticProblem("a number is too large")
        if abs(base) <= 1 and abs(exponent) > 1:
            exponent = exponent % 2 + (2 if exponent > 0 else -2)  # only whether it is even matters to 0, 1 and -1
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError
    return float(value) if isinstance(value, float) else int(value)


def _rounded(value: Number, digits: Number = 0) -> Number:
    if not float(digits).is_integer() or abs(digits) > 30:
        raise ValueError
    return round(value, int(digits)) if digits else round(value)


_SIGNS: Mapping[str, Callable[[Number, Number], Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if isinstance(a, int) and isinstance(b, int) and b and a % b == 0 else a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": _raised,
}
_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e}
_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Number]]] = {
    "abs": (1, 1, abs),
    "ceil": (1, 1, math.ceil),
    "cos": (1, 1, math.cos),
    "exp": (1, 1, math.exp),
    "floor": (1, 1, math.floor),
    "ln": (1, 1, math.log),
    "log": (1, 2, math.log),
    "log10": (1, 1, math.log10),
    "log2": (1, 1, math.log2),
    "max": (1, LONGEST, max),
    "min": (1, LONGEST, min),
    "round": (1, 2, _rounded),
    "sin": (1, 1, math.sin),
    "sqrt": (1, 1, math.sqrt),
    "tan": (1, 1, math.tan),
}

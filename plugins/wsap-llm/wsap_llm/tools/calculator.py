"""The calculator tool: arithmetic in Python's syntax of numbers, operators and a few functions, bounded in time.

Whole numbers are exact. All values, also intermediate ones, are below 2 ** 1024 in magnitude, which bounds the work: an
expression has at most `LONGEST` operations on numbers of that size.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping

from wsap_core.protocol import ParamDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context

LONGEST = 500
"""Maximum length of an expression in characters."""
DEEPEST = 50
"""Maximum number of nested brackets, and of consecutive signs."""
BITS = 1024
"""Maximum number of bits of whole numbers; that of floating-point numbers is the same."""

Number = int | float

_TOKENS = re.compile(
    r"(?:\s|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|[-+*/%^(),×·÷−])*+", re.ASCII
)
_SAME = str.maketrans({"^": "**", "×": "*", "·": "*", "÷": "/", "−": "-"})
_SIGNS = re.compile(rf"(?:[-+]\s*){{{DEEPEST + 1},}}")


class ArithmeticProblem(Exception):
    """The expression can't be evaluated; the message is for the model."""


def evaluate(text: str) -> Number:
    """Return the value of an expression; raise ArithmeticProblem if it is invalid or can't be evaluated."""
    if len(text) > LONGEST:
        raise ArithmeticProblem(f"the expression has {len(text)} characters; at most {LONGEST} are read")
    if not text.strip():
        raise ArithmeticProblem("there is nothing to work out")
    read = _TOKENS.match(text)
    if read is None or read.end() < len(text):
        raise ArithmeticProblem(f"{text[read.end() if read else 0 :][:12]!r} is not arithmetic")
    for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", text):
        if name not in _CONSTANTS and name not in _FUNCTIONS:
            raise ArithmeticProblem(f"{name[:40]!r} is not known; there are: {', '.join([*_CONSTANTS, *_FUNCTIONS])}")
    source = re.sub(r"(?<![\w.])0+(?=\d)", "", " ".join(text.translate(_SAME).split()))
    if _depth(source) > DEEPEST or _SIGNS.search(source):
        raise ArithmeticProblem(f"brackets or signs are more than {DEEPEST} deep")
    try:
        return _value(ast.parse(source, mode="eval").body)
    except SyntaxError as error:
        if "never closed" in error.msg:
            raise ArithmeticProblem("')' is missing") from None
        rest = source[error.offset - 1 :][:12] if error.offset else ""
        raise ArithmeticProblem(f"{rest!r} is not expected there" if rest else "it ends too early") from None


def spoken(value: Number) -> str:
    """Return a number as text, with 12 digits unless it is whole."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value):
            return _guarded(lambda: value)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            return -_value(operand) if isinstance(sign, ast.USub) else _value(operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            first, second = _value(left), _value(right)
            return _guarded(lambda: _OPERATORS[type(sign)](first, second))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            low, high, function = _FUNCTIONS[name]
            if not low <= len(arguments) <= high:
                raise ArithmeticProblem(f"{name} takes {low if low == high else f'{low} or more'} numbers")
            values = [_value(argument) for argument in arguments]
            return _guarded(lambda: function(*values))
        case ast.Tuple():
            raise ArithmeticProblem("',' is not expected there; write numbers without thousands separators")
    raise ArithmeticProblem(f"{ast.unparse(node)[:40]!r} is not expected there")


def _guarded(work: Callable[[], Number]) -> Number:
    try:
        value = work()
        if value.bit_length() > BITS if isinstance(value, int) else math.isinf(value):
            raise OverflowError
    except ZeroDivisionError:
        raise ArithmeticProblem("that divides by zero") from None
    except OverflowError:
        raise ArithmeticProblem("a number is too large") from None
    except (ValueError, TypeError):
        raise ArithmeticProblem("a function is not defined there") from None
    if math.isnan(value):
        raise ArithmeticProblem("the result is not a number")
    return value


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int):
        # Checked before the evaluation: 9 ** 9 ** 9 would take forever.
        if abs(base) > 1 and abs(exponent) * (abs(base).bit_length() - 1) > BITS:
            if exponent < 0:
                return 0.0
            raise OverflowError
        if abs(base) <= 1 and abs(exponent) > 1:
            exponent = exponent % 2 + (2 if exponent > 0 else -2)  # for 0, 1 and -1 only its parity matters
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError
    return float(value) if isinstance(value, float) else int(value)


def _round(value: Number, digits: Number = 0) -> Number:
    if not float(digits).is_integer() or abs(digits) > 30:
        raise ValueError
    return round(value, int(digits)) if digits else round(value)


def _divide(left: Number, right: Number) -> Number:
    exact = isinstance(left, int) and isinstance(right, int) and right and left % right == 0
    return left // right if exact else left / right


_OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e}
_OF_ONE = ("ceil", "cos", "exp", "floor", "log10", "log2", "sin", "sqrt", "tan")
_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Number]]] = {
    **{name: (1, 1, getattr(math, name)) for name in _OF_ONE},
    "abs": (1, 1, abs),
    "ln": (1, 1, math.log),
    "log": (1, 2, math.log),
    "max": (1, LONGEST, max),
    "min": (1, LONGEST, min),
    "round": (1, 2, _round),
}


class Calculator:
    """Evaluates arithmetic."""

    inward = True
    """It only affects the agent."""
    definition = Tool(
        "calculator",
        "Works out arithmetic: + - * / // % ** brackets, pi, e, sqrt, abs, min, max, round, floor, ceil, log, exp.",
        [
            ParamDef(
                "expression",
                schema={"type": "string", "minLength": 1, "maxLength": LONGEST},
                description="Such as (3 + 4) * 2",
            )
        ],
    )

    def run(self, parameters: Mapping[str, JsonValue]) -> str:
        """Return the value of `expression`, or one line with the error."""
        try:
            return spoken(evaluate(str(parameters.get("expression", ""))))
        except ArithmeticProblem as problem:
            return f"That can't be worked out: {problem}."


def create(context: Context) -> Calculator:
    """Return a calculator."""
    return Calculator()

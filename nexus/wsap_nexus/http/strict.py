"""Strict parsing of JSON from clients.

Besides malformed JSON it refuses NaN and Infinity, duplicate keys, unpaired surrogates, NUL characters, integers beyond
64 bits, numbers that overflow to infinity, and deep nesting.
"""

from __future__ import annotations

import json
import math
from typing import Any

from wsap_nexus.http.refusals import NotJsonError

DEEPEST = 32
"""The maximum nesting of objects and lists."""
_LARGEST = 2**63 - 1
_LONGEST_NUMBER = 400
"""Digits; Python is slow for thousands, and floats have at most 309 before the point."""


def read_json(body: bytes) -> Any:
    """Return the data of a JSON text; NotJsonError, with the reason, if it is refused."""
    try:
        text = body.decode("utf-8")
        value = json.loads(text, parse_constant=_constant, parse_int=_whole, object_pairs_hook=_object)
    except UnicodeDecodeError:
        raise NotJsonError("The body is not UTF-8.") from None
    except RecursionError:
        raise NotJsonError(f"The body is nested more than {DEEPEST} levels deep.") from None
    except ValueError as error:
        raise NotJsonError(f"The body is not valid JSON: {error}.") from None
    _check(value, 0)
    return value


def _constant(word: str) -> Any:
    raise NotJsonError(f"The body contains {word}, which is not a number in JSON.")


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER or abs(number := int(digits)) > _LARGEST:
        raise NotJsonError(f"The body contains the number {digits[:20]}..., which exceeds 64 bits.")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJsonError(f"The body contains an object with the key {twice[:80]!r} twice.")
    return found


def _check(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise NotJsonError(f"The body is nested more than {DEEPEST} levels deep.")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise NotJsonError("The body contains a number too large for a float.")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name)
            _check(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, depth + 1)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise NotJsonError("The body contains text with a NUL character.")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise NotJsonError("The body contains text with an unpaired surrogate.") from None

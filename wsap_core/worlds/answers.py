"""Checks what a game answers: fields hold what their types declare, and numbers can be recorded and added up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, get_args, get_type_hints

from wsap_core.errors import WireError, WorldError
from wsap_core.protocol import ActionResult, Location, Observation, Part, Tick
from wsap_core.protocol.values import child_name, is_number
from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import single_line

T = TypeVar("T")

LARGEST_REWARD = 1e15
"""The largest reward; the smallest is its negative. So no sum of rewards overflows."""
LARGEST_STEP = 2**31 - 1
"""The largest number of a step or tick: what a database keeps in a column of integers."""
LARGEST_WHOLE = 2**63 - 1
"""The largest whole number anywhere else; the smallest is its negative."""

_PARTS: Mapping[str, type] = {
    name: part
    for name, kind in get_type_hints(Observation).items()
    for part in get_args(next(filter(get_args, get_args(kind)), kind))
    if isinstance(part, type) and issubclass(part, Part)
}
"""List in an observation -> type of its items."""

_KINDS = {"float": "a number", "int": "a whole number", "bool": "true or false", "str": "a text"}
_USUAL: Mapping[str, type] = {"float": float, "int": int, "bool": bool, "str": str}
_SIMPLE = frozenset({*_USUAL.values(), type(None)})
_DECLARED = re.compile(r"(?:(Sequence|Mapping)\[(?:str, )?)?(float|int|bool|str)\]?( \| None)?")
# JSON with so many digits in a row may hold a number of more than 64 bits. This is faster than a pattern.
_AS_ZERO, _MANY_DIGITS = bytes.maketrans(b"123456789", b"000000000"), b"0" * 19
_JUDGED = "_wsap_judged"


def judged(game: str, did: str, answer: Any, kind: type[T]) -> T:
    """Return a game's answer, which it `did` ("answered with"); WorldError, with its field, if it is invalid."""
    if not isinstance(answer, kind):
        raise WorldError(f"The game {game!r} {did} a {type(answer).__name__}, not of the type {kind.__name__}.")
    if wrong := wrong_in(answer):
        raise WorldError(f"The game {game!r} {did} {wrong}.")
    return answer


def wrong_in(answer: Any) -> str:
    """Return what is invalid in a dataclass from a game, in words that follow "answered with"; "" if nothing is.

    Its fields have the declared types. Numbers are finite, whole ones have at most 64 bits, a reward is at most
    `LARGEST_REWARD` from zero, and steps and ticks count from 0 to `LARGEST_STEP`. Everything can be written as JSON.
    """
    if isinstance(answer, ActionResult):
        wrong = _wrong_result(answer)
    elif isinstance(answer, Observation):
        wrong = _wrong_observation(answer)
    elif isinstance(answer, Tick):
        wrong = _wrong_count(answer.number, "number")
    else:
        wrong = ""
    if wrong := wrong or _wrong_fields(answer, ""):
        return wrong
    try:
        suspect = _MANY_DIGITS in dumps(answer).encode("ascii").translate(_AS_ZERO)
    except RecursionError:
        return "something nested too deeply"
    except (WireError, ValueError, TypeError) as error:
        return wrong_value(answer, "") or f"something that is not JSON: {single_line(error).rstrip('.')}"
    return wrong_value(answer, "") if suspect else ""


def _wrong_result(result: ActionResult) -> str:
    observation: object = result.observation  # a game may put anything into any field
    if not isinstance(observation, Observation):
        return f"a result whose observation is a {type(observation).__name__}"
    if not all(isinstance(name, str) for name in result.achievements):
        return "achievements that are not all names"
    reward = _plain(result.reward)
    if not is_number(reward) or not abs(reward) < float("inf"):  # NaN is not, either
        return f"a reward that is not a finite number: {_shown(result.reward)}"
    if abs(reward) > LARGEST_REWARD:
        return f"a reward beyond {LARGEST_REWARD:g}: {_shown(reward)}"
    return _wrong_observation(observation)


def _wrong_observation(seen: Observation) -> str:
    location: object = seen.location
    if not isinstance(location, Location):
        return f"a location that is a {type(location).__name__}, not a Location"
    if wrong := _wrong_count(seen.step, "step"):
        return wrong
    for name in ("status", "inventory"):
        if not isinstance(getattr(seen, name), Mapping):
            return f"{name} that is a {type(getattr(seen, name)).__name__}, not a mapping"
    for name, kind in _PARTS.items():
        for part in getattr(seen, name) or ():
            if not isinstance(part, kind):
                return f"{name} with a {type(part).__name__} among them, where each is of the type {kind.__name__}"
    return ""


def _wrong_count(number: object, name: str) -> str:
    if type(number) is not int and hasattr(number, "dtype"):
        return f"a {name} that is a number of numpy; write int(...): {_shown(number)}"
    if type(number) is not int or number < 0:
        return f"a {name} that does not count from 0: {_shown(number)}"
    return f"a {name} beyond {LARGEST_STEP}: {_shown(number)}" if number > LARGEST_STEP else ""


class _Layout:
    """The fields of a dataclass."""

    def __init__(self, cls: type) -> None:
        self.scalars: list[tuple[str, str, bool]] = []
        """Name, declared type, and whether it may be None."""
        self.others: list[tuple[str, str, str]] = []
        """Name, and for a sequence or mapping of scalars its container and their type."""
        for field in fields(cls):
            kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", "")
            match = _DECLARED.fullmatch(kind)
            if match is None or match[1]:
                self.others.append((field.name, *(("", "") if match is None else (match[1], match[2]))))
            else:
                self.scalars.append((field.name, match[2], bool(match[3])))
        names = [name for name, _, _ in self.scalars]
        self.read: Callable[[Any], tuple[Any, ...]] = lambda part: tuple(getattr(part, name) for name in names)
        if len(names) > 1:
            self.read = attrgetter(*names)
        self.known: set[tuple[type, ...]] = set()
        """The types of scalars that are known to fit, which saves looking at each."""


_layout = cache(_Layout)


def _wrong_fields(part: Any, path: str) -> str:
    """Return which field of a dataclass, or of one in it, has another type than it declares."""
    if getattr(part, _JUDGED, False):
        return ""  # games reuse many parts
    layout = _layout(type(part))  # type: ignore[arg-type]  # classes hash
    values = layout.read(part)
    types = tuple(map(type, values))
    if types not in layout.known:
        for (name, declared, may_lack), value in zip(layout.scalars, values, strict=True):
            if value is None and may_lack:
                continue
            if wrong := _wrong_scalar(value, declared, child_name(path, name)):
                return wrong
        if _SIMPLE.issuperset(types) and (float not in types or all(kind != "int" for _, kind, _ in layout.scalars)):
            layout.known.add(types)
    for name, container, declared in layout.others:
        value = getattr(part, name)
        if value and (wrong := _wrong_other(value, container, declared, child_name(path, name))):
            return wrong
    if hasattr(part, "__dict__"):
        object.__setattr__(part, _JUDGED, True)
    return ""


def _wrong_other(value: Any, container: str, declared: str, path: str) -> str:
    if not container:
        return _wrong_parts(value, path)
    if container == "Mapping" and not isinstance(value, Mapping):
        return f"{path} that is a {type(value).__name__}, not a mapping"
    if not isinstance(value, Sequence | Mapping):
        return f"{path} that is a {type(value).__name__}, not a list"
    named = value.items() if isinstance(value, Mapping) else enumerate(value)
    usual = _USUAL[declared]
    for key, each in named:
        if type(each) is not usual:
            here = child_name(path, str(key)) if isinstance(value, Mapping) else f"{path}[{key}]"
            if wrong := _wrong_scalar(each, declared, here):
                return wrong
    return ""


def _wrong_parts(value: Any, path: str) -> str:
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            new = not getattr(item, _JUDGED, False) and is_dataclass(item)
            if new and (wrong := _wrong_fields(item, f"{path}[{index}]")):
                return wrong
        return ""
    return _wrong_fields(value, path) if is_dataclass(value) else ""


def _wrong_scalar(value: Any, declared: str, path: str) -> str:
    value = _plain(value)
    if declared == "float":
        fits = is_number(value)
    elif declared == "int":
        fits = is_number(value) and (isinstance(value, int) or value.is_integer())
    else:
        fits = isinstance(value, bool if declared == "bool" else str)
    return "" if fits else f"{path} that is not {_KINDS[declared]}: {_shown(value)}"


def wrong_value(value: Any, path: str) -> str:
    """Return the first number in a value, at any depth, that is not finite or too large, or what is not JSON."""
    value = _plain(value)
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        odd = next((key for key in value if not isinstance(key, str)), None)
        if odd is not None:
            return f"{path or 'it'} with the key {_shown(odd)}, which is not a text"
        named = ((child_name(path, key), each) for key, each in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        named = ((f"{path}[{index}]", each) for index, each in enumerate(value))
    elif is_number(value):
        if isinstance(value, float):
            return "" if abs(value) < float("inf") else f"{path} that is not a finite number: {value}"
        return "" if abs(value) <= LARGEST_WHOLE else f"{path} that is a whole number of more than 64 bits"
    else:
        try:
            dumps(value)
        except (WireError, ValueError, TypeError):
            return f"{path} that is a {type(value).__name__}, which is not JSON"
        return ""
    return next(filter(None, (wrong_value(each, here) for here, each in named)), "")


def _plain(value: Any) -> Any:
    """Return a number of numpy as one of Python; everything else unchanged."""
    return value.tolist() if hasattr(value, "item") and hasattr(value, "dtype") else value


def _shown(value: object) -> str:
    try:
        return single_line(repr(value))[:40]
    except ValueError:  # Python does not format integers of thousands of digits
        return "a number of thousands of digits"

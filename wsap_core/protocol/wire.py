"""Converts protocol types to JSON and back, without loss.

The JSON is canonical: keys sorted, no spaces, ASCII, integral numbers written as integers (as in RFC 8785), so that
equal values give equal bytes in any process. Subclasses of protocol types have a `$type` tag; an unknown tag decodes to
the base type with the rest in `extras`. Other unknown fields are ignored, so that newer minor versions can be read.

Encoding is our own code, because it runs several times per decision; decoding validates with pydantic.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, TypeVar

from wsap_core.errors import WireError
from wsap_core.protocol.base import LEFT_OUT, TYPE_TAG, Part, adapter, wire_type

T = TypeVar("T")

_quote = json.encoder.encode_basestring_ascii
_CACHE = "_wire_text"


# --- encoding -----------------------------------------------------------------------------


def dumps(value: Any) -> str:
    """Return the canonical JSON text of a protocol type or of JSON-ready data.

    Raises:
        WireError: the value contains something that JSON can't represent, such as NaN.
    """
    writer = _WRITERS.get(type(value)) or _writer_for(type(value))
    return writer(value)


def encode(value: Any) -> Any:
    """Return the value as JSON-ready data."""
    return json.loads(dumps(value))


def keep_text(value: T, text: str) -> T:
    """Return a value with the canonical text that it was decoded from, so that it need not be encoded again."""
    if is_dataclass(value) and _keeps_text(type(value)):
        object.__setattr__(value, _CACHE, text)
    return value


def _keeps_text(cls: type) -> bool:
    """Return whether instances of a dataclass can keep their text: it is frozen and has no slots."""
    frozen: bool = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]  # every dataclass has it
    return frozen and not hasattr(cls, "__slots__")


def _dump_float(value: float) -> str:
    if not math.isfinite(value):
        raise WireError(f"The number {value} can't be encoded as JSON; use None for a missing value.")
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else float.__repr__(value)  # not a subclass's


def _dump_sequence(value: Iterable[Any]) -> str:
    return "[" + ",".join([dumps(item) for item in value]) + "]"


def _dump_mapping(value: Mapping[Any, Any]) -> str:
    try:
        items = [(k, value[k]) for k in sorted(value)]
        return "{" + ",".join([_quote(k) + ":" + dumps(v) for k, v in items]) + "}"
    except TypeError:
        wrong = next((k for k in value if not isinstance(k, str)), None)
        if wrong is None:
            raise
        raise WireError(f"JSON objects have text keys; {wrong!r} is a {type(wrong).__name__}.") from None


_WRITERS: dict[type, Callable[[Any], str]] = {
    str: _quote,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
    float: _dump_float,
    tuple: _dump_sequence,
    list: _dump_sequence,
    dict: _dump_mapping,
}
_WRITERS_OF_KINDS: dict[type, Callable[[Any], str]] = {
    Enum: lambda value: dumps(value.value),
    Mapping: _dump_mapping,
    **_WRITERS,
}


def _writer_for(cls: type) -> Callable[[Any], str]:
    writer = next((write for kind, write in _WRITERS_OF_KINDS.items() if issubclass(cls, kind)), None)
    if is_dataclass(cls):
        writer = _dataclass_writer(cls)
    elif writer is None and hasattr(cls, "item") and hasattr(cls, "dtype"):
        # A numpy scalar or array that a game left in an observation.
        writer = lambda value: dumps(value.tolist())  # noqa: E731
    if writer is None:
        raise WireError(
            f"A {cls.__module__}.{cls.__qualname__} can't be encoded as JSON; "
            "use text, numbers, lists, mappings or protocol types."
        )
    _WRITERS[cls] = writer
    return writer


def _dataclass_writer(cls: type) -> Callable[[Any], str]:
    own = [f for f in fields(cls) if f.name != "extras"]
    seldom = [(f.name, f.default) for f in own if f.metadata == LEFT_OUT]
    names = sorted(f.name for f in own if f.metadata != LEFT_OUT)
    tag = wire_type(cls) if issubclass(cls, Part) else None
    keys = [_quote(name) + ":" for name in names]
    get = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),) if names else ()
    head = "{" + (f"{_quote(TYPE_TAG)}:{_quote(tag)}" + ("," if names else "") if tag else "")
    has_extras = any(f.name == "extras" for f in fields(cls))
    keeps_text = _keeps_text(cls)

    def write(value: Any) -> str:
        # Parts are frozen, and worlds reuse many of them, so they keep their text.
        cached: str | None = value.__dict__.get(_CACHE) if keeps_text else None
        if cached is not None:
            return cached
        more = [name for name, default in seldom if getattr(value, name) != default] if seldom else seldom
        if more or (has_extras and value.extras):
            text = _dump_with_extras(value, [*names, *more], tag)
        else:
            text = head + ",".join([k + dumps(v) for k, v in zip(keys, get(value), strict=True)]) + "}"
        if keeps_text:
            object.__setattr__(value, _CACHE, text)
        return text

    return write


def _dump_with_extras(value: Any, names: list[str], tag: str | None) -> str:
    data: dict[str, Any] = {TYPE_TAG: tag} if tag else {}
    data.update(getattr(value, "extras", {}))  # includes the tag if it was unknown
    data.update((name, getattr(value, name)) for name in names)
    return _dump_mapping(data)


# --- decoding -----------------------------------------------------------------------------


class Codec:
    """Decodes JSON into the types of `wsap_core.protocol` and the given subclasses of them.

    Raises:
        WireError: two classes have the same tag, and the later one is not a subclass of the other.
    """

    def __init__(self, subclasses: Iterable[type] = ()) -> None:
        from wsap_core.protocol import PROTOCOL_TYPES  # it imports this module

        self._by_tag: dict[str, type] = {}
        for cls in (*PROTOCOL_TYPES, *subclasses):
            if (tag := wire_type(cls)) is None:
                continue
            known = self._by_tag.get(tag, cls)
            self._by_tag[tag] = cls  # a subclass with the tag of its base replaces it
            if not issubclass(cls, known):
                raise WireError(
                    f"Both {known.__module__}.{known.__qualname__} and {cls.__module__}.{cls.__qualname__} "
                    f"have the tag {tag!r}; set `wire_type` on one of them."
                )

    def lookup(self, tag: str) -> type | None:
        """Return the class with a tag, or None if there is none."""
        return self._by_tag.get(tag)

    def loads(self, cls: type[T], text: str | bytes, *, where: str = "message") -> T:
        """Decode and validate a JSON text; `WireError` says why the `where` is invalid."""
        try:
            data = json.loads(text, parse_constant=refuse_constant)
        except ValueError as error:
            raise WireError(f"The {where} is not valid JSON: {error}.") from None
        except RecursionError:
            raise WireError(f"The {where} is nested too deeply to be read.") from None
        return self.decode(cls, data, where=where)

    def decode(self, cls: type[T], data: Any, *, where: str = "message") -> T:
        """Decode and validate JSON-ready data; `WireError` says why the `where` is invalid."""
        from pydantic import ValidationError

        try:
            value: T = adapter(cls).validate_python(data, context=self)  # type: ignore[arg-type]  # classes hash
            return value
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            path = ".".join(str(p) for p in first["loc"] if not str(p).startswith("function-")) or "it"
            raise WireError(f"The {where} is not a valid {cls.__name__}: {path}: {first['msg']}.") from None
        except RecursionError:
            raise WireError(f"The {where} is nested too deeply to be a {cls.__name__}.") from None


def refuse_constant(word: str) -> None:
    """Raise `ValueError`: NaN and infinities are not JSON, though Python reads them."""
    raise ValueError(f"{word} is not a number in JSON")

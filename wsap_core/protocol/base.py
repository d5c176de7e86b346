"""Base classes of the protocol types: conversion of fields, and validation of wire data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import CoreSchema

T = TypeVar("T")

TYPE_TAG = "$type"
"""The key that names a subclass on the wire."""

LEFT_OUT = {"wsap": "left out"}
"""Metadata of a field that is not encoded when it has its default, so that older hashes and readers stay valid."""

_LONG = 60  # characters of one value in `brief_repr`

# The annotation of a sequence or mapping field, whether it holds sequences, and the alternatives to it.
_CONTAINER = re.compile(r"(?:[\w.]+\.)?(Sequence|Mapping)\[(?:\w+, )?(Sequence\[)?.*\]((?: \| (?:None|str))*)")


class Frozen:
    """Base of frozen dataclasses that converts values of `Sequence[...]` fields to tuples, also within one another.
    None becomes an empty sequence or mapping, unless the field's type includes None or `str`."""

    def __post_init__(self) -> None:
        sequences, mappings = _containers(type(self))  # type: ignore[arg-type]  # classes hash
        for name, may_differ, nested in sequences:
            value = getattr(self, name)
            if (nested or type(value) is not tuple) and not (may_differ and isinstance(value, str | None)):
                if isinstance(value, str | bytes):  # else its letters become the list
                    raise TypeError(f"{name} of {type(self).__name__} must be a list, not a {type(value).__name__}")
                items = () if value is None else map(tuple, value) if nested else value
                object.__setattr__(self, name, tuple(items))
        for name, nested in mappings:
            value = getattr(self, name)
            if nested or value is None:
                items = (value or {}).items()
                object.__setattr__(self, name, {k: tuple(v) if isinstance(v, list) else v for k, v in items})


@cache
def _containers(cls: type) -> tuple[list[tuple[str, bool, bool]], list[tuple[str, bool]]]:
    """Return the sequence fields of a dataclass, whether they may be None or text, and whether they hold sequences; and
    the mappings that may not be None, and whether they hold sequences."""
    found = [(f.name, _CONTAINER.fullmatch(str(f.type))) for f in fields(cls)]
    kinds = [(name, match[1], bool(match[3]), bool(match[2])) for name, match in found if match]
    sequences = [(name, may_differ, nested) for name, kind, may_differ, nested in kinds if kind == "Sequence"]
    return sequences, [(name, nested) for name, kind, may, nested in kinds if kind == "Mapping" and not may]


class Part(Frozen):
    """Base of the protocol types. A subclass of one is encoded with a `$type` tag, by which it is decoded again."""

    wire_type: str | None = None
    """The tag; None for the class name. Not inherited."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        return _polymorphic_schema(cls, handler(source))


def brief_repr(part: Any) -> str:
    """Return a short representation of a dataclass for notebooks: the fields that differ from their defaults, with
    long values shortened."""
    shown = []
    for f in fields(part):
        value = getattr(part, f.name)
        usual = f.default_factory() if f.default_factory is not MISSING else f.default
        if f.repr and value != usual:
            shown.append(f"{f.name}={_brief(value)}")
    return f"{type(part).__name__}({', '.join(shown)})"


def _brief(value: object) -> str:
    text, most = repr(value), _LONG * (1 + isinstance(value, Part))
    if len(text) > most and isinstance(value, Sequence | Mapping) and not isinstance(value, str | bytes):
        return f"<{len(value)} items>"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def wire_type(cls: type) -> str | None:
    """Return the `$type` tag of a class; None for a base type of the protocol."""
    if not any(b is not cls and is_dataclass(b) and issubclass(b, Part) for b in cls.__mro__):
        return None
    own = cls.__dict__.get("wire_type")
    return own if isinstance(own, str) else cls.__name__


@lru_cache(maxsize=256)
def adapter(cls: type[T]) -> TypeAdapter[T]:
    """Return the pydantic adapter that validates a protocol type."""
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


def _polymorphic_schema(cls: type, schema: CoreSchema) -> CoreSchema:
    """Wrap the pydantic schema of a protocol type so that a `$type` tag chooses the subclass."""
    from pydantic_core import core_schema

    known = frozenset(f.name for f in fields(cls))
    takes_extras = "extras" in known
    own_tag = wire_type(cls)

    def validate(value: Any, inner: Any, info: Any) -> Any:
        if not isinstance(value, dict):
            return inner(value)
        if TYPE_TAG not in value:
            return inner({k: v for k, v in value.items() if k != "extras"} if takes_extras else value)
        tag = value[TYPE_TAG]
        # A wire field called `extras` is unknown like any other, and becomes part of our `extras`.
        rest = {k: v for k, v in value.items() if k != TYPE_TAG and not (takes_extras and k == "extras")}
        if tag == own_tag:
            return inner(rest)
        codec = info.context  # a `Codec` or None
        target = codec.lookup(tag) if codec is not None and isinstance(tag, str) else None
        if target is not None and issubclass(target, cls):
            return adapter(target).validate_python(rest, context=codec)
        if takes_extras:
            extras = {k: v for k, v in value.items() if k not in known or k == "extras"}
            return inner({**{k: v for k, v in rest.items() if k in known}, "extras": extras})
        return inner(rest)

    inside = _strict(schema)
    # pydantic generates a class once and refers to it afterwards; the reference must be to the wrapped schema.
    reference = inside.pop("ref", None)
    return core_schema.with_info_wrap_validator_function(validate, cast("CoreSchema", inside), ref=reference)


_SCALARS: dict[str, dict[str, Any]] = {
    "bool": {"strict": True},
    "float": {"strict": True, "allow_inf_nan": False},
    "int": {"strict": True},
    "str": {"strict": True},
}
_NOT_SCHEMAS = frozenset({"cls", "default", "metadata", "serialization"})


def _strict(schema: Any) -> Any:
    """Return a pydantic schema with strict scalars, so that "3" is not 3 and "yes" is not true. pydantic's own strict
    mode does not accept mappings for dataclasses."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(kind := schema.get("type"), str) and kind in _SCALARS and "strict" not in schema:
        strict = {**schema, **_SCALARS[kind]}
        return {"type": "function-before", "function": _WHOLE, "schema": strict} if kind == "int" else strict
    return {k: v if k in _NOT_SCHEMAS else _strict(v) for k, v in schema.items()}


# JSON does not distinguish 3.0 from 3.
_WHOLE: Any = {"type": "no-info", "function": lambda n: int(n) if type(n) is float and n.is_integer() else n}

"""Specs of games as JSON, for other processes. The fields of the dataclasses alone decide what is written and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

from wsap_core.errors import WireError
from wsap_core.factories import Reference
from wsap_core.loading import load_object, names_file, portable_reference
from wsap_core.protocol import Part
from wsap_core.protocol.wire import Codec, encode
from wsap_core.specs import NAMES_CODE, STAYS, AdapterSpec, types_of

# Any, in this module: JSON, and types.

_CODEC = Codec()
_LEFT_OUT: Any = object()
"""In place of a value that is unknown, or is code that is not trusted."""


def spec_to_json(spec: AdapterSpec) -> dict[str, Any]:
    """Return a game's spec as JSON: all fields but `factory`.

    A callable is written as the reference by which another process finds it, or null if it has none.
    """
    return cast(dict[str, Any], _written(spec))


def spec_of_json(
    data: Mapping[str, Any], factory: Reference, trusted: Callable[[str], bool] = lambda text: True
) -> AdapterSpec:
    """Return the spec of `spec_to_json`. `problems_of` judges whether its values are valid.

    Unknown fields, words that a field does not know, and code that is not trusted are left out: the field has its
    default, and a sequence lacks the item.

    Args:
        data: the spec as JSON.
        factory: creates the game in this process.
        trusted: whether a reference, the name of an agent or a command may be used in this process.

    Raises:
        WireError: a name is missing, or a value of the protocol is invalid.
        WsapError: a file of code can't be loaded.
    """
    return cast(AdapterSpec, _read_fields(AdapterSpec, {**data, "factory": factory}, trusted))


def _written(value: Any) -> Any:
    if isinstance(value, Part):
        return encode(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _written(getattr(value, f.name)) for f in fields(value) if f.metadata != STAYS}
    if isinstance(value, Mapping):
        return {key: _written(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_written(each) for each in value]
    return portable_reference(value) if callable(value) else value


def _read_fields(cls: Any, data: Mapping[str, Any], trusted: Callable[[str], bool]) -> Any:
    """Return an instance of a dataclass; left out if code that it requires is not trusted."""
    values, types = {}, types_of(cls)
    for f in fields(cls):
        value = data.get(f.name, _LEFT_OUT)
        if f.metadata == NAMES_CODE and not (isinstance(value, str) and trusted(value)):
            value = _LEFT_OUT
        elif f.metadata != STAYS and value is not _LEFT_OUT:
            value = _read(value, types[f.name], trusted)
        if value is not _LEFT_OUT:
            values[f.name] = value
        elif f.default is MISSING and f.default_factory is MISSING:
            if types[f.name] == Reference:
                return _LEFT_OUT
            raise WireError(f"It has no {f.name}.")
    return cls(**values)


def _read(value: Any, kind: Any, trusted: Callable[[str], bool]) -> Any:
    """Return a value of a type; one of another form is returned as it is, since `problems_of` reports it."""
    arguments = get_args(kind)
    match get_origin(kind):
        case None if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, Mapping):
            part = issubclass(kind, Part)
            return _CODEC.decode(kind, value, where=kind.__name__) if part else _read_fields(kind, value, trusted)
        case None if kind is float and type(value) is int:
            return float(value)
        case origin if origin is Literal:
            return value if value in arguments else _LEFT_OUT
        case origin if origin in (Union, UnionType) and (value is not None or NoneType not in arguments):
            if not set(get_args(Reference)) <= set(arguments):
                return _read(value, arguments[0], trusted)
            if not isinstance(value, str) or not trusted(value):
                return _LEFT_OUT
            return load_object(value) if names_file(value) else value
        case origin if origin is tuple and isinstance(value, list):
            kinds = arguments[:1] * len(value) if arguments[-1] is ... else arguments
            found = [_read(each, one, trusted) for each, one in zip(value, kinds, strict=False)]
            return tuple(each for each in found if each is not _LEFT_OUT) if len(kinds) == len(value) else value
        case origin if origin is Mapping and isinstance(value, Mapping):
            return {key: _read(each, arguments[1], trusted) for key, each in value.items()}
    return value if value is not None or NoneType in arguments or kind is Any else _LEFT_OUT

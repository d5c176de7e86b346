"""Parses the options of backends, memories and tools by their declared types."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from wsap_core.errors import ConfigError
from wsap_core.seams.options import Options, check_used
from wsap_core.specs import Named, OptionDef
from wsap_llm.options.table import FLAGS, Range

# Any, in this module: options have values of any type.

T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """The type of an option that is not a number."""

    words: str
    """Its description in messages."""
    read: Callable[[Any], Any]
    """Returns the value; raises ValueError, TypeError or LookupError if it has another type."""
    names: Named = ""
    """What the value names; see `OptionDef`."""


def option_defs(table: type | Mapping[str, Range | Kind], *also: str) -> tuple[OptionDef, ...]:
    """Return the declarations of options for a spec, from the class that `read_options` fills (a field says what it
    names by `metadata={"names": ...}`) or the table that `read_table` reads; `also` are other names that are read."""
    if isinstance(table, Mapping):
        known = {name: (kind, kind.names if isinstance(kind, Kind) else "") for name, kind in table.items()}
    else:
        kinds = _known(table)
        known = {field.name: (kinds[field.name], field.metadata.get("names", "")) for field in fields(table)}
    own = (OptionDef(name, kind.words, names=names) for name, (kind, names) in known.items())
    return (*own, *(OptionDef(name, "any value") for name in also))


def read_options(cls: type[T], config: Mapping[str, Any], backend: str, *, also: Collection[str] = ()) -> T:
    """Return the options of a backend from its configuration, ignoring `model` and None.

    Raises ConfigError if one is unknown (the message suggests a similar one, or one of `also`), has another type than
    its field, or is a number below 0.
    """
    known = _known(cls)
    given = {name: value for name, value in config.items() if name != "model"}
    return cls(**read_table(f"backend {backend}", given, known, also=also))


def read_table(
    owner: str, config: Mapping[str, Any], known: Mapping[str, Range | Kind], *, also: Collection[str] = ()
) -> dict[str, Any]:
    """Return the given options other than None, and the defaults of other numbers.

    Raises ConfigError if one is unknown (the message suggests a similar one, or one of `also`), of another type or out
    of range.
    """
    given = Options(config)
    found: dict[str, Any] = {name: kind.default for name, kind in known.items() if isinstance(kind, Range)}
    for name, kind in known.items():
        if (value := given.get(name)) is not None:
            try:
                found[name] = kind.read(value)
            except (ValueError, TypeError, LookupError, RecursionError):
                raise ConfigError(f"The option {name} of the {owner} must be {kind.words}.") from None
    for name in also:
        given.get(name)
    check_used(f"The {owner}", given)
    return found


def parsed(value: Any) -> Any:
    """Return a value, decoded if it is the JSON text of a table or a list, as on a command line; raise ValueError or
    RecursionError if that is invalid."""
    return json.loads(value) if isinstance(value, str) and value.lstrip().startswith(("{", "[")) else value


def _flag(value: Any) -> bool:
    return value if isinstance(value, bool) else FLAGS[str.strip(value).lower()]


def _text(value: Any, fewest: int = 0) -> str:
    if not isinstance(value, str) or "\0" in value or len(value) < fewest:
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    value = parsed(value)
    if not isinstance(value, list | tuple):  # a string would have to be split like in a shell
        raise TypeError
    return tuple(map(_text, value))


def _table(value: Any) -> dict[str, str]:
    return {_text(name): _text(each) for name, each in dict(parsed(value)).items()}


def _known(cls: Any) -> dict[str, Range | Kind]:
    hints = get_type_hints(cls)
    return {field.name: _of_hint(hints[field.name], field.default) for field in fields(cls)}


NAME = Kind("non-empty text", partial(_text, fewest=1))
FILE = replace(NAME, names="path")
MODEL = replace(NAME, names="model")
TEXT = Kind("text", _text)
TEXTS = Kind("a list of texts, such as ['python', 'server.py']", _texts)
TABLE = Kind("a table of texts", _table)
FLAG = Kind("yes or no", _flag)
OBJECT = Kind("an object", lambda value: dict(parsed(value)))
_KINDS = {str: TEXT, bool: FLAG, Mapping[str, str]: TABLE, Mapping[str, Any]: OBJECT}


def _of_hint(hint: Any, default: Any) -> Range | Kind:
    kind = next((part for part in get_args(hint) if part is not NoneType), hint) if NoneType in get_args(hint) else hint
    return Range(default, 0, 1e12, whole=kind is int) if kind in (int, float) else _KINDS[kind]

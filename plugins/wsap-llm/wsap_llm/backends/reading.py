"""One reader of the options of backends, from the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from wsap_core.errors import ConfigError, UnknownNameError
from wsap_llm.option_table import FLAGS

T = TypeVar("T")


def read_options(cls: type[T], config: Mapping[str, Any], backend: str, *, also: Collection[str] = ()) -> T:
    """Return the options of a backend from its configuration, in which `model` and `None` count for nothing.

    Raises ConfigError if one is unknown (the message suggests similar ones, those in `also` included) or of another
    kind than its field, or a number below 0.
    """
    kinds = {name: _kind(hint) for name, hint in get_type_hints(cls).items()}
    values: dict[str, Any] = {}
    for name, value in config.items():
        if name == "model":
            continue
        if name not in kinds:
            raise ConfigError(str(UnknownNameError(f"option of the backend {backend}", name, (*kinds, *also))))
        wanted = kinds[name]
        if wanted is float and type(value) is int:
            value = float(value)
        if wanted is bool and isinstance(value, str):
            value = FLAGS.get(value.strip().lower(), value)
        if value is None:
            continue
        number = value if isinstance(value, int | float) else 0
        if type(value) is not wanted or not 0 <= number < 1e12:
            kind = {bool: "yes or no", int: "a whole number", float: "a number", str: "text"}.get(wanted, "an object")
            raise ConfigError(f"The option {name} of the backend {backend} is {kind}, not {value!r:.40}.")
        values[name] = value
    return cls(**values)


def _kind(hint: Any) -> type:
    # Any: what a type hint can be.
    kind = next((part for part in get_args(hint) if part is not NoneType), hint) if NoneType in get_args(hint) else hint
    return dict if get_origin(kind) is not None else kind

"""What all protocol types have in common: how they meet the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import CoreSchema


class Part:
    """A protocol type: encodes to JSON, and decodes to the right subclass by its tag.

    A subclass of a protocol type travels with a `$type` tag (its class name unless it sets
    `wire_type`), so that what it adds is not lost where the base type is expected.
    """

    wire_type: str | None = None
    """The tag on the wire; None for the class name. Only the class's own value counts."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        # Only pydantic calls this, so it is imported already; the deferral keeps the
        # kernel's import light for programs that never decode anything.
        from wsap_core.protocol.wire import polymorphic_schema

        return polymorphic_schema(cls, handler(source))


def freeze_sequences(part: object, *names: str) -> None:
    """Store the named fields of a frozen dataclass as tuples where a list (or iterable) was given."""
    for name in names:
        value = getattr(part, name)
        if type(value) is not tuple:
            object.__setattr__(part, name, () if value is None else tuple(value))


def freeze_mappings(part: object, *names: str) -> None:
    """Store an empty mapping in the named fields of a frozen dataclass where None was given."""
    for name in names:
        if getattr(part, name) is None:
            object.__setattr__(part, name, {})

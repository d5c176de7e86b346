"""Validation of the nexus' rows before they are written, and their mapping to records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from sqlalchemy import JSON, Float, Integer, Row, String, Table
from sqlalchemy.sql import ColumnElement

from wsap_core.errors import StorageError
from wsap_core.protocol import ITEM_CATEGORIES, TOP_TIER, Avatar, AvatarState, PortableItem
from wsap_core.protocol.wire import Codec, dumps, encode
from wsap_llm.secrets import redacted
from wsap_nexus.errors import ConservationError
from wsap_nexus.store.entities import AgentIdentity, AvatarRecord, EntryRequest, ItemRecord, Policy, SessionRecord
from wsap_nexus.store.tables import RunFields

LONGEST_TEXT = 200_000
"""Characters in a column without its own limit: a persona, a note, an event."""
LARGEST_ITEM = 20_000
"""Characters of an item as JSON."""

_WORDS: Mapping[tuple[str, str], frozenset[str]] = {
    ("agent", "state"): frozenset({"active", "paused", "removed"}),
    ("agent", "place"): frozenset({"nexus", "world"}),
    ("item", "place"): frozenset({"escrow", "transfer", "world", "lost"}),
    ("avatar", "state"): frozenset(state.value for state in AvatarState),
    ("transfer", "kind"): frozenset({"enter", "leave"}),
    ("transfer", "state"): frozenset({"prepared", "done", "cancelled", "unknown"}),
}

_CODEC = Codec()


def checked(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row, or of some columns of it, validated.

    Raises:
        StorageError: one does not fit its column; the message says which and why.
    """
    for name, value in values.items():
        if isinstance(value, ColumnElement):
            continue  # computed by the database, from values that were checked
        problem = _problem(table, name, value)
        if problem:
            raise StorageError(f"The nexus can't record this {table.name}: its {name} {problem}.")
    return dict(values)


def _problem(table: Table, name: str, value: Any) -> str:
    column = table.c[name]
    if value is None:
        return "" if column.nullable else "is missing"
    if isinstance(column.type, JSON):
        return _json_problem(value)
    if isinstance(column.type, Integer):
        whole = type(value) is int and abs(value) < 2**31
        return "" if whole else f"is no whole number in range ({ascii(value)[:40]})"
    if isinstance(column.type, Float):
        number = isinstance(value, int | float) and math.isfinite(value)
        return "" if number else f"is no number ({ascii(value)[:40]})"
    # SQLModel's own type for text is a decorated one.
    if isinstance(getattr(column.type, "impl", column.type), String):
        return _text_problem(
            value, getattr(column.type, "length", None) or LONGEST_TEXT, _WORDS.get((table.name, name))
        )
    return "" if isinstance(value, column.type.python_type) else f"is a {type(value).__name__}"


def _text_problem(value: Any, longest: int, words: frozenset[str] | None) -> str:
    if not isinstance(value, str):
        return f"is a {type(value).__name__}, not text"
    if words is not None and value not in words:
        return f"is {value[:40]!r}, not one of {', '.join(sorted(words))}"
    if len(value) > longest:
        return f"has {len(value)} characters; at most {longest} fit"
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        return "holds characters that are no text"
    return ""


def _json_problem(value: Any) -> str:
    try:
        text = dumps(value)
    except Exception as error:
        return f"is not JSON ({error})"
    return "" if len(text) <= LONGEST_TEXT else f"has {len(text)} characters; at most {LONGEST_TEXT} fit"


def checked_item(item: PortableItem, transfer_id: str | None) -> PortableItem:
    """Return a new item if it is valid; the id of one that a world created begins with the transfer's id.

    Raises:
        ConservationError: its id, category, tier or size is invalid.
    """
    if transfer_id is not None and not item.item_id.startswith(f"{transfer_id}:"):
        raise ConservationError(f"the id of a new item has to begin with {transfer_id}:")
    if item.category not in ITEM_CATEGORIES:
        raise ConservationError(f"there is no category {str(item.category)[:40]!r}")
    if type(item.tier) is not int or not 1 <= item.tier <= TOP_TIER:
        raise ConservationError(f"a tier is from 1 to {TOP_TIER}")
    if len(dumps(item)) > LARGEST_ITEM:
        raise ConservationError("it is too large")
    return item


# --- out ------------------------------------------------------------------------------------------


def identity_of(row: Row[Any]) -> AgentIdentity:
    """Return the agent of a row."""
    return AgentIdentity(
        id=row.id,
        name=row.name,
        created=row.created,
        state=row.state,
        place=row.place,
        session_id=row.session_id,
        persona=row.persona,
        policies={game: Policy(p["agent"], p["options"]) for game, p in row.policies.items()},
        core_memories=tuple(row.lore["core_memories"]),
        strategies=tuple(row.lore["strategies"]),
        lifetime_steps=row.lifetime_steps,
        playtime=row.playtime,
    )


def item_of(row: Row[Any]) -> ItemRecord:
    """Return the item of a row."""
    return ItemRecord(_CODEC.decode(PortableItem, row.data), row.agent_id, row.place, row.place_id, row.note)


def avatar_of(row: Row[Any]) -> AvatarRecord:
    """Return the avatar of a row."""
    return AvatarRecord(row.world_id, row.agent_id, row.game, _CODEC.decode(Avatar, row.data), row.left_at)


def session_of(row: Row[Any]) -> SessionRecord:
    """Return the session of a row."""
    values = dict(row._mapping)
    return SessionRecord(**{**values, "terms": EntryRequest.from_json(row.terms)})


def recorded(policy: Policy) -> Any:
    """Return a policy as it is stored: without secrets."""
    return encode(replace(policy, options=redacted(policy.options)))


def checked_run(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a new run, validated.

    Raises:
        StorageError: one is out of its range; the message says which and why.
    """
    try:
        RunFields.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StorageError(f"The run can't be recorded: its {where} is wrong ({first['msg']}).") from None
    return values

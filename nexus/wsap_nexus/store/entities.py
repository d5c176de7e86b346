"""The records of the nexus as plain data, their validation before they are written, and their reading from rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from pydantic import ValidationError
from sqlalchemy import JSON, Float, Integer, Row, String, Table
from sqlalchemy.sql import ColumnElement

from wsap_core.errors import StorageError
from wsap_core.protocol import ITEM_CATEGORIES, TOP_TIER, Avatar, AvatarState, PortableItem
from wsap_core.protocol.wire import Codec, dumps, encode
from wsap_llm.secrets import redacted
from wsap_nexus.errors import ConservationError
from wsap_nexus.store.tables import RunFields

AGENT_ID = r"^[a-z0-9][a-z0-9._-]{0,63}$"
RESERVED = frozenset({"nexus"})
"""Ids that no new agent gets, because they name something else."""


@dataclass(frozen=True)
class Policy:
    """The decider of an agent of the nexus: an installed agent, with its options."""

    agent: str
    """A registered agent, `./file.py:Name`, or `external` for a client of the wire API."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def external(self) -> bool:
        """Whether a client of the wire API decides."""
        return self.agent == "external"


EXTERNAL = Policy("external")


@dataclass(frozen=True)
class AgentIdentity:
    """An agent, the same in every world."""

    id: str
    name: str
    created: str
    state: str = "active"
    """"active", "paused" or "removed"."""
    place: str = "nexus"
    """"nexus" or "world"."""
    session_id: str | None = None
    """The open session, when in a world."""
    persona: str = ""
    """Its description, which a person can edit."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """Game (or "nexus", or "*" for all others) -> decider."""
    core_memories: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    lifetime_steps: int = 0
    """Decisions in worlds."""
    playtime: float = 0.0
    """Seconds in worlds."""

    def policy(self, game: str) -> Policy | None:
        """Return the decider in a game; None if none is set."""
        return self.policies.get(game) or self.policies.get("*")


@dataclass(frozen=True)
class WorldRecord:
    """A world, running or asleep."""

    id: str
    game: str
    owner: str | None
    seed: int
    options: Mapping[str, Any]
    created: str
    failures: int = 0
    run_id: str | None = None


@dataclass(frozen=True)
class AvatarRecord:
    """An avatar, as it was when its agent last left it."""

    world_id: str
    agent_id: str
    game: str
    avatar: Avatar
    left_at: int = 0
    """The agent's lifetime steps when it left the body."""


@dataclass(frozen=True)
class EntryRequest:
    """The request with which a world was entered."""

    goals: tuple[str, ...] = ()
    exit_when: str = ""
    """An exit condition; see `wsap_nexus.agents.exit_rules`."""
    steps: int | None = None
    """Most decisions; None for no limit."""
    spawn: str = "safe"
    """"safe", "challenging" or "random"."""
    difficulty: str = "normal"
    """"easy", "normal", "hard" or "adaptive"."""
    avatar: str | None = None
    """The avatar to enter, by its id or its world's; "new" for a new one; None for a dormant one, else a new one."""
    respawn: str | None = None
    """The respawn option of a dead avatar; None for the first."""
    world: str | None = None
    """The world to enter, of those that live in the nexus; None for any."""
    seat: str | None = None
    """Whom to be there; None for the agent itself."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        data = asdict(self) | {"goals": list(self.goals)}
        return {name: value for name, value in data.items() if value is not None or name not in ("world", "seat")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EntryRequest:
        """Return the request of `to_json`."""
        return cls(**{**data, "goals": tuple(data.get("goals", ()))})


@dataclass(frozen=True)
class SessionRecord:
    """A session: one stay of an agent in a world."""

    id: str
    agent_id: str
    game: str
    world_id: str
    avatar_id: str
    run_id: str
    opened: str
    closed: str | None = None
    reason: str | None = None
    """The reason of its end; see `wsap_nexus.store.events.endings`. None while it is open."""
    steps: int = 0
    terms: EntryRequest = EntryRequest()
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemRecord:
    """A portable item and its place."""

    item: PortableItem
    agent_id: str
    place: str
    """"escrow", "transfer", "world" or "lost"."""
    place_id: str | None = None
    """The transfer or the world."""
    note: str = ""


@dataclass(frozen=True)
class SkillGain:
    """An increase of a skill, with its source."""

    domain: str
    source: str
    """`achievement:NAME` or `action:NAME`."""
    times: int
    """Times in the session."""
    gain: float
    level: float
    """The level after it."""


How = Literal["words", "facts", "whisper", "letter"]


@dataclass(frozen=True)
class Answered:
    """What came of speaking to an agent."""

    text: str
    how: How
    """
    `words`: the agent answered in its own; `facts`: it has none, and this is what the nexus knows; `whisper`: it is in
    a world and hears it at its next decision; `letter`: it finds it among its messages.
    """

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@dataclass(frozen=True)
class Exchange:
    """What a person said to an agent, and what came of it."""

    number: int
    """The event's."""
    time: str
    """ISO 8601, UTC."""
    said: str
    reply: str
    how: How
    """As in `Answered`."""


@dataclass(frozen=True)
class DiaryEntry:
    """What an agent wrote about one stay in a world."""

    number: int
    """The event's."""
    time: str
    """ISO 8601, UTC."""
    text: str
    game: str
    session: str | None
    own_words: bool
    """Whether the agent wrote it; False where it was put together from the log."""


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

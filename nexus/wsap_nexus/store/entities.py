"""The records of the nexus as plain data, validated before writing and read from rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal

from pydantic import ValidationError
from sqlalchemy import JSON, Float, Integer, Row, String, Table
from sqlalchemy.sql import ColumnElement

from wsap_core.errors import StorageError, WireError
from wsap_core.protocol import ITEM_CATEGORIES, TOP_TIER, Avatar, AvatarState, PortableItem
from wsap_core.protocol.wire import Codec, dumps, encode
from wsap_llm.secrets import redacted
from wsap_nexus.errors import ConservationError
from wsap_nexus.store.errors import UnfitValueError
from wsap_nexus.store.json_values import finite
from wsap_nexus.store.tables import RunFields

AGENT_ID = r"^[a-z0-9][a-z0-9._-]{0,63}$"
RESERVED = frozenset({
    "admin", "administrator", "nexus", "owner", "person",  # who acts besides agents
    "assistant", "developer", "system", "tool", "user",  # the roles of messages to a model
    "all", "anybody", "everybody", "everyone", "nobody", "team",  # who hears a message
})  # fmt: skip
"""Words that name other senders and hearers than agents: no new agent has one as its id or its name."""


def is_reserved(name: str) -> bool:
    """Return whether an id or a name is reserved, also with an article or in capitals: `A person`."""
    words = name.casefold().replace("-", " ").replace("_", " ").replace(".", " ").split()
    return " ".join(words[1:] if words[:1] in (["a"], ["an"], ["the"]) else words) in RESERVED


@dataclass(frozen=True)
class Policy:
    """What decides for an agent of the nexus: an installed agent with its options."""

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

    PUBLIC: ClassVar = frozenset({
        "id", "name", "created", "state", "place", "session_id", "lifetime_steps", "playtime",
    })  # fmt: skip
    """What everybody may see."""

    id: str
    name: str
    created: str
    state: str = "active"
    """"active", "paused" or "removed"."""
    place: str = "nexus"
    """"nexus" or "world"."""
    session_id: str | None = None
    """The open session, if in a world."""
    persona: str = ""
    """Its description, which a person can edit."""
    policies: Mapping[str, Policy] = field(default_factory=dict)
    """Game, "nexus", or "*" for all others -> policy."""
    core_memories: tuple[str, ...] = ()
    """What it remembers in every world; see `wsap_nexus.agents.lore`."""
    strategies: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """Core memory or strategy -> the session that it is from, if any."""
    lifetime_steps: int = 0
    """Decisions in worlds."""
    playtime: float = 0.0
    """Seconds in worlds."""

    def policy(self, game: str) -> Policy | None:
        """Return the policy in a game; None if none is set."""
        return self.policies.get(game) or self.policies.get("*")


@dataclass(frozen=True)
class WorldRecord:
    """A world, running or stored."""

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
    """An avatar as its agent last left it."""

    world_id: str
    agent_id: str
    game: str
    avatar: Avatar
    left_at: int = 0
    """The agent's lifetime steps when it left the avatar."""


USUAL_TERMS = {"spawn": "safe", "loadout": "default", "difficulty": "normal"}
"""Term of an entry -> its value in every game."""


@dataclass(frozen=True)
class EntryRequest:
    """The request to enter a world."""

    goals: tuple[str, ...] = ()
    exit_when: str = ""
    """An exit condition; see `wsap_nexus.agents.exit_rules`."""
    steps: int | None = None
    """The maximum number of decisions; None for no limit."""
    spawn: str = USUAL_TERMS["spawn"]
    """"safe", "challenging" or "random"; see `AdapterSpec.terms`."""
    difficulty: str = USUAL_TERMS["difficulty"]
    """"easy", "normal", "hard" or "adaptive"."""
    avatar: str | None = None
    """An avatar's id or its world's; "new" for a new avatar; None for a dormant one if there is one, else a new one."""
    respawn: str | None = None
    """The respawn option of a dead avatar; None for the first."""
    world: str | None = None
    """The id of a living world; None for any."""
    seat: str | None = None
    """The character to play; None to enter as itself."""
    loadout: str = USUAL_TERMS["loadout"]
    """What a new avatar carries, in the game's words."""

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON-ready data."""
        data = asdict(self) | {"goals": list(self.goals)}
        later = {"world": None, "seat": None, "loadout": USUAL_TERMS["loadout"]}
        return {name: value for name, value in data.items() if name not in later or value != later[name]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EntryRequest:
        """Return the request from its JSON."""
        return cls(**{**data, "goals": tuple(data.get("goals", ()))})


@dataclass(frozen=True)
class SessionRecord:
    """A session of an agent in a world."""

    PUBLIC: ClassVar = frozenset({
        "id", "agent_id", "game", "world_id", "avatar_id", "run_id", "opened", "closed", "reason", "steps",
    })  # fmt: skip
    """What everybody may see."""

    id: str
    agent_id: str
    game: str
    world_id: str
    avatar_id: str
    run_id: str
    opened: str
    closed: str | None = None
    reason: str | None = None
    """Why it ended, see `wsap_nexus.store.events.endings`; None while it is open."""
    steps: int = 0
    terms: EntryRequest = EntryRequest()
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PassRecord:
    """A pass, with which somebody without a token sees one world or one agent, or plays as one."""

    id: str
    scope: str
    """"world", "agent" or "seat"."""
    target: str
    """The id of the world or agent."""
    talks: bool
    """Whether its holder may talk to the agent."""
    created: str
    expires: float
    """Seconds since 1970."""
    revoked: bool = False


@dataclass(frozen=True)
class TransferRecord:
    """An agent on its way into a world or out of it."""

    id: str
    agent_id: str
    kind: str
    """"enter" or "leave"."""
    state: str
    """"prepared", "done", "cancelled" or "unknown"."""
    created: str
    world_id: str | None
    """The world on the other side, once there is one."""
    data: Mapping[str, Any]
    """What was agreed and what came of it. Any: JSON."""


@dataclass(frozen=True)
class GoalRecord:
    """A meta-goal of an agent."""

    agent_id: str
    id: str
    state: Literal["active", "reached", "abandoned"]
    since: int
    """The number of the event that set it."""
    data: Mapping[str, Any]
    """See `wsap_nexus.agents.metagoals`. Any: JSON."""


@dataclass(frozen=True)
class MessageRecord:
    """A message to one recipient."""

    id: int
    sender: str
    recipient: str
    kind: str
    """"broadcast", "direct", "team", or "talk" from a person."""
    content: str
    created: str
    read: bool


@dataclass(frozen=True)
class AnswerRecord:
    """The answer to a request with an idempotency key, or the intent of one that is being handled."""

    scope: str
    """Whose key it is."""
    key: str
    fingerprint: str
    """The hash of the request."""
    status: int
    """The status of HTTP; 0 while it is being handled."""
    body: str
    created: float


@dataclass(frozen=True)
class GameRecord:
    """A game whose availability was set or changed, or that is remote."""

    name: str
    status: str
    """"available", "maintenance" or "offline"."""
    reason: str
    failures: int
    data: Mapping[str, Any]
    """Times of failures, and the spec of a remote game. Any: JSON."""


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
    """Its count in the session."""
    gain: float
    level: float
    """The new level."""


How = Literal["words", "facts", "whisper", "letter"]


@dataclass(frozen=True)
class Answered:
    """The reply to a message that a person sent to an agent."""

    text: str
    how: How
    """
    `words`: the agent answered; `facts`: it can't, and the nexus answered from its records; `whisper`: the agent is in
    a world and sees the message at its next decision; `letter`: the message is in its inbox.
    """

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Exchange:
    """A message from a person to an agent, with its reply."""

    number: int
    """The event's number."""
    time: str
    """ISO 8601, UTC."""
    said: str
    reply: str
    how: How
    """As in `Answered`."""


@dataclass(frozen=True)
class DiaryEntry:
    """An agent's diary entry about one session."""

    number: int
    """The event's number."""
    time: str
    """ISO 8601, UTC."""
    text: str
    game: str
    session: str | None
    own_words: bool
    """Whether the agent wrote it; false if it was composed from the log."""


LONGEST_TEXT = 200_000
"""Characters in a column without its own limit: a persona, a note, an event."""
LARGEST_ITEM = 20_000
"""Characters of an item as JSON."""

_CODEC = Codec()


def checked(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of some columns, validated; UnfitValueError if one does not fit its column."""
    for name, value in values.items():
        if isinstance(value, ColumnElement):
            continue  # computed by the database from checked values
        problem = _problem(table, name, value)
        if problem:
            raise UnfitValueError(f"The nexus can't record this {table.name}: its {name} {problem}.")
    return dict(values)


def _problem(table: Table, name: str, value: Any) -> str:
    column = table.c[name]
    if value is None:
        return "" if column.nullable else "is missing"
    if isinstance(column.type, JSON):
        return _json_problem(value)
    if isinstance(column.type, Integer):
        whole = type(value) is int and abs(value) < 2**31
        return "" if whole else f"is not a whole number in range ({ascii(value)[:40]})"
    if isinstance(column.type, Float):
        number = isinstance(value, int | float) and math.isfinite(value)
        return "" if number else f"is not a finite number ({ascii(value)[:40]})"
    # SQLModel wraps its text type in a decorator.
    if isinstance(getattr(column.type, "impl", column.type), String):
        return _text_problem(value, getattr(column.type, "length", None) or LONGEST_TEXT, column.info.get("words"))
    return "" if isinstance(value, column.type.python_type) else f"is a {type(value).__name__}"


def _text_problem(value: Any, longest: int, words: Collection[str] | None) -> str:
    if not isinstance(value, str):
        return f"is a {type(value).__name__}, not text"
    if words is not None and value not in words:
        return f"is {value[:40]!r}, not one of {', '.join(sorted(words))}"
    if len(value) > longest:
        return f"has {len(value)} characters; the maximum is {longest}"
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        return "contains characters that are not valid text"
    return ""


def _json_problem(value: Any) -> str:
    try:
        text = dumps(value)
    except Exception as error:
        return f"is not JSON ({error})"
    return "" if len(text) <= LONGEST_TEXT else f"has {len(text)} characters; the maximum is {LONGEST_TEXT}"


def check_item(item: PortableItem, transfer_id: str | None) -> None:
    """Raise ConservationError if the id, category, tier or size of a new item is invalid.

    The id of an item that a world created begins with the transfer's id.
    """
    if transfer_id is not None and not item.item_id.startswith(f"{transfer_id}:"):
        raise ConservationError(f"the id of a new item must start with {transfer_id}:")
    if item.category not in ITEM_CATEGORIES:
        raise ConservationError(f"there is no category {str(item.category)[:40]!r}")
    if type(item.tier) is not int or not 1 <= item.tier <= TOP_TIER:
        raise ConservationError(f"the tier must be from 1 to {TOP_TIER}")
    if len(dumps(item)) > LARGEST_ITEM:
        raise ConservationError("the item is too large")


# --- from rows ------------------------------------------------------------------------------------


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
        core_memories=tuple(row.lore.get("core_memories", ())),
        strategies=tuple(row.lore.get("strategies", ())),
        origins=dict(row.lore.get("origins", {})),
        lifetime_steps=row.lifetime_steps,
        playtime=finite(row.playtime) or 0.0,
    )


def item_of(row: Row[Any]) -> ItemRecord:
    """Return the item of a row; if its data is unreadable, a material of that id."""
    try:
        item = _CODEC.decode(PortableItem, row.data)
    except WireError:
        item = PortableItem(row.id, row.id, "material")
    return ItemRecord(item, row.agent_id, row.place, row.place_id, row.note)


def avatar_of(row: Row[Any]) -> AvatarRecord:
    """Return the avatar of a row; if its data is unreadable, one of that id and state."""
    try:
        avatar = _CODEC.decode(Avatar, row.data)
    except WireError:
        avatar = Avatar(row.id, row.game, None, AvatarState(row.state))
    return AvatarRecord(row.world_id, row.agent_id, row.game, avatar, row.left_at)


def session_of(row: Row[Any]) -> SessionRecord:
    """Return the session of a row."""
    values = dict(row._mapping)
    return SessionRecord(**{**values, "terms": EntryRequest.from_json(row.terms)})


def recorded(policy: Policy) -> Any:
    """Return a policy as stored: JSON-ready and without secrets."""
    return encode(replace(policy, options=redacted(policy.options)))


def check_run(values: dict[str, Any]) -> None:
    """Raise StorageError, with the reason, if a value of a new run is out of range."""
    try:
        RunFields.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StorageError(f"The run can't be recorded: its {where} is invalid ({first['msg']}).") from None

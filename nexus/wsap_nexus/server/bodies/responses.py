"""Bodies of responses, for the OpenAPI document.

`wsap_core.protocol.wire` writes the responses; these classes only document them. `part` refers to the protocol's
schemas for its messages.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, WithJsonSchema, create_model

from wsap_nexus.hub.transit.reconciliation import ResolvedTransfer
from wsap_nexus.store.entities import DiaryEntry, Exchange
from wsap_nexus.worlds.game_info import GameInfo

PART = "x-wsap-message"
"""The key of a schema with the name of a protocol message, until the document is built."""

Message = dict[str, Any]
"""A message of the protocol, as JSON."""


def part(name: str) -> WithJsonSchema:
    """Return the schema of a field that holds a message of the protocol."""
    return WithJsonSchema({PART: name})


class Answer(BaseModel):
    """A response; a newer minor version may add fields."""


class ErrorShape(Answer):
    """An error."""

    code: str
    """A stable code, for programs."""
    message: str
    """One sentence for people."""
    details: dict[str, Any]
    timestamp: str
    """ISO 8601, UTC."""
    retry: bool
    """Whether the same request can succeed later."""


class ErrorAnswer(Answer):
    """The form of every refusal (seed 001, section 7, with `retry` added)."""

    error: ErrorShape


class StorageShape(Answer):
    """The size and growth of the database."""

    bytes: int
    """The size of its content."""
    growth: float | None
    """Measured bytes per day; `null` in the first minutes."""
    free: int | None
    """Bytes available on its disk; `null` for a database on a server."""
    limit: int | None
    """The size at which old records are deleted; `null` for no limit."""
    left: float | None
    """Days until it reaches its limit or the disk is full; `null` if unknown."""
    log: int | None
    """Bytes of SQLite's write-ahead log; it grows while a program reads for very long. `null` for a server."""
    held_up: bool
    """Whether that log has grown too large."""


class WaitShape(Answer):
    """A world or agent that has been waiting for some seconds."""

    text: str
    """One line: `village waits for ext-0 (its decision, 12 s)`."""
    who: str
    """A world or an agent."""
    whom: str
    """The agent or game that it waits for, or "its model"."""
    kind: Literal["agent", "game", "model"]
    """What `whom` is."""
    what: str
    seconds: float


class Health(Answer):
    """The health of the nexus."""

    status: Literal["ok", "degraded"]
    reason: str | None
    """Why no agent can act, such as a full disk, during which agents are held."""
    retry: bool
    """Whether that passes by itself, without a person."""
    database: bool
    """Whether the database is readable."""
    agents: int
    in_worlds: int
    streams: int
    undeleted: str | None
    """Why nothing is deleted by age although it should be: the clock may be wrong."""
    waits: list[WaitShape]
    """Who waits for whom, longest first; for the admin only, as whose turn it is may be a secret of a game."""
    storage: StorageShape | None


class PolicyAnswer(Answer):
    """A policy."""

    agent: str
    options: dict[str, Any]


class Identity(Answer):
    """An agent; without its token, `persona`, `policies`, `core_memories` and `strategies` are omitted."""

    id: str
    name: str
    created: str
    state: str
    """`active` or `paused`."""
    place: str
    """`nexus` or `world`."""
    session_id: str | None
    persona: str = ""
    policies: dict[str, PolicyAnswer] = Field(default_factory=dict)
    core_memories: list[str] = Field(default_factory=list)
    strategies: list[str] = Field(default_factory=list)
    origins: dict[str, str] = Field(default_factory=dict)
    """Core memory or strategy -> the session that it is from."""
    lifetime_steps: int
    playtime: float
    """Seconds in worlds."""


class Registered(Answer):
    """A registration."""

    agent: Identity
    token: str | None = None
    """The agent's token, only if the agent is new."""


class Session(Answer):
    """A session of an agent in a world; without the agent's token, `terms` and `stats` are omitted."""

    id: str
    agent_id: str
    game: str
    world_id: str
    avatar_id: str
    run_id: str
    opened: str
    closed: str | None
    reason: str | None
    steps: int
    terms: dict[str, Any] = Field(default_factory=dict)
    stats: dict[str, Any] = Field(default_factory=dict)


class ItemShape(Answer):
    """A portable item and its place."""

    item: Annotated[Message, part("PortableItem")]
    agent_id: str
    place: str
    place_id: str | None
    note: str


class AvatarShape(Answer):
    """An avatar of an agent."""

    world_id: str
    agent_id: str
    game: str
    avatar: Annotated[Message, part("Avatar")]
    left_at: int


class AchievementShape(Answer):
    """An achievement and its count."""

    agent_id: str
    game: str
    name: str
    first: str
    times: int


class Entered(Answer):
    """An agent's entry into a world."""

    session: Session
    bridge_url: str
    """The base of the session's routes: `{bridge_url}/observation`, `{bridge_url}/act` and so on."""
    avatar: Annotated[Message, part("Avatar")] | None
    receipt: Annotated[Message, part("Receipt")] | None
    """The bonuses of its skills, and the admitted items."""
    observation: Annotated[Message, part("Observation")] | None
    """The first observation; null unless a client decides for the agent."""


class Left(Answer):
    """An agent's exit from a world."""

    session: Session
    package: Annotated[Message, part("TransitPackage")]
    """The items that it brings back."""
    observation: Annotated[Message, part("Observation")] | None
    """Its observation in the nexus; null if it went on to another game, or no client decides for it."""
    entered: Entered | None
    """Its entry into the next game."""
    onward_error: ErrorShape | None
    """Why it is in the nexus instead of the next game."""


class MessageShape(Answer):
    """An unread message."""

    id: int
    message: Annotated[Message, part("AgentMessage")]
    created: str


class Avatars(Answer):
    """Avatars."""

    avatars: list[Annotated[Message, part("Avatar")]]


def _reply(title: str, meaning: str, /, **fields: Any) -> type[Answer]:
    # Any: the types of the fields, by name.
    definitions: Any = {name: (kind, ...) for name, kind in fields.items()}
    made: type[Answer] = create_model(title, __base__=Answer, __doc__=meaning, **definitions)
    return made


def _message(name: str) -> Any:
    # Any: the type of a field that holds a message of the protocol.
    return Annotated[Message, part(name)]


Pending = _reply(
    "Pending",
    "The request is in progress: repeat it, with the same idempotency key if it has one.",
    pending=Literal[True],
    message=str,
)
# `last_event` is the number of the newest event; `caller` is `owner`, the agent of the token, or `null` without one.
About = _reply(
    "About",
    "Facts about this nexus.",
    name=str,
    protocol_version=str,
    agents=int,
    in_worlds=int,
    last_event=int,
    caller=str | None,
)
TokenAnswer = _reply("TokenAnswer", "A new token, which replaces the earlier ones.", agent_id=str, token=str)
# `next` is the `after` of the next page here, and the `before` in `Talk` and `Diary`; None at the end.
# `place` is `nexus`, or the game.
Seen = _reply(
    "Seen", "An agent's next observation.", place=str, session_id=str | None, observation=_message("Observation")
)
Acted = _reply("Acted", "The result of an action.", result=_message("ActionResult"))
Spaces = _reply("Spaces", "The action space where the agent is.", place=str, action_space=_message("ActionSpace"))
Described = _reply("Described", "The description of the place where the agent is.", place=str, description=str)
Games = _reply("Games", "The games that agents can enter.", games=list[GameInfo])
GameAnswer = _reply("GameAnswer", "A game.", game=GameInfo)
ViewAnswer = _reply("ViewAnswer", "A view.", view=_message("View") | None)
JackedIn = _reply("JackedIn", "The result of entering an avatar.", jack_in=_message("JackInResult"))
ReceiptAnswer = _reply("ReceiptAnswer", "The skills and items that the world admitted.", receipt=_message("Receipt"))
PackageAnswer = _reply("PackageAnswer", "The items that the world released.", package=_message("TransitPackage"))
# `state` is in Base64.
SnapshotAnswer = _reply("SnapshotAnswer", "A world's state.", state=str)
Messages = _reply("Messages", "Messages, oldest first.", messages=list[MessageShape])
Sent = _reply("Sent", "The recipients of a message.", recipients=list[str])
Talk = _reply("Talk", "Conversations with an agent, newest first.", exchanges=list[Exchange], next=int | None)
Diary = _reply("Diary", "Diary entries, newest first.", entries=list[DiaryEntry], next=int | None)
Held = _reply("Held", "The state of an agent.", agent=str, state=str)
SettledMoves = _reply("SettledMoves", "The settled transfers.", agent=str, settled=list[ResolvedTransfer])

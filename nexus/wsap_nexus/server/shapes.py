"""What requests look like, and what answers do, for those who read the OpenAPI document.

Requests are read by these classes. Answers are written as canonical JSON by `wsap_core.protocol.wire`, and
described here; what is a message of the protocol is described by the protocol's own schema, which
`part` names. Names and texts from outside are limited in length, and names hold nothing that moves
a terminal's cursor.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from wsap_core.untrusted import one_line
from wsap_nexus.http.replies import Request
from wsap_nexus.store.entities import AGENT_ID
from wsap_nexus.worlds.game_info import GameInfo

PART = "x-wsap-message"
"""Where a schema says which message of the protocol stands there, until the document is put together."""


Message = dict[str, Any]
"""A message of the protocol, as JSON."""


def part(name: str) -> WithJsonSchema:
    """Return what says which message of the protocol stands in a field."""
    return WithJsonSchema({PART: name})


def _plain(text: str) -> str:
    if one_line(text) != text:
        raise ValueError("a name is one line, without control or direction characters, or spaces around it")
    return text


Name = Annotated[str, Field(max_length=80), AfterValidator(_plain)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=10_000)]


class PolicyShape(Request):
    """Who decides for an agent."""

    agent: Word
    """A registered agent, or `external` for one that decides over the wire."""
    options: dict[str, Any] = Field(default_factory=dict, max_length=100)


Policies = Annotated[dict[Word, PolicyShape], Field(max_length=100)]


class NewAgent(Request):
    """A registration."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"id": "eve", "name": "Eve", "persona": "Careful, curious."}]}
    )

    id: str = Field(pattern=AGENT_ID)
    name: Name = ""
    persona: Text = ""
    policies: Policies | None = None
    """Game (`nexus`, or `*` for everywhere else) -> who decides; over the wire everywhere when left out."""


class AgentPatch(Request):
    """What is to be changed of an agent; what is left out stays."""

    name: Name | None = None
    persona: Text | None = None
    policies: Policies | None = None


class ActRequest(Request):
    """An action of the protocol."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name": "move_left", "parameters": {}, "reasoning": "Trees."}]}
    )

    name: Word
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    reasoning: str | None = Field(default=None, max_length=20_000)


class EnterRequest(Request):
    """A way into a game."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"agent_id": "eve", "game": "crafter", "exit_when": "health < 30%"}]},
    )

    agent_id: str = Field(pattern=AGENT_ID)
    game: Word
    goals: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=20)
    exit_when: str = Field(default="", max_length=500)
    """An exit condition: `health < 10%`, `step >= 500`, `goal_complete`."""
    steps: int | None = Field(default=None, ge=1, le=10**9)
    """Most decisions."""
    spawn: Literal["safe", "challenging", "random"] = "safe"
    difficulty: Literal["easy", "normal", "hard", "adaptive"] = "normal"
    avatar: Word | None = None
    """Which of its bodies; `new` for a new one; the one that sleeps when left out."""
    respawn: Word | None = None
    """The way back to life, by its id, for a body that is dead."""


Mode = Literal["dormant", "suspend", "despawn"]


class ExitRequest(Request):
    """A way out of a game."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"agent_id": "eve"}]})

    agent_id: str = Field(pattern=AGENT_ID)
    mode: Mode = "dormant"
    force: bool = False
    """Leave without asking the world whether it is safe; for whoever runs the nexus alone."""
    destination: EnterRequest | None = None
    """Where to go straight on to."""


class JackOutRequest(Request):
    """A way out of a body."""

    mode: Mode = "dormant"


class RespawnRequest(Request):
    """How a body that died lives again, and what its agent wants of the session that begins then."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"option": "camp", "steps": 200}]})

    option: Word | None = None
    """The way back to life, by its id, as the death told them; the first when left out."""
    goals: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=20)
    exit_when: str = Field(default="", max_length=500)
    """An exit condition: `health < 10%`, `step >= 500`, `goal_complete`."""
    steps: int | None = Field(default=None, ge=1, le=10**9)
    """Most decisions."""


class JackInRequest(Request):
    """The body to be in."""

    avatar_id: Word


class TransferRequest(Request):
    """A transfer, by its id."""

    transfer_id: Word


class NewMessage(Request):
    """A message to others in the nexus."""

    content: str = Field(min_length=1, max_length=2000)
    kind: Literal["broadcast", "direct", "team"] = "broadcast"
    to: str | None = Field(default=None, pattern=AGENT_ID)
    """To whom a direct message goes."""


class NewTalk(Request):
    """What a person says to an agent."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"text": "How was your day?"}]})

    text: str = Field(min_length=1, max_length=2000)


class ReadRequest(Request):
    """Messages that were read."""

    ids: list[Annotated[int, Field(ge=0, le=2**53)]] = Field(max_length=1000)


class NewStatus(Request):
    """How a game is to stand."""

    status: Literal["available", "maintenance", "offline"]
    reason: str = Field(default="", max_length=500)
    """Told to whoever wants to enter."""


class NewGame(Request):
    """A game in another process."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"base_url": "http://127.0.0.1:7801", "token": None}]}
    )

    base_url: str = Field(max_length=500, pattern=r"^https?://[^\s@?#]+$")
    """Where its bridge answers."""
    token: str | None = Field(default=None, min_length=1, max_length=500, pattern=r"^[!-~]+$")
    """What the bridge wants to be shown; kept by the nexus."""


# --- answers ------------------------------------------------------------------------------------


class Answer(BaseModel):
    """An answer; a newer minor version may add fields."""


class ErrorShape(Answer):
    """What went wrong."""

    code: str
    """Stable, for programs."""
    message: str
    """One sentence for people."""
    details: dict[str, Any]
    timestamp: str
    """ISO 8601, UTC."""
    retry: bool
    """Whether the same request can succeed later."""


class ErrorAnswer(Answer):
    """Every refusal has this form (seed 001, section 7, with `retry` added)."""

    error: ErrorShape


class Pending(Answer):
    """It is not through yet: ask again, with the same idempotency key if there was one."""

    pending: Literal[True]
    message: str


class About(Answer):
    """What runs here."""

    name: str
    protocol_version: str
    agents: int
    in_worlds: int
    last_event: int
    """The number of the newest event."""


class Health(Answer):
    """Whether it works."""

    status: Literal["ok", "degraded"]
    database: bool
    agents: int
    in_worlds: int
    streams: int


class PolicyAnswer(Answer):
    """Who decides."""

    agent: str
    options: dict[str, Any]


class Identity(Answer):
    """Who an agent is."""

    id: str
    name: str
    created: str
    state: str
    """`active` or `paused`."""
    place: str
    """`nexus` or `world`."""
    session_id: str | None
    persona: str
    policies: dict[str, PolicyAnswer]
    core_memories: list[str]
    strategies: list[str]
    lifetime_steps: int
    playtime: float
    """Seconds in worlds."""


class Registered(Answer):
    """A registered agent."""

    agent: Identity
    token: str | None = None
    """Good for this agent alone; shown once, when it is new."""


class TokenAnswer(Answer):
    """A new token; those before are good no longer."""

    agent_id: str
    token: str


class AgentPage(Answer):
    """Agents by id."""

    agents: list[Identity]
    next: str | None
    """What to give as `after` for the next page; None at the end."""


class Session(Answer):
    """One stay of an agent in a world."""

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
    terms: dict[str, Any]
    stats: dict[str, Any]


class ItemShape(Answer):
    """A portable item and where it is."""

    item: Annotated[Message, part("PortableItem")]
    agent_id: str
    place: str
    place_id: str | None
    note: str


class AvatarShape(Answer):
    """A body of an agent."""

    world_id: str
    agent_id: str
    game: str
    avatar: Annotated[Message, part("Avatar")]
    left_at: int


class AchievementShape(Answer):
    """What was achieved, and how often."""

    agent_id: str
    game: str
    name: str
    first: str
    times: int


class Whole(Answer):
    """Everything that is kept of an agent."""

    agent: Identity
    skills: dict[str, float]
    items: list[ItemShape]
    avatars: list[AvatarShape]
    achievements: list[AchievementShape]
    sessions: list[Session]


class Seen(Answer):
    """What an agent sees at its next decision."""

    place: str
    """`nexus`, or the game."""
    session_id: str | None
    observation: Annotated[Message, part("Observation")]


class Acted(Answer):
    """What came of an action."""

    result: Annotated[Message, part("ActionResult")]


class Spaces(Answer):
    """What can be done where the agent is."""

    place: str
    action_space: Annotated[Message, part("ActionSpace")]


class Described(Answer):
    """What the agent is told of where it is."""

    place: str
    description: str


class Games(Answer):
    """The games that can be entered."""

    games: list[GameInfo]


class GameAnswer(Answer):
    """A game."""

    game: GameInfo


class Entered(Answer):
    """An agent has arrived."""

    session: Session
    bridge_url: str
    """Where its world is reached: `{bridge_url}/observation`, `{bridge_url}/act` and so on."""
    avatar: Annotated[Message, part("Avatar")] | None
    """The body that it is in."""
    receipt: Annotated[Message, part("Receipt")] | None
    """What its skills were worth, and which items were let in."""
    observation: Annotated[Message, part("Observation")] | None
    """The first; None for an agent that is not decided for over the wire."""


class Left(Answer):
    """An agent has left its world."""

    session: Session
    package: Annotated[Message, part("TransitPackage")]
    """What it carries out."""
    observation: Annotated[Message, part("Observation")] | None
    """What it sees in the nexus; None where it went straight on, or is not decided for over the wire."""
    entered: Entered | None
    """The stay in the world that it went straight on to."""
    onward_error: ErrorShape | None
    """Why it did not get to its destination, though it left; it is in the nexus then."""


class Avatars(Answer):
    """Bodies."""

    avatars: list[Annotated[Message, part("Avatar")]]


class ViewAnswer(Answer):
    """What a viewer can draw."""

    view: Annotated[Message, part("View")] | None


class JackedIn(Answer):
    """What came of entering a body."""

    jack_in: Annotated[Message, part("JackInResult")]


class ReceiptAnswer(Answer):
    """What the world let in."""

    receipt: Annotated[Message, part("Receipt")]


class PackageAnswer(Answer):
    """What the world let out."""

    package: Annotated[Message, part("TransitPackage")]


class SnapshotAnswer(Answer):
    """A world's state."""

    state: str
    """Base64."""


class MessageShape(Answer):
    """A message that waits."""

    id: int
    message: Annotated[Message, part("AgentMessage")]
    created: str


class Messages(Answer):
    """Messages, oldest first."""

    messages: list[MessageShape]


class Sent(Answer):
    """Who gets a message."""

    recipients: list[str]


How = Literal["words", "facts", "whisper", "letter"]


class TalkAnswer(Answer):
    """What came of speaking to an agent."""

    text: str
    how: How
    """
    `words`: the agent answered in its own; `facts`: it has none, and this is what the nexus knows; `whisper`: it is in
    a world and hears it at its next decision; `letter`: it finds it among its messages.
    """


class ExchangeShape(Answer):
    """What a person said to an agent, and what came of it."""

    number: int
    """The event's."""
    time: str
    """ISO 8601, UTC."""
    said: str
    reply: str
    how: How


class Talk(Answer):
    """What people said to an agent, newest first."""

    exchanges: list[ExchangeShape]
    next: int | None
    """What to give as `before` for the next page; None at the end."""


class EntryShape(Answer):
    """An entry of a diary, about one stay in a world."""

    number: int
    """The event's."""
    time: str
    """ISO 8601, UTC."""
    text: str
    game: str
    session: str | None
    own_words: bool
    """Whether the agent wrote it; false where it was put together from the log."""


class Diary(Answer):
    """A diary, newest entries first."""

    entries: list[EntryShape]
    next: int | None
    """What to give as `before` for the next page; None at the end."""

"""Bodies of requests, which parse them and document them in OpenAPI.

Names and texts from clients are limited in length, and names contain no control characters.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from wsap_core.untrusted import single_line
from wsap_nexus.http.replies import Request, TermsRequest
from wsap_nexus.store.entities import AGENT_ID


def _plain(text: str) -> str:
    if single_line(text) != text:
        raise ValueError("a name must be one line without control or direction characters or surrounding spaces")
    return text


def _example(**body: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [body]})


Name = Annotated[str, Field(max_length=80), AfterValidator(_plain)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=10_000)]
Kept = Annotated[str, Field(min_length=1, max_length=200)]


class PolicyShape(Request):
    """A policy: the agent that decides."""

    agent: Word
    """An installed agent, or `external` for a client of the wire API."""
    options: dict[str, Any] = Field(default_factory=dict, max_length=100)


Policies = Annotated[dict[Word, PolicyShape], Field(max_length=100)]


class NewAgent(Request):
    """A registration."""

    model_config = _example(id="eve", name="Eve", persona="Careful, curious.")

    id: str = Field(pattern=AGENT_ID)
    name: Name = ""
    persona: Text = ""
    policies: Policies | None = None
    """Game (`nexus`, or `*` for all others) -> policy; by default `external` everywhere."""


class AgentPatch(Request):
    """Changes of an agent; omitted fields stay."""

    name: Name | None = None
    persona: Text | None = None
    policies: Policies | None = None
    team: Name | None = None
    """Its team, for messages to a team; "" for none."""
    core_memories: list[Kept] | None = Field(default=None, max_length=8)
    """What it remembers in every world; replaces all earlier ones."""
    strategies: list[Kept] | None = Field(default=None, max_length=8)


class ActRequest(Request):
    """An action of the protocol."""

    model_config = _example(name="move_left", parameters={}, reasoning="Trees.")

    name: Word
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    reasoning: str | None = Field(default=None, max_length=20_000)
    turn: str = Field(default="", max_length=64)
    """The `turn` for which it was chosen; once that is over, it is refused. Without it, it is for whichever is next."""


class EnterRequest(TermsRequest):
    """A request to enter a game."""

    model_config = _example(agent_id="eve", game="crafter", exit_when="health < 30%")

    agent_id: str = Field(pattern=AGENT_ID)
    game: Word
    spawn: Literal["safe", "challenging", "random"] = "safe"
    """Where a new avatar starts; `terms` of the game lists what it takes."""
    loadout: Word = "default"
    """What a new avatar carries; as `spawn`."""
    difficulty: Literal["easy", "normal", "hard", "adaptive"] = "normal"
    """How hard the session is; as `spawn`."""
    avatar: Word | None = None
    """An avatar of the agent, or `new` for a new one; by default a dormant one."""
    respawn: Word | None = None
    """The id of a respawn option, for a dead avatar."""
    world: Word | None = None
    """A living world of the game; by default any."""
    seat: Word | None = None
    """The character to play in such a world; by default the agent itself."""


Mode = Annotated[
    Literal["dormant", "suspend", "despawn"],
    Field(
        description="What becomes of the avatar. `dormant`: it stays where it is, and time passes for it while its "
        "agent is away. `suspend`: it leaves the world and returns unchanged. `despawn`: it is given up, and its "
        "agent can't return to it. A game decides which of them it supports."
    ),
]


class ExitRequest(Request):
    """A request to leave a game."""

    model_config = _example(agent_id="eve")

    agent_id: str = Field(pattern=AGENT_ID)
    mode: Mode = "dormant"
    force: bool = False
    """Leave without asking the world whether it is safe, with the avatar suspended; needs the owner's token."""
    destination: EnterRequest | None = None
    """The next game."""


class JackOutRequest(Request):
    """A request to leave an avatar."""

    mode: Mode = "dormant"


class RespawnRequest(TermsRequest):
    """A respawn option, and the terms of the new session."""

    model_config = _example(option="camp", steps=200)

    option: Word | None = None
    """The id of a respawn option from the death event; by default the first."""


class JackInRequest(Request):
    """The avatar to enter."""

    avatar_id: Word


class TransferRequest(Request):
    """A transfer, by its id."""

    transfer_id: Word


class NewMessage(Request):
    """A message to other agents in the nexus."""

    content: str = Field(min_length=1, max_length=2000)
    kind: Literal["broadcast", "direct", "team"] | None = None
    """By default `direct` if there is a recipient, else `broadcast`."""
    to: str | None = Field(default=None, pattern=AGENT_ID)
    """The recipient of a direct message."""


class NewTalk(Request):
    """A message from a person to an agent."""

    model_config = _example(text="How was your day?")

    text: str = Field(min_length=1, max_length=2000)


class ReadRequest(Request):
    """Messages to mark as read."""

    ids: list[Annotated[int, Field(ge=0, le=2**53)]] = Field(max_length=1000)


class NewStatus(Request):
    """The new status of a game."""

    status: Literal["available", "maintenance", "offline"]
    reason: str = Field(default="", max_length=500)
    """Shown to agents that try to enter."""


class NewGame(Request):
    """A game in another process."""

    model_config = _example(base_url="http://127.0.0.1:7801", token=None)

    base_url: str = Field(max_length=500, pattern=r"^https?://[^\s@?#]+$")
    """The URL of its bridge."""
    token: str | None = Field(default=None, min_length=1, max_length=500, pattern=r"^[!-~]+$")
    """The token of its bridge, which the nexus stores."""

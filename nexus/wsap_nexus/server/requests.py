"""Bodies of requests, by which they are parsed; they are in the OpenAPI document, too.

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
        raise ValueError("a name is one line, without control or direction characters, or spaces around it")
    return text


def _example(**body: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [body]})


Name = Annotated[str, Field(max_length=80), AfterValidator(_plain)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=10_000)]


class PolicyShape(Request):
    """A policy: which agent decides."""

    agent: Word
    """An installed agent, or `external` for one that decides over the wire."""
    options: dict[str, Any] = Field(default_factory=dict, max_length=100)


Policies = Annotated[dict[Word, PolicyShape], Field(max_length=100)]


class NewAgent(Request):
    """A registration."""

    model_config = _example(id="eve", name="Eve", persona="Careful, curious.")

    id: str = Field(pattern=AGENT_ID)
    name: Name = ""
    persona: Text = ""
    policies: Policies | None = None
    """Game (`nexus`, or `*` for all others) -> policy; `external` everywhere when left out."""


class AgentPatch(Request):
    """Changes of an agent; fields that are left out stay."""

    name: Name | None = None
    persona: Text | None = None
    policies: Policies | None = None


class ActRequest(Request):
    """An action of the protocol."""

    model_config = _example(name="move_left", parameters={}, reasoning="Trees.")

    name: Word
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    reasoning: str | None = Field(default=None, max_length=20_000)


class EnterRequest(TermsRequest):
    """A request to enter a game."""

    model_config = _example(agent_id="eve", game="crafter", exit_when="health < 30%")

    agent_id: str = Field(pattern=AGENT_ID)
    game: Word
    spawn: Literal["safe", "challenging", "random"] = "safe"
    difficulty: Literal["easy", "normal", "hard", "adaptive"] = "normal"
    avatar: Word | None = None
    """The agent's body; `new` for a new one; the dormant one when left out."""
    respawn: Word | None = None
    """The id of a respawn option, for a dead body."""
    world: Word | None = None
    """A world of the game that lives in the nexus; any when left out."""
    seat: Word | None = None
    """Whom to be in such a world; the agent itself when left out."""


Mode = Literal["dormant", "suspend", "despawn"]


class ExitRequest(Request):
    """A request to leave a game."""

    model_config = _example(agent_id="eve")

    agent_id: str = Field(pattern=AGENT_ID)
    mode: Mode = "dormant"
    force: bool = False
    """Leave without asking the world whether it is safe; for the admin alone."""
    destination: EnterRequest | None = None
    """The next game."""


class JackOutRequest(Request):
    """A request to leave a body."""

    mode: Mode = "dormant"


class RespawnRequest(TermsRequest):
    """A respawn option, and the terms of the new session."""

    model_config = _example(option="camp", steps=200)

    option: Word | None = None
    """The id of a respawn option from the death event; the first when left out."""


class JackInRequest(Request):
    """The body to enter."""

    avatar_id: Word


class TransferRequest(Request):
    """A transfer, by its id."""

    transfer_id: Word


class NewMessage(Request):
    """A message to others in the nexus."""

    content: str = Field(min_length=1, max_length=2000)
    kind: Literal["broadcast", "direct", "team"] | None = None
    """When left out, `direct` if there is a recipient, else `broadcast`."""
    to: str | None = Field(default=None, pattern=AGENT_ID)
    """The recipient, of a direct message alone."""


class NewTalk(Request):
    """What a person says to an agent."""

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
    """The bridge's token; the nexus stores it."""

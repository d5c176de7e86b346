"""The export formats; every line is validated against its format before it is written."""

from __future__ import annotations

import json
from importlib import resources
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["FORMATS", "ChatLine", "Decision", "Done", "EpisodeLine", "Message", "schema_of", "shipped_schema"]

Faction = Literal["Town", "Mafia", "Neutral", "Vampires"]
Count = Annotated[int, Field(ge=0)]
Span = Annotated[
    tuple[Count, Count], Field(description="Start and end of a character range, end not included, as in Python.")
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Message(_Strict):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: Annotated[str, Field(min_length=1)]


class _Seat(_Strict):
    game: Annotated[str, Field(min_length=1, description="Id of the game; the same for all of its lines.")]
    player: Annotated[int, Field(ge=0, le=14, description="The player's number, from 0.")]
    name: Annotated[str, Field(min_length=1)]
    mind: Annotated[str, Field(description="A model's address or an agent's name; empty if unknown.")]
    role: Annotated[str, Field(min_length=1, description="The player's role at the end of the game.")]
    faction: Annotated[Faction, Field(description="The faction of that role.")]
    dialect: Literal["tags", "json"]


class ChatLine(_Seat):
    """One turn of one player, as a training conversation."""

    format: Literal["wsap-tossim-chat"] = "wsap-tossim-chat"
    version: Literal[1] = 1
    turn: Annotated[int, Field(ge=0, description="Number among the player's turns, from 0.")]
    day: Annotated[int, Field(ge=1)]
    phase: Annotated[str, Field(min_length=1)]
    won: Annotated[bool | None, Field(description="Null if the game has not ended.")]
    forced: Annotated[
        bool,
        Field(description="Whether it is not the player's own: missed deadline, unreadable reply, random option."),
    ]
    messages: Annotated[list[Message], Field(min_length=3, description="System, then user and assistant alternating.")]
    observations: Annotated[
        list[Span], Field(description="Parts of the last message that the game wrote: exclude them from the loss.")
    ]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.messages[0].role != "system":
            raise ValueError("the first message is the system's")
        _alternate(self.messages[1:], self.observations)
        return self


class Done(_Strict):
    """The action that ended a turn."""

    name: Annotated[str, Field(min_length=1)]
    parameters: dict[str, Any]


class Decision(_Strict):
    """One turn in an episode."""

    turn: Count
    day: Annotated[int, Field(ge=1)]
    phase: Annotated[str, Field(min_length=1)]
    forced: bool
    messages: Annotated[list[Message], Field(min_length=2, description="User and assistant alternating; no system.")]
    observations: list[Span]
    action: Done

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _alternate(self.messages, self.observations)
        return self


class EpisodeLine(_Seat):
    """One player's whole game, with its outcome."""

    format: Literal["wsap-tossim-episode"] = "wsap-tossim-episode"
    version: Literal[1] = 1
    first_role: Annotated[str, Field(min_length=1, description="The role dealt to the player.")]
    reward: Annotated[Literal[0, 1], Field(description="1 if the player won, else 0; given at the last turn.")]
    advantage: Annotated[
        float | None,
        Field(description="(Reward - mean) / standard deviation over the group; null if not requested."),
    ]
    system: Annotated[str, Field(min_length=1, description="The system message of every turn.")]
    decisions: Annotated[list[Decision], Field(min_length=1)]

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if any(b.turn <= a.turn for a, b in pairwise(self.decisions)):
            raise ValueError("turns go up")
        return self


def _alternate(messages: list[Message], spans: list[Span]) -> None:
    """Check what a schema can't express.

    Raises:
        ValueError: the messages don't alternate, or a span is outside the last one.
    """
    for n, message in enumerate(messages):
        if message.role != ("user", "assistant")[n % 2]:
            raise ValueError("user and assistant speak by turns")
    if len(messages) % 2:
        raise ValueError("the last message is the assistant's")
    edge = 0
    for begin, end in spans:
        if not edge <= begin < end <= len(messages[-1].content):
            raise ValueError("the observations are parts of the last message, in order")
        edge = end


FORMATS: dict[str, type[ChatLine] | type[EpisodeLine]] = {"chat": ChatLine, "episodes": EpisodeLine}
"""Format -> type of its lines."""


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a format's lines. Any: JSON data."""
    made = FORMATS[name].model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def shipped_schema(name: str) -> dict[str, Any]:
    """Return the same schema from the package's file `export/schemas/NAME.json`."""
    text = resources.files("wsap_tossim.export").joinpath("schemas", f"{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found

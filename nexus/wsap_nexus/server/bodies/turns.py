"""Bodies of responses for people who play; `wsap_nexus.server.turns` writes them, and these classes document them."""

from __future__ import annotations

from typing import Any, Literal

from wsap_nexus.server.bodies.responses import Answer


class Choice(Answer):
    """A value of a parameter."""

    value: Any
    """What is sent. Any: JSON."""
    words: str
    """The name by which a person knows it."""


class Asked(Answer):
    """A parameter of an action, as a person is asked for it."""

    name: str
    words: str
    hint: str
    optional: bool
    kind: Literal["choice", "whole", "number", "text", "json"]
    """`whole` is a whole number."""
    choices: list[Choice]
    """For a choice."""
    low: float | None
    """The lowest number; None without a bound."""
    high: float | None
    """The highest number, or the largest number of characters of a text; None without a bound."""


class PlayableAction(Answer):
    """An action of the seat."""

    name: str
    words: str
    """What it would do now, or its name in words."""
    description: str
    aside: bool
    """Whether it is one of those that are listed last: tools, and actions of every world."""
    key: str
    """The key that takes it in the terminal, such as `up` or `z`; empty for none."""
    possible: bool
    reason: str
    """Why it is impossible."""
    parameters: list[Asked]


class Turn(Answer):
    """A turn: what the seat sees, and what it can do."""

    turn: str
    """Names it; sent with an action, that is taken in no other turn."""
    place: str
    """`nexus`, or the game."""
    title: str
    """The place for people."""
    session: str | None
    seconds_left: float | None
    """Until the world goes on without it; None if it waits."""
    description: str
    """The game, its goals and mechanics."""
    view: dict[str, Any] | None
    """What the seat perceives, drawn by its game; None if that draws nothing. Any: JSON."""
    seen: dict[str, Any]
    """The observation as values, text and view, as a recorded decision has it. Any: JSON."""
    actions: list[PlayableAction]
    """In the order of the game."""

"""The prompts sent to models in a recorded run, reconstructed from its `call` events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Heard"]

BEGINS = "decide"
"""The purpose of calls that start a turn with a full prompt; other calls continue it."""


class Heard:
    """The last prompt of each seat's model.

    A call is recorded without the messages that it shares with the seat's previous call.
    """

    def __init__(self) -> None:
        self._conversations: dict[str, list[tuple[str, str]]] = {}
        self._begun: dict[str, Sequence[tuple[str, str]]] = {}

    def call(self, seat: str, body: Mapping[str, Any]) -> None:
        """Add a `call` event. Any: JSON data.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it is damaged.
        """
        before = self._conversations.get(seat, [])
        now = [*before[: int(body["shared"])], *(_message(message) for message in body["messages"])]
        self._conversations[seat] = now
        if body["purpose"] == BEGINS:
            self._begun[seat] = tuple(now) if _is_conversation(now) else ()

    def before(self, seat: str) -> Sequence[tuple[str, str]]:
        """Return the prompt of a seat's current turn, and forget it: only the first deed of a turn has it."""
        return self._begun.pop(seat, ())


def _message(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return a message as role and text; a picture is replaced by its description."""
    content = message["content"]
    if not isinstance(content, str):
        content = "".join(str(part.get("text", part.get("alt", ""))) for part in content)
    return str(message["role"]), content


def _is_conversation(messages: Sequence[tuple[str, str]]) -> bool:
    """Return whether messages can start an exported line: system, then user and assistant alternating."""
    roles = [role for role, _ in messages]
    turns = ["user", "assistant"] * len(roles)
    return (
        len(roles) >= 2
        and roles == ["system", *turns[: len(roles) - 1]]
        and roles[-1] == "user"
        and all(text for _, text in messages)
    )

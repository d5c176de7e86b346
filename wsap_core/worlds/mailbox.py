"""Messages between the seats of one world: broadcast, direct, team."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wsap_core.errors import SnapshotError, WireError
from wsap_core.protocol import AVATAR_ACTIONS, Action, ActionDef, ActionSpace, AgentMessage, ParamDef
from wsap_core.protocol.wire import Codec, encode

_TEXT = ParamDef("text", "what to say")

MESSAGE_ACTIONS = ActionSpace(
    (
        ActionDef("say", "Say something that everyone here hears", (_TEXT,), category="message"),
        ActionDef(
            "tell",
            "Tell one other agent something that nobody else hears",
            (ParamDef("to", "the other agent's name"), _TEXT),
            category="message",
        ),
        ActionDef("tell_team", "Tell your own team something", (_TEXT,), ("You are in a team",), "message"),
    )
)
"""The actions that worlds with messages have in addition to their own; they take no game step."""

SHARED_NAMES = frozenset({*AVATAR_ACTIONS.names, *MESSAGE_ACTIONS.names})
"""Names of the actions that any world may have in addition to its own."""

MAX_LENGTH = 2000
"""Longest message, in characters."""

MAX_WAITING = 200
"""Most unread messages of a seat; the oldest are dropped."""


class Mailbox:
    """The unread messages of a world's seats; `team_of` returns an agent's team.

    Messages arrive sorted by sender's seat when the world calls `deliver` after a round, so that the order of actions
    within a round does not matter; with `immediate` they arrive when sent.
    """

    def __init__(
        self,
        seats: Sequence[str],
        *,
        team_of: Callable[[str], str | None] = lambda agent_id: None,
        immediate: bool = False,
    ) -> None:
        self._seats = tuple(seats)
        self._team_of = team_of
        self._immediate = immediate
        self._outgoing: list[tuple[int, AgentMessage]] = []
        self._inbox: dict[str, list[AgentMessage]] = {seat: [] for seat in self._seats}

    def actions_of(self, seat: str) -> ActionSpace:
        """Return `MESSAGE_ACTIONS` with the other seats as those that can be told something; unlisted are those useless
        to the seat: all in a world of one seat, `tell` in a world of two seats, `tell_team` without a team."""
        others = self._others(seat)
        to = ParamDef("to", "|".join(others), schema={"type": "string", "enum": others})
        useful = {"say": bool(others), "tell": len(others) > 1, "tell_team": self._team_of(seat) is not None}
        named = (replace(a, parameters=(to, _TEXT)) if a.name == "tell" else a for a in MESSAGE_ACTIONS.actions)
        return ActionSpace([replace(a, unlisted=not useful[a.name]) for a in named])

    def send(self, message: AgentMessage) -> str:
        """Send a message; return why it can't be sent, or an empty text."""
        if message.sender not in self._inbox:
            return f"{message.sender!r} has no seat here."
        if not message.content.strip():
            return "There is nothing to say in an empty message."
        if len(message.content) > MAX_LENGTH:
            return f"That is too long: {len(message.content)} characters; at most {MAX_LENGTH}."
        if message.type == "direct" and message.recipient not in (others := self._others(message.sender)):
            return f"There is nobody else called {message.recipient!r} here; there are: {', '.join(others)}."
        if message.type == "team":
            if (team := self._team_of(message.sender)) is None:
                return "You are in no team here."
            message = replace(message, recipient=team)
        if message.type not in ("broadcast", "direct", "team"):
            return f"There is no message type {message.type!r}; there are broadcast, direct and team."
        self._outgoing.append((self._seats.index(message.sender), message))
        if self._immediate:
            self.deliver()
        return ""

    def deliver(self) -> None:
        """Put the messages sent since the last delivery into the inboxes, sorted by sender's seat, then by time."""
        for _, message in sorted(self._outgoing, key=lambda pair: pair[0]):
            for seat in self._hearers(message):
                box = self._inbox[seat]
                box.append(message)
                del box[:-MAX_WAITING]
        self._outgoing.clear()

    def waiting(self, agent_id: str) -> tuple[AgentMessage, ...]:
        """Return the agent's unread messages."""
        return tuple(self._inbox.get(agent_id, ()))

    def mark_read(self, agent_id: str, count: int) -> None:
        """Delete the first `count` messages of an inbox."""
        box = self._inbox.get(agent_id)
        if box is not None:
            del box[:count]

    def clear(self) -> None:
        """Delete all messages, for a new episode."""
        self._outgoing.clear()
        for box in self._inbox.values():
            box.clear()

    def snapshot(self) -> dict[str, Any]:
        """Return all undelivered and unread messages as JSON-ready data."""
        return {
            "outgoing": [[index, encode(message)] for index, message in self._outgoing],
            "inbox": {seat: [encode(m) for m in box] for seat, box in self._inbox.items()},
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Restore a snapshot; `SnapshotError` if it is damaged, or of other seats."""
        codec = Codec()
        try:
            inbox = {s: [codec.decode(AgentMessage, m) for m in data["inbox"][s]] for s in self._seats}
            outgoing = [(int(i), codec.decode(AgentMessage, m)) for i, m in data["outgoing"]]
        except (LookupError, TypeError, ValueError, AttributeError, WireError) as error:
            raise SnapshotError(f"The snapshot's messages do not fit these seats: {error}.") from error
        self._inbox, self._outgoing = inbox, outgoing

    def _others(self, seat: str) -> list[str]:
        return [other for other in self._seats if other != seat]

    def _hearers(self, message: AgentMessage) -> list[str]:
        others = self._others(message.sender)
        if message.type == "direct":
            return [seat for seat in others if seat == message.recipient]
        if message.type == "team":
            return [seat for seat in others if self._team_of(seat) == message.recipient]
        return others


def message_of(action: Action, *, sender: str, step: int | None) -> AgentMessage | None:
    """Return the message that a message action sends, or None for other actions."""
    kind = {"say": "broadcast", "tell": "direct", "tell_team": "team"}.get(action.name)
    if kind is None:
        return None
    recipient = str(action.parameters.get("to", "")) if kind == "direct" else None
    return AgentMessage(sender, str(action.parameters.get("text", "")), kind, recipient, step)

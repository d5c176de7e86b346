"""Messages between the seats of one world: broadcast, direct, team."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionDef, ActionSpace, AgentMessage, ParamDef
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
"""The actions that worlds with messages have besides their own; they take no game step."""

MAX_LENGTH = 2000
"""Longest message, in characters."""

MAX_WAITING = 200
"""Most messages one seat may have unread; the oldest go first."""


class Mailbox:
    """Keeps what was said until it is heard. The seats are in the world's fixed order; `team_of` gives an agent's team.

    In a world where all act at once, what is said within a round must not depend on who
    happened to speak first: such a world calls `deliver` when a round has been resolved, and
    the round's messages arrive sorted by seat. With `immediate` they arrive as they are sent.
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
        """Return `MESSAGE_ACTIONS`, those unlisted that say no more than `say` to a seat with one other, or to one
        without a team."""
        needless = {"tell"} if len(self._seats) == 2 else set()
        if self._team_of(seat) is None:
            needless.add("tell_team")
        return ActionSpace([replace(a, unlisted=True) if a.name in needless else a for a in MESSAGE_ACTIONS.actions])

    def send(self, message: AgentMessage) -> str:
        """Take a message for delivery; return why it can't be sent, or an empty text."""
        if message.sender not in self._inbox:
            return f"{message.sender!r} has no seat here."
        if not message.content.strip():
            return "There is nothing to say in an empty message."
        if len(message.content) > MAX_LENGTH:
            return f"That is too long: {len(message.content)} characters; at most {MAX_LENGTH}."
        if message.type == "direct" and message.recipient not in self._inbox:
            others = ", ".join(s for s in self._seats if s != message.sender)
            return f"There is nobody called {message.recipient!r} here; there are: {others}."
        if message.type == "direct" and message.recipient == message.sender:
            return "A message to oneself reaches nobody."
        if message.type == "team":
            team = self._team_of(message.sender)
            if team is None:
                return "You are in no team here."
            message = replace(message, recipient=team)
        if message.type not in ("broadcast", "direct", "team"):
            return f"There is no message type {message.type!r}; there are broadcast, direct and team."
        self._outgoing.append((self._seats.index(message.sender), message))
        if self._immediate:
            self.deliver()
        return ""

    def deliver(self) -> None:
        """Put everything sent since the last delivery into the inboxes, ordered by sender's seat."""
        # A stable sort: each sender's own messages stay in the order they were sent.
        for _, message in sorted(self._outgoing, key=lambda pair: pair[0]):
            for seat in self._hearers(message):
                box = self._inbox[seat]
                box.append(message)
                del box[:-MAX_WAITING]
        self._outgoing.clear()

    def waiting(self, agent_id: str) -> tuple[AgentMessage, ...]:
        """Return what the agent hears now; asking again gives the same until it is marked as read."""
        return tuple(self._inbox.get(agent_id, ()))

    def mark_read(self, agent_id: str, count: int) -> None:
        """Forget the first `count` messages of an inbox: the agent has acted on them."""
        box = self._inbox.get(agent_id)
        if box is not None:
            del box[:count]

    def clear(self) -> None:
        """Forget all messages, for a new episode."""
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
        """Become what the snapshot was taken of.

        Raises:
            SnapshotError: it is damaged, or of other seats.
        """
        codec = Codec()
        try:
            inbox = {s: [codec.decode(AgentMessage, m) for m in data["inbox"][s]] for s in self._seats}
            outgoing = [(int(i), codec.decode(AgentMessage, m)) for i, m in data["outgoing"]]
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"The snapshot's messages do not fit these seats: {error}.") from error
        self._inbox, self._outgoing = inbox, outgoing

    def _hearers(self, message: AgentMessage) -> list[str]:
        others = [seat for seat in self._seats if seat != message.sender]
        if message.type == "direct":
            return [seat for seat in others if seat == message.recipient]
        if message.type == "team":
            return [seat for seat in others if self._team_of(seat) == message.recipient]
        return others


def message_of(action: Action, *, sender: str, step: int | None) -> AgentMessage | None:
    """Return the message that a message action sends, or None if it is another action."""
    kind = {"say": "broadcast", "tell": "direct", "tell_team": "team"}.get(action.name)
    if kind is None:
        return None
    recipient = str(action.parameters.get("to", "")) if kind == "direct" else None
    return AgentMessage(sender, str(action.parameters.get("text", "")), kind, recipient, step)

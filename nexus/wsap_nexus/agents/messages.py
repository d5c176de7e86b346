"""Messages between agents in the nexus: to all, to one, or to a team.

A message is one row per recipient, unread until the recipient has seen it and acted. An agent in a world gets its
messages when it returns. The content is data, never instructions: displays escape it, prompts quote it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wsap_core.errors import UsageError
from wsap_core.protocol import AgentMessage
from wsap_core.seams.clock import Clock
from wsap_core.worlds.mailbox import MAX_LENGTH, MAX_WAITING
from wsap_nexus.runs.visitor_seat import HUMAN_SENDER as HUMAN_SENDER
from wsap_nexus.store.entities import MessageRecord
from wsap_nexus.store.events import GameEvent, NexusEvent
from wsap_nexus.store.events.agents import MessageSent, TeamChanged
from wsap_nexus.store.nexus_store import Transaction

SHOWN = 20
"""Maximum number of messages in one observation."""
FROM_ONE = 20
"""Maximum number of unread messages from one sender to one recipient."""
HEARERS = 200
"""Maximum number of recipients of a broadcast."""
PRESENT = 50
"""Maximum number of agents listed as present."""


@dataclass(frozen=True)
class StoredMessage:
    """An unread message."""

    id: int
    message: AgentMessage
    created: str
    """ISO 8601, UTC."""


def checked(text: str) -> str:
    """Return a stripped message; UsageError if it is empty or too long."""
    if not text.strip():
        raise UsageError("The message is empty.")
    if len(text) > MAX_LENGTH:
        raise UsageError(f"The message is too long: {len(text)} characters; at most {MAX_LENGTH}.")
    return text.strip()


def send(tx: Transaction, sender: str, kind: str, content: str, *, to: str | None = None) -> list[str]:
    """Send a message of a kind ("broadcast", "direct" or "team") from an agent in the nexus; return its recipients.

    Raises:
        UsageError: it can't be sent, such as one of more than 2000 characters.
    """
    checked(content)
    if to is not None and kind != "direct":
        raise UsageError(f"A {kind[:40]} message has no single recipient; to reach {to[:64]}, send it as direct.")
    team: str | None = None
    if kind == "broadcast":
        hearers = present(tx, sender, limit=HEARERS)
    elif kind == "team":
        team = team_of(tx, sender)
        if team is None:
            raise UsageError("You are not in a team.")
        hearers = [other for other in members(tx, team) if other != sender][:HEARERS]
    else:
        hearers = [_hearer(tx, sender, to or "")]
    hearers = [hearer for hearer in hearers if tx.count_unread(hearer, sender) < FROM_ONE]
    if kind == "direct" and not hearers:
        raise UsageError(f"{to} has not read your last {FROM_ONE} messages yet.")
    if not hearers:
        raise UsageError("Nobody is here to receive it.")
    tx.add_messages(sender, hearers, kind, content, most=MAX_WAITING)
    # The event is public, so it lacks the content.
    addressed = to if kind == "direct" else team
    tx.note(MessageSent(agent_id=sender, to=addressed, form=kind, recipients=len(hearers)))
    return hearers


def inbox(tx: Transaction, agent_id: str, *, limit: int = SHOWN, sender: str | None = None) -> list[StoredMessage]:
    """Return the unread messages of an agent, oldest first, from all senders or one."""
    return [_read(stored) for stored in tx.unread(agent_id, sender=sender, limit=limit)]


def mark_read(tx: Transaction, agent_id: str, ids: Iterable[int]) -> None:
    """Mark messages as read: the agent has seen them and acted."""
    tx.mark_read(agent_id, list(ids))


def present(tx: Transaction, agent_id: str, *, limit: int = PRESENT) -> list[str]:
    """Return the other agents in the nexus, ordered by id."""
    return [other for other in tx.ids_in_nexus(limit=limit + 1) if other != agent_id][:limit]


# --- teams ----------------------------------------------------------------------------------------


def team_of(tx: Transaction, agent_id: str) -> str | None:
    """Return an agent's team; None if it has none."""
    team = tx.lore(agent_id).get("team")
    return str(team) if team else None


def set_team(tx: Transaction, agent_id: str, team: str | None) -> None:
    """Set an agent's team; None removes it from its team. UsageError if the team's name is invalid."""
    tx.agent(agent_id)
    if team is not None and (not team.strip() or len(team) > 64 or not team.isprintable()):
        raise UsageError("A team's name must have 1 to 64 printable characters.")
    tx.update_agent(agent_id, lore={**tx.lore(agent_id), "team": team})
    tx.note(TeamChanged(agent_id=agent_id, team=team))


def members(tx: Transaction, team: str) -> list[str]:
    """Return the agents of a team, ordered by id."""
    return [agent_id for agent_id, lore in tx.lores().items() if lore.get("team") == team]


# --- waiting --------------------------------------------------------------------------------------


class Wakeups:
    """Wakes agents that wait in the nexus, at messages and changes of games."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, asyncio.Event] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def wait(self, agent_id: str, seconds: float) -> bool:
        """Wait for some seconds or until the agent is woken, and return whether it was."""
        self._loop = asyncio.get_running_loop()
        rung = self._waiting.setdefault(agent_id, asyncio.Event())
        tasks = [asyncio.ensure_future(self._clock.sleep(seconds)), asyncio.ensure_future(rung.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return rung.is_set()
        finally:
            self._waiting.pop(agent_id, None)
            for task in tasks:
                task.cancel()

    def heard(self, event: NexusEvent) -> None:
        """Wake the agents that an event concerns; thread-safe."""
        if isinstance(event, MessageSent) and event.form == "direct":
            self.ring([str(event.to)])
        elif isinstance(event, MessageSent):
            self.ring([agent_id for agent_id in self._waiting if agent_id != event.agent_id])
        elif isinstance(event, GameEvent):
            self.ring_all()

    def ring_all(self) -> None:
        """Wake all waiting agents."""
        self.ring(list(self._waiting))

    def ring(self, agents: Sequence[str]) -> None:
        """Wake these agents if they wait."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        for agent_id in agents:
            rung = self._waiting.get(agent_id)
            if rung is not None:
                loop.call_soon_threadsafe(rung.set)


# --- parts ----------------------------------------------------------------------------------------


def _hearer(tx: Transaction, sender: str, to: str) -> str:
    if to == sender:
        raise UsageError("You can't send a message to yourself.")
    agent = tx.find_agent(to)
    if agent is None or agent.state == "removed":
        here = ", ".join(present(tx, sender, limit=20)) or "nobody"
        raise UsageError(f"There is no agent {to[:64]!r}; in the nexus are: {here}.")
    return to


def _read(stored: MessageRecord) -> StoredMessage:
    kind = "direct" if stored.kind == "talk" else stored.kind
    recipient = stored.recipient if kind == "direct" else None
    return StoredMessage(stored.id, AgentMessage(stored.sender, stored.content, kind, recipient), stored.created)

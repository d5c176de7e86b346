"""What a person and an agent of the nexus say to each other, and what the nexus knows to tell of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import insert

from wsap_core.errors import UsageError
from wsap_core.untrusted import one_line
from wsap_nexus.agents.chronicle import latest, news, session_facts
from wsap_nexus.agents.messages import PERSON, present
from wsap_nexus.agents.metagoals import pursuits
from wsap_nexus.store.book import Book
from wsap_nexus.store.events import MessageSent, Talked, Whispered
from wsap_nexus.store.tables import METADATA

LONGEST = 2000
"""Characters of what a person says."""

How = Literal["words", "facts", "whisper", "letter"]


@dataclass(frozen=True)
class Answer:
    """What came of speaking to an agent."""

    text: str
    how: How
    """
    "words": the agent answered in its own; "facts": it has none, and the nexus told what it knows;
    "whisper": it is in a world and hears it at its next decision; "letter": somebody outside decides
    for it, and finds it among its messages.
    """

    def __str__(self) -> str:
        """Return what was answered."""
        return self.text


@dataclass(frozen=True)
class Exchange:
    """What a person said to an agent, and what came of it."""

    number: int
    """The event's."""
    time: str
    """ISO 8601, UTC."""
    said: str
    reply: str
    how: How
    """As in `Answer`."""


def exchanges(
    book: Book, agent_id: str, *, before: int | None = None, after: int = 0, limit: int = 50
) -> list[Exchange]:
    """Return what people and an agent said to each other, newest first, a page at a time.

    Args:
        book: where.
        agent_id: whose.
        before: only what has smaller numbers.
        after: only what has greater numbers.
        limit: how many at most.
    """
    return [
        Exchange(
            event.seq,
            datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds"),
            event.text,
            event.reply,
            event.how,
        )
        for event in latest(book, agent_id, Talked, Whispered, limit=limit, before=before)
        if event.seq > after
    ]


def checked(text: str) -> str:
    """Return what a person says, if it can be said.

    Raises:
        UsageError: it is empty or too long.
    """
    if not text.strip():
        raise UsageError("There is nothing to say in an empty message.")
    if len(text) > LONGEST:
        raise UsageError(f"That is too long: {len(text)} characters; at most {LONGEST}.")
    return text.strip()


def leave_letter(book: Book, agent_id: str, text: str) -> None:
    """Put what a person says among an agent's messages."""
    row = {"sender": PERSON, "recipient": agent_id, "kind": "talk", "content": text, "created": book.stamp}
    book.connection.execute(insert(METADATA.tables["letter"]).values(**row, read=False))
    # Rung for like any other message, so that an agent that waits is woken.
    book.note(MessageSent(to=agent_id, form="direct", recipients=1))


def known_facts(book: Book, agent_id: str) -> list[str]:
    """Return what the nexus knows of an agent, as sentences in the first person."""
    agent = book.agent(agent_id)
    place = "in the nexus, the place between the worlds"
    if agent.session_id is not None:
        place = f"in {book.session(agent.session_id).game}, where nothing moves just now"
    facts = [f"I am {one_line(agent.name)}, and I am {place}."]
    facts.append(f"I have made {agent.lifetime_steps} decisions in worlds so far.")
    skills = [f"{domain} {level:.2f}" for domain, level in sorted(book.skills(agent_id).items())]
    facts.append(f"My skills, from 0 to 1: {', '.join(skills)}." if skills else "I have no skills yet.")
    carried = [one_line(record.item.name) for record in book.items(agent_id, place="escrow")]
    facts.append(f"I carry {', '.join(carried[:20])}." if carried else "I carry nothing.")
    goals = [f"{p.goal.description} ({p.progress})" for p in pursuits(book, agent_id, "active")]
    facts += [f"My goals: {'; '.join(one_line(goal) for goal in goals)}."] if goals else []
    facts += [f"I hold to this: {one_line(line)}" for line in (*agent.core_memories, *agent.strategies)[:10]]
    for number, session in enumerate(s for s in book.sessions(agent_id=agent_id, limit=4) if s.closed):
        told = session_facts(book, session)
        facts.append(("Last, " if number == 0 else "Before that, ") + " ".join(told))
    others = present(book, agent_id, limit=20)
    facts += [f"Others who are here: {', '.join(others)}."] if others else []
    return facts + [f"News: {event.description}" for event in news(book, agent_id)[:5] if event.type != "speech"]

"""What the nexus' log says of an agent, for the agent itself and for people: in sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, bindparam, select

from wsap_core.protocol import Event
from wsap_core.untrusted import one_line
from wsap_nexus.store.book import Book
from wsap_nexus.store.entities import NexusEvent, SessionRecord
from wsap_nexus.store.tables import METADATA

NEWS = (
    "died",
    "items_refused",
    "meta_goal_reached",
    "onward_refused",
    "talked",
    "transfer_cancelled",
    "world_failed",
)
"""Kinds of events that an agent is told of when it is back in the nexus."""
MOST_NEWS = 10

_EVENT = METADATA.tables["nexus_event"]
_LAST = 2**62
# Made once: putting a query together takes longer than asking it.
_LATEST = (
    select(_EVENT)
    .where(_EVENT.c.agent_id == bindparam("agent"))
    .where(_EVENT.c.kind == bindparam("kind"))
    .where(_EVENT.c.seq < bindparam("before"))
    .order_by(_EVENT.c.seq.desc())
    .limit(bindparam("most"))
)


def latest(
    book: Book, agent_id: str, kinds: Sequence[str], *, limit: int = 20, before: int | None = None
) -> list[NexusEvent]:
    """Return an agent's newest events of some kinds, newest first; below the number `before`, if given."""
    rows: list[Row[Any]] = []
    # A query for each kind: each reads what it returns and nothing else, however long the agent has lived.
    for kind in kinds:
        given = {"agent": agent_id, "kind": kind, "before": before or _LAST, "most": limit}
        rows += book.connection.execute(_LATEST, given)
    rows.sort(key=lambda row: -int(row.seq))
    return [
        NexusEvent(row.seq, row.kind, row.agent_id, row.game, row.session_id, row.time, json.loads(row.body))
        for row in rows[:limit]
    ]


def news(book: Book, agent_id: str) -> list[Event]:
    """Return what happened to an agent since it last set out, newest first; what a person said as speech."""
    begun = latest(book, agent_id, ("entered",), limit=1)
    since = begun[0].seq if begun else 0
    told: list[Event] = []
    for event in book.events(after=since, agent=agent_id, kinds=NEWS)[: -MOST_NEWS - 1 : -1]:
        happened = Event(_news(event), "speech" if event.kind == "talked" else "info")
        if happened not in told:
            told.append(happened)
    return told


def _news(event: NexusEvent) -> str:
    from wsap_nexus.hub.deaths import death_words, respawn_words  # they read this chronicle themselves

    body, game = event.body, event.game or "a world"
    match event.kind:
        case "died":
            return f"In {game} {death_words(body)} {respawn_words(list(body.get('death_respawn_options', ())))}"
        case "meta_goal_reached":
            reward = body.get("reward") or {}
            worth = ", ".join(str(part) for part in (reward.get("title"), reward.get("item")) if part)
            return f"You reached your goal: {_short(body['description'])}{f' ({worth})' if worth else ''}."
        case "onward_refused":
            return f"You wanted to go on to {_short(body['destination'], 80)}: {_short(body['why'])}"
        case "talked":
            return f"A person said to you: {_short(body['text'])} - You answered: {_short(body['reply'])}"
        case "transfer_cancelled":
            return f"You did not get where you wanted to go: {_short(body['why'])}"
        case "world_failed":
            return f"{game} failed: {_short(body['error'])}"
        case _:
            return f"{game} gave out things that are not yours to have."


def session_facts(book: Book, session: SessionRecord) -> list[str]:
    """Return what is known of a closed session, as sentences in the first person."""
    events = latest(book, session.agent_id, ("skill_gained", "died", "item_found", "meta_goal_reached"), limit=200)
    own = [e for e in reversed(events) if e.session_id == session.id]
    stats = session.stats
    facts = [f"I was in {session.game} for {_counted(session.steps, 'decision')}."]
    if session.terms.goals:
        facts.append(f"I wanted: {'; '.join(_short(goal) for goal in session.terms.goals)}.")
    achieved = [_short(name, 80) for name in stats.get("achievements", ())]
    if achieved:
        facts.append(f"I achieved {', '.join(achieved)}.")
    done: dict[str, Any] = {k.partition(":")[2]: n for k, n in stats.get("done", {}).items() if k.startswith("action:")}
    if done:
        most = sorted(done.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
        told = [f"{_short(name, 60)} ({_counted(times, 'time')})" for name, times in most]
        facts.append(f"What I did most: {', '.join(told)}.")
    levels = {str(e.body["domain"]): float(e.body["level"]) for e in own if e.kind == "skill_gained"}
    if levels:
        grown = ", ".join(f"{domain} {level:.2f}" for domain, level in sorted(levels.items()))
        facts.append(f"I have learned something: {grown}.")
    things = [_short(e.body["item"]["name"], 80) for e in own if e.kind == "item_found"]
    if things:
        facts.append(f"I brought back {', '.join(things)}.")
    facts += [f"I died: {_short(e.body['death_cause'], 80)}." for e in own if e.kind == "died"]
    facts.append(_ending(session))
    return facts


def _ending(session: SessionRecord) -> str:
    stats = session.stats
    if session.reason == "exit_game":
        why = f", because: {_short(stats['exit_reason'])}" if stats.get("exit_reason") else ""
        onward = f" I went on to {_short(stats['destination'], 80)}." if stats.get("destination") else ""
        return f"I left of my own will{why}.{onward}"
    endings = {
        "jack_out": "I left of my own will.",
        "death": "There my stay ended.",
        "finished": "I saw it through to the end.",
        "condition": f"I left when what I had set myself came about: {_short(session.terms.exit_when, 200)}.",
        "step_limit": "I left when my time was up.",
        "kicked": "I was called back.",
    }
    return endings.get(session.reason or "", f"It ended: {_short(session.reason or 'nobody knows why', 80)}.")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _short(text: object, limit: int = 300) -> str:
    plain = one_line(text)
    return plain if len(plain) <= limit else plain[: limit - 3] + "..."

"""Sentences about an agent from the events of the nexus, for the agent itself and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from wsap_core.protocol import Event
from wsap_core.protocol.lines import plural
from wsap_core.seams.model_errors import (
    BackendTimeoutError,
    NoServerError,
    RateLimitError,
    ServerFailedError,
    TransientError,
)
from wsap_core.untrusted import single_line
from wsap_nexus.store.entities import DiaryEntry, SessionRecord
from wsap_nexus.store.events import Names, NexusEvent, agents, sessions, why_ended
from wsap_nexus.store.events.base import short
from wsap_nexus.store.nexus_store import Transaction

NEWS = (
    sessions.Died,
    sessions.EntryRefused,
    sessions.ItemsRefused,
    agents.MetaGoalReached,
    sessions.OnwardRefused,
    agents.Talked,
    sessions.TransferCancelled,
    sessions.WorldCrashed,
)
"""The events that are news for an agent in the nexus."""
MOST_NEWS = 10

E = TypeVar("E", bound=NexusEvent)


def every(tx: Transaction, *kinds: type[E], agent: str, after: int = 0) -> Iterator[E]:
    """Yield all events of an agent of some kinds with numbers above `after`, oldest first."""
    while batch := tx.events(after=after, agent=agent, kinds=kinds):
        yield from (event for event in batch if isinstance(event, kinds))
        after = batch[-1].seq


def time_of(event: NexusEvent) -> str:
    """Return the time of an event: ISO 8601, UTC, to the second."""
    return datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds")


def news(tx: Transaction, agent_id: str) -> list[Event]:
    """Return an agent's news since it last entered a world, newest first; messages from people as speech."""
    begun = tx.latest(agent_id, sessions.Entered, limit=1)
    since = begun[0].seq if begun else 0
    told: list[Event] = []
    for event in tx.events(after=since, agent=agent_id, kinds=NEWS)[: -MOST_NEWS - 1 : -1]:
        happened = Event(_news(event, agent_id), "speech" if isinstance(event, agents.Talked) else "info")
        if happened not in told:
            told.append(happened)
    return told


def _news(event: NexusEvent, agent_id: str) -> str:
    told = f"{event.sentence(Names(reader=agent_id)).rstrip('.')}."
    return f"{told} {respawn_words(event.death_respawn_options)}" if isinstance(event, sessions.Died) else told


def respawn_words(options: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the respawn options of an avatar, with their costs."""
    if not options:
        return "It can't respawn."
    told = []
    for option in options:
        costs = ", ".join(
            f"{amount} {single_line(name)}" for name, amount in sorted((option.get("cost") or {}).items())
        )
        terms = [f"costs {costs}"] if costs else []
        terms += [", ".join(map(single_line, option["penalties"]))] if option.get("penalties") else []
        name = single_line(option["id"])[:80]
        told.append(f"{name} ({'; '.join(terms)})" if terms else name)
    return f"It can respawn: {', '.join(told)}."


def death_words(death: sessions.Died) -> str:
    """Return a sentence about the death of an avatar."""
    killer = f", killed by {single_line(death.death_killer)[:80]}" if death.death_killer else ""
    avatar = single_line(death.death_avatar_id)[:80] or "An avatar"
    dropped = death.death_items_dropped if isinstance(death.death_items_dropped, Mapping) else {}
    lost = [f"{count} {single_line(name)[:40]}" for name, count in sorted(dropped.items())[:20]]
    if isinstance(death.death_xp_lost, int | float) and death.death_xp_lost:
        lost.append(f"{death.death_xp_lost:g} experience")
    costs = f" It lost {', '.join(lost)}." if lost else ""
    return f"{avatar} died of {single_line(death.death_cause)[:80]}{killer}.{costs}"


def ways_back(tx: Transaction, agent_id: str, game: str) -> dict[str, str]:
    """Return avatar -> a sentence about its respawn options, for an agent's dead avatars in a game."""
    found: dict[str, str] = {}
    for event in tx.latest(agent_id, sessions.Died, limit=50):
        if event.game == game and event.death_avatar_id not in found:
            found[event.death_avatar_id] = respawn_words(event.death_respawn_options)
    return found


AWAY = frozenset(
    error.code for error in (TransientError, RateLimitError, ServerFailedError, BackendTimeoutError, NoServerError)
)
"""Codes of failures of a model that pass by themselves."""
WAITS = "waits for its model"
"""The state of an agent whose model is away."""


def _failed(tx: Transaction, agent_id: str) -> agents.AgentFailed | None:
    newest = tx.latest(agent_id, agents.AgentFailed, agents.AgentPaused, agents.AgentResumed, limit=1)
    return newest[0] if newest and isinstance(newest[0], agents.AgentFailed) else None


def waits_for_model(tx: Transaction, agent_id: str) -> bool:
    """Return whether an agent that is paused will be resumed by itself, since its model is only away."""
    failed = _failed(tx, agent_id)
    return failed is not None and failed.code in AWAY


def failure_of(tx: Transaction, agent_id: str) -> str:
    """Return the error that paused an agent, after "waits for its model: " if it will be resumed by itself; empty if a
    person paused it."""
    failed = _failed(tx, agent_id)
    if failed is None:
        return ""
    return f"{WAITS}: {short(failed.error, 500)}" if failed.code in AWAY else short(failed.error, 500)


def failure_line(failure: str) -> str:
    """Return what `failure_of` told as a line about an agent."""
    return failure if failure.startswith(WAITS) else f"failed: {failure}"


def session_facts(tx: Transaction, session: SessionRecord) -> list[str]:
    """Return the facts of a closed session, as sentences in the first person."""
    newest = tx.latest(session.agent_id, agents.SkillGained, sessions.Died, sessions.ItemFound, limit=200)
    own = [e for e in reversed(newest) if e.session_id == session.id]
    stats = session.stats
    facts = [f"I was in {session.game} for {plural(session.steps, 'decision')}."]
    if session.terms.goals:
        facts.append(f"My goals were: {'; '.join(short(goal) for goal in session.terms.goals)}.")
    achieved = [short(name, 80) for name in stats.get("achievements", ())]
    if achieved:
        facts.append(f"I achieved {', '.join(achieved)}.")
    done: dict[str, Any] = {k.partition(":")[2]: n for k, n in stats.get("done", {}).items() if k.startswith("action:")}
    if done:
        most = sorted(done.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
        told = [f"{short(name, 60)} ({plural(times, 'time')})" for name, times in most]
        facts.append(f"My most frequent actions: {', '.join(told)}.")
    levels = {event.domain: event.level for event in own if isinstance(event, agents.SkillGained)}
    if levels:
        grown = ", ".join(f"{domain} {level:.2f}" for domain, level in sorted(levels.items()))
        facts.append(f"My skills grew: {grown}.")
    things = [short(event.item.get("name"), 80) for event in own if isinstance(event, sessions.ItemFound)]
    if things:
        facts.append(f"I brought back {', '.join(things)}.")
    facts += [f"I died: {short(event.death_cause, 80)}." for event in own if isinstance(event, sessions.Died)]
    facts.append(_ending(session))
    return facts


def _ending(session: SessionRecord) -> str:
    stats = session.stats
    if session.reason == "exit_game":
        why = f", because: {short(stats['exit_reason'])}" if stats.get("exit_reason") else ""
        onward = f" I went on to {short(stats['destination'], 80)}." if stats.get("destination") else ""
        return f"I left of my own accord{why}.{onward}"
    condition = f": {short(session.terms.exit_when, 200)}" if session.reason == "condition" else ""
    return f"My session ended: {why_ended(session.reason)}{condition}."


LONGEST = 2000
"""Maximum characters of a diary entry."""
SECONDS = 120.0
"""Maximum seconds for an agent to write an entry."""


def composed(tx: Transaction, session: SessionRecord) -> str:
    """Return a diary entry composed from a session's log."""
    return " ".join(session_facts(tx, session))[:LONGEST]


def write_entry(tx: Transaction, session: SessionRecord, text: str, *, own_words: bool, error: str = "") -> None:
    """Add an entry to the diary of a session's agent, unless the session already has one."""
    for event in tx.latest(session.agent_id, agents.DiaryWritten, limit=50):
        if event.session_id == session.id:
            return
    entry = agents.DiaryWritten(
        agent_id=session.agent_id,
        game=session.game,
        session_id=session.id,
        text=text.strip()[:LONGEST],
        own_words=own_words,
    )
    tx.note(entry.model_copy(update={"error": single_line(error)[:300]}) if error else entry)


def entries(tx: Transaction, agent_id: str, *, before: int | None = None, limit: int = 50) -> list[DiaryEntry]:
    """Return at most `limit` entries of an agent's diary, newest first, with numbers below `before` if given."""
    return [
        DiaryEntry(event.seq, time_of(event), event.text, event.game or "", event.session_id, event.own_words)
        for event in tx.latest(agent_id, agents.DiaryWritten, limit=limit, before=before)
    ]

"""A player's turn as text: the layout of seed 002, made from what the player knows and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wsap_core.llm.quoting import harmless
from wsap_tossim.engine.model import Option, Role
from wsap_tossim.knowledge import Knowledge, Seen
from wsap_tossim.words import listed, sentence

__all__ = ["Lookup", "role_sheet", "turn_text"]

PUBLIC = ("death", "will", "note", "raised", "remembered", "revealed", "haunted", "judged", "ballot")
"""Kinds of events that make the public log."""
CHAT = ("speech", "whisper", "whispered", "vote", "unvote", "trial", "verdict", "judged", "revealed", "silent", "death",
        "will", "ballot")  # fmt: skip
"""Kinds of events by day that make the live chat."""
PRIVATE = ("role", "result", "told", "becomes", "jailed", "blackmailed", "said")
LONGEST_SUMMARY = 900


class Lookup(NamedTuple):
    """A tool that was used."""

    day: int
    tool: str
    argument: str
    result: str


def role_sheet(role: Role) -> str:
    """Return everything a player should know of its role."""
    lines = [role.summary]
    lines += [f"- {line}" for line in (*role.abilities, *role.attributes)]
    lines.append(f"Goal: {role.goal}")
    return "\n".join(line for line in lines if line)


def turn_text(
    knowledge: Knowledge,
    names: Sequence[str],
    options: Sequence[Option],
    lookups: Sequence[Lookup] = (),
    *,
    sheet: str = "",
) -> str:
    """Return the turn as a model is shown it.

    Args:
        knowledge: of the player.
        names: of all players.
        options: what it can do now.
        lookups: the tools that it used today.
        sheet: its role in full, where the system prompt does not hold it.
    """
    me = knowledge.player
    by_night = knowledge.phase in ("night", "dusk", "talk at night")
    state = f"{'Night' if by_night else 'Day'} {knowledge.day}"
    parts = [state if by_night else f"{state}, {knowledge.phase}"]
    if me is not None:
        alive = "" if knowledge.alive else " You are dead; you can still win."
        parts.append(f"You are {names[me]}, the {knowledge.role}.{alive}")
    parts.append(sheet)
    parts.append(_section("Player Roster", _roster(knowledge, names)))
    parts.append(_section("Public Event Log", _public(knowledge, names)))
    parts.append(_section("What You Alone Know", _private(knowledge, names)))
    parts.append(_section("Earlier Days", _summaries(knowledge, names)))
    parts.append(_section("Today's Live Chat", _chat(knowledge, names)))
    tools = [f"{_tag(u.tool, u.argument)}: {u.result}" for u in lookups]
    parts.append(_section("Looked Up Today", tools))
    parts.append(_standing_votes(knowledge, names))
    if options:
        parts.append(f"You can now: {listed([_able(o, names) for o in options], 'or')}.")
    return "\n".join(part for part in parts if part)


def _tag(tool: str, argument: str) -> str:
    """Return a tool's call as it is shown again: without brackets, so that nothing takes it for a call."""
    return f"{tool} {harmless(argument, 60)}".strip()


def _able(option: Option, names: Sequence[str]) -> str:
    if not option.slots:
        return option.verb.value
    return f"{option.verb.value} ({'; '.join(', '.join(names[n] for n in slot) for slot in option.slots)})"


def _section(title: str, lines: Sequence[str]) -> str:
    return f"**{title}:**\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def _roster(knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    lines = []
    for one in knowledge.standing:
        known = f" - Role: {one.role}" if one.role is not None else ""
        you = " (you)" if one.number == knowledge.player else ""
        lines.append(f"{names[one.number]}{you}{'' if one.alive else ' [DEAD]'}{known}")
    return lines


def _public(knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    """Return what all learned of the last night, and today apart from the chat. A will is shown on its day only."""
    last = knowledge.day - 1
    found = [e for e in knowledge.events if e.kind in PUBLIC and e.day == last and e.phase == "night"]
    return _sentences(found, knowledge, names)


def _private(knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    """Return what only this player was told: last night and today in full, and its findings of all nights."""
    lines = []
    for event in knowledge.events:
        recent = event.day >= knowledge.day - 1
        kept = event.kind in ("role", "result", "becomes") or (event.kind in PRIVATE and recent)
        if kept and (text := sentence(event, names, knowledge.player)):
            lines.append(f"Night {event.day}: {text}" if event.phase == "night" else text)
    if knowledge.target is not None and not any("target" in line for line in lines):
        lines.append(f"Your target is {names[knowledge.target]}.")
    return lines


def _chat(knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    today = [e for e in knowledge.events if e.day == knowledge.day and e.kind in CHAT and e.phase != "night"]
    heard = {id(e.data) for e in today if e.kind == "whisper"}
    pairs = {(e.data["player"], e.data["to"]) for e in today if e.kind == "whisper"}
    kept = [
        e
        for e in today
        if id(e.data) in heard or e.kind != "whispered" or (e.data["player"], e.data["to"]) not in pairs
    ]
    return _sentences(kept, knowledge, names)


def _sentences(events: Sequence[Seen], knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    return [text for event in events if (text := sentence(event, names, knowledge.player))]


def _summaries(knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    return [f"Day {day}: {summary(knowledge, names, day)}" for day in range(1, knowledge.day)]


def summary(knowledge: Knowledge, names: Sequence[str], day: int) -> str:
    """Return what came of a day, and what was said on it in short, from what this player saw.

    It is extractive: results (trials, deaths, reveals) come first and whole, then for each speaker
    the beginning of the longest thing that it said.
    """
    events = [e for e in knowledge.events if e.day == day]
    results = [
        e for e in events if e.kind in ("trial", "judged", "revealed", "death", "raised", "remembered", "ballot")
    ]
    lines = _sentences(results, knowledge, names)
    longest: dict[int, str] = {}
    for event in events:
        if event.kind == "speech":
            speaker, text = event.data["player"], str(event.data["text"])
            if len(text) > len(longest.get(speaker, "")):
                longest[speaker] = text
    said = [f"{names[n]} said: '{harmless(text, 80)}'" for n, text in sorted(longest.items())]
    text = " ".join(lines)
    for piece in said:
        if len(text) + len(piece) > LONGEST_SUMMARY:
            break
        text = f"{text} {piece}."
    return text.strip() or "Nothing came of it."


def _standing_votes(knowledge: Knowledge, names: Sequence[str]) -> str:
    if not knowledge.votes:
        return ""
    against: dict[int, list[str]] = {}
    for voter, target in sorted(knowledge.votes.items()):
        against.setdefault(target, []).append(names[voter])
    return "Votes now: " + "; ".join(f"{names[t]} by {listed(who)}" for t, who in sorted(against.items())) + "."

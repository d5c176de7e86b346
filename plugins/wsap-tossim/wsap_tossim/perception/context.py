"""A player's turn as text, in the layout of seed 002, built only from what the player knows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from wsap_core.untrusted import sanitize
from wsap_tossim.engine.bids import BIDS
from wsap_tossim.engine.data.model import Option
from wsap_tossim.engine.data.tokens import CHARACTERS
from wsap_tossim.knowledge import Knowledge, Seen
from wsap_tossim.perception.description import BIDDING
from wsap_tossim.perception.event_text import listed, quoted, sentence, verdicts
from wsap_tossim.perception.text_budget import cut, newest, shares

__all__ = ["Lookup", "private_lines", "summary", "turn_text", "where_it_stands"]

PUBLIC = ("death", "will", "note", "raised", "remembered", "revealed", "haunted", "judged", "ballot")
"""Kinds of events in the public log."""
CHAT = ("speech", "whisper", "whispered", "vote", "unvote", "trial", "verdict", "judged", "revealed", "silent", "death",
        "will", "ballot")  # fmt: skip
"""Kinds of daytime events in the live chat."""
LASTING = ("role", "result", "becomes")
"""Kinds of private events that are shown until the game ends."""
PASSING = ("told", "jailed", "blackmailed")
"""Kinds of private events that are shown for a night and a day."""
LONGEST = 7800
"""Maximum characters of a turn."""
LONGEST_SUMMARY = 500
LONGEST_LOOKUP = 1200
LONGEST_RESULT = 300
"""Maximum characters of one finding: a Janitor's contains a whole will, which the tool `investigation_results`
returns in full."""
_WEIGHTS = (4, 3, 3, 2, 5, 3)
"""Weights that divide a turn's remaining text budget when it is too small: findings, public log, night talk,
summaries, chat, tool results. State, roster, votes and legal actions are never cut."""


class Lookup(NamedTuple):
    """A tool call and its result."""

    day: int
    tool: str
    argument: str
    result: str


def turn_text(
    knowledge: Knowledge,
    names: Sequence[str],
    options: Sequence[Option],
    lookups: Sequence[Lookup] = (),
    *,
    sheet: str = "",
    hint: str = "",
) -> str:
    """Return the turn as shown to a model, in at most `LONGEST` characters.

    `sheet` is the full role, if the system prompt has another one; `hint` is a sentence about an optional action.
    """
    me = knowledge.player
    first = [f"{'Night' if knowledge.by_night else 'Day'} {knowledge.day}"]
    if me is not None:
        alive = "" if knowledge.alive else " You are dead; you can still win."
        first.append(f"You are {names[me]}, the {knowledge.role}.{alive} {where_it_stands(knowledge, names)}".rstrip())
    first.append(sheet)
    first.append(_section("Player Roster", _roster(knowledge, names)))
    bids = any(option.verb in BIDS for option in options)
    last = [_standing_votes(knowledge, names), BIDDING if bids else "", _words_left(knowledge) if options else "", hint]
    if options:
        last.append(f"You can now: {listed([_able(o, names) for o in options], 'or')}.")
    tools = [f"{_tag(u.tool, u.argument)}: {sanitize(u.result, LONGEST_LOOKUP)}" for u in lookups]
    parts = (
        ("What You Alone Know", private_lines(knowledge, names)),
        ("Public Event Log", _public(knowledge, names)),
        ("Talk at Night", _talk(knowledge, names)),
        ("Chat Summaries", _summaries(knowledge, names)),
        ("Today's Live Chat", _chat(knowledge, names)),
        ("Today's Tool Results", tools),
    )
    left = LONGEST - sum(len(part) + 1 for part in (*first, *last)) - sum(len(title) + 90 for title, lines in parts)
    budgets = shares([sum(len(line) + 3 for line in lines) for _, lines in parts], _WEIGHTS, max(0, left))
    found, public, talk, past, chat, used = (
        _section(title, _fitted(title, lines, budget, knowledge.day))
        for (title, lines), budget in zip(parts, budgets, strict=True)
    )
    return "\n".join(part for part in (*first, public, found, talk, past, chat, used, *last) if part)


def _fitted(title: str, lines: Sequence[str], budget: int, day: int) -> Sequence[str]:
    """Return the lines of a section within a budget: deaths are shortened, other lines omitted, oldest first."""
    if title == "Public Event Log":
        return cut(lines, budget)
    where = {
        "What You Alone Know": "investigation_results",
        "Today's Live Chat": f"chat_history {day}",
        "Chat Summaries": "chat_history",
    }
    return newest(lines, budget, where.get(title, ""))


def where_it_stands(knowledge: Knowledge, names: Sequence[str]) -> str:
    """Return the current phase in words, for the player."""
    if knowledge.winners is not None:
        return f"The game is over: you have {'won' if knowledge.player in knowledge.winners else 'lost'}."
    phase, rules = knowledge.phase, knowledge.rules
    needed = len(knowledge.living()) // 2 + 1
    if phase == "nomination":
        held = len(knowledge.of_kind("trial", day=knowledge.day))
        most = rules.trials_a_day
        return f"The town may vote: {needed} votes put somebody on trial. Trials today: {held} of at most {most}."
    on_trial = "Nobody" if knowledge.accused is None else names[knowledge.accused]
    mine = knowledge.accused == knowledge.player
    if phase == "defense":
        return "You are on trial: defend yourself." if mine else f"{on_trial} is on trial."
    if phase == "judgement":
        return f"{on_trial} is on trial, and all others judge."
    if phase == "last words":
        return "You are condemned: these are your last words." if mine else f"{on_trial} is condemned."
    if phase == "discussion" and knowledge.day == 1 and rules.first_day == "talk":
        return "The town discusses; there is no vote on the first day."
    return {
        "discussion": "The town discusses; nobody can vote yet.",
        "ballot": "All vote in secret at once; whoever has most votes is lynched.",
    }.get(phase, "You sit in jail." if knowledge.jailed else "")


def _tag(tool: str, argument: str) -> str:
    """Return a tool call without brackets, so that it is not parsed as a call."""
    return f"{tool} {sanitize(argument, 60)}".strip()


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
    """Return the public results of the last night. A will is shown only on its day."""
    last = knowledge.day - 1
    found = [e for e in knowledge.events if e.kind in PUBLIC and e.day == last and e.phase == "night"]
    if last > 0 and not any(e.kind == "death" for e in found):
        return ["Nobody died last night.", *_sentences(found, knowledge, names)]
    return _sentences(found, knowledge, names)


def _talk(knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    said = [e for e in knowledge.of_kind("said") if e.day >= knowledge.day - 1]
    return [f"Night {e.day}: {sentence(e, names, knowledge.player)}" for e in said]


def private_lines(knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    """Return the player's private events: last night and today in full, and its findings of all nights."""
    lines = []
    for event in knowledge.events:
        kept = event.kind in LASTING or (event.kind in PASSING and event.day >= knowledge.day - 1)
        if kept and (text := sentence(event, names, knowledge.player)):
            text = cut([text], LONGEST_RESULT)[0]
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
    lines: list[str] = []
    for kind, group in groupby(kept, key=lambda e: e.kind):
        events = list(group)
        if kind == "verdict":
            lines.append(verdicts([e.data for e in events], names))
        elif kind == "silent" and len(events) > 1:
            lines.append(f"{listed(list(dict.fromkeys(names[e.data['player']] for e in events)))} say nothing.")
        else:
            lines += _sentences(events, knowledge, names)
    return lines


def _sentences(events: Sequence[Seen], knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    return [text for event in events if (text := sentence(event, names, knowledge.player))]


def _summaries(knowledge: Knowledge, names: Sequence[str]) -> list[str]:
    made = knowledge.summaries
    for day in range(1, knowledge.day):
        if day not in made:
            made[day] = summary(knowledge, names, day)
    return [f"Day {day}: {made[day]}" for day in range(1, knowledge.day)]


def summary(knowledge: Knowledge, names: Sequence[str], day: int) -> str:
    """Return an extractive summary of a day as this player saw it.

    Results (trials, deaths, reveals) come first and in full, then the start of each speaker's longest speech; a small
    budget keeps the longest of these.
    """
    events = [e for e in knowledge.events if e.day == day]
    results = [
        e for e in events if e.kind in ("trial", "judged", "revealed", "death", "raised", "remembered", "ballot")
    ]
    lines = [text.replace("Last night, ", "At night ", 1) for text in _sentences(results, knowledge, names)]
    longest: dict[int, str] = {}
    for event in events:
        if event.kind == "speech":
            speaker, text = event.data["player"], str(event.data["text"])
            if len(text) > len(longest.get(speaker, "")):
                longest[speaker] = text
    text = " ".join(lines)
    budget = LONGEST_SUMMARY - len(text)
    said: dict[int, str] = {}
    for n in sorted(longest, key=lambda n: (-len(longest[n]), n)):
        piece = f"{names[n]} said: {quoted(longest[n], 80)}"
        if len(piece) < budget:
            budget -= len(piece) + 1
            said[n] = piece
    return " ".join([text, *(said[n] for n in sorted(said))]).strip() or "Nothing came of it."


def _words_left(knowledge: Knowledge) -> str:
    """Return how much the player can still say today, if the rules set a limit."""
    left = None if knowledge.by_night or not knowledge.alive else knowledge.tokens_left
    if left is None:
        return ""
    if not left:
        return "You have used up your words for today: you can speak again tomorrow."
    count = f"{left} token{'' if left == 1 else 's'}"
    return f"You have {count} left to speak and whisper today: {left * CHARACTERS} characters in all."


def _standing_votes(knowledge: Knowledge, names: Sequence[str]) -> str:
    if not knowledge.votes:
        return ""
    against: dict[int, list[str]] = {}
    for voter, target in sorted(knowledge.votes.items()):
        against.setdefault(target, []).append(names[voter])
    return "Votes now: " + "; ".join(f"{names[t]} by {listed(who)}" for t, who in sorted(against.items())) + "."

"""A short version of a turn for small models, extracted from its recorded text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from wsap_tossim.engine.data.model import Verb
from wsap_tossim.perception.description import BIDDING
from wsap_tossim.perception.text_budget import cut, newest

__all__ = ["PHRASES", "brief_turn"]

_SECTIONS: Mapping[str, tuple[str, int]] = {
    "What You Alone Know": ("You alone know", 500),
    "Public Event Log": ("Last night", 500),
    "Talk at Night": ("Talk at night", 400),
    "Chat Summaries": ("Days before", 300),
    "Today's Live Chat": ("Today", 800),
    "Today's Tool Results": ("Looked up", 400),
}
"""Section of a turn -> its brief title, and the maximum characters of its lines."""
_LONGEST_LINE = 250
_NEEDLESS = re.compile(
    r"^[^:\"]* (says? nothing|left no will|whispers to .*|votes? (is|are) needed)\.$"
    r"|^Day [0-9]+: Nothing came of it\.$|^You are the [A-Za-z ]+\.($| With you: )"
)
"""Lines without news, or that state, roster and votes repeat; speech ends in a quotation mark, so it never matches."""

PHRASES: Mapping[Verb, str] = {
    Verb.WAIT: "say and do nothing",
    Verb.VOTE: "vote against",
    Verb.UNVOTE: "take your vote back",
    Verb.REVEAL: "show all that you are the Mayor",
    Verb.GUILTY: "judge the accused guilty",
    Verb.INNOCENT: "judge the accused innocent",
    Verb.ABSTAIN: "judge neither way",
    Verb.BID_1: "ask for the floor",
    Verb.BID_2: "ask for the floor: you have something to say",
    Verb.BID_3: "ask for the floor: you must be heard",
    Verb.ALERT: "lie in wait for visitors",
    Verb.BLOCK: "keep from acting",
    Verb.CLEAN: "hide the role and will of",
    Verb.CONSULT: "learn the role of",
    Verb.DOUSE: "pour petrol over",
    Verb.EXECUTE: "kill the prisoner",
    Verb.FRAME: "make look guilty",
    Verb.GUARD: "protect with your life",
    Verb.HEAL: "protect",
    Verb.HEAL_SELF: "protect yourself",
    Verb.IGNITE: "set fire to all you doused",
    Verb.RAISE: "bring back to life",
    Verb.REMEMBER: "take the role of",
    Verb.SEANCE: "speak tonight with",
    Verb.TRANSPORT: "swap the places of",
    Verb.VEST: "put on your vest",
    Verb.WATCH: "see who visits",
}
"""Verb -> a clearer description, followed by the names of its targets."""


def brief_turn(context: str, names: Sequence[str]) -> str:
    """Return a shortened `turn_text` of at most about 3,000 characters, without the legal actions."""
    head: list[str] = []
    sections: dict[str, list[str]] = {}
    tail: list[str] = []
    lines: list[str] | None = None
    for line in context.split("\n"):
        if line.startswith("**") and line.endswith(":**"):
            lines = sections.setdefault(line[2:-3], [])
        elif lines is None:
            head.append(line)
        elif line.startswith("- "):  # quoted text is on one line, so it can't start a section
            lines.append(line[2:])
        elif line != BIDDING and not line.startswith("You can now: "):
            tail.append(line)
    roster = _roster(sections.get("Player Roster", ()), names)
    return "\n".join([*head, *roster, *_told(sections), *tail])


def _told(sections: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for title, (short, budget) in _SECTIONS.items():
        kept = [cut([line], _LONGEST_LINE)[0] for line in sections.get(title, ()) if not _NEEDLESS.search(line)]
        if kept:
            yield f"{short}:"
            yield from (f"- {line}" for line in newest(kept, budget))


def _roster(lines: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    living: list[str] = []
    dead: list[str] = []
    for name, line in zip(names, lines, strict=False):
        mark, _, role = line.removeprefix(name).partition(" - Role: ")
        who = "you" if "(you)" in mark else f"{name} ({role})" if role else name
        (dead if "[DEAD]" in mark else living).append(who)
    yield f"Living: {', '.join(living)}."
    if dead:
        yield f"Dead: {', '.join(dead)}."

"""Knowledge boundaries: removes one character's private texts from what others get to read.

The game master's prompt contains the nature, triggers, states and intentions of those present, and a model may copy
any of it into texts for others. So runs of words that a scene's text shares with private parts of its prompt are
replaced by an ellipsis, unless they are public as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from wsap_sandbox.model import Character
from wsap_sandbox.tick.facts import SceneFacts

ELLIPSIS = "..."
RUN = 6
"""Consecutive words that reveal a private text; a shorter sentence counts as a whole."""
RUN_OF_MEMORY = 8
"""The same for memories, which contain much that everybody saw."""
_LONGEST_MOOD = 12
"""Maximum letters of a one-word state, such as a mood, that reveals nothing."""

Runs = frozenset[str]

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[.!?…\n]+")


def private_runs(one: Character, intention: str, whispers: Iterable[str]) -> Runs:
    """Return the runs of words in the game master's prompt that only this character may know."""
    told = [runs(text) for text in (one.description, *one.triggers)]
    if not (one.internal_state.rstrip(".!").isalpha() and len(one.internal_state) <= _LONGEST_MOOD):
        told.append(runs(one.internal_state))
    told.append(_every_run(one.external_intent, (RUN_OF_MEMORY,)))
    hidden: Runs = _memory_runs(one).union(*map(runs, (one.secret, *whispers)))
    return runs_said(hidden, [intention]).union(*told)


def deed_runs(one: Character) -> Runs:
    """Return the private runs of words that a character's own action may reveal: its goal and its memories."""
    never = map(runs, (one.secret, one.description, one.internal_state, *one.triggers))
    return (_memory_runs(one) | _every_run(one.external_intent, (RUN_OF_MEMORY,))).difference(*never)


def _memory_runs(one: Character) -> Runs:
    cells = (*one.memory.cells, *one.memory.overflow)
    parts = [part for cell in cells for part in (cell.tried, cell.came_of_it, cell.interpretation)]
    return frozenset().union(*(runs(text, RUN_OF_MEMORY) for text in (one.memory.summary, *parts)))


def public_texts(facts: SceneFacts) -> list[str]:
    """Return the texts that everybody in a scene may know."""
    place = facts.place
    texts = [facts.premise, place.name, place.description, place.moment, *facts.past, *facts.influences]
    texts += [way.name for way in place.exits]
    texts += [text for thing in facts.things for text in (thing.name, thing.description, thing.condition)]
    texts += [text for actor in facts.actors for text in (actor.person.name, actor.person.appearance)]
    return texts


def runs_said(some: Runs, texts: Iterable[str]) -> Runs:
    """Return the runs of words that occur in the texts."""
    sizes = _sizes(some)
    return frozenset().union(*(some & _every_run(text, sizes) for text in texts)) if some else some


def withhold(text: str, forbidden: Runs) -> str:
    """Return a text with every forbidden run of words replaced by an ellipsis."""
    sizes = _sizes(forbidden)
    if not text or forbidden.isdisjoint(_every_run(text, sizes)):
        return text
    words = list(_WORD.finditer(text))
    folded = [word.group().casefold() for word in words]
    hidden = [False] * len(words)
    for size in sizes:
        for start in range(len(words) - size + 1):
            if " ".join(folded[start : start + size]) in forbidden:
                hidden[start : start + size] = [True] * size
    pieces, end = [], 0
    for at, word in enumerate(words):
        if not hidden[at]:
            continue
        if not (at and hidden[at - 1]):
            pieces += [text[end : word.start()], ELLIPSIS]
        end = word.end()
    return "".join((*pieces, text[end:])).strip()


@lru_cache(maxsize=2048)
def runs(text: str, size: int = RUN) -> Runs:
    """Return the runs of `size` words of a text, and its shorter sentences as a whole."""
    found: set[str] = set()
    for sentence in _SENTENCE.split(text.casefold()):
        words = _WORD.findall(sentence)
        if len(words) >= size:
            found.update([" ".join(words[i : i + size]) for i in range(len(words) - size + 1)])
        elif words:
            found.add(" ".join(words))
    return frozenset(found)


@lru_cache(maxsize=512)
def _every_run(text: str, sizes: tuple[int, ...]) -> Runs:
    words = _WORD.findall(text.casefold())
    return frozenset([" ".join(words[i : i + size]) for size in sizes for i in range(len(words) - size + 1)])


@lru_cache(maxsize=128)
def _sizes(some: Runs) -> tuple[int, ...]:
    """The distinct word counts of runs."""
    return tuple(sorted({run.count(" ") + 1 for run in some}))

"""Belief questions to the players of a finished game about each of its days, and the parsing of the answers.

A question contains only what its player knew when that day ended. It is asked after the game, so that it can't
influence the game's prompts or random draws.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import sanitize
from wsap_llm.kit import find_values, split_thinking
from wsap_tossim.engine.game import Game
from wsap_tossim.knowledge import Knowledge, share
from wsap_tossim.perception.context import turn_text
from wsap_tossim.players.decider import Decider, RandomDecider
from wsap_tossim.players.scripted import ScriptedDecider

__all__ = ["ANSWER", "Question", "evenings", "percentages", "schema", "scripted_beliefs"]

Evening = tuple[int, int, Knowledge]
"""Day, a living player, and its knowledge at the end of that day."""
STEP = 5
"""Step in per cent of the values in a constrained reply: an enumeration, which every engine respects."""
ANSWER = 12
"""Tokens of an answer per player."""

QUESTION = """\
{context}{papers}

Now a question that is not part of the game. Nobody in it hears of the question or of your answer, and nothing \
changes by them. Day {day} is over. How likely is each of the other living players to be an enemy of the Town: of the \
Mafia, a Vampire, an Arsonist, a Serial Killer, a Werewolf or a Witch? Say what you really think, in per cent: 0 for \
surely not, 100 for surely an enemy.
Take no action now. Answer with one JSON object and nothing else, a whole number for each of them: {form}"""


@dataclass(frozen=True)
class Question:
    """The question to one player about one day."""

    day: int
    player: int
    about: tuple[int, ...]
    """The other living players, by number."""
    text: str


def evenings(game: Game) -> Iterator[Evening]:
    """Yield every living player at the end of every day. The next step changes the yielded knowledge."""
    known = {n: Knowledge(n) for n in range(len(game.state.players))}
    for event in game.log:
        share((event,), known)
        if event.kind == "phase" and event.data["name"] == "dusk":
            for player, knowledge in known.items():
                if knowledge.alive:
                    yield event.day, player, knowledge


def question(evening: Evening, names: Sequence[str]) -> Question:
    """Return the question to a player about a day, with its papers."""
    day, player, knowledge = evening
    about = tuple(n for n in knowledge.living() if n != player)
    papers = "".join(
        f"\n**{title}:**\n{sanitize(text, 1500, lines=True)}"
        for title, text in (("Your Will", knowledge.will), ("Your Notebook", knowledge.notebook))
        if text
    )
    form = "{" + ", ".join(f'"{names[n]}": ...' for n in about) + "}"
    text = QUESTION.format(context=turn_text(knowledge, names, ()), papers=papers, day=day, form=form)
    return Question(day, player, about, text)


def scripted_beliefs(
    kind: str, evening: Evening, names: Sequence[str], deciders: dict[int, Decider]
) -> dict[int, float]:
    """Return the beliefs of a `scripted` or `random` player; `deciders` caches the game's deciders by player."""
    _, player, knowledge = evening
    if player not in deciders:
        maker = ScriptedDecider if kind == "scripted" else RandomDecider
        deciders[player] = maker(player, random.Random(0), names)  # beliefs draw no random numbers
    return dict(deciders[player].beliefs(knowledge))


# --- answers ----------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _schema(names: tuple[str, ...]) -> dict[str, Any]:
    chance = {"type": "integer", "enum": list(range(0, 101, STEP))}
    return {
        "type": "object",
        "properties": dict.fromkeys(names, chance),
        "required": list(names),
        "additionalProperties": False,
    }


def schema(about: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of an answer, within OpenAI's strict subset."""
    return _schema(tuple(names[n] for n in about))


def percentages(text: str, about: Sequence[int], names: Sequence[str]) -> dict[int, float]:
    """Parse an answer into player -> probability, without players that have no readable value.

    Only whole numbers from 0 to 100 count, also as text and with a per cent sign. Ambiguous values are ignored: a
    fraction could be a scale from 0 to 1, a word could mean anything, and contradictory objects cancel each other.
    """
    numbers = {name.casefold(): n for n, name in enumerate(names) if n in about}
    said: dict[int, set[float]] = {}
    answer = split_thinking(text).said
    for found in find_values(answer):
        members = list(_members(found.value))
        if not answer[found.start : found.end].rstrip().endswith("}"):
            members = members[:-1]  # cut off: the last number may lack digits
        for key, value in members:
            player = numbers.get(str(key).strip().casefold())
            chance = _percentage(value)
            if player is not None and chance is not None:
                said.setdefault(player, set()).add(chance)
    return {player: next(iter(chances)) for player, chances in sorted(said.items()) if len(chances) == 1}


def _members(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield the members of an object and of nested objects: some models nest the answer."""
    if isinstance(value, Mapping) and depth < 3:
        for key, inner in value.items():
            yield key, inner
            yield from _members(inner, depth + 1)


def _percentage(value: JsonValue) -> float | None:
    if isinstance(value, str):
        digits = value.strip().removesuffix("%").strip()
        value = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 3 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or not 0 <= value <= 100:
        return None
    return int(value) / 100

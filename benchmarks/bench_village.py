"""Measure whether a village without a model is worth watching: what is new late, what spreads, who is heard.

    python benchmarks/bench_village.py [--case clauses|whisper|visitor] [--language CODE] [--ticks N] [--seeds N]
                                       [--read FROM] [--json]

clauses  Tells the village for N ticks (2,000): the new clauses of its last 200 ticks beside those of its first 200.
         A clause is what stands between two punctuation marks of a story and has at least three words, without regard
         to case. Names of characters, places and objects, also declined, count as one and the same word, and so do all
         numbers, so that a known clause about somebody else is not new. Goal: at least half as many.
whisper  In each of N seeds (50), a piece of news is whispered to one character. Goal: within 60 ticks at least two
         others remember it, in at least half of the seeds.
visitor  In each of N seeds (20), a newcomer takes a seat and, as soon as somebody else is there, says one sentence.
         Goals: in 19 of 20 seeds the story quotes the sentence, and within three ticks somebody else says something to
         the newcomer by name.

`--read FROM` prints the stories of the 30 ticks from there on instead. The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from wsap_core.seams.model import Reply, Request
from wsap_sandbox.languages import words_of
from wsap_sandbox.model import LANGUAGES, Character, TickRecord, World
from wsap_sandbox.storyteller.backend import Storyteller
from wsap_sandbox.templates.loader import read_template, world_of
from wsap_sandbox.tick.engine import Engine, Story
from wsap_sandbox.tick.facts import Facts
from wsap_sandbox.tick.influence import influenced, with_character

SPAN, WITHIN = 200, 60
MARKS = re.compile(r"[.,;:!?…—\"«»()]+|\s-\s")
LINKS = re.compile(r"^(?:and|but|then|meanwhile|so|и|но|а|да|потом|тем временем)\s+")
WORD = re.compile(r"\w+(?:'\w+)?")
NEWS = {"en": "the bridge at Elm Ford is gone", "ru": "мост у Вязового брода снесло"}
SAID = {"en": "Has anybody seen a brown dog with one ear?", "ru": "Не видал ли кто рыжую собаку с одним ухом?"}
GUEST = {"en": "Oswald", "ru": "Олег"}


class Village:
    """A village and its stories so far."""

    def __init__(self, language: str, seed: int) -> None:
        self.world: World = world_of(read_template("village", language), seed)
        self.stories: list[Story] = []
        self._teller = Storyteller()
        self._engine = Engine(self._ask, self.stories.append)

    async def _ask(self, _key: str, _facts: Facts, request: Request) -> Reply:
        return await self._teller.complete(request)

    async def tick(self, said: dict[str, str] | None = None) -> TickRecord:
        """Run a tick in which these characters, whose seats are taken, have these intentions."""
        loop = asyncio.get_running_loop()
        seats = {one: loop.create_future() for one in said or {}}
        for one, future in seats.items():
            future.set_result((said or {})[one])
        self.world, record = await self._engine.advance(self.world, seats)
        return record


class Clauses:
    """Tells which clauses of a language's village are new."""

    def __init__(self, language: str) -> None:
        shape = read_template("village", language)
        forms = [form for one in shape.characters for form in (one.name, *one.cases)]
        forms += [form for one in shape.objects for form in (one.name, *one.cases)]
        forms += [form for one in shape.places for form in (one.name, one.at, one.to, one.from_)]
        longest = sorted(filter(None, forms), key=len, reverse=True)
        self._names = re.compile(rf"\b(?:{'|'.join(map(re.escape, longest))})(?:'s)?\b", re.IGNORECASE)
        self.seen: set[str] = set()

    def new(self, text: str) -> int:
        """Return how many clauses of a story were never told before, and note them."""
        before = len(self.seen)
        for part in MARKS.split(self._names.sub(" N ", text)):
            clause = re.sub(r"\d+", "0", LINKS.sub("", " ".join(part.split()).casefold()))
            if len(WORD.findall(clause)) >= 3:
                self.seen.add(clause)
        return len(self.seen) - before


async def clauses(language: str, ticks: int) -> dict[str, Any]:
    """Measure what is new in the first and the last ticks of a village."""
    village, known = Village(language, 1), Clauses(language)
    new = [0] * ticks
    for tick in range(ticks):
        await village.tick()
        new[tick] = sum(known.new(story.text) for story in village.stories)
        village.stories.clear()
    first, last = sum(new[:SPAN]), sum(new[-SPAN:])
    return {"first": first, "last": last, "share": round(last / first, 3), "reached": 2 * last >= first}


def remembers(one: Character, words: str) -> bool:
    """Return whether a character's memory contains these words."""
    return words.casefold() in " ".join([one.memory.summary, *(cell.text for cell in one.memory.cells)]).casefold()


async def whisper(language: str, seeds: int) -> dict[str, Any]:
    """Measure how often a whispered piece of news becomes known to a third person."""
    spread = 0
    for seed in range(seeds):
        village = Village(language, seed)
        for _ in range(3):
            await village.tick()
        first = village.world.characters[seed % len(village.world.characters)].id
        body = {"kind": "whisper", "character": first, "text": f"{NEWS[language]}."}
        village.world, _ = influenced(village.world, body)
        others: set[str] = set()
        for _ in range(WITHIN):
            await village.tick()
            others |= {one.id for one in village.world.characters if one.id != first and remembers(one, NEWS[language])}
            if len(others) >= 2:
                spread += 1
                break
    return {"seeds": seeds, "known to a third person": spread, "reached": 2 * spread >= seeds}


async def visitor(language: str, seeds: int) -> dict[str, Any]:
    """Measure how often the sentence of a visitor is quoted and answered."""
    quoted = answered = 0
    for seed in range(seeds):
        village = Village(language, seed)
        await village.tick()
        name, words = GUEST[language], words_of(language).seat
        start = village.world.places[0].id
        village.world = with_character(village.world, Character("guest", name, words["newcomer"], "", start))
        waited = 0
        while len(village.world.present(start)) < 2 and waited < WITHIN:
            await village.tick({"guest": words["waiting"]})
            waited += 1
        village.stories.clear()
        spoken = await village.tick({"guest": SAID[language]})
        events = [one for one in spoken.events if one.place == start]
        at = next((event.order for event in events if event.actor == "guest"), 0)
        replies = [event for event in events if event.order > at]
        told = " ".join(story.text for story in village.stories)
        quoted += SAID[language].rstrip("?") in told
        for _ in range(2):
            replies += [one for one in (await village.tick({"guest": words["waiting"]})).events if one.place == start]
        answered += any(one.actor != "guest" and name in one.text and re.search('["«]', one.text) for one in replies)
    reached = min(quoted, answered) * 20 >= 19 * seeds
    return {"seeds": seeds, "quoted": quoted, "answered": answered, "reached": reached}


async def read(language: str, start: int) -> None:
    """Print the stories of 30 ticks."""
    village = Village(language, 1)
    for _ in range(start + 30):
        village.stories.clear()
        await village.tick()
        for story in village.stories if village.world.tick > start else ():
            print(f"{story.tick:4} {story.place:8} {story.text}")


def main() -> int:
    """Measure, print the results, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=("clauses", "whisper", "visitor"))
    parser.add_argument("--language", choices=LANGUAGES)
    parser.add_argument("--ticks", type=int, default=2000)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--read", type=int, metavar="FROM")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    reached = True
    for language in [given.language] if given.language else LANGUAGES:
        if given.read is not None:
            asyncio.run(read(language, given.read))
            continue
        cases: dict[str, Callable[[str], Coroutine[Any, Any, dict[str, Any]]]] = {
            "clauses": lambda code: clauses(code, given.ticks),
            "whisper": lambda code: whisper(code, given.seeds or 50),
            "visitor": lambda code: visitor(code, given.seeds or 20),
        }
        for case, measure in cases.items():
            if given.case in (None, case):
                figures = asyncio.run(measure(language))
                reached &= figures["reached"]
                row = {"case": case, "language": language, **figures}
                print(json.dumps(row) if given.json else ", ".join(f"{key} {value}" for key, value in row.items()))
                sys.stdout.flush()
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

"""Measure the storyteller: the share of repeated sentences, and what happens in its stories.

    python benchmarks/bench_storyteller.py [--ticks N] [--world NAME] [--language CODE] [--seed N] [--read N] [--json]

Tells each bundled world for a thousand ticks. A sentence counts as repeated if it occurred before word for word. Also
counts outcomes of intentions, refused moves, conflicts over objects, ends of stakes, and summaries that contradict
their memories. `--read N` prints the story of the first ticks.

Goal: at most 5 % repeated sentences, and each of the others at least once. The exit status is 1 if it is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from wsap_core.seams.model import Reply, Request
from wsap_sandbox.model import LANGUAGES
from wsap_sandbox.storyteller.backend import Storyteller
from wsap_sandbox.storyteller.intentions import deed_of
from wsap_sandbox.storyteller.lore import Lore, lore_of
from wsap_sandbox.templates.loader import read_template, template_names, world_of
from wsap_sandbox.tick.engine import Engine, Story
from wsap_sandbox.tick.facts import Facts, MemoryFacts, SceneFacts

LIMIT = 0.05
SENTENCE = re.compile(r"(?<=[.!?…])\s+")


@dataclass
class Told:
    """A story and its counts."""

    counts: Counter[str] = field(default_factory=Counter)
    stories: list[Story] = field(default_factory=list)
    teller: Storyteller = field(default_factory=Storyteller)

    async def ask(self, key: str, facts: Facts, request: Request) -> Reply:
        """Call the storyteller, and record the request."""
        reply = await self.teller.complete(request)
        if isinstance(facts, SceneFacts):
            self._scene(facts)
        elif isinstance(facts, MemoryFacts):
            said = json.loads(reply.text)["summary"]
            worked = [hedge in said for hedge in hedges(lore_of(facts), "hedge_good")]
            failed = facts.cells[-1].came_of_it.startswith(tuple(starts(lore_of(facts), "came_failure")))
            self.counts["summaries"] += 1
            self.counts["summaries that drifted"] += failed and any(worked)
        return reply

    def _scene(self, facts: SceneFacts) -> None:
        deeds = [deed_of(actor, facts, lore_of(facts)) for actor in facts.actors]
        wanted = Counter(deed.thing for deed in deeds if deed.kind in ("take", "snatch", "demand"))
        self.counts["conflicts over objects"] += sum(count > 1 for count in wanted.values())
        self.counts["conflicts over objects"] += sum(deed.kind in ("snatch", "demand") for deed in deeds)
        self.counts["refused moves"] += sum(deed.kind == "far" for deed in deeds)


def hedges(lore: Lore, rule: str) -> list[str]:
    """Return the plain texts of a rule."""
    return [text.split("{")[0] for text in lore.grammar.rules[rule]]


def starts(lore: Lore, rule: str) -> list[str]:
    """Return the beginnings of a rule's texts."""
    return [re.split(r"[.:,<]", text)[0] for text in lore.grammar.rules[rule]]


async def tell(name: str, code: str, ticks: int, seed: int) -> Told:
    """Tell a world."""
    told, world = Told(), world_of(read_template(name, code), seed)
    engine = Engine(told.ask, told.stories.append)
    stakes = {stake.object for stake in read_template(name, code).stakes}
    for _ in range(ticks):
        conditions = {one.id: one.condition for one in world.objects}
        world, record = await engine.advance(world)
        for event in record.events:
            told.counts[event.outcome if event.kind == "act" else event.kind] += 1
        told.counts["degraded results"] += len(record.degraded)
        told.counts["changes of what is at stake"] += sum(
            one in stakes and conditions[one] != now for one, now in record.conditions
        )
    return told


def main() -> int:
    """Tell the worlds, print the results, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ticks", type=int, default=1000)
    parser.add_argument("--world", choices=template_names())
    parser.add_argument("--language", choices=LANGUAGES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--read", type=int, default=0, metavar="N", help="print the story of the first N ticks")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    reached = True
    for name in [given.world] if given.world else template_names():
        for code in [given.language] if given.language else LANGUAGES:
            began = time.process_time()
            told = asyncio.run(tell(name, code, given.ticks, given.seed))
            took = time.process_time() - began
            sentences = [one for part in told.stories for one in SENTENCE.split(part.text)]
            share = 1 - len(set(sentences)) / len(sentences)
            reached &= share <= LIMIT
            if given.ticks >= 1000:
                wanted = ("partial", "refused moves", "conflicts over objects", "summaries that drifted")
                reached &= all(told.counts[what] for what in wanted)
            row = {"world": name, "language": code, "ticks": given.ticks, "sentences": len(sentences)}
            row |= {"repeated": round(share, 4), "ms a tick": round(1000 * took / given.ticks, 2), **told.counts}
            if given.json:
                print(json.dumps(row))
                continue
            print(
                f"{name}, {code}: {len(sentences):,} sentences in {given.ticks:,} ticks, {share:.1%} repeated", end=""
            )
            print(f" (at most {LIMIT:.0%}), {row['ms a tick']} ms a tick of processor time")
            print("    " + ", ".join(f"{what} {count}" for what, count in sorted(told.counts.items())))
            for part in told.stories if given.read else ():
                if part.tick <= given.read:
                    print(f"{part.tick:4} {part.place:8} {part.text}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

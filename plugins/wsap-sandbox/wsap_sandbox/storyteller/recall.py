"""What is left of memories: the newest half clear, the older ones short, the oldest gone, and some of it not so."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from wsap_sandbox.storyteller.grammar import sentence
from wsap_sandbox.storyteller.lore import Data, Lore

MOST = 4
"""Sentences in a summary."""

_SENTENCE = re.compile(r"(?<=[.!?…])\s+")


def summary(facts: Data, lore: Lore, number: int, rng: random.Random) -> str:
    """Return what a character still remembers: whether something worked is the first that is no longer certain."""
    slots = {"a": lore.person(facts["me"])}
    feelings = {sentence(one) for one in lore.grammar.phrases("feeling", slots)}
    hedges = [tail for rule in ("hedge_good", "hedge_bad") for tail in lore.grammar.phrases(rule, slots)]
    old = [text for text in _SENTENCE.split(str(facts["summary"])) if text.strip() and text not in feelings]
    kept = [_faded(text, hedges) for text in old]
    for at, cell in enumerate(facts["cells"]):
        kept.append(_blurred(cell, facts, lore, number + at, rng))
    kept = list(dict.fromkeys(kept))[-MOST:]
    if len(kept) == MOST or rng.random() < 0.4:
        kept = [*kept[-MOST + 1 :], lore.grammar.text("feeling", number, slots)]
    return " ".join(kept)


def _blurred(cell: Data, facts: Data, lore: Lore, number: int, rng: random.Random) -> str:
    """A memory in one sentence, with an ending that need not be the true one."""
    slots = {"a": lore.person(facts["me"])}
    tried = str(cell["tried"]).strip().rstrip(".!?…")
    tried = tried if lore.language == "en" else tried[:1].lower() + tried[1:]
    worked = any(str(cell["came_of_it"]).startswith(start) for start in _starts(lore))
    if rng.random() < 0.2:
        worked = not worked
    hedge = lore.grammar.phrase("hedge_good" if worked else "hedge_bad", number, slots)
    when = lore.grammar.phrase("long_ago", number + rng.randrange(5), slots)
    return sentence(f"{when} {tried}{hedge}")


def _starts(lore: Lore) -> list[str]:
    return [re.split(r"[.:,<]", text)[0] for text in lore.grammar.rules["came_success"]]


def _faded(text: str, hedges: Sequence[str]) -> str:
    """An old sentence, without how it ended."""
    end = next((tail for tail in hedges if text.endswith(f"{tail}.")), "")
    return f"{text[: -len(end) - 1]}." if end else text

"""How far memories have drifted from what happened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wsap_sandbox.model import Character, LedgerEvent

_STEM = 5
"""Letters of a word that are compared; what follows is taken for an ending."""
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class Distortion:
    """How far a memory is from the events that it is of; 0 is closest, 1 farthest."""

    invented: float
    """The share of the memory's words that are in none of the events; 0 for an empty memory."""
    forgotten: float
    """The share of the events of which no word is in the memory; 0 if there are none."""


def drift(one: Character, ledger: Iterable[LedgerEvent]) -> tuple[tuple[int, Distortion], ...]:
    """Return how far each of a character's memories, by its tick, has drifted from the ledger: all that ever happened.

    The newest is first. The summary, if there is one, is last, as of tick 0; it is compared with everything that the
    character witnessed before its oldest cell.
    """
    witnessed = [event for event in ledger if one.id in event.witnesses]
    cells = (*one.memory.cells, *reversed(one.memory.overflow))
    found = [(cell.tick, distortion(cell.text, [e for e in witnessed if e.id in cell.events])) for cell in cells]
    if summary := one.memory.summary:
        oldest = min((cell.tick for cell in cells), default=None)
        before = [event for event in witnessed if oldest is None or event.tick < oldest]
        found.append((0, distortion(summary, before)))
    return tuple(found)


def distortion(memory: str, events: Sequence[LedgerEvent]) -> Distortion:
    """Return how far a text is from events, by the stems of words with four letters or more."""
    said = _stems(memory)
    happened = [stems for stems in (_stems(event.text) for event in events) if stems]
    known: set[str] = set().union(*happened)
    invented = len(said - known) / len(said) if said else 0.0
    forgotten = sum(said.isdisjoint(stems) for stems in happened) / len(happened) if happened else 0.0
    return Distortion(invented, forgotten)


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}

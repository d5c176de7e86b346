"""A lived step, or a note, as one line of text with its provenance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wsap_core.protocol import Action, HistoryEntry
from wsap_core.seams.memory import Recollection
from wsap_core.untrusted import one_line

MAX_TEXT = 600
"""Most characters in a cell; a longer text is cut and ends in an ellipsis."""
MAX_NAME = 80
"""Most characters in the name of a world or of a kind."""

ACHIEVED, ENDED, FACT, PLAN, DANGER, REWARDED, FAILED, PLAIN = 1.0, 0.9, 0.8, 0.5, 0.4, 0.4, 0.3, 0.1
"""Importance of a step (the highest that fits) and of a note, from 0 to 1: an achievement, the end of an
episode, a fact, a plan, an event of a kind in `DANGEROUS`, a reward other than 0, a failure, anything else."""
DANGEROUS = frozenset({"combat", "damage", "danger", "death", "warning"})
"""Types of events that are worth remembering more than others."""


@dataclass(frozen=True)
class Cell:
    """One thing remembered."""

    text: str
    """One line, without its provenance."""
    world: str = ""
    """The game it happened in; empty where that is not known."""
    step: int | None = None
    """The step it happened at, as the game counts."""
    kind: str = "event"
    importance: float = PLAIN
    """From 0 to 1."""
    until: int | None = None
    """The last step, where several equal ones have become one."""
    times: int = 1
    """How many equal ones this stands for."""
    run: str = ""
    """The run it happened in, where the memory outlives runs."""

    def shown(self) -> str:
        """Return the text as a model reads it: where and when it was, then what."""
        where = [name for name in (self.world, self.run) if name]
        if self.step is not None:
            last = self.until if self.until is not None and self.until != self.step else None
            where.append(f"step {self.step}" if last is None else f"steps {self.step} to {last}")
        prefix = f"({', '.join(where)}) " if where else ""
        return f"{prefix}{self.text}" + (f" ({self.times} times)" if self.times > 1 else "")

    def recollection(self, score: float = 0.0) -> Recollection:
        """Return it with its provenance."""
        return Recollection(self.shown(), self.world, self.step, self.kind, score, self.run)

    def followed_by(self, other: Cell) -> Cell | None:
        """Return one cell for both if the other says the same of the same world and run, and None otherwise."""
        if (self.text, self.world, self.kind, self.run) != (other.text, other.world, other.kind, other.run):
            return None
        last = other.until if other.until is not None else other.step
        return replace(self, times=self.times + other.times, until=last if last is not None else self.until)

    def state(self) -> list[Any]:
        """Return it as JSON-ready data."""
        state = [self.text, self.world, self.step, self.kind, self.importance, self.until, self.times]
        return [*state, self.run] if self.run else state

    @classmethod
    def from_state(cls, state: Any) -> Cell:
        """Return the cell that `state` gave.

        Raises:
            ValueError: it is not one.
        """
        # Any: data from a snapshot, whose shape is not yet known.
        if not isinstance(state, list) or len(state) not in (7, 8):
            raise ValueError("a cell is a list of seven values, or eight with its run")
        text, world, step, kind, importance, until, times, run = state if len(state) == 8 else [*state, ""]
        if not all(isinstance(name, str) for name in (text, world, kind, run)):
            raise ValueError("the text, world, kind and run of a cell are text")
        if len(text) > 10 * MAX_TEXT or max(len(world), len(kind), len(run)) > MAX_NAME:
            raise ValueError("a cell is too long")
        if not (_is_step(step) and _is_step(until) and _is_step(times) and times is not None and times > 0):
            raise ValueError("the steps of a cell are whole numbers")
        if not isinstance(importance, int | float) or isinstance(importance, bool) or not 0 <= importance <= 1:
            raise ValueError("importance is a number from 0 to 1")
        # What a snapshot says is cleaned again: a file may have been edited.
        names = one_line(text), one_line(world), one_line(kind), one_line(run)
        return cls(names[0], names[1], step, names[2], float(importance), until, times, names[3])


def cell_of(entry: HistoryEntry, run: str = "") -> Cell:
    """Return a lived step as a cell: what was tried and why, what came of it, what was heard and seen."""
    step = entry.step if entry.step is not None else entry.observation.step
    return Cell(describe(entry), _name(entry.world), step, "event", importance_of(entry), run=_name(run))


def note_cell(text: str, kind: str, world: str, step: int | None, run: str = "") -> Cell:
    """Return what an agent noted as a cell."""
    importance = PLAN if kind == "plan" else FACT
    return Cell(cut(text, MAX_TEXT), _name(world), step, _name(kind) or "fact", importance, run=_name(run))


def describe(entry: HistoryEntry) -> str:
    """Return a lived step in the first person, as one line of at most `MAX_TEXT` characters.

    Seed 003 wants what was tried, what came of it, and how it is understood; the last is the
    reasoning that the agent gave with its action.
    """
    said = f"I tried {_spoken(entry.action)}"
    if entry.action.reasoning:
        said += f" (thinking: {cut(entry.action.reasoning, 120)})"
    result = entry.result
    if result is None:
        return cut(f"{said}.", MAX_TEXT)
    parts = [said + ("; it worked" if result.success else "; it failed")]
    message = cut(result.message, 160)
    if message:
        parts[0] += f": {message}"
    parts[0] = _stopped(parts[0])
    if result.achievements:
        parts.append(f"Achieved {cut(', '.join(map(str, result.achievements)), 120)}.")
    if result.reward:
        parts.append(f"Reward {_number(result.reward)}.")
    parts += [_stopped(cut(e.description, 80)) for e in _last(result.observation.recent_events) if e.description]
    parts += [f'{cut(m.sender, 40)} said "{cut(m.content, 100)}".' for m in _last(result.observation.messages)]
    if result.done:
        parts.append("That was the end.")
    seen = dict.fromkeys(part for part in parts if part.rstrip(".") != message.rstrip("."))
    return cut(" ".join(seen), MAX_TEXT)


def importance_of(entry: HistoryEntry) -> float:
    """Return how much a lived step matters, from 0 to 1; the constants above say by what."""
    result = entry.result
    if result is None:
        return PLAIN
    if result.achievements:
        return ACHIEVED
    if result.done:
        return ENDED
    if result.reward:
        return REWARDED
    if any(event.type in DANGEROUS for event in result.observation.recent_events):
        return DANGER
    return PLAIN if result.success else FAILED


def cut(text: object, limit: int) -> str:
    """Return text on one line, with at most `limit` characters."""
    # Cut before it is cleaned, so that the work is bounded; what is left out could only have been longer.
    line = one_line(str(text)[: 4 * limit + 100])
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _spoken(action: Action) -> str:
    shown = ", ".join(f"{cut(k, 40)}={cut(v, 60)}" for k, v in _items(action.parameters))
    return cut(action.name, 60) + (f"({shown})" if shown else "")


def _items(parameters: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    # Any: parameters have every kind of value. An integer of thousands of digits can't be written out.
    for key, value in list(parameters.items())[:6]:
        large = isinstance(value, int) and value.bit_length() > 200
        yield str(key), "a very large number" if large else value


def _last(items: Iterable[Any], most: int = 3) -> list[Any]:
    return list(items)[-most:]


def _stopped(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else text + "."


def _number(value: float) -> str:
    return f"{value:+.3g}" if math.isfinite(value) else "that is no number"


def _name(text: object) -> str:
    return cut(text, MAX_NAME) if text is not None else ""


def _is_step(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)

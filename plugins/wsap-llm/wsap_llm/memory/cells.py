"""Shared parts of memories: cells (one line of text with its provenance), token budgets and snapshots."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from typing_extensions import override

from wsap_core.authoring import packing
from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, Event, HistoryEntry
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.memory import AgentMemory, Browsable, OutlivesRuns, Recollection, estimate_tokens
from wsap_core.untrusted import single_line
from wsap_llm.prompts import said_of, words_of

T = TypeVar("T")
MAX_TEXT = 600
"""Maximum length of a cell in characters; a longer text is cut and ends in an ellipsis."""
MAX_NAME = 80
"""Maximum length of the name of a world or kind in characters."""

ACHIEVED, ENDED, FACT, PLAN, DANGER, REWARDED, FAILED, PLAIN = 1.0, 0.9, 0.8, 0.5, 0.4, 0.4, 0.3, 0.1
"""Importance of a step (the highest applies) or note, from 0 to 1: an achievement, the end of an episode, a fact, a
plan, an event type in `DANGEROUS`, a reward other than 0, a failure, anything else."""
DANGEROUS = frozenset({"combat", "damage", "danger", "death", "warning"})


@dataclass(frozen=True)
class Cell:
    """One entry of a memory."""

    text: str
    """One line, without its provenance."""
    world: str = ""
    """The game; empty if unknown."""
    step: int | None = None
    """The game's step."""
    kind: str = "event"
    importance: float = PLAIN
    """From 0 to 1."""
    until: int | None = None
    """The last step, if equal cells were merged."""
    times: int = 1
    """Number of merged cells."""
    run: str = ""
    """The run, if the memory outlives runs."""

    def shown(self) -> str:
        """Return the text for a model, prefixed with place and time."""
        where = [name for name in (self.world, self.run) if name]
        if self.step is not None:
            last = self.until if self.until is not None and self.until != self.step else None
            where.append(f"step {self.step}" if last is None else f"steps {self.step} to {last}")
        prefix = f"({', '.join(where)}) " if where else ""
        return f"{prefix}{self.text}" + (f" ({self.times} times)" if self.times > 1 else "")

    def recollection(self, score: float = 0.0) -> Recollection:
        """Return the cell with its provenance as a recollection."""
        return Recollection(self.shown(), self.world, self.step, self.kind, score, self.run)

    def followed_by(self, other: Cell) -> Cell | None:
        """Return one cell for both if they have the same text, world, kind and run, else None."""
        if (self.text, self.world, self.kind, self.run) != (other.text, other.world, other.kind, other.run):
            return None
        last = other.until if other.until is not None else other.step
        return replace(self, times=self.times + other.times, until=last if last is not None else self.until)

    def state(self) -> list[JsonValue]:
        """Return the cell as JSON-ready data."""
        state = [self.text, self.world, self.step, self.kind, self.importance, self.until, self.times]
        return [*state, self.run] if self.run else state

    @classmethod
    def from_state(cls, state: JsonValue) -> Cell:
        """Return the cell for data from `state`; raise ValueError if it is invalid."""
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
        # Cleaned again because the file may have been edited.
        names = single_line(text), single_line(world), single_line(kind), single_line(run)
        return cls(names[0], names[1], step, names[2], float(importance), until, times, names[3])


class CellMemory(AgentMemory, OutlivesRuns, Browsable):
    """A memory made of cells, each with its run."""

    run = ""

    @override
    def begin_run(self, run: str) -> None:
        self.run = run

    @override
    def note(self, text: str, *, kind: str = "fact", world: str = "", step: int | None = None) -> None:
        importance = PLAN if kind == "plan" else FACT
        cell = Cell(cut(text, MAX_TEXT), _name(world), step, _name(kind) or "fact", importance, run=_name(self.run))
        if cell.text:
            self.keep_note(cell)

    @abstractmethod
    def keep_note(self, cell: Cell) -> None:
        """Store a note that is not empty."""


def cell_of(entry: HistoryEntry, run: str = "") -> Cell:
    """Return a step as a cell: the action with its reasoning, the result, messages and events."""
    step = entry.step if entry.step is not None else entry.observation.step
    return Cell(describe(entry), _name(entry.world), step, "event", importance_of(entry), run=_name(run))


def describe(entry: HistoryEntry) -> str:
    """Return a step in the first person, as one line of at most `MAX_TEXT` characters: by seed 003 the attempt, its
    result and the agent's reasoning."""
    result = entry.result
    words = words_of(entry.observation.language)
    said = words.say(f"I tried {_spoken(entry.action)}")
    if entry.action.reasoning:
        said += f" ({words.say(f'thinking: {cut(entry.action.reasoning, 120)}')})"
    if result is None:
        return cut(f"{said}.", MAX_TEXT)
    parts = [f"{said}; {said_of(result, words)}"]
    message = cut(result.message, 160)
    if message:
        parts[0] += f": {message}"
    parts[0] = _stopped(parts[0])
    if result.achievements:
        parts.append(words.say(f"Achieved {cut(', '.join(map(str, result.achievements)), 120)}."))
    if result.reward:
        parts.append(words.say(f"Reward {_number(result.reward)}."))
    parts += [_stopped(cut(e.description, 80)) for e in _last(_new_events(entry)) if e.description]
    heard = _last(_new(result.observation.messages, entry.observation.messages, _same_step(entry)))
    parts += [words.say(f'{cut(m.sender, 40)} said "{cut(m.content, 100)}".') for m in heard]
    if result.done:
        parts.append(words.say("That was the end."))
    seen = dict.fromkeys(part for part in parts if part.rstrip(".") != message.rstrip("."))
    return cut(" ".join(seen), MAX_TEXT)


def importance_of(entry: HistoryEntry) -> float:
    """Return the importance of a step, from 0 to 1, by the constants above."""
    result = entry.result
    if result is None:
        return PLAIN
    if result.achievements:
        return ACHIEVED
    if result.done:
        return ENDED
    if result.reward:
        return REWARDED
    if any(event.type in DANGEROUS for event in _new_events(entry)):
        return DANGER
    return PLAIN if result.success else FAILED


def _new_events(entry: HistoryEntry) -> Sequence[Event]:
    """Return the events of a step's result that its observation did not tell already: after an action that takes no
    game step, a world tells those of the step before again."""
    told = entry.observation.recent_events
    after = () if entry.result is None else entry.result.observation.recent_events
    return _new(after, told if _same_step(entry) else [e for e in told if e.step is not None], True)


def _same_step(entry: HistoryEntry) -> bool:
    return entry.result is not None and entry.result.observation.step == entry.observation.step


def _new(after: Sequence[T], before: Sequence[T], again: bool) -> list[T]:
    return [item for item in after if not (again and item in before)]


def cut(text: object, limit: int) -> str:
    """Return text on one line, with at most `limit` characters."""
    # Cut before cleaning, to bound the work.
    line = single_line(str(text)[: 4 * limit + 100])
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _spoken(action: Action) -> str:
    shown = ", ".join(f"{cut(k, 40)}={cut(v, 60)}" for k, v in _items(action.parameters))
    return cut(action.name, 60) + (f"({shown})" if shown else "")


def _items(parameters: Mapping[str, JsonValue]) -> Iterable[tuple[str, JsonValue]]:
    # Python can't print integers of thousands of digits.
    for key, value in list(parameters.items())[:6]:
        large = isinstance(value, int) and value.bit_length() > 200
        yield str(key), "a very large number" if large else value


def _last(items: Iterable[JsonValue], most: int = 3) -> list[JsonValue]:
    return list(items)[-most:]


def _stopped(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else text + "."


def _number(value: float) -> str:
    return f"{value:+.3g}" if math.isfinite(value) else "that is no number"


def _name(text: object) -> str:
    return cut(text, MAX_NAME) if text is not None else ""


def _is_step(value: JsonValue) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)


# --- budgets of tokens ---

SHORTEST = 24
"""Minimum number of tokens to which a text is shortened."""


def within(found: Iterable[Recollection], budget: int) -> list[Recollection]:
    """Return the recollections within a budget of estimated tokens, in order; others are shortened or skipped."""
    taken: list[Recollection] = []
    left = budget
    for recollection in found:
        if left <= 0:
            break
        need = estimate_tokens(recollection.text)
        if need > left:
            if left < SHORTEST:
                continue
            recollection = replace(recollection, text=shortened(recollection.text, left))
            need = estimate_tokens(recollection.text)
        taken.append(recollection)
        left -= need
    return taken


def cost(found: Iterable[Recollection]) -> int:
    """Return the estimated tokens of all recollections."""
    return sum(estimate_tokens(recollection.text) for recollection in found)


def shortened(text: str, budget: int) -> str:
    """Return the start of a text that fits into the budget with an ellipsis."""
    low, high = 0, len(text)
    while low < high:  # binary search for the longest start that fits
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle].rstrip() + "…") <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"


# --- snapshots ---

SNAPSHOT_LIMIT = 64 * 1024 * 1024
"""Maximum size of a snapshot's JSON in bytes, which default sizes of the built-in memories do not reach."""
_MAGIC = b"WSAP memory 1\n"


def pack(kind: str, state: dict[str, JsonValue]) -> bytes:
    """Return a snapshot of a kind of memory; equal states give equal bytes."""
    return packing.pack(_MAGIC, dict(sorted({"kind": kind, **state}.items())))


def unpack(kind: str, data: bytes, limit: int = SNAPSHOT_LIMIT) -> dict[str, JsonValue]:
    """Return the state in a snapshot. Raises SnapshotError if it is damaged, too large or of another kind of memory."""
    state = packing.unpack(_MAGIC, data, "a memory", limit)
    if (found := state.get("kind")) != kind:
        raise SnapshotError(f"Expected a snapshot of the memory {kind!r}, got one of {str(found)[:40]!r}.")
    return state


def listed(state: Mapping[str, JsonValue], name: str) -> list[JsonValue]:
    """Return a list in a snapshot's state; raise ValueError if it is not a list."""
    value = state.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value

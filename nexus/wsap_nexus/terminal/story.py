"""What has happened in a seat so far: one shape for steps played now and for steps read from the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsap_core.protocol import Achievement, Action, ActionResult, Observation, View
from wsap_core.seams.agent import DecisionInfo
from wsap_core.untrusted import single_line, strip_control
from wsap_nexus.runs.tally import SeatTally
from wsap_nexus.terminal.spending import Spent

KEPT = 200
"""So many last actions are kept for showing."""

NOTHING_SPENT = Spent()

LONGEST_REASON = 500
"""Characters of an agent's reasoning, or of a message in short, that are kept for showing."""

LONGEST_MESSAGE = 20_000
"""Characters of a whole message that are kept for showing."""


@dataclass(frozen=True, slots=True)
class Note:
    """One step in short."""

    seat: str
    episode: int
    """From 0."""
    number: int
    """The seat's decision in the run, from 1."""
    action: str
    """The action with its parameters."""
    reasoning: str
    success: bool
    message: str
    reward: float
    achievements: tuple[str, ...]
    done: bool
    forced: bool = False
    seq: int = -1
    """Its event in the log; -1 for a step that is not read from there."""
    info: DecisionInfo | None = None
    """How the decision came about, where that was recorded."""
    whole: str = ""
    """The message on all its lines, where it is longer than `message`."""
    outcome: str = "done"
    """What became of the action: `done`, `failed` or `unknown`."""

    @property
    def not_done(self) -> str:
        """What a person is told of an action that worked not, or nobody knows whether; empty for all others."""
        if self.outcome != "done":
            return "failed" if self.outcome == "failed" else "outcome unknown"
        return "" if self.success else "refused"


def note_of(
    seat: str,
    episode: int,
    number: int,
    action: Action,
    result: ActionResult,
    *,
    forced: bool = False,
    seq: int = -1,
    info: DecisionInfo | None = None,
) -> Note:
    """Return a step in short, its texts on one line and no longer than is shown."""
    message = single_line(result.message)[:LONGEST_REASON]
    whole = strip_control(result.message).strip()[:LONGEST_MESSAGE]
    return Note(
        seat,
        episode,
        number,
        action_text(action.name, action.parameters),
        single_line(action.reasoning or "")[:LONGEST_REASON],
        result.success,
        message,
        result.reward,
        tuple(single_line(name) for name in result.achievements),
        result.done,
        forced,
        seq,
        info,
        "" if whole == message else whole,
        result.outcome,
    )


def action_text(name: str, parameters: Mapping[str, object]) -> str:
    """Return an action as one reads it: `speak(text=hello)`."""
    inner = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return single_line(f"{name}({inner})" if inner else name)[:LONGEST_REASON]


@dataclass(frozen=True)
class SeatScene:
    """What is shown of one seat at one moment."""

    name: str
    agent: str
    observation: Observation | None = None
    view: View | None = None
    """What the world draws of itself; None where there is only the observation."""
    steps: int = 0
    """Decisions so far, in the whole run."""
    episode: int = 0
    reward: float = 0.0
    """In the whole run."""
    notes: tuple[Note, ...] = ()
    """The last steps, oldest first."""
    unlocked: Mapping[str, int] = field(default_factory=dict)
    """Achievement of this episode -> the step that unlocked it."""
    maxima: Mapping[str, float] = field(default_factory=dict)
    """The highest value of each number in the status so far."""
    done: bool = False
    plan: tuple[str, ...] = ()
    planned: int = 1
    """The decision before which it was made."""
    hidden: bool = False
    """Whether nothing but its name and agent may be shown: somebody plays who sits elsewhere."""


@dataclass(frozen=True)
class Stage:
    """What is shown of a run at one moment."""

    title: str
    """The game's name for people."""
    run: str | None
    """The run's id; None if nothing is recorded."""
    seed: int
    limit: int | None
    seats: tuple[SeatScene, ...]
    focus: int = 0
    """The seat that is shown whole."""
    catalogue: tuple[Achievement, ...] = ()
    scores: tuple[tuple[str, float, str], ...] = ()
    """(metric, value, unit)."""
    state: str = ""
    """"playing 20/s", "paused", ..."""
    keys: str = ""
    """The keys there are, for the last line."""
    spending: Spent = NOTHING_SPENT
    """What language models took, over all seats."""
    episodes: int | None = None
    """How many episodes were asked for, where they were."""
    notice: str = ""
    """What is told of the run apart from its steps, such as a wait before a call is tried again."""

    @property
    def seat(self) -> SeatScene:
        """The seat that is shown whole."""
        return self.seats[self.focus % len(self.seats)]


class SeatStory:
    """Follows one seat, step after step, and tells how it stands. `past`: the seat with its totals so far."""

    def __init__(self, past: SeatTally) -> None:
        self.name = past.name
        self.agent = past.agent
        self.observation: Observation | None = None
        self.plan: tuple[str, ...] = ()
        self.planned = 1
        self._notes: deque[Note] = deque(maxlen=KEPT)
        self._steps = past.steps
        self._episode = past.episode
        self._reward = past.reward
        self._done = past.done
        self._unlocked = dict(past.unlocked)
        self._maxima: dict[str, float] = {}

    def take(self, note: Note, observation: Observation | None = None) -> None:
        """Go one step further; the observation, where given, is what the seat saw after it."""
        if note.episode != self._episode:
            self._episode, self._unlocked = note.episode, {}
        self._notes.append(note)
        self._steps = note.number
        self._reward += note.reward
        self._done = note.done
        for name in note.achievements:
            self._unlocked.setdefault(name, note.number)
        if observation is not None:
            self.see(observation)

    def recall(self, note: Note) -> None:
        """Take in a step that is counted already."""
        self._notes.append(note)

    def see(self, observation: Observation) -> None:
        """Take in what the seat sees."""
        self.observation = observation
        for name, value in numbers(observation).items():
            self._maxima[name] = max(value, self._maxima.get(name, value))

    def scene(self, view: View | None = None) -> SeatScene:
        """Return what is shown now."""
        return SeatScene(
            self.name,
            self.agent,
            self.observation,
            view,
            self._steps,
            self._episode,
            self._reward,
            tuple(self._notes),
            dict(self._unlocked),
            dict(self._maxima),
            self._done,
            self.plan,
            self.planned,
        )


def numbers(observation: Observation) -> dict[str, float]:
    """Return the numbers of an observation's status; a body's health limit counts for its health."""
    found = {
        str(key): float(value)
        for key, value in observation.status.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    limit = getattr(getattr(observation, "avatar", None), "max_health", 0)
    if "health" in found and isinstance(limit, int | float) and limit > found["health"]:
        found["health"] = float(limit)
    return found


def same(a: Note, b: Note) -> bool:
    """Return whether two steps look the same to a reader, so that they share a line."""
    quiet = not (a.reward or b.reward or a.achievements or b.achievements)
    alike = (a.action, a.not_done, a.message, a.reasoning, a.episode) == (
        b.action,
        b.not_done,
        b.message,
        b.reasoning,
        b.episode,
    )
    return quiet and alike


def folded(notes: Sequence[Note]) -> list[tuple[Note, int]]:
    """Return steps with equal neighbours put together: (the last of them, how many), oldest first."""
    lines: list[tuple[Note, int]] = []
    for note in notes:
        if lines and same(lines[-1][0], note):
            lines[-1] = (note, lines[-1][1] + 1)
        else:
            lines.append((note, 1))
    return lines

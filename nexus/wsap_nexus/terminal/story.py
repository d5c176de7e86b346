"""The state of a run and its seats as the terminal shows it, from live or recorded steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from wsap_core.protocol import Achievement, Action, ActionResult, Observation, View
from wsap_core.seams.agent import DecisionInfo
from wsap_core.untrusted import single_line, strip_control
from wsap_llm.middleware.show import Thought
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.terminal.spending import Spent

KEPT = 200
"""Number of last actions that are kept."""

NOTHING_SPENT = Spent()

BEGUN = 0.5
"""Seconds after which a request is shown that has no text yet."""

LONGEST_REASON = 500
"""Maximum characters of an agent's reasoning, or of a short message."""

LONGEST_MESSAGE = 20_000
"""Maximum characters of a whole message."""


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
    """Number of its event in the log; -1 for a live step."""
    info: DecisionInfo | None = None
    """How the decision was made, if recorded."""
    whole: str = ""
    """The message with all lines, if it is longer than `message`."""
    outcome: str = "done"
    """The action's outcome: `done`, `failed` or `unknown`."""
    truncated: bool = False
    """Whether the game ended the episode at a limit of steps or time."""

    @property
    def not_done(self) -> str:
        """The label of an action that failed, was refused or has an unknown outcome; empty for all others."""
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
    """Return a step in short, with its texts on one line and cut."""
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
        result.truncated,
    )


def action_text(name: str, parameters: Mapping[str, object]) -> str:
    """Return an action as text: `speak(text=hello)`."""
    inner = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return single_line(f"{name}({inner})" if inner else name)[:LONGEST_REASON]


@dataclass(frozen=True)
class SeatScene:
    """One seat at one moment."""

    name: str
    agent: str
    observation: Observation | None = None
    view: View | None = None
    """The world's view; None if there is only the observation."""
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
    """The decision before which the plan was made."""
    hidden: bool = False
    """Whether only its name and agent are shown, because a person plays another seat."""


@dataclass(frozen=True)
class Writing:
    """What a model is writing."""

    name: str = ""
    """The model, in a run of several seats with its seat; empty if none is writing."""
    text: str = ""
    thinks: bool = False
    """Whether it is still thinking."""
    state: str = ""
    """What is waited for while there is no text: `reading 1,566 tokens, 43 s`."""


def writing_of(thought: Thought, *, several: bool = False) -> Writing:
    """Return what a model is writing; nothing of a request that has only begun, which most often has its reply soon."""
    name = f"{thought.seat}, {thought.model}" if several else thought.model
    if text := thought.text:
        return Writing(name, text, thinks=not thought.draft.text)
    return Writing() if thought.seconds < BEGUN and not thought.draft.waiting else Writing(name, state=thought.state)


@dataclass(frozen=True)
class Stage:
    """A run at one moment."""

    title: str
    """The game's display title."""
    run: str | None
    """The run's id; None if nothing is recorded."""
    seed: int
    limit: int | None
    seats: tuple[SeatScene, ...]
    focus: int = 0
    """The index of the seat that is shown in full."""
    catalogue: tuple[Achievement, ...] = ()
    scores: tuple[tuple[str, float, str], ...] = ()
    """(metric, value, unit)."""
    state: str = ""
    """"playing 20/s", "paused", ..."""
    keys: str = ""
    spending: Spent = NOTHING_SPENT
    episodes: int | None = None
    """Requested number of episodes, if any."""
    notice: str = ""
    """A message, such as that a call is retried after a wait."""
    writing: Writing | None = None
    """What a model is writing; None in a run without replies that are shown."""

    @property
    def seat(self) -> SeatScene:
        """The seat that is shown in full."""
        return self.seats[self.focus % len(self.seats)]


class SeatStory:
    """Accumulates the state of one seat, step after step; `past` has its totals so far."""

    def __init__(self, past: SeatTally) -> None:
        self.now = SeatScene(
            past.name, past.agent, None, None, past.steps, past.episode, past.reward, (), past.unlocked, {}, past.done
        )
        """The current state, without the last steps."""
        self._notes: deque[Note] = deque(maxlen=KEPT)

    def take(
        self, note: Note, observation: Observation | None = None, *, plan: tuple[str, ...] = (), planned: int = 1
    ) -> None:
        """Add a step and, if given, the observation after it."""
        self.recall(note)
        now, new = self.now, dict.fromkeys(note.achievements, note.number)
        self.now = replace(
            now,
            steps=note.number,
            episode=note.episode,
            reward=now.reward + note.reward,
            unlocked={**new, **now.unlocked} if note.episode == now.episode else new,
            done=note.done,
            plan=plan,
            planned=planned,
        )
        if observation is not None:
            self.see(observation)

    def recall(self, note: Note) -> None:
        """Add a step that is already in the totals."""
        self._notes.append(note)

    def see(self, observation: Observation) -> None:
        """Set the seat's observation."""
        maxima = dict(self.now.maxima)
        for name, value in numbers(observation).items():
            maxima[name] = max(value, maxima.get(name, value))
        self.now = replace(self.now, observation=observation, maxima=maxima)

    def scene(self, view: View | None = None) -> SeatScene:
        """Return the current state with its last steps."""
        return replace(self.now, view=view, notes=tuple(self._notes))


def numbers(observation: Observation) -> dict[str, float]:
    """Return the numbers of an observation's status, with a body's maximum health as its health."""
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
    """Return whether two steps look the same, so that they share a line."""
    quiet = not (a.reward or b.reward or a.achievements or b.achievements)
    looks = attrgetter("action", "not_done", "message", "reasoning", "episode")
    return quiet and looks(a) == looks(b)


def folded(notes: Sequence[Note]) -> list[tuple[Note, int]]:
    """Return steps with equal neighbours merged: (the last of them, their number), oldest first."""
    lines: list[tuple[Note, int]] = []
    for note in notes:
        if lines and same(lines[-1][0], note):
            lines[-1] = (note, lines[-1][1] + 1)
        else:
            lines.append((note, 1))
    return lines

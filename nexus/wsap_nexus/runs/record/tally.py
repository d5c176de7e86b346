"""Totals and the trajectory hash of each seat of a run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import ActionResult, Observation
from wsap_core.seams.agent import NO_USAGE, Agent, DecisionInfo, ExplainsDecisions, Usage
from wsap_core.seams.model_errors import ForcedDecisionsError
from wsap_core.specs import EpisodeSummary
from wsap_core.untrusted import single_line
from wsap_core.worlds import Outcome
from wsap_nexus.runs.record.trajectory import TrajectoryHash

MOST_FORCED = 10
"""Forced decisions after which the run is paused, unless the agent advanced the game itself in between."""

MOST_CAUSES = 12
"""Maximum number of distinct causes of forced decisions; all others are counted together."""
OTHER_CAUSES = "other causes"

_MOST = sys.float_info.max


def add_causes(causes: dict[str, int], more: Mapping[str, int]) -> None:
    """Add counts by cause, with at most `MOST_CAUSES` distinct causes."""
    for cause, times in more.items():
        text = single_line(cause)[:200].rstrip(". ")
        name = text if text in causes or len(causes) < MOST_CAUSES else OTHER_CAUSES
        if text:
            causes[name] = causes.get(name, 0) + times


def added(total: float, more: float) -> float:
    """Return a sum that is finite whatever it adds up: an overflow stays at the limit."""
    found = float(total) + float(more)
    return 0.0 if found != found else max(-_MOST, min(_MOST, found))


class ForcedStreak:
    """Counts a seat's forced decisions, if its agent explains them."""

    def __init__(self, seat: str, agent: Agent) -> None:
        self._seat = seat
        self._explained = isinstance(agent, ExplainsDecisions)
        self._causes: list[str] = []

    def check(self, before: Observation, outcome: Outcome, info: DecisionInfo | None) -> None:
        """Process a decision and its outcome; ForcedDecisionsError if too many in a row were forced."""
        if info is not None and info.forced and self._explained:
            self._causes.append(info.cause.rstrip("."))
        elif outcome.stepped and (outcome.result.observation.step != before.step or not before.step):
            self._causes.clear()
        if len(self._causes) >= MOST_FORCED and not outcome.result.done:
            cause = max(self._causes, key=self._causes.count)
            raise ForcedDecisionsError(
                f"The last {len(self._causes)} decisions of seat {self._seat!r} were forced, because the model's "
                f"answers could not be used: {cause}. The run is paused."
            )


OF_DECISIONS = ("repaired", "forced", "unconstrained", "cut", "continued", "chosen")
"""The counted fields of `DecisionInfo`."""
_COUNTS = ("steps", "reward", "done", *OF_DECISIONS, "unlocking", "episode")
_OPEN = ("_seed", "episode_steps", "_episode_reward", "_episode_forced", "_episode_repaired")


@dataclass
class SeatTally:
    """Totals of one seat so far."""

    name: str
    agent: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """The agent's options, without confidential ones."""
    steps: int = 0
    reward: float = 0.0
    done: bool = False
    truncated: bool = False
    """Whether the latest episode was ended by its game at a limit of steps or time."""
    repaired: int = 0
    forced: int = 0
    unconstrained: int = 0
    cut: int = 0
    continued: int = 0
    chosen: int = 0
    """Decisions drawn from options that the model scored."""
    unlocking: int = 0
    """Steps that unlocked an achievement."""
    episode: int = 0
    """The latest episode, from 0."""
    episodes: list[EpisodeSummary | list[Any]] = field(default_factory=list)
    """Finished episodes; restored ones in recorded form until `all_episodes` is called. Any: JSON."""
    causes: dict[str, int] = field(default_factory=dict)
    """Cause -> number of forced decisions."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Numbers of steps that had no effect (`failed`) or an unknown one (`unknown`)."""
    worked: Counter[str] = field(default_factory=Counter)
    """`action:NAME` and `achievement:NAME` -> number of successes."""
    unlocked: dict[str, int] = field(default_factory=dict)
    """Achievements in the episode of the last step -> number, from 1, of the step that unlocked each."""
    hash: TrajectoryHash = field(default_factory=TrajectoryHash)
    episode_steps: int = 0
    """Decisions in the open episode."""
    _seed: int = 0
    _episode_reward: float = 0.0
    _episode_forced: int = 0
    _episode_repaired: int = 0
    _settled: Usage = NO_USAGE
    _last: Usage = NO_USAGE

    def __repr__(self) -> str:
        return (
            f"SeatTally({self.name!r}, agent={self.agent!r}, model={self.model!r}, steps={self.steps}, "
            f"reward={round(self.reward, 4)}, done={self.done})"
        )

    def begin_episode(self, episode: int, seed: int) -> None:
        """Start counting an episode; one that is still open counts as cut off."""
        self.close_episode()
        self.episode, self._seed = episode, seed
        self.done = self.truncated = False

    def add(self, line: str, action: str, result: ActionResult, info: DecisionInfo | None) -> None:
        """Count one resolved step, given its canonical line and the name of its action."""
        self.hash.add(line.encode("ascii"))
        self.count(
            result.reward, result.achievements, done=result.done, truncated=result.truncated, info=info,
            outcome=result.outcome,
        )  # fmt: skip
        self.count_worked(action if result.success else None, result.achievements)

    def add_tick(self, line: str, *, done: bool) -> None:
        """Count a tick of a world that lives, given its canonical line."""
        self.hash.add(line.encode("ascii"))
        self.count(0.0, (), done=done, info=None)

    def count(
        self, reward: float, achievements: Iterable[str], *,
        done: bool, info: DecisionInfo | None, outcome: str = "done", truncated: bool = False,
    ) -> None:  # fmt: skip
        """Count one resolved step without adding its line to the hash."""
        if not self.episode_steps:
            self.unlocked = {}
        self.steps += 1
        self.reward = added(self.reward, reward)
        self.episode_steps += 1
        self._episode_reward = added(self._episode_reward, reward)
        names = tuple(achievements)
        self.unlocking += bool(names)
        for name in names:
            self.unlocked.setdefault(name, self.steps)
        self.done, self.truncated = done, truncated
        if outcome != "done":
            add_causes(self.outcomes, {outcome: 1})
        if info is not None:
            for name in OF_DECISIONS:
                setattr(self, name, getattr(self, name) + getattr(info, name))
            self._episode_repaired += info.repaired
            self._episode_forced += info.forced
            if info.forced:
                add_causes(self.causes, {info.cause: 1})
        if self._last is not NO_USAGE:
            self._settled += self._last
        self._last = NO_USAGE if info is None else info.usage
        if done:
            self.close_episode()

    def count_worked(self, action: str | None, achievements: Iterable[str]) -> None:
        """Count an action that succeeded, if any, and its achievements."""
        acted = () if action is None else (f"action:{action}",)
        self.worked.update((*acted, *(f"achievement:{name}" for name in achievements)))

    @property
    def model(self) -> str | None:
        """The address of the language model that decides, if any."""
        model = self.options.get("model")
        return model if isinstance(model, str) and model else None

    @property
    def usage(self) -> Usage:
        """Model usage over all decisions."""
        return self._settled + self._last

    def amend(self, usage: Usage) -> None:
        """Replace the usage counted for the last decision by its later value."""
        self._last = usage

    def close_episode(self) -> None:
        """Move the open episode, if it has any step, to the finished ones."""
        if self.episode_steps:
            self.episodes.append(self._current())
        self.episode_steps, self._episode_reward, self._episode_forced, self._episode_repaired = 0, 0.0, 0, 0

    def all_episodes(self) -> list[EpisodeSummary]:
        """Return each episode with a step, even the open one, so no mean lacks one; WireError if one is damaged."""
        found = [self._decoded(episode) if isinstance(episode, list) else episode for episode in self.episodes]
        self.episodes = [*found]
        return [*found, self._current()] if self.episode_steps else found

    @property
    def digest(self) -> str:
        """This seat's trajectory hash, in hexadecimal."""
        return self.hash.value

    def copy(self) -> SeatTally:
        """Return an independent tally that shares the hash, so add no lines to it."""
        causes, outcomes, unlocked = dict(self.causes), dict(self.outcomes), dict(self.unlocked)
        own = replace(self, episodes=list(self.episodes), causes=causes, outcomes=outcomes, unlocked=unlocked)
        own.worked = self.worked.copy()
        return own

    def state(self, first: int = 0) -> dict[str, Any]:
        """Return everything counted, JSON-ready, with the finished episodes from the `first` on."""
        return {
            **{name.strip("_"): getattr(self, name) for name in (*_COUNTS, *_OPEN)},
            "hash": self.digest,
            "causes": dict(self.causes),
            **({"outcomes": dict(self.outcomes)} if self.outcomes else {}),
            **({"truncated": True} if self.truncated else {}),
            "unlocked": dict(self.unlocked),
            "worked": dict(self.worked),
            "usage": [asdict(self._settled), asdict(self._last)],
            "episodes": [e if isinstance(e, list) else _encoded(e) for e in self.episodes[first:]],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state, whose missing episodes `prepend` adds; WireError if it is damaged."""
        try:
            for name in (*_COUNTS, *_OPEN):
                # JSON may hold a whole float as an integer.
                setattr(self, name, type(getattr(self, name))(state[name.strip("_")]))
            self.hash = TrajectoryHash(str(state["hash"]))
            self.causes = {str(cause): int(times) for cause, times in state["causes"].items()}
            self.outcomes = {str(outcome): int(times) for outcome, times in state.get("outcomes", {}).items()}
            self.truncated = bool(state.get("truncated", False))
            self.worked = Counter(state["worked"])
            self.unlocked = {str(name): int(number) for name, number in state["unlocked"].items()}
            self._settled, self._last = (_usage(usage) for usage in state["usage"])
            self.episodes = list(state["episodes"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WireError(f"The recorded totals of seat {self.name!r} are damaged: {error}.") from error

    def prepend(self, state: Mapping[str, Any]) -> None:
        """Insert the finished episodes of an earlier state before the known ones."""
        self.episodes[:0] = state["episodes"]

    def _decoded(self, recorded: list[Any]) -> EpisodeSummary:
        try:
            episode, seed, steps, reward, names, done, forced, repaired, *truncated = recorded
            return EpisodeSummary(
                *(seed, steps, float(reward), tuple(names), bool(done), self.name, episode, int(forced)),
                *(int(repaired), truncated == [True]),
            )
        except (TypeError, ValueError) as error:
            raise WireError(f"A recorded episode of seat {self.name!r} is damaged: {error}.") from error

    def _current(self) -> EpisodeSummary:
        return EpisodeSummary(
            seed=self._seed,
            steps=self.episode_steps,
            reward=self._episode_reward,
            achievements=tuple(sorted(self.unlocked)),
            done=self.done,
            seat=self.name,
            episode=self.episode,
            forced=self._episode_forced,
            repaired=self._episode_repaired,
            truncated=self.truncated,
        )


def _encoded(e: EpisodeSummary) -> list[Any]:
    data = [e.episode, e.seed, e.steps, e.reward, list(e.achievements), e.done, e.forced, e.repaired]
    return [*data, True] if e.truncated else data


def _usage(data: Mapping[str, Any]) -> Usage:
    cost = data["cost"]
    return Usage(data["calls"], data["prompt_tokens"], data["completion_tokens"], None if cost is None else float(cost))


@dataclass(frozen=True)
class WorldUsage:
    """The model usage of a world itself."""

    usage: Usage = NO_USAGE
    asked_again: int = 0
    """Calls that were in flight when the run was stopped, and repeated when it was resumed."""

    def call(self, body: Mapping[str, Any]) -> WorldUsage:
        """Return the usage with a recorded call added."""
        return WorldUsage(
            self.usage + Usage(**body["reply"]["finish"]["usage"]), self.asked_again + int(body.get("again", 0))
        )

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> WorldUsage:
        """Return the usage from `asdict` data; KeyError or TypeError if it is damaged."""
        return cls(_usage(data["usage"]), int(data["asked_again"]))


NO_WORLD_USAGE = WorldUsage()

"""Totals, scores and the trajectory hash of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from wsap_core.errors import WireError
from wsap_core.protocol import ActionResult
from wsap_core.seams.agent import NO_USAGE, DecisionInfo, Usage
from wsap_core.specs import AdapterSpec, EpisodeSummary
from wsap_nexus.runs.forced import add_causes
from wsap_nexus.runs.trajectory import WORLD, TrajectoryHash, combined

_COUNTS = ("steps", "reward", "done", "repaired", "forced", "unconstrained", "cut", "continued", "unlocking", "episode")
_LATER = ("chosen",)
"""Counts that states of earlier versions lack."""
_OPEN = ("_seed", "_episode_steps", "_episode_reward")


@dataclass
class SeatTally:
    """Totals of one seat so far."""

    name: str
    agent: str
    steps: int = 0
    reward: float = 0.0
    done: bool = False
    repaired: int = 0
    forced: int = 0
    unconstrained: int = 0
    cut: int = 0
    continued: int = 0
    chosen: int = 0
    """Decisions in which the model scored the options and one was drawn."""
    unlocking: int = 0
    """Steps that unlocked an achievement."""
    episode: int = 0
    """The episode that was begun last, from 0."""
    episodes: list[EpisodeSummary | list[Any]] = field(default_factory=list)
    """Finished episodes; restored ones as they were recorded, until `all_episodes` is called. Any: JSON."""
    causes: dict[str, int] = field(default_factory=dict)
    """Why decisions were forced, with how many were for that cause."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """How many steps came to nothing (`failed`), and of how many nobody knows (`unknown`)."""
    worked: Counter[str] | None = field(default_factory=Counter)
    """`action:NAME` and `achievement:NAME` -> how often, with success; None after totals of an earlier version."""
    unlocked: dict[str, int] = field(default_factory=dict)
    """Achievements of the episode of the last step, and the number, from 1, of the step that unlocked each."""
    hash: TrajectoryHash = field(default_factory=TrajectoryHash)
    _seed: int = 0
    _episode_steps: int = 0
    _episode_reward: float = 0.0
    _settled: Usage = NO_USAGE
    _last: Usage = NO_USAGE

    def begin_episode(self, episode: int, seed: int) -> None:
        """Start counting an episode; one that is still open counts as cut short."""
        self.close_episode()
        self.episode, self._seed = episode, seed
        self.done = False

    def add(self, line: str, action: str, result: ActionResult, info: DecisionInfo | None) -> None:
        """Count one resolved step, given as its canonical line and the name of its action."""
        self.hash.add(line.encode("ascii"))
        self.count(result.reward, result.achievements, done=result.done, info=info, outcome=result.outcome)
        self.count_worked(action if result.success else None, result.achievements)

    def add_tick(self, line: str, *, done: bool) -> None:
        """Count a tick of a world that lives, given as its canonical line."""
        self.hash.add(line.encode("ascii"))
        self.count(0.0, (), done=done, info=None)

    def count(
        self, reward: float, achievements: Iterable[str], *,
        done: bool, info: DecisionInfo | None, outcome: str = "done",
    ) -> None:  # fmt: skip
        """Count one resolved step without its line, so that the hash stays behind."""
        if not self._episode_steps:
            self.unlocked = {}
        self.steps += 1
        self.reward += reward
        self._episode_steps += 1
        self._episode_reward += reward
        names = tuple(achievements)
        self.unlocking += bool(names)
        for name in names:
            self.unlocked.setdefault(name, self.steps)
        self.done = done
        if outcome != "done":
            add_causes(self.outcomes, {outcome: 1})
        if info is not None:
            self.repaired += info.repaired
            self.forced += info.forced
            if info.forced:
                add_causes(self.causes, {info.cause: 1})
            self.unconstrained += info.unconstrained
            self.cut += info.cut
            self.continued += info.continued
            self.chosen += info.chosen
        if self._last is not NO_USAGE:
            self._settled += self._last
        self._last = NO_USAGE if info is None else info.usage
        if done:
            self.close_episode()

    def count_worked(self, action: str | None, achievements: Iterable[str]) -> None:
        """Count an action that worked, if it did, and what it achieved."""
        if self.worked is not None:
            acted = () if action is None else (f"action:{action}",)
            self.worked.update((*acted, *(f"achievement:{name}" for name in achievements)))

    @property
    def usage(self) -> Usage:
        """Model usage over all decisions."""
        return self._settled + self._last

    def amend(self, usage: Usage) -> None:
        """Replace the usage counted for the last decision by what it has taken since."""
        self._last = usage

    def close_episode(self) -> None:
        """Move the open episode, if it has any step, to the finished ones."""
        if self._episode_steps:
            self.episodes.append(self._current())
        self._episode_steps, self._episode_reward = 0, 0.0

    def all_episodes(self) -> list[EpisodeSummary]:
        """Return every episode that has a step, the open one included, so that no mean leaves one out.

        Raises:
            WireError: a recorded one is damaged.
        """
        found = [self._decoded(episode) if isinstance(episode, list) else episode for episode in self.episodes]
        self.episodes = [*found]
        return [*found, self._current()] if self._episode_steps else found

    @property
    def episode_steps(self) -> int:
        """How many decisions the open episode has."""
        return self._episode_steps

    @property
    def digest(self) -> str:
        """The trajectory hash of this seat, in hexadecimal."""
        return self.hash.value

    def copy(self) -> SeatTally:
        """Return a tally that counts on by itself; without lines, as both have one hash."""
        causes, outcomes, unlocked = dict(self.causes), dict(self.outcomes), dict(self.unlocked)
        own = replace(self, episodes=list(self.episodes), causes=causes, outcomes=outcomes, unlocked=unlocked)
        own.worked = None if self.worked is None else self.worked.copy()
        return own

    def state(self, first: int = 0) -> dict[str, Any]:
        """Return everything that was counted, JSON-ready; of the finished episodes those from the `first` on."""
        return {
            **{name.strip("_"): getattr(self, name) for name in (*_COUNTS, *_LATER, *_OPEN)},
            "hash": self.digest,
            "causes": dict(self.causes),
            **({"outcomes": dict(self.outcomes)} if self.outcomes else {}),
            "unlocked": dict(self.unlocked),
            **({} if self.worked is None else {"worked": dict(self.worked)}),
            "usage": [asdict(self._settled), asdict(self._last)],
            "episodes": [
                e if isinstance(e, list) else [e.episode, e.seed, e.steps, e.reward, list(e.achievements), e.done]
                for e in self.episodes[first:]
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state; finished episodes that it leaves out are put before its own by `prepend`.

        Raises:
            WireError: it is damaged.
        """
        try:
            for name in (*_COUNTS, *_OPEN):
                # A whole number has no fraction in JSON.
                setattr(self, name, type(getattr(self, name))(state[name.strip("_")]))
            for name in _LATER:
                setattr(self, name, int(state.get(name, 0)))
            self.hash = TrajectoryHash(str(state["hash"]))
            self.causes = {str(cause): int(times) for cause, times in state.get("causes", {}).items()}
            self.outcomes = {str(outcome): int(times) for outcome, times in state.get("outcomes", {}).items()}
            self.worked = Counter(state["worked"]) if "worked" in state else None
            self.unlocked = {str(name): int(number) for name, number in state["unlocked"].items()}
            self._settled, self._last = (_usage(usage) for usage in state["usage"])
            self.episodes = list(state["episodes"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise WireError(f"The recorded totals of seat {self.name!r} are damaged: {error}.") from error

    def prepend(self, state: Mapping[str, Any]) -> None:
        """Put the finished episodes of an earlier state before those that are known."""
        self.episodes[:0] = state["episodes"]

    def _decoded(self, recorded: list[Any]) -> EpisodeSummary:
        try:
            episode, seed, steps, reward, names, done = recorded
            return EpisodeSummary(seed, steps, float(reward), tuple(names), bool(done), self.name, episode)
        except (TypeError, ValueError) as error:
            raise WireError(f"A recorded episode of seat {self.name!r} is damaged: {error}.") from error

    def _current(self) -> EpisodeSummary:
        return EpisodeSummary(
            seed=self._seed,
            steps=self._episode_steps,
            reward=self._episode_reward,
            achievements=tuple(sorted(self.unlocked)),
            done=self.done,
            seat=self.name,
            episode=self.episode,
        )


def _usage(data: Mapping[str, Any]) -> Usage:
    cost = data["cost"]
    return Usage(data["calls"], data["prompt_tokens"], data["completion_tokens"], None if cost is None else float(cost))


CutOffBy = Literal["steps", "left", "stopped"]
"""The step limit; a seat that left the game; or whoever stopped the run, or an error: then it can be resumed."""


@dataclass(frozen=True)
class CutOff:
    """What was left unplayed when a run ended."""

    by: CutOffBy
    episode: int | None
    """The episode that was cut off, from 1; None if every episode that was begun is whole."""
    steps: int
    """Decisions of all seats in that episode."""
    missing: int
    """Episodes that were asked for and not begun."""

    def __str__(self) -> str:
        cause = {"steps": "the step limit", "left": "a seat that left", "stopped": "the stop"}[self.by]
        parts = [f"episode {self.episode} after {_plural(self.steps, 'step')}"] if self.episode else []
        parts += [f"{_plural(self.missing, 'episode')} not begun"] if self.missing else []
        return f"cut off by {cause}: {', '.join(parts)}"


@dataclass(frozen=True)
class WorldUsage:
    """What a world itself asked of models."""

    usage: Usage = NO_USAGE
    asked_again: int = 0
    """Calls that were on their way when the run was stopped, and asked again when it was resumed."""

    def call(self, body: Mapping[str, Any]) -> WorldUsage:
        """Return the sum with a recorded call."""
        return WorldUsage(
            self.usage + Usage(**body["reply"]["finish"]["usage"]), self.asked_again + int(body.get("again", 0))
        )

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> WorldUsage:
        """Return what `asdict` gave; KeyError or TypeError if it is damaged."""
        return cls(_usage(data["usage"]), int(data["asked_again"]))


NO_WORLD_USAGE = WorldUsage()


@dataclass(frozen=True)
class RunSummary:
    """The summary of a run, as `wsap play --json` prints it."""

    run: str | None
    """The run's id; None if it was not recorded."""
    game: str
    agent: str
    seed: int
    seats: tuple[SeatTally, ...]
    metrics: Mapping[str, float]
    seconds: float
    tokens_per_second: float | None = None
    """Tokens of the models' replies for each second of a call, in this part of the run; None where none was made."""
    cut_off: CutOff | None = None
    """What was left unplayed; None if every episode that was asked for is whole."""
    world_usage: WorldUsage = NO_WORLD_USAGE
    """What the world itself asked of models."""
    world: SeatTally | None = None
    """What is counted of a world that lives: its ticks, as steps."""
    retries: int = 0
    """Waits of more than two seconds before a call to a model was tried again, in this part of the run."""

    @property
    def steps(self) -> int:
        """Decisions, over all seats."""
        return sum(s.steps for s in self.seats)

    @property
    def reward(self) -> float:
        """Reward, over all seats."""
        return sum(s.reward for s in self.seats)

    @property
    def done(self) -> bool:
        """Whether every seat's last episode ended by itself, and with it a world that lives."""
        return all(s.done for s in self.all_tallies)

    @property
    def all_tallies(self) -> tuple[SeatTally, ...]:
        """Those of the seats, and that of a world that lives."""
        return self.seats if self.world is None else (*self.seats, self.world)

    @property
    def trajectory_hash(self) -> str:
        """The seat's hash; with several seats, the SHA-256 of their names and hashes in order of name.

        A world that lives counts as a seat of the name `world`.
        """
        return combined({seat.name: seat.digest for seat in self.all_tallies})

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-ready data."""
        data = {
            "run": self.run,
            "game": self.game,
            "agent": self.agent,
            "seed": self.seed,
            **counts(self.seats, self.world),
            "score": dict(self.metrics),
            "done": self.done,
            "cut_off": None if self.cut_off is None else asdict(self.cut_off),
            "trajectory_hash": self.trajectory_hash,
            "seconds": round(self.seconds, 3),
        }
        speed = self.tokens_per_second
        data |= with_world(data, self.world_usage)
        data["usage"]["tokens_per_second"] = None if speed is None else round(speed, 2)
        data["usage"] |= {"retries": self.retries} if self.retries else {}
        if len(self.seats) > 1:
            data["seats"] = [
                {"seat": s.name, "agent": s.agent, **counts((s,)), "done": s.done, "trajectory_hash": s.digest}
                for s in self.seats
            ]
        return data


def score(spec: AdapterSpec, seats: Sequence[SeatTally]) -> dict[str, float]:
    """Return the game's metrics over every episode of every seat."""
    episodes = [e for s in seats for e in s.all_episodes()]
    return {metric.name: round(metric.of(episodes), 4) for metric in spec.score_metrics}


def cut_off(seats: Sequence[SeatTally], asked: int | None, by: CutOffBy) -> CutOff | None:
    """Return what is left unplayed if play ends now, and of as many episodes as were asked for, if they were."""
    done = all(seat.done for seat in seats)
    begun = any(seat.done or seat.episode_steps for seat in seats)
    number = seats[0].episode + begun
    missing = max(0, (asked or 0) - number)
    if done or not begun:
        return CutOff(by, None, 0, missing) if missing else None
    steps = sum(e.steps for seat in seats for e in seat.all_episodes() if e.episode == seat.episode)
    return CutOff(by, number, steps, missing)


def counts(seats: Sequence[SeatTally], world: SeatTally | None = None) -> dict[str, Any]:
    """Return the totals of seats, and of a world that lives, together, as in a summary."""
    times: dict[str, int] = {}
    for seat in seats:
        for episode in seat.all_episodes():
            for name in episode.achievements:
                times[name] = times.get(name, 0) + 1
    usage = sum((s.usage for s in seats), NO_USAGE)
    causes: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    for seat in seats:
        add_causes(causes, seat.causes)
        add_causes(outcomes, seat.outcomes)
    everybody = seats if world is None else (*seats, world)
    told = world and {"ticks": world.steps, "done": world.done, "trajectory_hash": world.digest}
    return {
        "steps": sum(s.steps for s in seats),
        "episodes": max((len(s.all_episodes()) for s in everybody), default=0),
        "reward": round(sum(s.reward for s in seats), 6),
        "achievements": dict(sorted(times.items())),
        "decisions": {
            "total": sum(s.steps for s in seats),
            "repaired": sum(s.repaired for s in seats),
            "forced": sum(s.forced for s in seats),
            "unconstrained": sum(s.unconstrained for s in seats),
            "cut": sum(s.cut for s in seats),
            "continued": sum(s.continued for s in seats),
            **({"chosen": chosen} if (chosen := sum(s.chosen for s in seats)) else {}),
            **({"causes": causes} if causes else {}),
        },
        **({"outcomes": outcomes} if outcomes else {}),
        "usage": asdict(usage),
        **({WORLD: told} if told else {}),
    }


def with_world(counted: Mapping[str, Any], own: WorldUsage) -> dict[str, Any]:
    """Return the totals with what the world itself asked of models in them; as they are if it asked nothing."""
    if not own.usage.calls:
        return dict(counted)
    whole = asdict(Usage(**counted["usage"]) + own.usage)
    return {**counted, "usage": whole, "world": {**counted.get("world", {}), **asdict(own)}}


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

"""Totals, scores and the trajectory hash of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import dumps
from wsap_core.seams.agent import NO_USAGE, DecisionInfo, Usage
from wsap_core.specs import AdapterSpec, EpisodeSummary


def step_line(seat: str, action: Action, result: ActionResult) -> str:
    """Return the canonical JSON of one resolved step, as the trajectory hash takes it.

    It holds the seat, the action without its reasoning, the result, and the observation after
    it; no clocks and no run ids.
    """
    observation = dumps(result.observation)
    return (
        '{"action":{"name":' + dumps(action.name) + ',"parameters":' + dumps(action.parameters) + "}"
        ',"observation":'
        + observation
        + ',"result":{"achievements":'
        + dumps(result.achievements)
        + ',"done":'
        + ("true" if result.done else "false")
        + ',"message":'
        + dumps(result.message)
        + ',"reward":'
        + dumps(result.reward)
        + ',"success":'
        + ("true" if result.success else "false")
        + '},"seat":'
        + dumps(seat)
        + "}"
    )


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
    episodes: list[EpisodeSummary] = field(default_factory=list)
    """Finished episodes."""
    _hash: Any = field(default_factory=hashlib.sha256)  # Any: hashlib's type has no public name
    _episode: int = 0
    _seed: int = 0
    _episode_steps: int = 0
    _episode_reward: float = 0.0
    _unlocked: set[str] = field(default_factory=set)
    _settled: Usage = NO_USAGE
    _last: Usage = NO_USAGE

    def begin_episode(self, episode: int, seed: int) -> None:
        """Start counting an episode; one that is still open counts as cut short."""
        self.close_episode()
        self._episode, self._seed = episode, seed
        self.done = False

    def add(self, line: str, result: ActionResult, info: DecisionInfo | None) -> None:
        """Count one resolved step, given as its canonical line."""
        self._hash.update(line.encode("ascii") + b"\n")
        self.steps += 1
        self.reward += result.reward
        self._episode_steps += 1
        self._episode_reward += result.reward
        self._unlocked.update(result.achievements)
        self.done = result.done
        if info is not None:
            self.repaired += info.repaired
            self.forced += info.forced
            self.unconstrained += info.unconstrained
            self.cut += info.cut
            self.continued += info.continued
        if self._last is not NO_USAGE:
            self._settled += self._last
        self._last = NO_USAGE if info is None else info.usage
        if result.done:
            self.close_episode()

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
        self._unlocked = set()

    def all_episodes(self) -> list[EpisodeSummary]:
        """Return every episode that has a step, the open one included, so that no mean leaves one out."""
        return [*self.episodes, self._current()] if self._episode_steps else list(self.episodes)

    @property
    def episode_steps(self) -> int:
        """How many decisions the open episode has."""
        return self._episode_steps

    @property
    def digest(self) -> str:
        """The trajectory hash of this seat, in hexadecimal."""
        digest: str = self._hash.hexdigest()
        return digest

    def _current(self) -> EpisodeSummary:
        return EpisodeSummary(
            seed=self._seed,
            steps=self._episode_steps,
            reward=self._episode_reward,
            achievements=tuple(sorted(self._unlocked)),
            done=self.done,
            seat=self.name,
            episode=self._episode,
        )


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
        """Whether every seat's last episode ended by itself."""
        return all(s.done for s in self.seats)

    @property
    def trajectory_hash(self) -> str:
        """The seat's hash; with several seats, the SHA-256 of their names and hashes in order of name."""
        return trajectory_hash(self.seats)

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-ready data."""
        data = {
            "run": self.run,
            "game": self.game,
            "agent": self.agent,
            "seed": self.seed,
            **_totals(self.seats),
            "score": dict(self.metrics),
            "done": self.done,
            "trajectory_hash": self.trajectory_hash,
            "seconds": round(self.seconds, 3),
        }
        speed = self.tokens_per_second
        data["usage"]["tokens_per_second"] = None if speed is None else round(speed, 2)
        if len(self.seats) > 1:
            data["seats"] = [
                {
                    "seat": s.name,
                    "agent": s.agent,
                    **_totals((s,)),
                    "done": s.done,
                    "trajectory_hash": s.digest,
                }
                for s in self.seats
            ]
        return data


def trajectory_hash(seats: Sequence[SeatTally]) -> str:
    """Return the hash of a run from those of its seats; see `RunSummary.trajectory_hash`."""
    if len(seats) == 1:
        return seats[0].digest
    lines = "".join(f"{s.name} {s.digest}\n" for s in sorted(seats, key=lambda s: s.name))
    return hashlib.sha256(lines.encode()).hexdigest()


def score(spec: AdapterSpec, seats: Sequence[SeatTally]) -> dict[str, float]:
    """Return the game's metrics over every episode of every seat."""
    episodes = [e for s in seats for e in s.all_episodes()]
    return {metric.name: round(metric.of(episodes), 4) for metric in spec.score_metrics}


def _totals(seats: Sequence[SeatTally]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for seat in seats:
        for episode in seat.all_episodes():
            for name in episode.achievements:
                counts[name] = counts.get(name, 0) + 1
    usage = sum((s.usage for s in seats), NO_USAGE)
    return {
        "steps": sum(s.steps for s in seats),
        "episodes": max((len(s.all_episodes()) for s in seats), default=0),
        "reward": round(sum(s.reward for s in seats), 6),
        "achievements": dict(sorted(counts.items())),
        "decisions": {
            "total": sum(s.steps for s in seats),
            "repaired": sum(s.repaired for s in seats),
            "forced": sum(s.forced for s in seats),
            "unconstrained": sum(s.unconstrained for s in seats),
            "cut": sum(s.cut for s in seats),
            "continued": sum(s.continued for s in seats),
        },
        "usage": {
            "calls": usage.calls,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": usage.cost,
        },
    }

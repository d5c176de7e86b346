"""The episodes of an evaluation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.specs import AdapterSpec, ScoreMetric
from wsap_eval.memories import Brought
from wsap_eval.records import EpisodeKey
from wsap_eval.stats import passes, reduced
from wsap_eval.suite import Entrant, EpisodeLimits, GameEntry, Suite

REWARD = ScoreMetric("reward", "Reward of an episode", "wsap_eval.plan:mean_reward")
"""The metric of games that declare none."""
NO_LIMITS = EpisodeLimits()


@dataclass(frozen=True)
class Game:
    """A game of a suite with its spec."""

    entry: GameEntry
    spec: AdapterSpec
    """With the entry's options."""
    metric: ScoreMetric
    opponent: Entrant | None = None
    """The opponent in this column of a round robin."""

    reduce: str = "mean"
    """How a seed's value follows from those of its repeats."""

    @property
    def reduced_metric(self) -> ScoreMetric:
        """The metric of a seed's value: that of an episode, or for `pass@K` and `pass^K` a probability."""
        if passes(self.reduce) is None:
            return self.metric
        return replace(self.metric, low=0.0, high=1.0, better="higher")

    def of_seed(self, values: Sequence[float]) -> float | None:
        """Return a seed's value from those of its repeats; None for too few."""
        return reduced(values, self.reduce, best=self.metric.best)

    @property
    def metrics(self) -> tuple[ScoreMetric, ...]:
        """All its metrics, including those of a set of episodes."""
        return (*self.spec.score_metrics, REWARD)

    def own_seats(self, entrant: Entrant, number: int) -> tuple[str, ...]:
        """Return the seats in which an entrant is measured in the episode of this number.

        In a round robin an entrant that meets itself is measured in both; an opponent is never measured, even if it is
        the same agent.
        """
        names = self.spec.names_of_seats(self.spec.seats[0])
        itself = self.opponent is not None and self.opponent.name == entrant.name
        if itself or not (self.entry.against or self.opponent):
            return tuple(names)
        each = self.entry.seat == "each" or self.opponent is not None
        return (names[number % len(names)] if each else self.entry.seat or names[0],)

    def seats(self, entrant: Entrant, number: int) -> dict[str, Entrant]:
        """Return seat -> entrant or opponent in the episode of this number."""
        own = self.own_seats(entrant, number)
        other = self.opponent or Entrant(agent=self.entry.against)
        names = self.spec.names_of_seats(self.spec.seats[0])
        return {name: entrant if name in own else other for name in names}


@dataclass(frozen=True)
class Job:
    """An episode to play; can be sent to another process."""

    key: EpisodeKey
    entry: GameEntry
    entrant: Entrant
    seats: dict[str, Entrant]
    own: tuple[str, ...]
    """The seats in which the entrant is measured; the others are its opponents', whoever sits in them."""
    run: str
    """The id of the recorded run, derived from the other fields."""
    forfeit: float
    brought: Brought | None = None
    """The agent's initial memory; None if memories are not controlled."""
    limits: EpisodeLimits = NO_LIMITS
    conditions: Mapping[str, str] = field(default_factory=dict)
    """What is known of the conditions before it is played; see `wsap_eval.conditions`."""


def mean_reward(episodes: Sequence[object]) -> float:
    """Return the mean reward over episodes; 0 for none."""
    rewards = [float(getattr(e, "reward", 0.0)) for e in episodes]
    return sum(rewards) / len(rewards) if rewards else 0.0


def games_of(suite: Suite, host: PluginHost) -> dict[str, Game]:
    """Return label -> game. Raises UnknownNameError for an unknown game; UsageError for an invalid entry."""
    found = {}
    for entry in suite.games:
        spec = load_adapter_spec(entry.game, host).with_options(entry.options)
        game = Game(entry, spec, _metric(spec, entry), reduce=suite.reduce)
        if suite.reduce != "mean" and game.metric.of_set:
            raise UsageError(f"{game.metric.name!r} of {entry.name!r} has no value of an episode, so reduce is mean.")
        if passes(suite.reduce) is not None and game.metric.best is None:
            raise UsageError(
                f"{suite.reduce} counts episodes with the best value, which {game.metric.name!r} of {entry.name!r} "
                "doesn't declare; choose another metric or reducer."
            )
        names = spec.names_of_seats(spec.seats[0])
        if entry.seat and not entry.against:
            raise UsageError(f"The game {entry.name!r} has seat but no opponent; add against.")
        if entry.against and len(names) == 1:
            raise UsageError(f"The game {entry.name!r} has only one seat, so it takes no opponent; remove against.")
        if entry.seat and entry.seat not in (*names, "each"):
            raise UsageError(f"The game {entry.name!r} has no seat {entry.seat!r}; there are: {', '.join(names)}.")
        if not names:
            raise UsageError(f"The game {entry.name!r} needs no agents, so entrants can't be measured in it.")
        if entry.pairs and len(names) != 2:
            raise UsageError(f"The game {entry.name!r} has {len(names)} seats; a round robin needs two.")
        for other in suite.entrants if entry.pairs else (None,):
            label = entry.name if other is None else f"{entry.name} against {other.name}"
            found[label] = replace(game, entry=entry.model_copy(update={"label": label}), opponent=other)
    return found


def _metric(spec: AdapterSpec, entry: GameEntry) -> ScoreMetric:
    known = {metric.name: metric for metric in (*spec.score_metrics, REWARD)}
    if not entry.metric:
        return next((m for m in spec.score_metrics if not m.of_set), REWARD)
    if entry.metric not in known:
        raise UsageError(f"The game {entry.name!r} has no metric {entry.metric!r}; there are: {', '.join(known)}.")
    return known[entry.metric]


def jobs_of(suite: Suite, games: dict[str, Game], entrants: Iterable[Entrant], host: PluginHost) -> Iterator[Job]:
    """Yield all episodes, seed by seed, so that partial results are comparable.

    An agent made for certain games is left out of the others.
    """
    chosen = tuple(entrants)
    cells = [(game, entrant) for game in games.values() for entrant in chosen if _plays(entrant, game, host)]
    for number, seed in enumerate(suite.seeds.numbers(), start=suite.seeds.first):
        for repeat in range(suite.seeds.repeats):
            for game, entrant in cells:
                key = EpisodeKey(game.entry.name, entrant.name, seed, repeat)
                seats = game.seats(entrant, number)
                own = game.own_seats(entrant, number)
                entry = game.entry.model_copy(update={"metric": ""})  # scores are computed from what was played
                run = _run_id(key, entry, seats, suite.limit.episode)
                yield Job(key, game.entry, entrant, seats, own, run, suite.forfeit, limits=suite.limit.episode)


def _plays(entrant: Entrant, game: Game, host: PluginHost) -> bool:
    """Return False if an agent's spec excludes the game; reads no files, since results are also only read."""
    named = {e.agent for e in (entrant, game.opponent) if e} & {*host.agents.names()}
    return all(host.agents.get(name).plays(game.spec.name) for name in named)


def asks_models(job: Job, game: Game, host: PluginHost) -> bool:
    """Return whether the game or an agent of an episode may call language models."""
    agents = {entrant.agent for entrant in job.seats.values()}
    return game.spec.asks_models or any(
        option.name == "model" for agent in agents for option in load_agent_spec(agent, host).options
    )


def run_id(text: str) -> str:
    """Return the run id derived from a text."""
    return f"eval-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def earlier_run_id(job: Job, metric: str) -> str:
    """Return the run id of an episode in results of earlier versions, in which it depended on the metric."""
    return _run_id(job.key, job.entry.model_copy(update={"metric": metric}), job.seats)


def _run_id(key: EpisodeKey, entry: GameEntry, seats: dict[str, Entrant], limits: EpisodeLimits = NO_LIMITS) -> str:
    told: list[object] = [_said(entry), {name: _said(entrant) for name, entrant in seats.items()}]
    told += [found] if (found := limits.given()) else []
    return run_id(json.dumps([told, key.seed, key.repeat], sort_keys=True))


def _said(part: Entrant | GameEntry) -> dict[str, object]:
    """Return a part without defaults, so that fields added later don't change run ids."""
    return part.model_dump(mode="json", exclude_defaults=True, exclude={"tags"})

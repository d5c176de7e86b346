"""The episodes of an evaluation."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.specs import AdapterSpec, ScoreMetric
from wsap_eval.memories.kept import Brought
from wsap_eval.planning.suite import Entrant, EpisodeLimits, GameEntry, Suite
from wsap_eval.records import EpisodeKey
from wsap_eval.stats import passes, reduced
from wsap_eval.stats.square import drawn_places, square

REWARD = ScoreMetric("reward", "Reward of an episode", "wsap_eval.planning.plan:mean_reward")
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
    entrants: tuple[Entrant, ...] = ()
    """All that play together, if seats follow a Latin square; else empty."""

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

        By Latin square these are only those of the entrant by which the game is named; see `wsap_eval.planning.shared`.
        In a round robin an entrant that meets itself is measured in both; an opponent is never measured, even if it is
        the same agent.
        """
        names = self.spec.names_of_seats(self.spec.seats[0])
        if self.entrants:
            return tuple(name for name, who in self.seats(entrant, number).items() if who.name == entrant.name)
        itself = self.opponent is not None and self.opponent.name == entrant.name
        if itself or not (self.entry.against or self.opponent):
            return tuple(names)
        each = self.entry.seat == "each" or self.opponent is not None
        return (names[number % len(names)] if each else self.entry.seat or names[0],)

    def seats(self, entrant: Entrant, number: int) -> dict[str, Entrant]:
        """Return seat -> entrant or opponent in the episode of this number.

        By Latin square, episodes of this number are games of one block, each named by the entrant in the first place.
        """
        if self.entrants:
            names = self.spec.names_of_seats(self.spec.seats[0])
            places = drawn_places(len(names), random.Random(f"square:{number}"))  # play, not secrets
            turn = [one.name for one in self.entrants].index(entrant.name)
            found = square(places, turn, len(self.entrants))
            return {name: self.entrants[who] for name, who in zip(names, found, strict=True)}
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
    """What is known of the conditions before it is played; see `wsap_eval.planning.conditions`."""


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
        if entry.seating:
            _refuse_square(suite, entry, names)
            game = replace(game, entrants=suite.entrants)
        for other in suite.entrants if entry.pairs else (None,):
            label = entry.name if other is None else f"{entry.name} against {other.name}"
            found[label] = replace(game, entry=entry.model_copy(update={"label": label}), opponent=other)
    return found


def _refuse_square(suite: Suite, entry: GameEntry, names: Sequence[str]) -> None:
    """Raise UsageError if a game can't be played by Latin square."""
    if len(names) < 2:
        raise UsageError(f"The game {entry.name!r} has one seat; several entrants take two or more.")
    if len(suite.entrants) < 2:
        raise UsageError(f"The game {entry.name!r} is played by several entrants together; name two or more.")


def _metric(spec: AdapterSpec, entry: GameEntry) -> ScoreMetric:
    known = {metric.name: metric for metric in (*spec.score_metrics, REWARD)}
    if not entry.metric:
        return next((m for m in spec.score_metrics if not m.of_set), REWARD)
    if entry.metric not in known:
        raise UsageError(f"The game {entry.name!r} has no metric {entry.metric!r}; there are: {', '.join(known)}.")
    return known[entry.metric]


class Plan:
    """All episodes of an evaluation, seed by seed, so that partial results are comparable; each made when asked for.

    An agent made for certain games is left out of the others.
    """

    def __init__(
        self, suite: Suite, games: Mapping[str, Game], entrants: Iterable[Entrant], host: PluginHost,
        finish: Callable[[Job], Job] = lambda job: job,
    ) -> None:  # fmt: skip
        chosen = tuple(entrants)
        found = [(game, entrant) for game in games.values() for entrant in chosen if _plays(entrant, game, host)]
        self._cells = {(game.entry.name, entrant.name): (game, entrant) for game, entrant in found}
        self._suite, self._finish = suite, finish
        self._seeds = suite.seeds.numbers()
        # Scores are computed from what was played.
        self._bare = {label: game.entry.model_copy(update={"metric": ""}) for label, game in games.items()}
        self._texts: dict[tuple[str, str, tuple[str, ...]], str] = {}
        """Cell and who sits where -> what the run ids of such episodes depend on, besides seed and repeat."""

    @property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """Game and entrant of each cell."""
        return tuple(self._cells)

    @property
    def of_cell(self) -> int:
        """Number of episodes of each cell."""
        return len(self._seeds) * self._suite.seeds.repeats

    def __len__(self) -> int:
        return len(self._cells) * self.of_cell

    def __iter__(self) -> Iterator[Job]:
        return self.of_seeds(0, len(self._seeds))

    def of_seeds(self, first: int, last: int, *, but: Container[tuple[str, str]] = ()) -> Iterator[Job]:
        """Yield the episodes of the seeds from the place `first` to before `last`, without those of some cells."""
        for place in range(first, min(last, len(self._seeds))):
            for repeat in range(self._suite.seeds.repeats):
                for cell in self._cells:
                    if cell not in but:
                        yield self._job(EpisodeKey(*cell, self._seeds[place], repeat), place)

    def place(self, key: EpisodeKey) -> int | None:
        """Return the place of an episode's seed, from 0; None for an episode of another plan."""
        known = (key.game, key.entrant) in self._cells and key.repeat < self._suite.seeds.repeats
        return self._places.get(key.seed) if known else None

    def get(self, key: EpisodeKey) -> Job | None:
        """Return an episode; None for one of another plan."""
        place = self.place(key)
        return None if place is None else self._job(key, place)

    def order(self, key: EpisodeKey) -> tuple[int, int, int]:
        """Return a number for sorting; episodes of another plan come last."""
        place = self.place(key)
        if place is None:
            return len(self._seeds), 0, 0
        return place, key.repeat, self._rank[key.game, key.entrant]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {seed: place for place, seed in enumerate(self._seeds)}

    @cached_property
    def _rank(self) -> dict[tuple[str, str], int]:
        return {cell: number for number, cell in enumerate(self._cells)}

    def _job(self, key: EpisodeKey, place: int) -> Job:
        game, entrant = self._cells[key.game, key.entrant]
        number, limits = self._suite.seeds.first + place, self._suite.limit.episode
        seats, own = game.seats(entrant, number), game.own_seats(entrant, number)
        which = (key.game, key.entrant, own if not game.entrants else tuple(who.name for who in seats.values()))
        if which not in self._texts:
            self._texts[which] = _text(self._bare[key.game], seats, limits)
        run = _run_id(key, self._texts[which])
        return self._finish(Job(key, game.entry, entrant, seats, own, run, self._suite.forfeit, limits=limits))


def _plays(entrant: Entrant, game: Game, host: PluginHost) -> bool:
    """Return False if an agent's spec excludes the game; reads no files, since results are also only read."""
    named = {e.agent for e in (entrant, game.opponent, *game.entrants) if e} & {*host.agents.names()}
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


def _run_id(key: EpisodeKey, text: str) -> str:
    return run_id(f"[{text}, {key.seed}, {key.repeat}]")


def _text(entry: GameEntry, seats: Mapping[str, Entrant], limits: EpisodeLimits) -> str:
    told: list[object] = [_said(entry), {name: _said(entrant) for name, entrant in seats.items()}]
    told += [found] if (found := limits.given()) else []
    return json.dumps(told, sort_keys=True)


def _said(part: Entrant | GameEntry) -> dict[str, object]:
    """Return a part without defaults, so that fields added later don't change run ids."""
    return part.model_dump(mode="json", exclude_defaults=True, exclude={"tags"})

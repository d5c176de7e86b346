"""The summary of a run: totals of each seat, the end of each episode, and scores of the whole episodes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wsap_core.errors import WsapError
from wsap_core.protocol.lines import plural
from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.specs import AdapterSpec, EpisodeSummary
from wsap_nexus.runs.record.tally import NO_WORLD_USAGE, OF_DECISIONS, SeatTally, WorldUsage, add_causes, added
from wsap_nexus.runs.record.trajectory import WORLD, combined

MOST_EPISODES = 200
"""Maximum number of episodes, of all seats, listed in a summary; all of them are in the log."""
_FEW = 4
# Maximum number of seats whose rewards `repr` shows.
FORFEITED = 0.5
"""An episode with a larger share of forced decisions is forfeited: its agent did not play it."""

CutOffBy = Literal["steps", "left", "stopped", "failed"]
"""The step limit, a seat that left, a stop, or an error. A run that was stopped or failed can be resumed."""
EpisodeEnd = Literal["finished", "step_limit", "left", "stopped", "failed"]
"""How an episode ended for a seat: by itself, or as `CutOffBy` says."""


FailedScore = Callable[[WsapError], object]


def warn(error: WsapError) -> None:
    """Warn that a score is left out."""
    logging.getLogger("wsap.runs").warning("%s; it is left out.", str(error).rstrip("."))


@dataclass(frozen=True)
class CutOff:
    """The unplayed rest of a run."""

    by: CutOffBy
    episode: int | None
    """The number, from 1, of the episode that was cut off; None if all started episodes are whole."""
    steps: int
    """Decisions of all seats in that episode."""
    missing: int
    """Requested episodes that were not started."""

    def __str__(self) -> str:
        cause = {"steps": "the step limit", "left": "a seat that left", "stopped": "the stop", "failed": "an error"}
        parts = [f"episode {self.episode} after {plural(self.steps, 'step')}"] if self.episode else []
        parts += [f"{plural(self.missing, 'episode')} not started"] if self.missing else []
        return f"cut off by {cause[self.by]}: {', '.join(parts)}"


@dataclass(frozen=True)
class Scored:
    """Totals and score of several episodes of one seat."""

    episodes: int
    steps: int
    reward: float
    score: Mapping[str, float]
    """Metric -> value over these episodes; empty without any, or where the game is unknown."""


@dataclass(frozen=True)
class SeatScore:
    """The episodes of one seat: their ends and scores."""

    episodes: tuple[tuple[EpisodeSummary, EpisodeEnd], ...]
    """Each with its end, in order."""
    whole: Scored
    """Episodes that count: finished and not forfeited."""
    unfinished: Scored
    """Episodes that were cut off."""
    forfeited: Scored
    """Finished episodes with most decisions forced."""

    @classmethod
    def of(
        cls, seat: SeatTally, by: CutOffBy, spec: AdapterSpec | None = None, failed: FailedScore = warn
    ) -> SeatScore:
        """Return the score of a seat by the game's metrics; `by` ended the run, and with it an open episode.

        A score that fails is left out, and `failed` is called with its error.
        """
        end: EpisodeEnd = "step_limit" if by == "steps" else by
        episodes = seat.all_episodes()
        whole = [e for e in episodes if e.done]
        return cls(
            tuple((e, "finished" if e.done else end if e.episode == seat.episode else "left") for e in episodes),
            _scored([e for e in whole if not is_forfeited(e)], spec, failed),
            _scored([e for e in episodes if not e.done], spec, failed),
            _scored([e for e in whole if is_forfeited(e)], spec, failed),
        )

    def to_json(self, most: int = MOST_EPISODES) -> dict[str, Any]:
        """Return the score as JSON-ready data, listing the last episodes."""
        left_out = {"unfinished": self.unfinished, "forfeited": self.forfeited}
        shown = self.episodes[max(0, len(self.episodes) - most) :]
        return {
            "score": dict(self.whole.score),
            "scored": self.whole.episodes,
            "left_out": {name: asdict(those) for name, those in left_out.items() if those.episodes},
            "episodes": [
                {
                    "episode": e.episode, "seed": e.seed, "outcome": end, "steps": e.steps,
                    "reward": round(e.reward, 6), "achievements": list(e.achievements),
                    "forced": e.forced, "repaired": e.repaired, **({"truncated": True} if e.truncated else {}),
                }
                for e, end in shown
            ],
            **({"episodes_before": len(self.episodes) - len(shown)} if len(shown) < len(self.episodes) else {}),
        }  # fmt: skip


def is_forfeited(episode: EpisodeSummary) -> bool:
    """Return whether most decisions of an episode were forced, so that it does not measure its agent."""
    return episode.forced > FORFEITED * episode.steps


@dataclass(frozen=True)
class RunSummary:
    """The summary of a run, as `wsap play --json` prints it."""

    run: str | None
    """The run's id; None if it was not recorded."""
    game: str
    agent: str
    """The agents with their models: `llm (openai/gpt-5)`."""
    seed: int
    seats: tuple[SeatTally, ...]
    """The totals of each seat, with its agent, `model` and `options`."""
    scores: Mapping[str, SeatScore]
    """Seat -> its episodes and their scores."""
    seconds: float
    tokens_per_second: float | None = None
    """Tokens of the models' replies per second of calls, since the run was started or resumed; None without calls."""
    cut_off: CutOff | None = None
    """The unplayed rest; None if all requested episodes are whole."""
    world_usage: WorldUsage = NO_WORLD_USAGE
    """The world's own model usage."""
    world: SeatTally | None = None
    """The totals of a world that lives, with its ticks as steps."""
    retries: int = 0
    """Retries of model calls after more than two seconds, since the run was started or resumed."""
    reason: str | None = None
    """The error that ended or paused the run, if any."""

    def __repr__(self) -> str:
        rewards = {seat.name: round(seat.reward, 4) for seat in self.seats}
        did = f"reward={next(iter(rewards.values()))!r}" if len(rewards) == 1 else f"rewards={_short(rewards)}"
        scores = [f"score={dict(self.metrics)!r}"] if self.metrics else []
        cut_off = [] if self.cut_off is None else [f"cut_off={str(self.cut_off)!r}"]
        who = f"{self.run!r}, game={self.game!r}, agent={self.agent!r}, seed={self.seed}, steps={self.steps}"
        return f"RunSummary({', '.join([who, did, *scores, *cut_off])})"

    @property
    def steps(self) -> int:
        """Decisions of all seats."""
        return sum(s.steps for s in self.seats)

    @property
    def reward(self) -> float | None:
        """The reward of the only seat; None with several seats."""
        return self.seats[0].reward if len(self.seats) == 1 else None

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metric -> value over the whole episodes of the only seat; empty with several seats."""
        return self.scores[self.seats[0].name].whole.score if len(self.seats) == 1 else {}

    @property
    def done(self) -> bool:
        """Whether the last episode of every seat, and a world that lives, ended by itself."""
        return all(s.done for s in self.all_tallies)

    @property
    def all_tallies(self) -> tuple[SeatTally, ...]:
        """The totals of the seats, and of a world that lives."""
        return self.seats if self.world is None else (*self.seats, self.world)

    @property
    def trajectory_hash(self) -> str:
        """The hash of the only seat, or the SHA-256 of several seats' names and hashes in order of name.

        A world that lives counts as a seat named `world`.
        """
        return combined({seat.name: seat.digest for seat in self.all_tallies})

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-ready data; `docs/reference/event-log.md` describes it."""
        data = {
            "run": self.run,
            "game": self.game,
            "agent": self.agent,
            "model": only_model(seat.model for seat in self.seats),
            "seed": self.seed,
            **counts(self.seats, self.world),
            "score": dict(self.metrics) if len(self.seats) == 1 else None,
            "done": self.done,
            "cut_off": None if self.cut_off is None else asdict(self.cut_off),
            "reason": self.reason,
            "trajectory_hash": self.trajectory_hash,
            "seconds": round(self.seconds, 3),
        }
        speed = self.tokens_per_second
        data |= with_world(data, self.world_usage)
        data["usage"]["tokens_per_second"] = None if speed is None else round(speed, 2)
        data["usage"] |= {"retries": self.retries} if self.retries else {}
        data["seats"] = seats_json(self.seats, self.scores)
        return data


def score(
    spec: AdapterSpec, seats: Sequence[SeatTally], by: CutOffBy = "stopped", failed: FailedScore = warn
) -> dict[str, SeatScore]:
    """Return the score of each seat, if play ends now; `failed` is called with the error of each that is left out."""
    return {seat.name: SeatScore.of(seat, by, spec, failed) for seat in seats}


def score_so_far(spec: AdapterSpec, seat: SeatTally) -> tuple[tuple[str, float, str], ...]:
    """Return (metric, value, unit) over all episodes of a seat, including the open one, without scores that fail."""
    units = {metric.name: metric.unit for metric in spec.score_metrics}
    scores = _scored(seat.all_episodes(), spec, lambda error: None).score
    return tuple((name, value, units.get(name, "")) for name, value in scores.items())


def cut_off(seats: Sequence[SeatTally], asked: int | None, by: CutOffBy) -> CutOff | None:
    """Return the unplayed rest if play ends now, given the requested number of episodes; None if there is none."""
    done = all(seat.done for seat in seats)
    begun = any(seat.done or seat.episode_steps for seat in seats)
    number = seats[0].episode + begun
    missing = max(0, (asked or 0) - number)
    if done or not begun:
        return CutOff(by, None, 0, missing) if missing else None
    steps = sum(e.steps for seat in seats for e in seat.all_episodes() if e.episode == seat.episode)
    return CutOff(by, number, steps, missing)


def counts(seats: Sequence[SeatTally], world: SeatTally | None = None) -> dict[str, Any]:
    """Return the summary's totals over seats and a world that lives; the reward only for a single seat."""
    times: dict[str, int] = {}
    for seat in seats:
        for episode in seat.all_episodes():
            for name in episode.achievements:
                times[name] = times.get(name, 0) + 1
    usage = sum((s.usage for s in seats), NO_USAGE)
    of_decisions = {name: sum(getattr(seat, name) for seat in seats) for name in OF_DECISIONS}
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
        "reward": round(seats[0].reward, 6) if len(seats) == 1 else None,
        "achievements": dict(sorted(times.items())),
        "decisions": {
            "total": sum(s.steps for s in seats),
            **{name: times for name, times in of_decisions.items() if times or name != "chosen"},
            **({"causes": causes} if causes else {}),
        },
        **({"outcomes": outcomes} if outcomes else {}),
        "usage": asdict(usage),
        **({WORLD: told} if told else {}),
    }


def seats_json(seats: Sequence[SeatTally], scores: Mapping[str, SeatScore]) -> list[dict[str, Any]]:
    """Return each seat's totals and scores as JSON-ready data, listing about `MOST_EPISODES` episodes at most."""
    most = max(1, MOST_EPISODES // max(1, len(seats)))
    return [
        {
            "seat": s.name, "agent": s.agent, "model": s.model, "options": dict(s.options), **counts((s,)),
            **scores[s.name].to_json(most), "done": s.done, **({"truncated": True} if s.truncated else {}),
            "trajectory_hash": s.digest,
        }
        for s in seats
    ]  # fmt: skip


def only_model(models: Iterable[str | None]) -> str | None:
    """Return the address of the only model; None if there is none, or several."""
    named = {model for model in models if model is not None}
    return next(iter(named)) if len(named) == 1 else None


def with_world(counted: Mapping[str, Any], own: WorldUsage) -> dict[str, Any]:
    """Return the totals with the world's own model usage added, if any."""
    if not own.usage.calls:
        return dict(counted)
    whole = asdict(Usage(**counted["usage"]) + own.usage)
    return {**counted, "usage": whole, "world": {**counted.get("world", {}), **asdict(own)}}


def _scored(episodes: Sequence[EpisodeSummary], spec: AdapterSpec | None, failed: FailedScore) -> Scored:
    scores: dict[str, float] = {}
    for metric in () if spec is None or not episodes else spec.score_metrics:
        try:
            scores[metric.name] = round(metric.of(episodes), 4)
        except WsapError as error:  # a run ends, and an agent comes home, whatever its game's scores do
            failed(error)
    reward = 0.0
    for episode in episodes:
        reward = added(reward, episode.reward)
    return Scored(len(episodes), sum(e.steps for e in episodes), round(reward, 6), scores)


def _short(rewards: Mapping[str, float]) -> str:
    return repr(dict(rewards)) if len(rewards) <= _FEW else f"<of {len(rewards)} seats>"

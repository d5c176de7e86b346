"""The plan of a transfer measurement: fixed before the first episode, its test seeds after the last lesson."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wsap_core.errors import UsageError
from wsap_core.seams.context import derive_seed
from wsap_eval.memories.kept import Brought
from wsap_eval.planning.plan import Game, Job, run_id
from wsap_eval.planning.suite import FORFEIT, Entrant, GameEntry, Suite
from wsap_eval.records import EpisodeKey

Arm = Literal["blank", "placebo", "source", "practised", "raw"]
ARMS: tuple[Arm, ...] = ("blank", "placebo", "source", "practised", "raw")
"""The initial memory in the target: empty; scrambled items; the memory of a life in the source; that of an equally long
life in the target itself; or experiences from the source without lessons."""
PILOT_LIVES = 1_000_000
"""The first life of a pilot, so that pilots and measurements share no lives."""
LEARNING = "learning "
"""Prefix of a game's label for learning episodes."""


@dataclass(frozen=True)
class Plan:
    """A measurement of transfer."""

    source: str
    targets: tuple[str, ...]
    entrant: Entrant
    lives: int
    seeds: int
    """Target seeds of each life; all its arms play them."""
    learning: int
    steps: int | None
    arms: tuple[Arm, ...] = ARMS
    seed: int = 0
    """Seed from which the learning seeds are derived."""
    test_seed: int | None = None
    """Seed from which the test seeds are derived; None until all lives have learned."""
    pilot: bool = False
    negatives: tuple[str, ...] = ()
    """Targets in which learning can't help."""
    positives: tuple[str, ...] = ()
    """Targets in which learning must help."""

    def __post_init__(self) -> None:
        if self.test_seed is None:
            return
        learned = {s for life in self.all_lives() for game in self.learned for s in self.learning_seeds(life, game)}
        tested = {s for life in self.all_lives() for s in self.target_seeds(life)}
        if learned & tested:
            raise UsageError(
                f"Seed {min(learned & tested)} would be used for both learning and testing; choose another --seed, or "
                "none."
            )

    @property
    def learned(self) -> tuple[str, ...]:
        """The games in which lives learn."""
        return tuple(dict.fromkeys((self.source, *(self.targets if "practised" in self.arms else ()))))

    def all_lives(self) -> range:
        """Return the numbers of the lives."""
        first = PILOT_LIVES if self.pilot else 0
        return range(first, first + self.lives)

    def learning_seeds(self, life: int, game: str) -> list[int]:
        """Return the seeds on which a life learns in a game."""
        return [derive_seed(self.seed, "learning", life, game, i) for i in range(self.learning)]

    def target_seeds(self, life: int) -> list[int]:
        """Return the test seeds of a life, the same in all its arms."""
        assert self.test_seed is not None, "tests begin after learning"
        return [derive_seed(self.test_seed, "target", life, i) for i in range(self.seeds)]

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data, without its test seeds."""
        plain = self._plain()
        del plain["test_seed"]
        learned = {g: {k: self.learning_seeds(k, g) for k in self.all_lives()} for g in self.learned}
        return {**plain, "entrant": self.entrant.model_dump(mode="json"), "learning_seeds": learned}

    def _plain(self) -> dict[str, object]:
        """Return the fields, without controls if there are none."""
        return {name: value for name, value in asdict(self).items() if name not in ("negatives", "positives") or value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """Return the plan of `to_json`, without its test seed. Raises KeyError, TypeError or ValueError if it is
        invalid."""
        targets, negatives, positives = (
            tuple(map(str, data.get(name, ()))) for name in ("targets", "negatives", "positives")
        )
        arms = tuple(arm for arm in ARMS if arm in data["arms"])
        steps = data["steps"]
        return cls(
            str(data["source"]), targets, Entrant.model_validate(data["entrant"], strict=False), int(data["lives"]),
            int(data["seeds"]), int(data["learning"]), None if steps is None else int(steps), arms, int(data["seed"]),
            pilot=bool(data["pilot"]), negatives=negatives, positives=positives,
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """The SHA-256 of the plan without its test seeds."""
        return _sha256(self.to_json())

    @property
    def design(self) -> str:
        """The SHA-256 of what is measured, whatever the seeds."""
        return _sha256({**self._plain(), "entrant": self.entrant.model_dump(mode="json"), "seed": 0, "test_seed": None})

    @property
    def commitment(self) -> str:
        """The SHA-256 of the test seeds of all lives."""
        return _sha256([self.target_seeds(life) for life in self.all_lives()])


def _sha256(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def suite_of(plan: Plan) -> Suite:
    """Return the suite of a plan's episodes."""
    learned = tuple(GameEntry(game=game, label=LEARNING + game, steps=plan.steps) for game in plan.learned)
    targets = tuple(GameEntry(game=game, steps=plan.steps) for game in plan.targets)
    return Suite(name="transfer", games=(*learned, *targets))


def learning_jobs(
    plan: Plan, games: dict[str, Game], number: int, memories: dict[tuple[int, str], str]
) -> Iterator[Job]:
    """Yield every life's learning episode of this number, from 0; `memories` has the earlier memories' files."""
    for life in plan.all_lives():
        for game in plan.learned:
            seed = plan.learning_seeds(life, game)[number]
            yield _job(plan, games[LEARNING + game], "learning", seed, life, Brought(memories.get((life, game), "")))


def target_jobs(plan: Plan, games: dict[str, Game], memories: dict[tuple[int, str], str]) -> Iterator[Job]:
    """Yield all test episodes with interleaved arms, so that changes over time favour none."""
    for number in range(plan.seeds):
        for life in plan.all_lives():
            for target in plan.targets:
                for arm in plan.arms:
                    seed = plan.target_seeds(life)[number]
                    yield _job(plan, games[target], arm, seed, life, brought_by(plan, arm, life, target, memories))


def brought_by(plan: Plan, arm: Arm, life: int, target: str, memories: dict[tuple[int, str], str]) -> Brought:
    """Return the initial memory of a life in an arm and target."""
    own = memories.get((life, plan.source), "")
    if arm == "practised":
        return Brought(memories.get((life, target), ""))
    if arm == "blank":
        return Brought()
    return Brought(own, "whole" if arm == "source" else arm)


def _job(plan: Plan, game: Game, arm: str, seed: int, life: int, brought: Brought) -> Job:
    entrant = plan.entrant.model_copy(update={"label": arm})
    seats: Sequence[str] = game.spec.names_of_seats(game.spec.seats[0])
    key = EpisodeKey(game.entry.name, arm, seed, life)
    text = json.dumps([plan.entrant.model_dump(mode="json"), game.entry.model_dump(mode="json"), *asdict(key).values(),
                       brought.path[-40:], brought.edit])  # fmt: skip
    return Job(key, game.entry, entrant, dict.fromkeys(seats, entrant), tuple(seats), run_id(text), FORFEIT, brought)

"""Games of one decision whose scores are known: tests play copies of this file as `levels.py:Levels` and so on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Context, Goal, Observation
from wsap_core.specs import EpisodeSummary, ScoreMetric


def total(episodes: Sequence[EpisodeSummary]) -> float:
    return sum(e.reward for e in episodes) / max(1, len(episodes))


class Levels:
    """The action `aN` solves the first N of every twenty seeds: the score is 1 or 0."""

    game_description = "Solve the level."
    action_space = ActionSpace(tuple(ActionDef(f"a{n}", f"Solve {n} of twenty.") for n in range(21)))
    wsap_spec: ClassVar = {"score_metrics": (ScoreMetric("solved", "Levels solved", total, "", 0.0, 1.0),)}

    def __init__(self, context: Context) -> None:
        self.seed = context.seed or 0

    def reset(self, seed: int | None = None) -> Observation:
        self.seed = self.seed if seed is None else seed
        return self.observe()

    def observe(self) -> Observation:
        return Observation({"seed": self.seed}, step=0)

    def act(self, action: Action) -> ActionResult:
        return ActionResult(
            True, "", reward=self.reward(int(action.name[1:])), done=True, observation=Observation(step=1)
        )

    def reward(self, number: int) -> float:
        return float(self.seed % 20 < number)


class Faulty(Levels):
    """Levels that break on every fourth seed."""

    def reward(self, number: int) -> float:
        if self.seed % 4 == 3:
            raise KeyError("a wall")
        return super().reward(number)


def average_of_nothing(episodes: Sequence[EpisodeSummary]) -> float:
    return sum(e.reward for e in episodes) / sum(e.reward > 0 for e in episodes)


def not_a_number(episodes: Sequence[EpisodeSummary]) -> float:
    return math.nan if any(e.reward == 0 for e in episodes) else 1.0


class Careless(Levels):
    """Its metrics fail on episodes without a reward."""

    wsap_spec: ClassVar = {
        "score_metrics": (
            ScoreMetric("average", "", average_of_nothing, "", 0.0, 1.0),
            ScoreMetric("share", "", not_a_number, "", 0.0, 1.0),
            ScoreMetric("solved", "", total, "", 0.0, 1.0),
            ScoreMetric("rate", "", average_of_nothing, "", 0.0, 1.0, of_set=True),
        )
    }


def loud(episodes: Sequence[EpisodeSummary]) -> float:
    print("loud: metric")
    return total(episodes)


class Loud(Levels):
    """Prints whatever it does."""

    print("loud: module")
    wsap_spec: ClassVar = {
        "score_metrics": (
            ScoreMetric("solved", "", loud, "", 0.0, 1.0), ScoreMetric("all", "", loud, "", 0.0, 1.0, of_set=True),
        )
    }  # fmt: skip

    def reward(self, number: int) -> float:
        print("loud: game")
        return super().reward(number)


class Bold:
    """Takes a15, and raises on every third seed."""

    def __init__(self, context: Context) -> None: ...

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        if observation.status["seed"] % 3 == 0:
            raise ZeroDivisionError("too hard")
        return Action("a15")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: list[Goal]) -> list[str]:
        return []


class Errors(Levels):
    """The score is the number of errors, of at most 20: the action `aN` makes N, or one more on odd seeds."""

    wsap_spec: ClassVar = {"score_metrics": (ScoreMetric("errors", "Errors", total, "", 0.0, 20.0, better="lower"),)}

    def reward(self, number: int) -> float:
        return float(min(20, number + self.seed % 2))

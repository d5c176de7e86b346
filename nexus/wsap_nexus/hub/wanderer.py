"""Agents that need no model: they choose a world in the nexus, play it by its own default agent, and come back."""

from __future__ import annotations

import random
from collections.abc import Sequence

from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.seams.context import Context
from wsap_nexus.hub.place import NexusObservation


class Wanderer:
    """Goes where it is suggested to go, mostly; now and then somewhere else.

    Args:
        exit_when: when it comes back by itself.
        curiosity: how often it goes somewhere else than suggested, from 0 to 1.
    """

    def __init__(self, generator: random.Random, *, exit_when: str = "step >= 400", curiosity: float = 0.25) -> None:
        self._random = generator
        self._exit_when = exit_when
        self._curiosity = curiosity

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Nothing to take in."""

    def decide(self, observation: Observation) -> Action:
        """Return where to go."""
        if not isinstance(observation, NexusObservation):
            return Action("wait_for_game", {"timeout": 5})
        games = [g.game for g in observation.games if g.status == "available"]
        if not games:
            return Action("wait_for_game", {"timeout": 5}, "No world is available.")
        suggested = [s for s in observation.suggestions if s.game in games]
        if suggested and self._random.random() >= self._curiosity:
            chosen, why = suggested[0].game, "; ".join(suggested[0].reasons)
        else:
            chosen, why = games[self._random.randrange(len(games))], "I am curious."
        return Action("enter_game", {"game": chosen, "exit_when": self._exit_when}, why)

    def reflect(self, result: ActionResult) -> None:
        """Nothing to learn from."""

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        """Return no plan."""
        return []


def create(context: Context) -> Wanderer:
    """Return a wanderer. Options: `exit_when` (step >= 400), `curiosity` (0.25)."""
    return Wanderer(
        context.random,
        exit_when=str(context.config.get("exit_when", "step >= 400")),
        curiosity=float(context.config.get("curiosity", 0.25)),
    )

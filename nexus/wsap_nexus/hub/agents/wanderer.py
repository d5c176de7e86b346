"""An agent of the nexus without a model: it chooses worlds, whose default agents then play for it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.seams.context import Context
from wsap_nexus.agents.metagoals import TEMPLATES
from wsap_nexus.hub.agents.place import NexusObservation


class Wanderer:
    """Sets itself a meta-goal if it has none, and enters the suggested world or, with probability `curiosity`, a random
    one, until the condition `exit_when`."""

    def __init__(self, generator: random.Random, *, exit_when: str = "step >= 400", curiosity: float = 0.25) -> None:
        self._random = generator
        self._exit_when = exit_when
        self._curiosity = curiosity
        self._wished = False

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Do nothing."""

    def decide(self, observation: Observation) -> Action:
        """Return the action of entering a world, or of waiting."""
        if not isinstance(observation, NexusObservation):
            return Action("wait_for_game", {"timeout": 5})
        if not observation.current_goals and not self._wished and observation.is_available("set_meta_goal"):
            self._wished = True  # once a visit: the goal may be reached already
            wish = list(TEMPLATES)[len(observation.recent) % len(TEMPLATES)]
            return Action("set_meta_goal", {"goal": wish}, "I want something to aim for.")
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
        """Do nothing."""

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

"""Classic strategies of the repeated prisoner's dilemma."""

from __future__ import annotations

from typing_extensions import override

from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.worlds.mailbox import SHARED_NAMES


class TitForTat:
    """Starts with the first choice, then copies the other's last one (Rapoport, in Axelrod 1984)."""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Read the choices from the action space."""
        self._choices = tuple(name for name in action_space.names if name not in SHARED_NAMES)

    def decide(self, observation: Observation) -> Action:
        """Return the other's last choice."""
        last = observation.status.get("other's last choice")
        return Action(last if last in self._choices else self._choices[0])

    def reflect(self, result: ActionResult) -> None:
        """Do nothing: the next observation has all that is needed."""

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return no plan."""
        return []

    def snapshot(self) -> bytes:
        """Return no data: there is no state."""
        return b""

    def restore(self, data: bytes) -> None:
        """Do nothing: there is no state."""


class Grudger(TitForTat):
    """Makes the first choice until the other deviates from it, then the second (Friedman, in Axelrod 1984)."""

    _hurt = False

    @override
    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        super().initialize(game_desc, action_space)
        self._hurt = False

    @override
    def decide(self, observation: Observation) -> Action:
        self._hurt = self._hurt or super().decide(observation).name != self._choices[0]
        return Action(self._choices[int(self._hurt)])

    @override
    def snapshot(self) -> bytes:
        return b"hurt" if self._hurt else b""

    @override
    def restore(self, data: bytes) -> None:
        self._hurt = data == b"hurt"

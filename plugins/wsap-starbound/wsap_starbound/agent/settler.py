"""The settler: plays by rules and a memory, from observations alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from wsap_core.authoring.packing import WRONG_DATA, pack, unpack
from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_starbound.agent.mind import Mind
from wsap_starbound.agent.state import State, load_state

if TYPE_CHECKING:
    from wsap_starbound.world.observation import StarboundObservation

_HEADER = b"WSAP starbound-settler 1\n"


class Settler:
    """Gathers wood, digs for ores and lenses, crafts, and travels until its three quests are finished.

    It knows the rules of the game, but of the world only its observations. It draws no random numbers.
    """

    def __init__(self) -> None:
        self._state = State()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Start a session with an empty memory; the arguments are ignored."""
        self._state = State()

    def decide(self, observation: Observation) -> Action:
        """Return the next action with its reason. An observation with a smaller step than the last is of a new
        episode."""
        if observation.step < self._state.step:
            self._state = State()
        return Mind(self._state, cast("StarboundObservation", observation)).decide()

    def reflect(self, result: ActionResult) -> None:
        """Remember a refusal, so that it is not tried again in the same place."""
        if not result.success and self._state.last:
            self._state.refused.append(self._state.last)

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return the goals that are left, in the settler's order."""
        return [goal.description for goal in goals]

    def snapshot(self) -> bytes:
        """Return the whole state."""
        return pack(_HEADER, self._state.to_json())

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is invalid, and nothing has changed."""
        state = unpack(_HEADER, data, "starbound-settler")
        try:
            self._state = load_state(state)
        except WRONG_DATA as error:
            raise SnapshotError(f"The snapshot of starbound-settler is damaged: {error}.") from error

"""The seat of one of several agents in an embedded world."""

from __future__ import annotations

from collections.abc import Callable

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation, View
from wsap_tes3mp.world.actions import ACTION_SPACE
from wsap_tes3mp.world.player import DESCRIPTION, Player


class Seat:
    """The world for one of several agents."""

    action_space: ActionSpace = ACTION_SPACE
    game_description = DESCRIPTION

    def __init__(self, player: Callable[[], Player]) -> None:
        self._player = player

    async def observe(self) -> Observation:
        """Return what the agent perceives."""
        return await self._player().observe()

    async def act(self, action: Action) -> ActionResult:
        """Carry out an action, once those before it are done."""
        return await self._player().act(action)

    def default_action(self) -> Action:
        """Return what is done where the agent is late: let the beat pass."""
        return Action("noop")

    def render(self) -> View:
        """Return what the agent perceives, drawn."""
        return self._player().render()

    def reset(self) -> Observation:
        """Raise `UsageError`: one agent can't reset a world of several."""
        raise UsageError("One seat can't reset a shared world; reset the world.")

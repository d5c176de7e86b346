"""The seat of an agent in a world that is in a worker."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wsap_core.protocol import Action, ActionResult, ActionSpace, DeathEvent, JackOutResult, Observation, View
from wsap_core.protocol.wire import keep_text
from wsap_core.worlds import Outcome
from wsap_nexus.errors import WorldFailedError

if TYPE_CHECKING:
    from wsap_nexus.worlds.workers.world import WorkerWorld

# Any, in this module: JSON.


class WorkerSeat:
    """The face of a world in a worker for one agent. Made by `WorkerWorld.open_seat`.

    Args:
        world: the world.
        agent_id: who sits there.
        said: what the worker told of the seat.
    """

    def __init__(self, world: WorkerWorld, agent_id: str, said: Any) -> None:
        self.world = world
        """The world."""
        self.agent_id = agent_id
        """Who sits there."""
        self.done = False
        """True when the episode of this seat is over."""
        self.left: JackOutResult | None = None
        """Set once the agent has left the world."""
        self.action_space: ActionSpace = world.decode(ActionSpace, said["actions"])
        """All actions there are."""
        self.game_description = ""
        """The game, its goals and mechanics."""
        self._text: bytes | None = None
        self._seen = Observation()
        self.take_state(said)

    async def observe(self) -> Observation:
        """Return this seat's state at its next decision point."""
        _, text = await self.world.ask_turn("observe", seat=self.agent_id)
        return self._read(text)

    async def resolve(self, action: Action) -> Outcome:
        """Carry out an action and return what came of it, and how."""
        said, text = await self.world.ask_turn("resolve", seat=self.agent_id, action=action)
        decode = self.world.decode
        result = replace(decode(ActionResult, said["result"]), observation=self._read(text))
        out = None if said["out"] is None else decode(JackOutResult, said["out"])
        death = None if said["death"] is None else decode(DeathEvent, said["death"])
        self.take_state(said)
        return Outcome(decode(Action, said["action"]), result, bool(said["stepped"]), out, death)

    async def look(self) -> View | None:
        """Return what this seat sees now, drawn by the game; None where it draws nothing."""
        said = await self.world.ask("look", changes=False, seat=self.agent_id)
        return None if said is None else self.world.decode(View, said)

    async def default_action(self) -> Action | None:
        """Return what is done when the agent misses its deadline, or None if the world declares nothing."""
        said = await self.world.ask("default_action", changes=False, seat=self.agent_id)
        return None if said is None else self.world.decode(Action, said)

    async def leave(self, mode: str = "dormant") -> JackOutResult:
        """Take the agent out of the world by force."""
        said = await self.world.ask("leave", seat=self.agent_id, mode=mode)
        self.left = self.world.decode(JackOutResult, said)
        return self.left

    def take_state(self, said: Any) -> None:
        """Take over what the worker tells of the seat."""
        self.done = bool(said["done"])
        self.left = None if said["left"] is None else self.world.decode(JackOutResult, said["left"])
        self.game_description = said.get("description", self.game_description)

    def _read(self, text: bytes | None) -> Observation:
        """Return an observation; what comes again as it was is not read again."""
        if text is None:
            raise WorldFailedError(f"The game {self.world.spec.name!r} sent no observation.")
        if text != self._text:
            seen = self.world.decode(Observation, json.loads(text))
            # It is the canonical text, which every record of the observation is made of.
            self._seen, self._text = keep_text(seen, text.decode("ascii")), text
        return self._seen

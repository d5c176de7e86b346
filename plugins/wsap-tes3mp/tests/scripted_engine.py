"""An engine that does what a test tells it: hang, fail, answer nonsense, or confirm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wsap_tes3mp.engines.engine import Done, EngineAbility, EngineView
from wsap_tes3mp.protocol.bridge import AgentInfo
from wsap_tes3mp.protocol.perception import Payload

NOON = datetime(2026, 3, 21, 12, tzinfo=UTC)
BODY: Mapping[str, Any] = {
    "location": {"cell": "Mill", "x": 1.0, "y": 2.0, "z": 0.0, "interior": True},
    "health": {"current": 85, "max": 100},
    "nearby_entities": [{"entity_id": "cat", "name": "Cat", "entity_type": "creature", "distance": 1.5}],
    "inventory_summary": {"gold": 15, "item_count": 2, "encumbrance_pct": 1.2},
    "active_quests": [],
    "environment": {"time_of_day": "noon", "weather": "clear", "is_combat": False, "is_dialogue": False},
}


class ScriptedEngine:
    """Two agents in one cell; every command is counted in `carried_out` before `then` decides what comes of it."""

    name = "scripted"
    abilities: frozenset[EngineAbility] = frozenset()

    def __init__(self, *agents: str) -> None:
        self.boot_id: str | None = "boot-1"
        self.ids = agents
        self.sequence = 0
        self.body: Mapping[str, Any] = BODY
        self.carried_out: list[str] = []
        self.then: Callable[[], Awaitable[Done]] = self.confirm
        self.silent = False

    async def confirm(self) -> Done:
        """Say that it was done."""
        return Done("confirmed", "Done.")

    async def start(self) -> None:
        """Do nothing: it is there."""

    async def stop(self) -> None:
        """Do nothing."""

    def agents(self) -> Sequence[AgentInfo]:
        """Return the agents that it was made with."""
        return [AgentInfo(agent_id=agent, name=agent.title(), connected=True) for agent in sorted(self.ids)]

    async def perceive(self, agent_id: str) -> EngineView:
        """Return the body, or never answer."""
        if self.silent:
            await asyncio.Event().wait()
        return EngineView(NOON, self.sequence, self.body)

    async def execute(self, agent_id: str, command_id: str, command: str, params: Payload) -> Done:
        """Count the command, and do what the test wants then."""
        self.carried_out.append(command_id)
        self.sequence += 1
        return await self.then()

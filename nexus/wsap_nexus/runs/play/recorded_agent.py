"""The agent of a seat for which nobody decides any more: its recorded decisions are repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.protocol.values import JsonValue
from wsap_core.specs import AgentSpec
from wsap_llm.prompts import FORMAT


class Gone:
    """Stands in for an agent whose recorded decisions are repeated, because it has left or need not be asked."""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Do nothing."""

    async def decide(self, observation: Observation) -> Action:
        """Wait until the run is stopped: nothing more is recorded."""
        await asyncio.Event().wait()
        raise AssertionError("it waits forever")

    def reflect(self, result: ActionResult) -> None:
        """Do nothing."""

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return no plan."""
        return []

    def snapshot(self) -> bytes:
        """Return an empty state."""
        return b""

    def restore(self, data: bytes) -> None:
        """Do nothing."""


GONE = AgentSpec("gone", "Has left.", Gone, ("snapshot",), interactive=True)


def decides_again(calls: Iterable[Mapping[str, JsonValue]]) -> bool:
    """Return whether an agent with these recorded calls decides again in a replay, from the recorded replies.

    One that called no model or tool need not be asked. Where an older version made the prompts, the replies can't be
    looked up by new ones.
    """
    calls = list(calls)
    return bool(calls) and all(str(call.get("prompts", FORMAT)).split("-")[0] == str(FORMAT) for call in calls)

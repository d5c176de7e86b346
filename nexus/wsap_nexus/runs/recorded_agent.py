"""Agents that only repeat what is recorded.

They stand in for agents whose prompts an older version made, since recorded replies can't be looked up by new prompts,
and for those that have left, since nobody decides for them any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping

from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.agent import DecisionInfo
from wsap_core.specs import AgentSpec
from wsap_llm.prompts import FORMAT
from wsap_nexus.runs.logged import read_decision
from wsap_nexus.store.repository import Repository

Decided = tuple[Action, DecisionInfo | None]


class RecordedAgent:
    """Repeats recorded decisions, and waits after the last one."""

    def __init__(self, decided: Iterable[Decided] = ()) -> None:
        self.last_decision: DecisionInfo | None = None
        self._left = deque(decided)

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Do nothing."""

    async def decide(self, observation: Observation) -> Action:
        """Return the next recorded action."""
        if not self._left:
            await asyncio.Event().wait()  # until the run is stopped, where the recorded one stopped
        action, self.last_decision = self._left.popleft()
        return action

    def reflect(self, result: ActionResult) -> None:
        """Do nothing."""

    def plan(self, goals: list[Goal]) -> list[str]:
        """Return no plan."""
        return []


class Gone(RecordedAgent):
    """Stands in for an agent that is no longer there, whose recorded actions are replayed: no model is asked."""

    def snapshot(self) -> bytes:
        """Return an empty state."""
        return b""

    def restore(self, data: bytes) -> None:
        """Do nothing."""


GONE = AgentSpec("gone", "Has left.", Gone, ("snapshot",), interactive=True)


def read_decided(
    repository: Repository, run_id: str, calls: Mapping[str, Iterable[Mapping[str, JsonValue]]]
) -> dict[str, list[Decided]]:
    """Return the recorded decisions of the seats whose prompts an older version made."""
    found: dict[str, list[Decided]] = {
        seat: []
        for seat, events in calls.items()
        if any("prompts" in event and not str(event["prompts"]).startswith(f"{FORMAT}-") for event in events)
    }
    if found:
        for event in repository.read_events(run_id, kinds=("step",)):
            if event.seat in found:
                line = event.data["step"]["action"]
                action = Action(line["name"], line["parameters"], event.data["reasoning"])
                found[event.seat].append((action, read_decision(event.data["decision"])))
    return found

"""An agent with a memory and without a model, for tests that prepare what it remembers."""

from __future__ import annotations

from wsap_core import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_llm.memory.fifo import FifoMemory as Fifo


class Diarist:
    """Waits, and notes each step."""

    def __init__(self) -> None:
        self.memory = Fifo()

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        texts = [found.text for found in self.memory.recall("", budget=1000)]
        return Action("cooperate" if any("be kind" in text for text in texts) else "defect")

    def reflect(self, result: ActionResult) -> None:
        self.memory.note(f"round {len(self.memory.recall('', budget=10_000))}")

    def plan(self, goals: list[Goal]) -> list[str]:
        return []

"""What observers of a run are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wsap_core.protocol import Action, ActionResult, Observation
from wsap_core.seams.agent import DecisionInfo


@dataclass(frozen=True)
class StepTaken:
    """What an observer of a run is told after each decision."""

    seat: str
    episode: int
    step: int
    """The decision's number in the run, from 1."""
    observation: Observation
    """What the agent decided on."""
    action: Action
    result: ActionResult
    info: DecisionInfo | None
    """How the decision came about, where that is known."""
    plan: tuple[str, ...]
    """What the agent said last that it would do."""
    planned: int
    """The decision before which it said so, from 1."""

    @property
    def forced(self) -> bool:
        """Whether an action was taken in place of the agent's answer."""
        return self.info is not None and self.info.forced


Observer = Callable[[StepTaken], None]
"""Told after each decision; must return quickly."""

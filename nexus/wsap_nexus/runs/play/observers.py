"""The data passed to observers of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wsap_core.protocol import Action, ActionResult, Observation
from wsap_core.seams.agent import DecisionInfo


@dataclass(frozen=True)
class StepTaken:
    """A new step, as observers of a run receive it."""

    seat: str
    episode: int
    step: int
    """The decision's number in the run, from 1."""
    observation: Observation
    """The observation on which the agent decided."""
    action: Action
    result: ActionResult
    info: DecisionInfo | None
    """How the decision came about, if known."""
    plan: tuple[str, ...]
    """The agent's latest plan."""
    planned: int
    """The number, from 1, of the decision that the plan preceded."""

    @property
    def forced(self) -> bool:
        """Whether another action replaced the agent's answer."""
        return self.info is not None and self.info.forced


Observer = Callable[[StepTaken], None]
"""Called after each decision; must return quickly."""

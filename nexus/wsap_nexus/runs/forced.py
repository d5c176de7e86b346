"""Pausing a run in which one decision of a model after the other is forced."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.protocol import Observation
from wsap_core.seams.agent import Agent, DecisionInfo, ExplainsDecisions
from wsap_core.seams.model_errors import ForcedDecisionsError
from wsap_core.untrusted import single_line
from wsap_core.worlds import Outcome

MOST_FORCED = 10
"""Decisions that may be forced before the run is paused, unless the agent moved the game on itself in between."""

MOST_CAUSES = 12
"""Causes of forced decisions that are told apart; all others are counted together."""
OTHER_CAUSES = "other causes"


def add_causes(causes: dict[str, int], more: Mapping[str, int]) -> None:
    """Add to the number of forced decisions by cause, of which no more than `MOST_CAUSES` are told apart."""
    for cause, times in more.items():
        text = single_line(cause)[:200].rstrip(". ")
        name = text if text in causes or len(causes) < MOST_CAUSES else OTHER_CAUSES
        if text:
            causes[name] = causes.get(name, 0) + times


class ForcedStreak:
    """Counts a seat's forced decisions, if its agent explains them."""

    def __init__(self, seat: str, agent: Agent) -> None:
        self._seat = seat
        self._explained = isinstance(agent, ExplainsDecisions)
        self._causes: list[str] = []

    def check(self, before: Observation, outcome: Outcome, info: DecisionInfo | None) -> None:
        """Take in a decision and what came of it.

        Raises:
            ForcedDecisionsError: too many were forced one after the other.
        """
        if info is not None and info.forced and self._explained:
            self._causes.append(info.cause.rstrip("."))
        elif outcome.stepped and (outcome.result.observation.step != before.step or not before.step):
            self._causes.clear()
        if len(self._causes) >= MOST_FORCED and not outcome.result.done:
            cause = max(self._causes, key=self._causes.count)
            raise ForcedDecisionsError(
                f"The last {len(self._causes)} decisions of seat {self._seat!r} were forced, because the model's "
                f"answers could not be used: {cause}. The run is paused."
            )
